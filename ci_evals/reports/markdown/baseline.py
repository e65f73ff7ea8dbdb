"""What Markdown reports tell of the baseline: which it was, what became of the tests, what the runs took."""

from ci_evals.domain.results.comparison import Comparison, TestChange
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change
from ci_evals.reports.markdown.failures import place
from ci_evals.reports.markdown.sections import Rank, Section, folded, listing, section


def line(results: Results) -> Section | None:
    """Which run it was, or why there is none; None where none was looked for."""
    said = sanitize.sentence((results.run.baseline_note or "").rstrip("."), 300)
    note = f"{said[:1].upper()}{said[1:]}"
    text = section("baseline", comparison=results.comparison, results=results, note=note)
    return Section("the baseline", text) if text else None


def reasons(comparison: Comparison | None) -> tuple[Section, ...]:
    """Why not all of it was compared."""
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


def _fixed(test: TestChange, *, many: bool) -> str:
    row = f"- {_became(test, many=many)}"
    if not (evidence := test.evidence):
        return row
    criterion, reason = sanitize.inline(evidence.criterion, 200), sanitize.inline(evidence.reason, 160)
    return f"{row}. In the baseline “{criterion}” failed: {reason or 'no reason was given'}"


def _suspect(test: TestChange, *, many: bool) -> str:
    confirmed = f", **confirmed** ({numbers.p_value(test.p)})" if test.confirmed else ""
    return f"- {_became(test, many=many)} ({numbers.signed(test.delta)}){confirmed}"


def _became(test: TestChange, *, many: bool) -> str:
    name = place(test.suite, test.name, many=many)
    return f"**{name}**: {numbers.score(test.base)} → {numbers.score(test.head)}"
