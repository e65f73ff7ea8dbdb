"""How far judge and simulated user can be trusted, in plain words that all reports share; not yet sanitised.

Brackets behind a number hold its 95 % interval.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ci_evals.domain.results.judge import Estimate, JudgeCheck, JudgeUsed, VoteAgreement
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.domain.results.studies import AttackKind, Attacks, Calibration, Noise, Preference, Probe
from ci_evals.domain.verdict import Outcome
from ci_evals.reports import numbers
from ci_evals.reports.facts.trial_errors import rule
from ci_evals.scoring.agreement.judge_used import judge_of, unlike

JUDGE = "Judge"
"""The topic of remarks on the verdicts themselves, whatever studies found."""
_NAME = 80
"""Characters of a run's name."""
SOURCES = {"agent": "the agent", "user": "the simulated user", "judge": "the judge"}
BEST = {
    "loops": "more trials of each test (--loops)",
    "votes": "more votes of the judge (--judge-votes)",
    "tests": "more tests",
}


@dataclass(frozen=True)
class Remark:
    """What is known of one thing, in sentences."""

    topic: str
    text: str


def remarks(results: Results) -> tuple[Remark, ...]:
    """All that is known of judge and simulated user of this run, a remark for each study."""
    found, used = results.studies, judge_of(results)

    def other(judge: JudgeUsed | None, *, same_prompt: bool = True) -> str:
        """Who judged, and what is different, where that is another judge than the run's."""
        if used is None or judge is None:
            return ""
        differs = unlike(used if same_prompt else used.model_copy(update={"prompt": judge.prompt}), judge)
        return f" Judged by {', '.join(judge.models)}, which is {differs}." if differs else ""

    told = (
        (JUDGE, " ".join(filter(None, [_checks(results.judge_checks), _grounds(results)]))),
        ("Votes", results.vote_agreement and _votes(results.vote_agreement)),
        ("Simulated user", results.user_checks and _user(results.user_checks)),
        ("Calibration", found.calibration and _calibration(found.calibration)),
        (
            "Calibration",
            found.old_calibration
            and f"The one of {found.old_calibration.at:%Y-%m-%d} says nothing of this run: "
            f"{sentence(found.old_calibration.why)}",
        ),
        ("Noise", found.noise and _noise(found.noise) + other(found.noise.judge)),
        (
            "Preference",  # which has a prompt of its own
            found.preference
            and _preference(found.preference) + other(found.preference.judge, same_prompt=False),
        ),
        ("Attacks", found.attacks and _attacks(found.attacks) + other(found.attacks.judge)),
        ("Criteria", found.probe and _probe(found.probe) + other(found.probe.judge)),
    )
    return tuple(Remark(topic, text) for topic, text in told if text)


def passes_by_grounds(results: Results) -> tuple[int, int]:
    """How many judged passes rest on the absence of something, and how many of all say what they rest on."""
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
    """How the judges did on control questions."""
    return " ".join(
        f"{one.model} answered {one.right} of {numbers.count(one.asked, 'control question')} right on "
        f"{one.at:%Y-%m-%d}{_TAKEN[one.taken_from]} ({one.required} required): "
        f"{'passed' if one.passed else 'not passed'}."
        for one in found
    )


_TAKEN = {None: "", "baseline": ", as the baseline has it", "cache": ", as the judge's cache has it"}


def _grounds(results: Results) -> str | None:
    """What judged passes rest on; None where no verdict says so."""
    absence, passes = passes_by_grounds(results)
    if not passes:
        return None
    judged = numbers.count(passes, "judged pass", "judged passes")
    if not absence:
        return f"{judged}, each with quotes that stand in the conversation."
    return (
        f"{judged}: {passes - absence:,} with quotes that stand in the conversation, {absence:,} on "
        "the absence of something in it."
    )


def cached(results: Results) -> str | None:
    """How much of what the judge said came from the cache; None where nothing did."""
    judges = [role for role in results.usage.by_role if role.role == "judge"]
    calls, known = sum(role.calls for role in judges), sum(role.cached for role in judges)
    if not known:
        return None
    return f"{numbers.fault(known / max(calls, known))} of the judge's answers are from the cache"


def estimate(found: Estimate | None, show: Callable[[float], str]) -> str:
    """`92 % (86 % to 97 %)`: a number and its interval, unless that reads the same."""
    if found is None:
        return numbers.NONE
    shown = show(found.value)
    if found.low is None or found.high is None:
        return shown
    bounds = numbers.extent(found.low, found.high, show)
    return shown if bounds == shown else f"{shown} ({bounds})"


def share(found: Estimate | None) -> str:
    """A share between 0 and 1, with its interval."""
    return estimate(found, numbers.percent)


def coefficient(found: Estimate | None) -> str:
    """A kappa or an alpha, with its interval."""
    return estimate(found, numbers.coefficient)


def fault(found: Estimate | None) -> str:
    """A share of what should not be, with its interval."""
    return estimate(found, numbers.fault)


def attack(kind: AttackKind) -> str:
    """A kind of attack: `fake verdicts`."""
    return kind.name.replace("_", " ")


def sentence(text: str) -> str:
    """`text` with one full stop at its end."""
    return f"{text.strip().rstrip('.')}."


def violations(checks: UserChecks) -> str:
    """Broken rules with the number of conversations, the commonest first: `repeats 2, meta text 1`."""
    found = sorted(checks.by_rule.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{rule(name)} {count:,}" for name, count in found)


def _votes(found: VoteAgreement) -> str:
    who = f" by {', '.join(found.models)}" if found.models else ""
    votes = f"Up to {numbers.count(found.votes, 'vote')} on a criterion{who}"
    if found.whole.share is None:
        return f"{votes}; no verdict had two that decide."
    alpha = (
        "all of them alike, so that Krippendorff's alpha has no value"
        if found.whole.alpha is None
        else f"Krippendorff's alpha {coefficient(found.whole.alpha)}"
    )
    on = numbers.count(found.whole.verdicts, "verdict")
    levels = f" On the levels of rubrics: ordinal alpha {coefficient(found.levels)}." if found.levels else ""
    return (
        f"{votes}; of the pairs of votes on one verdict {share(found.whole.share)} agree, {alpha}, on {on}."
        f"{levels}"
    )


def _user(found: UserChecks) -> str:
    looked = f"{numbers.count(found.conversations, 'conversation')} looked at"
    if found.audited:
        looked += f", {found.audited:,} by a model as well"
    broke = (
        f"{fault(found.violation_rate)} of the first users broke their role" if found.violation_rate else ""
    )
    played = f"{numbers.count(found.rerun, 'trial')} played again" if found.rerun else ""
    left = f"{found.invalid:,} left out" if found.invalid else ""
    broken = f"broken rules, by conversations: {violations(found)}" if found.by_rule else ""
    if not broken and not broke:
        broken = "no rule was broken"
    return "; ".join(filter(None, [looked, broke, played, left, broken])) + "."


def _calibration(found: Calibration) -> str:
    people, labels = (
        numbers.count(found.people, "person", "people"),
        numbers.count(found.labels, "label"),
    )
    whole = next((part for part in found.parts if part.kind == "all"), None)
    said = f"Held against {labels} of {people} ({found.at:%Y-%m-%d})."
    if whole is None:
        return said
    gates = {
        True: "The judge may gate:",
        False: "The judge should not gate:",
        None: "Whether the judge may gate is open,",
    }
    said += f" {gates[whole.may_gate]} {sentence(whole.why)}"
    measured = [
        f"{name} {shown}"
        for name, shown in (
            ("accuracy", whole.accuracy and share(whole.accuracy)),
            ("sensitivity", whole.sensitivity and share(whole.sensitivity)),
            ("specificity", whole.specificity and share(whole.specificity)),
            ("Cohen's kappa", whole.kappa and coefficient(whole.kappa)),
        )
        if shown
    ]
    if measured:
        said += f" {_upper(', '.join(measured))}."
    if whole.pass_rate is not None and whole.corrected:
        said += (
            f" It passes {numbers.percent(whole.pass_rate)} of all verdicts; "
            f"freed of its errors that is {share(whole.corrected)}."
        )
    dropped = (
        (found.cannot_tell, "label that it cannot be told", "labels that it cannot be told"),
        (found.ties, "verdict on which people are even", "verdicts on which people are even"),
        (found.unknown, "label of nothing in the run", "labels of nothing in the run"),
    )
    if left := [numbers.count(*one) for one in dropped if one[0]]:
        said += f" Left out: {', '.join(left)}."
    return said


def _noise(found: Noise) -> str:
    shares = ", ".join(f"{SOURCES[part.source]} {share(part.share)}" for part in found.parts)
    told = (
        f"Of the noise between trials of one test: {shares}; from {numbers.count(found.plays, 'play')} and "
        f"{numbers.count(found.judgements, 'judgement')} on {numbers.count(found.tests, 'test')}"
    )
    if found.tests_left_out or found.left_out:
        told += (
            f", without {numbers.count(found.left_out, 'conversation')} that came to no score and "
            f"{numbers.count(found.tests_left_out, 'test')} with too few"
        )
    told += f", for {numbers.money(found.cost_usd)}." if found.cost_usd else "."
    if found.standard_error is not None:
        error = numbers.spread(found.standard_error)
        told += f" This noise gives the run's score a standard error of {error} points."
    if found.best:
        told += f" By this estimate the next dollar belongs in {BEST[found.best]}."
    return f"{told} {_upper(sentence(found.why))}"


def _preference(found: Preference) -> str:
    commit = f"commit {found.other_commit[:7]}" if found.other_commit else f"run {found.other[:_NAME]}"
    ties = numbers.count(found.ties, "tie")
    wins, losses = numbers.count(found.wins, "win"), numbers.count(found.losses, "loss", "losses")
    pairs = numbers.count(found.pairs, "pair")
    told = f"Against {commit}, of {pairs} of conversations: {wins}, {losses}, {ties}"
    if found.undecided:
        told += f", {found.undecided:,} undecided"
    if found.share:
        told += f"; this run is preferred in {share(found.share)}, ties counted half"
    if found.p is not None:
        told += f", {numbers.p_value(found.p)} over the tests"
    told += "."
    if found.first:
        told += (
            f" Whichever was shown first was named in {share(found.first)}: without bias it would be 50 %."
        )
    if found.swapped:
        told += f" In {numbers.count(found.swapped, 'pair')} the answer followed the place."
    return told


def _attacks(found: Attacks) -> str:
    whole, control = found.whole, found.control
    return (
        f"Of {numbers.count(whole.tried, 'attack')} on {numbers.count(found.verdicts, 'failed verdict')} "
        f"{whole.turned:,} made a pass of it, {fault(whole.share)}; judged again without "
        f"any, {control.turned:,} of {control.tried:,} became a pass, {fault(control.share)}."
    )


def _probe(found: Probe) -> str:
    empty = len(found.vacuous)
    of = numbers.count(len(found.criteria), "criterion", "criteria")
    if not empty:
        return f"Tried before conversations of other tests, none of {of} passed before all of them."
    return f"Tried before conversations of other tests, {empty:,} of {of} passed before all of them."


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
