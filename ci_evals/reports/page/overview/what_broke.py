"""The section on what broke, where, and since when; what else failed, was fixed, or could not be decided."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.run import Results
from ci_evals.reports import sanitize
from ci_evals.reports.page import since
from ci_evals.reports.page.comparison_runs import ComparisonRun, ComparisonRuns
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview.test_links import TestLink, TestLinks
from ci_evals.reports.story import changes, process, wording
from ci_evals.reports.story.failures import FailedCriterion, FailedTest, Quotation, TrialErrors
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.wording import NO_REASON, RunOutcome
from ci_evals.scoring import coverage
from ci_evals.scoring.comparison.compare import SUSPECT

_WHOLE = 3
"""Failed tests that are shown whole; the others have a line each."""
_CRITERION = 200
_REASON = 240
_NOT_PLAYED = "No trial ran, so no test has a result."
_NAMED = 12
"""Parts of the agent's logic that a sentence names."""


@dataclass(frozen=True)
class WholeTest:
    """A failed test with what shows the failure."""

    failed: FailedTest
    view: TestView | None
    """The test of the page, if it has it."""
    link: TestLink
    since: str | None

    @property
    def divergence(self) -> str | None:
        """The first divergence of its conversation from the baseline's, in a sentence."""
        first = self.failed.change.first_divergence if self.failed.change else None
        return changes.divergence_sentence(first) if first else None

    @property
    def beside(self) -> str | None:
        """The address of the turn of that divergence, with the baseline's beside it."""
        first = self.failed.change.first_divergence if self.failed.change else None
        if first is None or self.view is None or self.view.base is None:
            return None
        turn = None if first.only == "base" else first.turn
        return self.view.address(first.head_trial, turn, first.base_trial)

    @property
    def quotations(self) -> Sequence[Quotation]:
        """The turn that shows the first criterion."""
        return self.failed.quotations(self.failed.criteria[:1])[:1]

    def quotes(self, criterion: FailedCriterion) -> bool:
        """Return whether the turn that shows a criterion is quoted, or named by its reason."""
        turn = criterion.turn
        if turn is None or f"turn {turn.index}" in criterion.finding.reason:
            return True
        several = self.failed.test is not None and len(self.failed.test.trials) > 1
        place = turn.index, criterion.trial.index if several else None
        return place in {(quote.turn, quote.trial) for quote in self.quotations}

    def kind(self, criterion: FailedCriterion) -> str:
        """The kind of a criterion, and how often it failed."""
        finding = criterion.finding
        parts = [wording.verdict_kind(finding).replace("_", " ")]
        parts += [f"weight {numbers.plain(finding.weight)}"] if finding.weight != 1 else []
        parts += [finding.category] if finding.category else []
        if criterion.trials > 1:
            parts.append(f"failed in {criterion.times} of {criterion.trials} trials")
        return ", ".join(parts)


@dataclass(frozen=True)
class TestLine:
    """A test in a line."""

    link: TestLink
    outcome: str
    remarks: str
    reason: str = ""
    """The criterion that failed and its reason; may be empty."""


@dataclass(frozen=True)
class TestGroup:
    """Tests with a title."""

    id: str
    title: str
    whole: Sequence[WholeTest] = ()
    lines: Sequence[TestLine] = ()
    folded: bool = False
    unlisted: int = 0
    """Tests that have no line, as there are too many."""


@dataclass(frozen=True)
class WhatBroke:
    """The whole section. Its texts are plain, neither sanitized nor escaped, except those of links."""

    groups: Sequence[TestGroup]
    errors: Sequence[tuple[TrialErrors, Sequence[TestLink]]] = ()
    """Each cause of errors or undecided verdicts, and the tests with it."""
    nothing: str | None = None
    """The sentence that stands there if nothing failed."""
    lost_logic: str | None = None
    """The agent's logic that was used in the baseline and does not now: often the cause of it all."""


def of(story: Story, links: TestLinks, comparison_runs: ComparisonRuns) -> WhatBroke:
    """The section for these results."""
    results = story.results
    if story.outcome is RunOutcome.SKIPPED:
        return WhatBroke((), nothing=_NOT_PLAYED)
    section = _BrokenSection(story, links, since.earlier(results, comparison_runs))
    groups = [group for group in section.groups() if group.whole or group.lines]
    errors = [(errors, [links.link(test) for _, test in errors.affected]) for errors in story.errors]
    if errors or any(not group.folded for group in groups):
        return WhatBroke(groups, errors, lost_logic=_lost_logic(results))
    return WhatBroke(groups, nothing="No test failed." if results.counts.trials else _NOT_PLAYED)


def _lost_logic(results: Results) -> str | None:
    lost = coverage.plainly_lost(results.coverage)
    if not lost:
        return None
    names = [process.part_name(part, results.coverage) for part in lost[:_NAMED]]
    names += [f"{len(lost) - _NAMED} more"] if len(lost) > _NAMED else []
    one = len(lost) == 1
    these, were = ("this part", "was") if one else ("these parts", "were")
    parts = f"{these} of {process.parts_name(results.coverage)} {were} used"
    return f"Look here first: {parts} in the baseline and no longer in the same tests: {', '.join(names)}."


class _BrokenSection:
    """Makes the groups of one page."""

    def __init__(self, story: Story, links: TestLinks, earlier: Sequence[ComparisonRun]) -> None:
        self._results = story.results
        self._story = story
        self._links = links
        self._earlier = earlier
        self._most = story.listed.most
        """Tests of a group up to which each has a line; None for all."""

    def groups(self) -> Iterable[TestGroup]:
        """All groups, the news first."""
        news, results, most = self._story.change.news, self._results, self._most
        title, flaky_tests = wording.flaky(results.suites)
        flaky = [
            TestLine(self._links.link(test), test.outcome.value, passed)
            for test, passed in flaky_tests[:most]
        ]
        fixed = [self._changed(one, changes.scores(one), in_baseline=True) for one in news.fixed[:most]]
        dropped = [self._changed(test, _drop(test)) for test in news.dropped[:most]]
        before, too = news.failed_before, f"{_tests(news.failed_before)} failed in the baseline too"
        worse = f"{_tests(news.worse)} failed in the baseline too, and {_are(news.worse)} worse now"
        # Behind tests that broke, those are shown whole that fail the gate alone.
        grave = [bool(not news.broke or (one.test and one.test.critical)) for one in before]
        unjudged = f"{_tests(news.unjudged)} passed in the baseline and could not be judged now"
        few = f"{_tests(news.dropped)} dropped by {SUSPECT} points or more"
        return (
            self._group("_broke", self._story.change.broke, news.broke),
            self._group("_unjudged", unjudged, news.unjudged, [False] * len(news.unjudged)),
            self._group("_worse", worse, news.worse),
            self._group("_failed", f"{_tests(news.failed)} failed", news.failed),
            self._group("_failed-before", too, before, grave),
            self._folded("_dropped", few, dropped, news.dropped),
            self._folded("_fixed", f"{_tests(news.fixed)} fixed", fixed, news.fixed),
            self._folded("_flaky", title, flaky, flaky_tests),
        )

    def _group(
        self, name: str, title: str, tests: Sequence[FailedTest], grave: Sequence[bool] | None = None
    ) -> TestGroup:
        """A group: its first tests, of the grave ones, are shown whole if it is known what failed."""
        pairs = zip(tests, grave or [True] * len(tests), strict=True)
        whole = list(islice((test for test, is_grave in pairs if is_grave and test.criteria), _WHOLE))
        shown = set(map(id, whole))
        others = [test for test in tests if id(test) not in shown]
        lines = list(map(self._line, others[: self._most]))
        return TestGroup(name, title, list(map(self._whole, whole)), lines, unlisted=len(others) - len(lines))

    @staticmethod
    def _folded(name: str, title: str, lines: Sequence[TestLine], tests: Sequence[object]) -> TestGroup:
        return TestGroup(name, title, lines=lines, folded=True, unlisted=len(tests) - len(lines))

    def _whole(self, failed: FailedTest) -> WholeTest:
        view = self._links.view(failed.test, failed.change)
        link = self._links.link(failed.test, failed.change)
        return WholeTest(failed, view, link, self._since(failed, view))

    def _since(self, failed: FailedTest, view: TestView | None) -> str | None:
        """Since when it fails, if that is known; of a test that broke at least the baseline is."""
        comparison = self._results.comparison
        baseline = comparison.baseline if comparison else None
        if view:
            key = (view.of.name, view.test.name, view.test.digest)
            if sentence := since.sentence(key, self._earlier, baseline.run_id if baseline else None):
                return sentence
        if comparison and failed.change in comparison.regressed:
            return f"Last passed in the baseline, {since.moment(comparison.baseline)}."
        return None

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


def _drop(test: TestChange) -> str:
    confirmed = f", confirmed ({numbers.p_value(test.p)})" if test.confirmed else ""
    return f"{changes.scores(test)} ({numbers.changed(test.base, test.head)}){confirmed}"


def _tests(tests: Sequence[object]) -> str:
    return numbers.count(len(tests), "test")


def _are(tests: Sequence[object]) -> str:
    return "is" if len(tests) == 1 else "are"


def _criterion_and_reason(criterion: str, reason: str) -> str:
    return f"“{sanitize.one_line(criterion, _CRITERION)}”: {sanitize.one_line(reason, _REASON) or NO_REASON}"
