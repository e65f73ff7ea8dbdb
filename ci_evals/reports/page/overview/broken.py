"""What broke, where, and since when; what else failed, was fixed, or could not be told."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ci_evals.domain.results.comparison import Divergence, TestChange
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change, divergence, failed_tests, highlights, trial_errors
from ci_evals.reports.facts.failed_tests import FailedCriterion, FailedTest, Quotation
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.page import address, since
from ci_evals.reports.page.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview.places import Places
from ci_evals.reports.page.overview.told import Broken, Criterion, Line, Part, Quote, Story, Trouble
from ci_evals.scoring import coverage

_WHOLE = 5
"""Failures that are told whole; the others have a line each."""
_CRITERIA = 3
"""Failed criteria of a test that are shown; the test's own view has all."""
_SAID = 700
"""Characters of a message that is quoted."""
_CRITERION = 200
_KIND = 120
_REASON = 600
_NOT_PLAYED = "No trial was played, so nothing can be said of any test."
_NAMED = 12
"""Tests that one cause names."""


def of(results: Results, places: Places, comparison_runs: ComparisonRuns) -> Broken:
    """What went wrong in these results."""
    if highlights.run_outcome(results) is RunOutcome.SKIPPED:
        return Broken((), (), _NOT_PLAYED, None)
    teller = _Teller(results, places, since.earlier(results, comparison_runs))
    newly = failed_tests.newly_failing(results)
    parts = [part for part in (teller.newly(newly), teller.others(newly)) if part]
    parts += [part for part in (teller.suspects(), teller.fixed(), teller.flaky()) if part]
    troubles = teller.troubles()
    failed = (
        newly or troubles or any(test.outcome == "failed" for suite in results.suites for test in suite.tests)
    )
    return Broken(
        tuple(parts), troubles, None if failed else _calm(results), _gone(results) if failed else None
    )


def _gone(results: Results) -> str | None:
    found = coverage.plainly_lost(results.coverage)
    if not found:
        return None
    named = [f"{part.kind.value} {part.name}" for part in found[:_NAMED]]
    more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
    names = ", ".join(named + more)
    return sanitize.one_line(
        "Look here first. Of the agent's logic, this fired in the baseline, and in the same tests it fires "
        f"no longer: {names}."
    )


def _calm(results: Results) -> str:
    return "No test failed." if results.counts.trials else _NOT_PLAYED


class _Teller:
    """Tells of tests by their places on one page."""

    def __init__(self, results: Results, places: Places, earlier: Sequence[ComparisonRun]) -> None:
        self._results = results
        self._places = places
        self._earlier = earlier
        self._suspects = change.suspects(results.comparison) if results.comparison else ()

    def newly(self, found: Sequence[FailedTest]) -> Part | None:
        if not found:
            return None
        title, told = failed_tests.title_of_newly_failing(self._results, found)
        return Part(
            "_newly",
            title,
            told,
            tuple(map(self._story, found[:_WHOLE])),
            tuple(map(self._line, found[_WHOLE:])),
        )

    def others(self, newly: Sequence[FailedTest]) -> Part | None:
        fell = {(test.suite, test.name): test for test in self._suspects}
        found = [
            replace(failure, change=fell.get((shown.of.name, shown.test.name)))
            for failure in failed_tests.others(self._results, newly)
            if (shown := self._places.shown(failure.test))
        ]
        if not found:
            return None
        title = numbers.count(len(found), "more failed test" if newly else "failed test")
        told = failed_tests.on_others(found) if newly else ""
        # Behind newly failing tests, those are told whole that fail the gate alone, or fell far.
        grave = [bool(not newly or one.change or (one.test and one.test.critical)) for one in found]
        whole = [one for one, holds in zip(found, grave, strict=True) if holds]
        rest = [one for one, holds in zip(found, grave, strict=True) if not holds]
        lines = map(self._line, [*whole[_WHOLE:], *rest])
        return Part("_failed", title, told, tuple(map(self._story, whole[:_WHOLE])), tuple(lines))

    def suspects(self) -> Part | None:
        found = self._suspects
        if not found:
            return None
        newly = self._results.comparison and self._results.comparison.regressed
        title = numbers.count(len(found), "more suspect" if newly else "suspect")
        lines = [
            self._changed(
                test,
                f"{change.scores(test)} ({numbers.signed(test.delta)})"
                + (f", confirmed ({numbers.p_value(test.p)})" if test.confirmed else ""),
            )
            for test in found
        ]
        return Part("_suspects", title, change.on_suspects(found), lines=tuple(lines), folded=True)

    def fixed(self) -> Part | None:
        found = self._results.comparison.fixed if self._results.comparison else ()
        if not found:
            return None
        lines = [self._changed(test, change.scores(test), in_baseline=True) for test in found]
        title = numbers.count(len(found), "fixed test")
        return Part("_fixed", title, change.on_fixed(found), lines=tuple(lines), folded=True)

    def flaky(self) -> Part | None:
        found = [test for suite in self._results.suites for test in suite.tests if test.flaky]
        if not found:
            return None
        title = numbers.count(len(found), "flaky test")
        told = "Some of their trials passed and others did not."
        lines = [
            Line(self._places.of(test), test.outcome.value, f"{highlights.passes(test)} trials passed", "")
            for test in found
        ]
        return Part("_flaky", title, told, lines=tuple(lines), folded=True)

    def troubles(self) -> tuple[Trouble, ...]:
        return tuple(
            Trouble(
                one.outcome.value,
                one.what,
                sanitize.one_line(one.reason, _REASON),
                tuple(self._places.of(test) for _, test in one.affected[:_NAMED]),
                len(one.affected[_NAMED:]),
            )
            for one in trial_errors.by_cause(self._results.suites)
        )

    def _story(self, failure: FailedTest) -> Story:
        found, shown = failure.criteria, self._places.shown(failure.test, failure.change)
        evidence = failure.change.evidence if failure.change else None
        parts = failure.change.first_divergence if failure.change else None
        criteria = [_criterion(one, shown, failure.warnings) for one in found[:_CRITERIA]]
        if not found and evidence:
            criteria = [
                Criterion(
                    sanitize.one_line(evidence.criterion, _CRITERION),
                    "",
                    "",
                    _reason(evidence.reason),
                    sanitize.one_line(failure.warnings.get(evidence.criterion, "")),
                )
            ]
        return Story(
            place=self._places.of(failure.test, failure.change),
            outcome=failure.outcome.value,
            scores=failure.scores,
            remarks=failure.remarks,
            since=self._since(failure, shown),
            divergence=sanitize.one_line(divergence.sentence(parts), _REASON) if parts else None,
            beside=_beside(parts, shown) if parts else None,
            criteria=tuple(criteria),
            more=len(found[_CRITERIA:]),
            quotes=tuple(_quote(said, shown) for said in failure.quotations(found[:1])[:1]),
        )

    def _line(self, failure: FailedTest) -> Line:
        said = [failure.scores] if failure.scores else []
        return Line(
            self._places.of(failure.test, failure.change),
            failure.outcome.value,
            ", ".join([*said, *failure.remarks]),
            _why(*failure.first_reason) if failure.first_reason else "",
        )

    def _changed(self, test: TestChange, said: str, *, in_baseline: bool = False) -> Line:
        place, shown = self._places.of(None, test), self._places.shown(None, test)
        outcome = shown.test.outcome.value if shown else "failed"
        evidence = test.evidence
        why = _why(evidence.criterion, evidence.reason) if evidence else ""
        return Line(place, outcome, said, f"In the baseline: {why}" if why and in_baseline else why)

    def _since(self, failure: FailedTest, shown: TestView | None) -> str | None:
        """Since when it fails, where that is known; of a newly failing test at least the baseline is."""
        if shown and shown.test.outcome == "failed":
            key = (shown.of.name, shown.test.name, shown.test.digest)
            if found := since.of(key, self._earlier):
                compared = self._results.comparison
                return sanitize.one_line(since.words(found, compared.baseline.run_id if compared else None))
        comparison = self._results.comparison
        if comparison is None or failure.change not in comparison.regressed:
            return None
        was = comparison.baseline
        commit = f"commit {was.commit[: change.COMMIT]}, " if was.commit else ""
        when = f"{change.moment(was.at)}, {change.age(self._results, comparison)}"
        return sanitize.one_line(f"Passed in the baseline ({commit}{when}).")


def _criterion(found: FailedCriterion, shown: TestView | None, doubts: Mapping[str, str]) -> Criterion:
    finding, said = found.finding, found.turn
    kind = [highlights.kind(finding).replace("_", " ")]
    kind += [f"weight {numbers.plain(finding.weight)}"] if finding.weight != 1 else []
    kind += [finding.category] if finding.category else []
    return Criterion(
        sanitize.one_line(finding.criterion, _CRITERION),
        sanitize.one_line(", ".join(kind), _KIND),
        f"{found.times} of {numbers.count(found.trials, 'trial')}" if found.trials > 1 else "",
        _reason(finding.reason),
        sanitize.one_line(doubts.get(finding.criterion, "")),
        _where(said.index, found.trial.index if found.trials > 1 else None) if said else "",
        address.of(shown, found.trial.index, said.index) if shown and said else None,
    )


def _beside(found: Divergence, shown: TestView | None) -> str | None:
    if shown is None or shown.base is None:
        return None
    here = None if found.only == "base" else found.turn
    return address.of(shown, found.head_trial, here, found.base_trial)


def _quote(said: Quotation, shown: TestView | None) -> Quote:
    trial = said.trial or 1
    href = address.of(shown, trial, said.turn) if shown else None
    where = _where(said.turn, said.trial)
    return Quote(f"{where[0].upper()}{where[1:]}", href, _said(said.user), _said(said.agent))


def _where(turn: int, trial: int | None) -> str:
    return f"turn {turn}" + (f" of trial {trial}" if trial else "")


def _said(text: str) -> str:
    return sanitize.cut(text, _SAID, "…").strip() or "(no text)"


def _reason(text: str) -> str:
    return sanitize.one_line(text, _REASON) or "no reason was given"


def _why(criterion: str, reason: str) -> str:
    return f"“{sanitize.one_line(criterion, 200)}”: {sanitize.one_line(reason, 240) or 'no reason was given'}"
