"""The table of all tests: a row each, with what it is filtered and sorted by."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.transcript import EndState
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import highlights, labels
from ci_evals.reports.facts.failed_tests import FailedTest
from ci_evals.reports.page import address
from ci_evals.reports.page.embedded_data import TestView

_NAME = 300
"""Characters of a name."""
_CRITERION = 160
"""Characters of a criterion."""
_ORDER = ("failed", "error", "undecided", "not_run", "passed")
"""Outcomes, the worst first."""


@dataclass(frozen=True)
class NumberCell:
    """A number as it is shown, and to sort by; None if there is none."""

    text: str
    key: float | None


@dataclass(frozen=True)
class TestRow:
    """One test."""

    href: str
    suite: str
    test: str
    outcome: str
    words: str
    """The words for the outcome: `failed`."""
    order: int
    """To sort by: the worst first, and of these what is new."""
    became: str
    """`newly failing`, `fixed`, or nothing."""
    critical: bool
    doubts: tuple[str, ...]
    """The reasons why criteria of it are less reliable."""
    left_out: int
    """Trials that are left out for their simulated user."""
    flaky: bool
    changed: bool
    score: NumberCell
    base: NumberCell
    delta: NumberCell
    passes: NumberCell
    latency: NumberCell
    difficulty: str
    tags: tuple[str, ...]
    categories: tuple[str, ...]
    worst: str
    """The criterion that failed most, or nothing."""

    @property
    def facets(self) -> dict[str, str]:
        """The values for the filters; several names are on a line each."""
        marks = (("flaky", self.flaky), ("changed", self.changed))
        return {
            "status": self.outcome,
            "suite": self.suite,
            "tags": "\n".join(self.tags),
            "categories": "\n".join(self.categories),
            "marks": " ".join(mark for mark, holds in marks if holds),
        }


@dataclass(frozen=True)
class FilterChoice:
    """A value that rows can be filtered by."""

    value: str
    words: str
    rows: int


@dataclass(frozen=True)
class TestTable:
    """The table, and what it can be filtered by."""

    rows: tuple[TestRow, ...]
    statuses: tuple[FilterChoice, ...]
    suites: tuple[FilterChoice, ...]
    tags: tuple[FilterChoice, ...]
    categories: tuple[FilterChoice, ...]
    flaky: int
    changed: int
    compared: bool
    """True if there is a baseline to show beside the scores."""

    @property
    def filters(self) -> tuple[tuple[str, str, tuple[FilterChoice, ...]], ...]:
        """The filters with something to choose from: facet, label and choices."""
        facets = (
            ("status", "Result", self.statuses),
            ("suite", "Suite", self.suites),
            ("tags", "Tag", self.tags),
            ("categories", "Category", self.categories),
        )
        return tuple(facet for facet in facets if len(facet[2]) > 1)


def of(results: Results, tests: Sequence[TestView]) -> TestTable:
    """The table of these tests."""
    changes = _Changes(results)
    rows = tuple(_row(view, changes) for view in tests)
    by_status = Counter(row.outcome for row in rows)
    return TestTable(
        rows=rows,
        statuses=tuple(
            FilterChoice(name, labels.OUTCOMES[name].words, by_status[name])
            for name in _ORDER
            if by_status[name]
        ),
        suites=_choices([row.suite] for row in rows),
        tags=_choices(row.tags for row in rows),
        categories=_choices(row.categories for row in rows),
        flaky=sum(row.flaky for row in rows),
        changed=sum(row.changed for row in rows),
        compared=any(row.base.key is not None for row in rows),
    )


class _Changes:
    """The changes of single tests against the baseline, by suite and name."""

    def __init__(self, results: Results) -> None:
        comparison = results.comparison
        self.compared = comparison is not None and comparison.delta is not None
        self.newly = _by_name(comparison.regressed if comparison else ())
        self.fixed = _by_name(comparison.fixed if comparison else ())
        self.all = _by_name(comparison.suspects if comparison else ()) | self.fixed | self.newly


def _row(view: TestView, changes: _Changes) -> TestRow:
    test, name = view.test, (view.of.name, view.test.name)
    change = changes.all.get(name)
    base = view.base.score if changes.compared and view.base and view.same else None
    base = change.base if change else base
    delta = None if base is None or test.score is None else test.score - base
    became = "newly failing" if name in changes.newly else "fixed" if name in changes.fixed else ""
    latencies = [seconds for trial in test.trials for seconds in trial.turns.latencies]
    half = median(latencies) if latencies else None
    scored = sum(trial.scored for trial in test.trials)
    findings = [finding for trial in test.trials for finding in trial.findings]
    return TestRow(
        href=address.of(view),
        suite=_line(view.suite),
        test=_line(view.name) or "(no name)",
        outcome=test.outcome.value,
        words=labels.OUTCOMES[test.outcome].words,
        order=2 * _ORDER.index(test.outcome.value) + (became != "newly failing"),
        became=became,
        critical=test.critical,
        doubts=tuple(_line(f"{criterion}: {why}") for criterion, why in view.doubts.items()),
        left_out=sum(trial.status is EndState.INVALID_USER for trial in test.trials),
        flaky=test.flaky,
        changed=bool(change) or bool(delta and abs(delta) > 1e-9),
        score=NumberCell(numbers.score(test.score), test.score),
        base=NumberCell("" if base is None else numbers.score(base), base),
        delta=NumberCell("" if delta is None else numbers.signed(delta), delta),
        passes=NumberCell(highlights.passes(test) if scored else numbers.NONE, test.pass_rate),
        latency=NumberCell(numbers.latency(half), half),
        difficulty=_line(test.difficulty or ""),
        tags=tuple(map(_line, test.tags)),
        categories=tuple(dict.fromkeys(_line(one.category) for one in findings if one.category)),
        worst=_worst(test),
    )


def _worst(test: TestResult) -> str:
    failed = FailedTest("", test.name, test).criteria
    return sanitize.one_line(failed[0].finding.criterion, _CRITERION) if failed else ""


def _by_name(changes: Iterable[TestChange]) -> dict[tuple[str, str], TestChange]:
    return {(test.suite, test.name): test for test in changes}


def _choices(values: Iterable[Iterable[str]]) -> tuple[FilterChoice, ...]:
    counts = Counter(value for some in values for value in set(some))
    return tuple(FilterChoice(value, value, counts[value]) for value in sorted(counts, key=str.casefold))


def _line(text: str) -> str:
    return sanitize.one_line(text, _NAME)
