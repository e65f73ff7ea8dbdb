"""The reliability of judge and simulated user, in sentences and tables; not yet sanitized.

Brackets behind a number hold its 95 % interval.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ci_evals.domain import numbers
from ci_evals.domain.results.judge import JudgeCheck, JudgeUsed, PartAgreement, VoteAgreement
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.domain.verdict import Outcome
from ci_evals.extension_registry import study_reports
from ci_evals.reports import sanitize
from ci_evals.reports.story.advice import FIX_GUIDELINES
from ci_evals.reports.story.outcome_labels import Tone
from ci_evals.reports.story.phrases import spaced
from ci_evals.reports.story.table import BLANK, Column, Table, table_of
from ci_evals.scoring.agreement.judges import judge_of, unlike

_NAMED_CRITERIA = 2
"""Criteria that a sentence names: the marks at all of them, and the tables, have the rest."""
_NAME = 60
"""Characters of a criterion or a test that a sentence names."""
JUDGE = "Judge"
"""The topic of remarks on the verdicts themselves."""
_TAKEN = {None: "", "baseline": ", in the baseline", "cache": ", in the judge's cache"}
_Part = tuple[str, PartAgreement]
"""A criterion or a category: what stands before its name, and the numbers."""
_VOTE_COLUMNS: tuple[Column[_Part], ...] = (
    Column("criterion", words=True, show=lambda part: f"{part[0]}{part[1].name}"),
    Column("said of it", words=True, says_nothing=BLANK, show=lambda part: "low" if part[1].low else ""),
    Column("test", words=True, says_nothing=BLANK, show=lambda part: part[1].test or ""),
    Column("pairs that agree", show=lambda part: numbers.estimated_share(part[1].share)),
    Column("alpha", show=lambda part: numbers.estimated_coefficient(part[1].alpha)),
    Column("verdicts", show=lambda part: f"{part[1].verdicts:,}"),
)


@dataclass(frozen=True)
class CriterionWarning:
    """The reason why the verdicts on a criterion are less reliable."""

    criterion: str
    suite: str | None
    """None stands for every suite, and for every test below."""
    test: str | None
    text: str


@dataclass(frozen=True)
class StudyReport:
    """The report on a study, as plain text that is not yet sanitized."""

    topic: str
    remark: str
    """In sentences."""
    tables: tuple[Table, ...] = ()
    """The same in numbers."""
    warnings: tuple[str, ...] = ()
    """Warnings that a reader needs before the numbers of the run, and what to do."""
    criterion_warnings: tuple[CriterionWarning, ...] = ()


def criterion_name(name: str, test: str | None = None) -> str:
    """A criterion in quotation marks, with its test."""
    where = f" in {sanitize.one_line(test, _NAME)}" if test else ""
    return f"“{sanitize.one_line(name, _NAME)}”{where}"


def listed_criteria(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return numbers.listed(names, _NAMED_CRITERIA)


def other_judge(results: Results, judge: JudgeUsed | None, *, own_prompt: bool = False) -> str:
    """The judge of a study, if it is not the run's.

    Args:
        results: The run's.
        judge: The study's.
        own_prompt: Whether the study has a prompt of its own, which then is no difference.
    """
    used = judge_of(results)
    if used is None or judge is None:
        return ""
    differs = unlike(replace(used, prompt=judge.prompt) if own_prompt else used, judge)
    return f" Judged by {', '.join(judge.models)}, which is {differs}." if differs else ""


def _judge_remark(results: Results) -> str:
    """Return its control questions, and what its passes rest on; empty if nothing is known."""
    return " ".join(filter(None, [_checks(results.judge_checks), _grounds(results)]))


def passes_by_grounds(results: Results) -> tuple[int, int]:
    """The number of judged passes that rest on an absence, and of all that state their grounds."""
    findings = [
        finding
        for suite in results.suites
        for test in suite.tests
        for trial in test.trials
        for finding in trial.findings
        if finding.rests_on and finding.outcome is Outcome.PASSED
    ]
    return sum(finding.rests_on == "absence" for finding in findings), len(findings)


def _checks(found: Sequence[JudgeCheck]) -> str:
    return " ".join(
        f"{one.model} answered {one.right} of {numbers.count(one.asked, 'control question')} right on "
        f"{one.at:%Y-%m-%d}{_TAKEN[one.taken_from]} ({one.required} required): "
        f"{'passed' if one.passed else 'not passed'}."
        for one in found
    )


def _grounds(results: Results) -> str | None:
    """The grounds of judged passes; None if no verdict states them."""
    absence, passes = passes_by_grounds(results)
    if not passes:
        return None
    judged = numbers.count(passes, "judged pass", "judged passes")
    if not absence:
        return f"{judged}, each backed by quotes from the conversation."
    return (
        f"{judged}: {passes - absence:,} backed by quotes from the conversation, {absence:,} by what is "
        "absent from it."
    )


def cached_answers(results: Results) -> str | None:
    """The share of the judge's answers that came from the cache; None if none did."""
    judges = [role for role in results.usage.by_role if role.role == "judge"]
    calls, known = sum(role.calls for role in judges), sum(role.cached for role in judges)
    if not known:
        return None
    return f"{numbers.fault(known / max(calls, known))} of the judge's answers are from the cache"


def _vote_warnings(results: Results) -> Iterator[str]:
    agreement = results.vote_agreement
    low = [part for part in agreement.criteria if part.low] if agreement else []
    if not agreement or not low:
        return
    named = [
        f"{criterion_name(part.name, part.test)} "
        f"({_percent(part)}, {numbers.count(part.verdicts, 'verdict')})"
        for part in low
    ]
    criteria = numbers.count(len(low), "criterion", "criteria")
    it = "it" if len(low) == 1 else "them"
    advice = f"Read the votes' reasons, and word {it} so that both would agree"
    if agreement.whole.low:
        advice = (
            f"Overall only {numbers.estimated_share(agreement.whole.share)} agree: another judge or a panel "
            "may help more than other words"
        )
    yield (
        f"The judge's votes disagree on {criteria} of {len(agreement.criteria):,} (clearly less than 80 % of "
        f"the pairs of votes agree): {listed_criteria(named)}. {advice}."
    )


def _vote_criterion_warnings(results: Results) -> Iterator[CriterionWarning]:
    for part in results.vote_agreement.criteria if results.vote_agreement else ():
        if part.low:
            text = f"the judge's votes disagree on this one ({_percent(part)} of pairs agree)"
            yield CriterionWarning(part.name, part.suite, part.test, text)


def _vote_remark(agreement: VoteAgreement) -> str:
    who = f" by {', '.join(agreement.models)}" if agreement.models else ""
    votes = f"Up to {numbers.count(agreement.votes, 'vote')} on a criterion{who}"
    if agreement.whole.share is None:
        return f"{votes}; no verdict had two that decide."
    alpha = (
        "all alike, so Krippendorff's alpha has no value"
        if agreement.whole.alpha is None
        else f"Krippendorff's alpha {numbers.estimated_coefficient(agreement.whole.alpha)}"
    )
    agree = f"of the pairs of votes on one verdict {numbers.estimated_share(agreement.whole.share)} agree"
    text = f"{votes}; {agree}, {alpha}, on {numbers.count(agreement.whole.verdicts, 'verdict')}."
    text += _worth(agreement)
    if agreement.levels:
        text += f" On the levels of rubrics: ordinal alpha {numbers.estimated_coefficient(agreement.levels)}."
    return text


def _worth(agreement: VoteAgreement) -> str:
    """How many independent votes those on one criterion are worth, in a sentence; or why that is unknown."""
    if agreement.effective_votes:
        worth = numbers.estimate(agreement.effective_votes, lambda count: f"{count:.1f}")
        return f" {agreement.votes:,} votes are worth at least {worth} independent ones."
    alpha = agreement.whole.alpha
    if alpha is None or alpha.value == 1:
        return " How many independent votes they are worth is unknown: none disagree."
    return ""


def _percent(part: PartAgreement) -> str:
    return numbers.percent(part.share.value if part.share else None)


def _vote_table(agreement: VoteAgreement) -> Table:
    parts = [("", part) for part in agreement.criteria]
    parts += [("category ", part) for part in agreement.categories]
    return table_of(
        "Agreement of the judge's votes",
        _VOTE_COLUMNS,
        parts,
        tone=lambda part: Tone.BAD if part[1].low else None,
        long=True,
    )


def _user_warnings(results: Results) -> Iterator[str]:
    """Warnings about excluded trials, and simulated users that no model checked."""
    checks = results.user_checks
    if checks is None:
        return
    if checks.invalid:
        yield (
            f"{numbers.count(checks.invalid, 'trial')} excluded from every score: the simulated user broke "
            f"character, and again in the retry. {FIX_GUIDELINES}"
        )
    if checks.not_audited:
        talks = numbers.count(checks.not_audited, "conversation")
        yield f"{talks} could not be audited by a model: only rules checked the simulated user there."


def _user_remark(checks: UserChecks) -> str:
    looked = f"{numbers.count(checks.conversations, 'conversation')} checked"
    if checks.audited:
        looked += f", {checks.audited:,} by a model as well"
    broke = (
        f"{numbers.estimated_fault(checks.violation_rate)} of the simulated users broke character"
        if checks.violation_rate
        else ""
    )
    played = f"{numbers.count(checks.rerun, 'trial')} retried" if checks.rerun else ""
    left = f"{checks.invalid:,} excluded" if checks.invalid else ""
    broken = f"broken rules, by conversations: {_violations(checks)}" if checks.by_rule else ""
    if not broken and not broke:
        broken = "no rule was broken"
    return "; ".join(filter(None, [looked, broke, played, left, broken])) + "."


def _violations(checks: UserChecks) -> str:
    """`repeats 2, meta text 1`."""
    return ", ".join(f"{spaced(name)} {count:,}" for name, count in _by_rule(checks))


def _by_rule(checks: UserChecks) -> list[tuple[str, int]]:
    """Broken rules with the number of conversations, the commonest first."""
    return sorted(checks.by_rule.items(), key=lambda item: (-item[1], item[0]))


def _user_table(checks: UserChecks) -> Table:
    columns: tuple[Column[tuple[str, int]], ...] = (
        Column("rule", words=True, show=lambda rule: spaced(rule[0])),
        Column("conversations", show=lambda rule: f"{rule[1]:,}"),
        Column(
            "of those checked",
            show=lambda rule: numbers.fault(rule[1] / max(checks.conversations, rule[1], 1)),
        ),
    )
    return table_of("Rules that simulated users broke", columns, _by_rule(checks), in_remark=True)


@dataclass(frozen=True)
class Remark:
    """The facts of one topic, in sentences."""

    topic: str
    text: str


@dataclass(frozen=True)
class CriterionWarnings:
    """The criteria of a run that are less reliable, and why."""

    by_criterion: Mapping[str, Sequence[CriterionWarning]]

    def of(self, suite: str, test: str, criterion: str) -> str:
        """The warning about this criterion of this test; empty if there is none."""
        return "; ".join(
            warning.text
            for warning in self.by_criterion.get(criterion, ())
            if warning.suite in {None, suite} and warning.test in {None, test}
        )

    def of_test(self, suite: str, test: str) -> dict[str, str]:
        """The warnings about all criteria of a test, by criterion."""
        found = ((criterion, self.of(suite, test, criterion)) for criterion in self.by_criterion)
        return {criterion: warning for criterion, warning in found if warning}


@dataclass(frozen=True)
class JudgingStory:
    """What is known of judge and simulated user."""

    remarks: tuple[Remark, ...]
    tables: tuple[Table, ...]
    """The numbers behind these remarks."""
    warnings: tuple[str, ...]
    """Reasons to trust judge or simulated user less, each with what to do."""
    of_criteria: CriterionWarnings
    cached_answers: str | None
    """The share of the judge's answers that came from the cache."""


def of_run(results: Results) -> JudgingStory:
    """Return what is known of judge and simulated user of a run, from its own numbers and its studies."""
    remarks, tables = [], []
    if text := _judge_remark(results):
        remarks.append(Remark(JUDGE, text))
    if results.vote_agreement:
        remarks.append(Remark("Votes", _vote_remark(results.vote_agreement)))
        tables.append(_vote_table(results.vote_agreement))
    if results.user_checks:
        remarks.append(Remark("Simulated user", _user_remark(results.user_checks)))
        tables.append(_user_table(results.user_checks))
    warnings = [*_user_warnings(results), *_vote_warnings(results)]
    criterion_warnings = [*_vote_criterion_warnings(results)]
    for study in study_reports(results):
        remarks.append(Remark(study.topic, study.remark))
        tables += study.tables
        warnings += study.warnings
        criterion_warnings += study.criterion_warnings
    by_criterion: dict[str, list[CriterionWarning]] = {}
    for warning in criterion_warnings:
        by_criterion.setdefault(warning.criterion, []).append(warning)
    return JudgingStory(
        tuple(remarks),
        tuple(table for table in tables if table.rows),
        tuple(warnings),
        CriterionWarnings(by_criterion),
        cached_answers(results),
    )
