"""The section on what broke, where, and since when; what else failed, was fixed, or could not be decided."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.suite import TestResult
from ci_evals.reports import sanitize
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.story import changes, comparison_runs, verdict_words
from ci_evals.reports.story.failures import FailedCriterion, FailedTest, Quotation, TrialErrors, by_reasons
from ci_evals.reports.story.outcome_labels import UNFINISHED, RunOutcome
from ci_evals.reports.story.phrases import NO_REASON
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.verdict import FailedGroup, Kind

_WHOLE = 3
"""Failed tests that are shown whole; the others have a line each."""
_NAME = 160
"""Characters of a name."""
_CRITERION = 200
_REASON = 240
_NOT_PLAYED = "No trial ran, so no test has a result."


@dataclass(frozen=True)
class TestLink:
    """A test by its names, and its address on the page; None if the page does not have it."""

    suite: str
    """Empty if there is only one."""
    test: str
    href: str | None


class TestLinks:
    """The tests of a page, found by their results or by their changes."""

    def __init__(self, tests: Sequence[TestView]) -> None:
        self._many = len({view.suite for view in tests}) > 1
        self._by_id = {id(view.test): view for view in tests}
        # Of several with one name the first.
        self._by_name = {(view.of.name, view.test.name): view for view in reversed(tests)}

    def view(self, test: TestResult | None, change: TestChange | None = None) -> TestView | None:
        """The test of the page; the first of several with the name of a change."""
        if test is not None:
            return self._by_id.get(id(test))
        return self._by_name.get((change.suite, change.name)) if change else None

    def link(self, test: TestResult | None, change: TestChange | None = None) -> TestLink:
        """The link to it."""
        view = self.view(test, change)
        named = view or change
        suite = named.suite if named and self._many else ""
        name = sanitize.one_line(named.name if named else "", _NAME) or "(no name)"
        return TestLink(sanitize.one_line(suite, _NAME), name, view.address() if view else None)


@dataclass(frozen=True)
class WholeTest:
    """A failed test with what shows the failure."""

    failed: FailedTest
    view: TestView | None
    """The test of the page, if it has it."""
    link: TestLink
    since: str | None

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
        parts = [] if self.failed.of_other_tool else [verdict_words.verdict_kind(finding)]
        parts += [f"weight {numbers.plain(finding.weight)}"] if finding.weight != 1 else []
        parts += [f"category {finding.category}"] if finding.category else []
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

    title: str
    groups: Sequence[TestGroup]
    errors: Sequence[tuple[TrialErrors, Sequence[TestLink]]] = ()
    """Each cause of errors or undecided verdicts, and the tests with it."""
    errors_title: str = ""
    nothing: str | None = None
    """The sentence that stands there if nothing failed."""
    lost_logic: str = ""
    """The agent's logic that was used in the baseline alone: often the cause of it all."""


def of(story: Story, links: TestLinks) -> WhatBroke:
    """The section of a run."""
    title = "What broke" if story.change.news.broke else "What failed"
    if story.outcome is RunOutcome.SKIPPED:
        return WhatBroke(title, (), nothing=_NOT_PLAYED)
    section = _BrokenSection(story, links)
    groups = list(section.groups())
    errors = [(errors, [links.link(test) for _, test in errors.affected]) for errors in story.errors]
    if errors or any(not group.folded for group in groups):
        unfinished = story.outcome in UNFINISHED
        why = "Errors and undecided criteria"
        if unfinished:
            title, why = "What went wrong", "Why there is no verdict"
        return WhatBroke(title, groups, errors, why, lost_logic=story.process.lost)
    played = any(row.test.trials for suite in story.suites for row in suite.tests)
    return WhatBroke(title, groups, nothing="No test failed." if played else _NOT_PLAYED)


class _BrokenSection:
    """Makes the groups of one page."""

    def __init__(self, story: Story, links: TestLinks) -> None:
        self._story = story
        self._links = links
        self._most = story.listed.most
        """Tests of a group up to which each has a line; None for all."""

    def groups(self) -> Iterator[TestGroup]:
        """All groups, the news first."""
        most = self._most
        for group in self._story.change.failed:
            yield self._group(group)
        for changed in reversed(self._story.change.changed):
            lines = [self._changed(test, in_baseline=changed.good) for test in changed.tests[:most]]
            yield self._folded(changed.name, f"{changed.title} ({len(changed.tests)})", lines, changed.tests)
        if flaky := self._story.flaky.tests:
            lines = [
                TestLine(self._links.link(test), test.outcome.value, passed) for test, passed in flaky[:most]
            ]
            yield self._folded("flaky", self._story.flaky.title, lines, flaky)

    def _group(self, group: FailedGroup) -> TestGroup:
        """A group: its first tests are shown whole if it is known what failed.

        Behind tests that broke, of those that failed before only those are that fail the gate alone.
        """
        tests = group.tests
        grave: Sequence[FailedTest] = () if group.kind is Kind.UNJUDGED else tests
        if group.kind is Kind.FAILED_BEFORE and self._story.change.news.broke:
            grave = [one for one in tests if one.test and one.test.critical]
        same_story = {id(test): first for test, first in by_reasons(grave) if first}
        whole = [test for test in grave if test.criteria and id(test) not in same_story][:_WHOLE]
        shown = set(map(id, whole))
        others = [test for test in tests if id(test) not in shown]
        lines = [self._line(test, same_story.get(id(test))) for test in others[: self._most]]
        title = f"{group.title} ({len(tests)})"
        return TestGroup(
            f"_{group.kind.value}",
            title,
            list(map(self._whole, whole)),
            lines,
            unlisted=len(others) - len(lines),
        )

    @staticmethod
    def _folded(name: str, title: str, lines: Sequence[TestLine], tests: Sequence[object]) -> TestGroup:
        return TestGroup(f"_{name}", title, lines=lines, folded=True, unlisted=len(tests) - len(lines))

    def _whole(self, failed: FailedTest) -> WholeTest:
        view = self._links.view(failed.test, failed.change)
        link = self._links.link(failed.test, failed.change)
        return WholeTest(failed, view, link, self._since(failed, view))

    def _since(self, failed: FailedTest, view: TestView | None) -> str | None:
        """Since when it fails, if that is known; of a test that broke at least the baseline is."""
        story, baseline = self._story, self._story.run.baseline
        if view:
            key = (view.of.name, view.test.name, view.test.digest)
            if known := comparison_runs.failing_since(
                key, story.earlier_runs, baseline.run_id if baseline else None
            ):
                return known
        newly = (*story.change.news.broke, *story.change.news.unjudged)
        if baseline and not story.change.both_sides and failed in newly:
            return f"Last passed in the baseline, {comparison_runs.moment(baseline)}."
        return None

    def _line(self, failed: FailedTest, first: FailedTest | None) -> TestLine:
        reason = _criterion_and_reason(*failed.first_reason) if failed.first_reason else ""
        return TestLine(
            self._links.link(failed.test, failed.change),
            failed.outcome.value,
            ", ".join([*filter(None, [failed.scores]), *failed.remarks]),
            f"Same criteria and reasons as {sanitize.one_line(first.name, _CRITERION)}" if first else reason,
        )

    def _changed(self, test: TestChange, *, in_baseline: bool) -> TestLine:
        view, evidence = self._links.view(None, test), test.evidence
        reason = _criterion_and_reason(evidence.criterion, evidence.reason) if evidence else ""
        confirmed = f", confirmed ({numbers.p_value(test.p)})" if test.confirmed else ""
        return TestLine(
            self._links.link(None, test),
            view.test.outcome.value if view else "failed",
            f"{changes.scores(test)}{confirmed}",
            f"Before: {reason}" if reason and in_baseline else reason,
        )


def _criterion_and_reason(criterion: str, reason: str) -> str:
    return f"“{sanitize.one_line(criterion, _CRITERION)}”: {sanitize.one_line(reason, _REASON) or NO_REASON}"
