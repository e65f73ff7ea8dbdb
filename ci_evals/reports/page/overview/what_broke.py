"""The section on what broke, where, and since when; what else failed, was fixed, or could not be decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ci_evals.domain.results.comparison import Divergence, TestChange
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change, divergence, failed_tests, highlights, trial_errors, verdicts
from ci_evals.reports.facts.failed_tests import FailedCriterion, FailedTest, Quotation
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.facts.verdicts import NO_REASON
from ci_evals.reports.page import address, since
from ci_evals.reports.page.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview.test_links import TestLink, TestLinks
from ci_evals.scoring import coverage

_WHOLE = 5
"""Failed tests that are shown whole; the others have a line each."""
_CRITERIA = 3
"""Failed criteria of a test that are shown; the test's own view has all."""
_MESSAGE = 700
"""Characters of a message that is quoted."""
_CRITERION = 200
_KIND = 120
_REASON = 600
_SHORT_REASON = 240
_NOT_PLAYED = "No trial was played, so nothing can be said of any test."
_NAMED = 12
"""Tests that one cause names."""


@dataclass(frozen=True)
class CriterionLine:
    """A criterion that failed."""

    text: str
    kind: str
    times: str
    """In how many of its trials; empty if there is one."""
    reason: str
    doubt: str = ""
    """The reason why it is less reliable; may be empty."""
    where: str = ""
    """The turn that shows it: `turn 4 of trial 1`."""
    href: str | None = None


@dataclass(frozen=True)
class QuotedTurn:
    """A turn that shows a failure."""

    where: str
    href: str | None
    user: str
    agent: str


@dataclass(frozen=True)
class WholeTest:
    """A failed test with what shows the failure."""

    link: TestLink
    outcome: str
    scores: str
    """`100.0 → 33.3`; empty if it was not compared."""
    remarks: tuple[str, ...]
    since: str | None
    divergence: str | None
    """The first divergence of its conversation from the baseline's, in a sentence."""
    beside: str | None
    """The address of the turn of that divergence, with the baseline's beside it."""
    criteria: tuple[CriterionLine, ...]
    more: int
    """Failed criteria that are not shown."""
    quotes: tuple[QuotedTurn, ...]


@dataclass(frozen=True)
class TestLine:
    """A test in a line."""

    link: TestLink
    outcome: str
    remarks: str
    reason: str
    """The criterion that failed and its reason; may be empty."""


@dataclass(frozen=True)
class TestGroup:
    """Tests with a title."""

    id: str
    title: str
    remark: str
    whole: tuple[WholeTest, ...] = ()
    lines: tuple[TestLine, ...] = ()
    folded: bool = False


@dataclass(frozen=True)
class ErrorLine:
    """One cause of errors or undecided verdicts."""

    outcome: str
    what: str
    reason: str
    links: tuple[TestLink, ...]
    more: int
    """Tests that are not named."""


@dataclass(frozen=True)
class WhatBroke:
    """The whole section, in plain texts that are made safe to be shown."""

    groups: tuple[TestGroup, ...]
    errors: tuple[ErrorLine, ...]
    nothing: str | None
    """The sentence that stands there if nothing failed."""
    lost_logic: str | None
    """The agent's logic that fired in the baseline and does not now: often the cause of it all."""


def of(results: Results, links: TestLinks, comparison_runs: ComparisonRuns) -> WhatBroke:
    """The section for these results."""
    if highlights.run_outcome(results) is RunOutcome.SKIPPED:
        return WhatBroke((), (), _NOT_PLAYED, None)
    section = _BrokenSection(results, links, since.earlier(results, comparison_runs))
    newly = failed_tests.newly_failing(results)
    groups = (
        section.newly(newly),
        section.others(newly),
        section.suspects(),
        section.fixed(),
        section.flaky(),
    )
    errors = section.errors()
    tests = [test for suite in results.suites for test in suite.tests]
    failed = newly or errors or any(test.outcome == "failed" for test in tests)
    nothing = "No test failed." if results.counts.trials else _NOT_PLAYED
    return WhatBroke(
        tuple(group for group in groups if group.whole or group.lines),
        errors,
        None if failed else nothing,
        _lost_logic(results) if failed else None,
    )


def _lost_logic(results: Results) -> str | None:
    lost = coverage.plainly_lost(results.coverage)
    if not lost:
        return None
    names = [f"{part.kind.value} {part.name}" for part in lost[:_NAMED]]
    names += [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    return sanitize.one_line(
        "Look here first. Of the agent's logic, this fired in the baseline, and in the same tests it fires "
        f"no longer: {', '.join(names)}."
    )


class _BrokenSection:
    """Makes the groups of one page."""

    def __init__(self, results: Results, links: TestLinks, earlier: Sequence[ComparisonRun]) -> None:
        self._results = results
        self._comparison = results.comparison
        self._links = links
        self._earlier = earlier
        self._suspects = change.suspects(results.comparison) if results.comparison else ()

    def newly(self, newly: Sequence[FailedTest]) -> TestGroup:
        title, remark = failed_tests.title_of_newly_failing(self._results, newly) if newly else ("", "")
        return self._group("_newly", title, remark, newly[:_WHOLE], newly[_WHOLE:])

    def others(self, newly: Sequence[FailedTest]) -> TestGroup:
        fell = {(test.suite, test.name): test for test in self._suspects}
        others = [
            replace(failed, change=fell.get((view.of.name, view.test.name)))
            for failed in failed_tests.others(self._results, newly)
            if (view := self._links.view(failed.test))
        ]
        title = numbers.count(len(others), "more failed test" if newly else "failed test")
        remark = failed_tests.on_others(others) if newly and others else ""
        # Behind newly failing tests, those are shown whole that fail the gate alone, or fell far.
        grave = [bool(not newly or one.change or (one.test and one.test.critical)) for one in others]
        whole = [one for one, is_grave in zip(others, grave, strict=True) if is_grave]
        rest = [one for one, is_grave in zip(others, grave, strict=True) if not is_grave]
        return self._group("_failed", title, remark, whole[:_WHOLE], [*whole[_WHOLE:], *rest])

    def suspects(self) -> TestGroup:
        newly = self._comparison and self._comparison.regressed
        title = numbers.count(len(self._suspects), "more suspect" if newly else "suspect")
        lines = [
            self._changed(
                test,
                f"{change.scores(test)} ({numbers.signed(test.delta)})"
                + (f", confirmed ({numbers.p_value(test.p)})" if test.confirmed else ""),
            )
            for test in self._suspects
        ]
        remark = change.on_suspects(self._suspects) if lines else ""
        return TestGroup("_suspects", title, remark, lines=tuple(lines), folded=True)

    def fixed(self) -> TestGroup:
        fixed = self._comparison.fixed if self._comparison else ()
        lines = [self._changed(test, change.scores(test), in_baseline=True) for test in fixed]
        title = numbers.count(len(fixed), "fixed test")
        remark = change.on_fixed(fixed) if fixed else ""
        return TestGroup("_fixed", title, remark, lines=tuple(lines), folded=True)

    def flaky(self) -> TestGroup:
        lines = [
            TestLine(
                self._links.link(test), test.outcome.value, f"{highlights.passes(test)} trials passed", ""
            )
            for suite in self._results.suites
            for test in suite.tests
            if test.flaky
        ]
        title = numbers.count(len(lines), "flaky test")
        remark = "Some of their trials passed and others did not."
        return TestGroup("_flaky", title, remark, lines=tuple(lines), folded=True)

    def errors(self) -> tuple[ErrorLine, ...]:
        return tuple(
            ErrorLine(
                errors.outcome.value,
                errors.what,
                sanitize.one_line(errors.reason, _REASON),
                tuple(self._links.link(test) for _, test in errors.affected[:_NAMED]),
                len(errors.affected[_NAMED:]),
            )
            for errors in trial_errors.by_cause(self._results.suites)
        )

    def _group(
        self, name: str, title: str, remark: str, whole: Sequence[FailedTest], rest: Sequence[FailedTest]
    ) -> TestGroup:
        return TestGroup(name, title, remark, tuple(map(self._whole, whole)), tuple(map(self._line, rest)))

    def _whole(self, failed: FailedTest) -> WholeTest:
        view = self._links.view(failed.test, failed.change)
        evidence = failed.change.evidence if failed.change else None
        first = failed.change.first_divergence if failed.change else None
        criteria = [_criterion(one, view, failed.warnings) for one in failed.criteria[:_CRITERIA]]
        if not criteria and evidence:
            criterion = sanitize.one_line(evidence.criterion, _CRITERION)
            doubt = sanitize.one_line(failed.warnings.get(evidence.criterion, ""))
            criteria = [CriterionLine(criterion, "", "", _reason(evidence.reason), doubt)]
        return WholeTest(
            link=self._links.link(failed.test, failed.change),
            outcome=failed.outcome.value,
            scores=failed.scores,
            remarks=failed.remarks,
            since=self._since(failed, view),
            divergence=sanitize.one_line(divergence.sentence(first), _REASON) if first else None,
            beside=_beside(first, view) if first else None,
            criteria=tuple(criteria),
            more=len(failed.criteria[_CRITERIA:]),
            quotes=tuple(_quote(quoted, view) for quoted in failed.quotations(failed.criteria[:1])[:1]),
        )

    def _line(self, failed: FailedTest) -> TestLine:
        return TestLine(
            self._links.link(failed.test, failed.change),
            failed.outcome.value,
            ", ".join([*filter(None, [failed.scores]), *failed.remarks]),
            _criterion_and_reason(*failed.first_reason) if failed.first_reason else "",
        )

    def _changed(self, test: TestChange, remarks: str, *, in_baseline: bool = False) -> TestLine:
        view, evidence = self._links.view(None, test), test.evidence
        reason = _criterion_and_reason(evidence.criterion, evidence.reason) if evidence else ""
        return TestLine(
            self._links.link(None, test),
            view.test.outcome.value if view else "failed",
            remarks,
            f"In the baseline: {reason}" if reason and in_baseline else reason,
        )

    def _since(self, failed: FailedTest, view: TestView | None) -> str | None:
        """Since when it fails, if that is known; of a newly failing test at least the baseline is."""
        if view and view.test.outcome == "failed":
            key = (view.of.name, view.test.name, view.test.digest)
            if streak := since.of(key, self._earlier):
                baseline = self._comparison.baseline.run_id if self._comparison else None
                return sanitize.one_line(since.words(streak, baseline))
        if self._comparison is None or failed.change not in self._comparison.regressed:
            return None
        base = self._comparison.baseline
        commit = f"commit {base.commit[: change.COMMIT]}, " if base.commit else ""
        when = f"{change.moment(base.at)}, {change.age(self._results, self._comparison)}"
        return sanitize.one_line(f"Passed in the baseline ({commit}{when}).")


def _criterion(failed: FailedCriterion, view: TestView | None, doubts: Mapping[str, str]) -> CriterionLine:
    finding, turn = failed.finding, failed.turn
    kind = [verdicts.kind(finding).replace("_", " ")]
    kind += [f"weight {numbers.plain(finding.weight)}"] if finding.weight != 1 else []
    kind += [finding.category] if finding.category else []
    return CriterionLine(
        sanitize.one_line(finding.criterion, _CRITERION),
        sanitize.one_line(", ".join(kind), _KIND),
        f"{failed.times} of {numbers.count(failed.trials, 'trial')}" if failed.trials > 1 else "",
        _reason(finding.reason),
        sanitize.one_line(doubts.get(finding.criterion, "")),
        _where(turn.index, failed.trial.index if failed.trials > 1 else None) if turn else "",
        address.of(view, failed.trial.index, turn.index) if view and turn else None,
    )


def _beside(first: Divergence, view: TestView | None) -> str | None:
    if view is None or view.base is None:
        return None
    turn = None if first.only == "base" else first.turn
    return address.of(view, first.head_trial, turn, first.base_trial)


def _quote(quoted: Quotation, view: TestView | None) -> QuotedTurn:
    href = address.of(view, quoted.trial or 1, quoted.turn) if view else None
    where = _where(quoted.turn, quoted.trial)
    return QuotedTurn(f"{where[0].upper()}{where[1:]}", href, _message(quoted.user), _message(quoted.agent))


def _where(turn: int, trial: int | None) -> str:
    return f"turn {turn}" + (f" of trial {trial}" if trial else "")


def _message(text: str) -> str:
    return sanitize.cut(text, _MESSAGE, "…").strip() or "(no text)"


def _reason(text: str, longest: int = _REASON) -> str:
    return sanitize.one_line(text, longest) or NO_REASON


def _criterion_and_reason(criterion: str, reason: str) -> str:
    return f"“{sanitize.one_line(criterion, _CRITERION)}”: {_reason(reason, _SHORT_REASON)}"
