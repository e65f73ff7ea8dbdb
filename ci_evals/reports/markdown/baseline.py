"""The baseline in Markdown: which run it was, how the tests changed, and what both runs took."""

from collections.abc import Sequence
from math import ceil, floor

from ci_evals.domain.results.comparison import Comparison, TestChange
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change, verdicts
from ci_evals.reports.markdown.failures import test_name
from ci_evals.reports.markdown.sections import Rank, Section, folded, listing, section

_FEWEST = 10
"""Changed tests below which a list of them says it all."""
_WIDTHS = (1, 2, 5, 10, 20)
"""Points that a bar may stand for."""
_MOST_BARS = 12
_STILL = 1e-9
"""Rounding errors of binary arithmetic."""


def line(results: Results) -> Section | None:
    """The baseline's run, or why there is none; None if none was looked for."""
    sentence = sanitize.sentence((results.run.baseline_note or "").rstrip("."), 300)
    note = f"{sentence[:1].upper()}{sentence[1:]}"
    text = section("baseline", comparison=results.comparison, results=results, note=note)
    return Section("the baseline", text) if text else None


def reasons(comparison: Comparison | None) -> tuple[Section, ...]:
    """The reasons why not all of it was compared."""
    found = change.shown_reasons(comparison) if comparison else ()
    rows = tuple(f"- {sanitize.inline(reason, 300)}" for reason in found)
    whole = Section("what was not compared", "Not compared:", Rank.TELLING, rows, noun="reason")
    return listing(whole) if rows else ()


def pace(comparison: Comparison | None) -> Section | None:
    """Cost and latency on both sides."""
    text = change.pace(comparison) if comparison else None
    return Section("cost and latency", text, Rank.TELLING) if text else None


def fixed(comparison: Comparison | None) -> tuple[Section, ...]:
    """The tests that pass again."""
    tests = comparison.fixed if comparison else ()
    if comparison is None or not tests:
        return ()
    head = f"### {numbers.count(len(tests), 'fixed test')}\n\n{change.on_fixed(tests)}"
    rows = tuple(_fixed(test, many=len(comparison.suites) > 1) for test in tests)
    return listing(Section("the fixed tests", head, Rank.TELLING, rows, noun="fixed test"))


def suspects(comparison: Comparison | None) -> tuple[Section, ...]:
    """The tests that fell far and are not among the newly failing ones."""
    tests = change.suspects(comparison) if comparison else ()
    if comparison is None or not tests:
        return ()
    what = numbers.count(len(tests), "more suspect" if comparison.regressed else "suspect")
    rows = tuple(_suspect(test, many=len(comparison.suites) > 1) for test in tests)
    head = f"### {what}\n\n{change.on_suspects(tests)}"
    return listing(Section("the suspects", head, Rank.TELLING, rows, noun="suspect"))


def differing(comparison: Comparison | None) -> Section | None:
    """The tests that were not compared, folded."""
    found = change.differences(comparison) if comparison else ()
    if not found:
        return None
    counts = ", ".join(f"{len(one.tests)} {one.title}" for one in found)
    rows = tuple(f"- {sanitize.inline(name, 260)} ({one.title})" for one in found for name in one.tests)
    return folded(f"Tests not compared: {counts}", Section("the tests not compared", "", Rank.LISTS, rows))


def histogram(comparison: Comparison | None) -> Section | None:
    """The histogram of the changed tests, folded; None where few changed."""
    deltas = comparison.deltas if comparison else ()
    changed = [delta for delta in deltas if abs(delta) > _STILL]
    if len(changed) < _FEWEST:
        return None
    fell = sum(delta < 0 for delta in changed)
    rose, still = len(changed) - fell, len(deltas) - len(changed)
    title = f"How much tests changed: {fell:,} fell, {rose:,} rose, {still:,} did not change"
    labels, bars = _ranges(changed)
    drawing = section("chart", labels=labels, bars=bars)
    return folded(title, Section("the chart of the changes", drawing, Rank.TELLING))


def _fixed(test: TestChange, *, many: bool) -> str:
    row = f"- {_became(test, many=many)}"
    if not (evidence := test.evidence):
        return row
    criterion, reason = sanitize.inline(evidence.criterion, 200), sanitize.inline(evidence.reason, 160)
    return f"{row}. In the baseline “{criterion}” failed: {reason or verdicts.NO_REASON}"


def _suspect(test: TestChange, *, many: bool) -> str:
    confirmed = f", **confirmed** ({numbers.p_value(test.p)})" if test.confirmed else ""
    return f"- {_became(test, many=many)} ({numbers.signed(test.delta)}){confirmed}"


def _became(test: TestChange, *, many: bool) -> str:
    name = test_name(test.suite, test.name, many=many)
    return f"**{name}**: {change.scores(test)}"


def _ranges(changes: Sequence[float]) -> tuple[list[str], list[int]]:
    """The ranges of points from the deepest fall to the highest rise, and how many changes lie in each.

    A change of zero is in none, one that lies on a border in the range nearer to zero.
    """
    width = next(
        width for width in _WIDTHS if _place(max(changes), width) - _place(min(changes), width) < _MOST_BARS
    )
    places = [_place(delta, width) for delta in changes]
    shown = [place for place in range(min(places), max(places) + 1) if place]
    return [_label(place, width) for place in shown], [places.count(place) for place in shown]


def _place(delta: float, width: int) -> int:
    """The range that a change is in, counted from zero: -1 is the first fall, 1 the first rise."""
    share = round(delta / width, 9)
    return floor(share) if share < 0 else ceil(share)


def _label(place: int, width: int) -> str:
    near, far = (abs(place) - 1) * width, abs(place) * width
    return f"-{far} to {-near}" if place < 0 else f"{f'+{near}' if near else near} to +{far}"
