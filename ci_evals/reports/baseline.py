"""What Markdown reports tell of the baseline: the change by suite, and the tests that came out otherwise."""

from collections.abc import Collection

from ci_evals.domain.comparison import Comparison
from ci_evals.domain.results import Results
from ci_evals.reports import change, highlights, numbers, sanitize
from ci_evals.reports.pieces import Section, section, table

Shown = Collection[tuple[str, str]]
"""Suites and names of tests whose failure the same report shows elsewhere."""


def against(results: Results, *, pace: bool = True) -> Section | None:
    """Which run it was, the suites' scores on both sides, and what the runs took; None without a baseline."""
    comparison = results.comparison
    if comparison is None:
        return None
    text = section(
        "against",
        comparison=comparison,
        results=results,
        table=_suites(results),
        pace=change.pace(comparison) if pace else None,
    )
    return Section("the comparison with the baseline", text)


def otherwise(results: Results, shown: Shown = ()) -> tuple[Section, ...]:
    """The tests that came out otherwise than in the baseline, those that fail now first."""
    found = results.comparison
    if found is None:
        return ()
    many = len(found.suites) > 1
    sections = []
    if found.regressed:
        sections.append(Section("the newly failing tests", _newly_failing(results, found, shown, many=many)))
    if suspects := change.suspects(found):
        more = bool(found.regressed)
        sections.append(Section("the suspects", section("suspects", tests=suspects, many=many, more=more)))
    if found.fixed:
        sections.append(Section("the fixed tests", section("fixed", tests=found.fixed, many=many)))
    return tuple(sections)


def differing(comparison: Comparison | None) -> Section | None:
    """The tests that were not compared, folded."""
    found = change.differences(comparison) if comparison else ()
    return Section("the tests not compared", section("differing", differences=found)) if found else None


def _newly_failing(results: Results, found: Comparison, shown: Shown, *, many: bool) -> str:
    wanted = {(test.suite, test.name) for test in found.regressed}
    flaky = {
        (suite.name, test.name): f"{highlights.passes(test)} trials passed"
        for suite in results.suites
        for test in suite.tests
        if test.flaky and (suite.name, test.name) in wanted
    }
    return section(
        "newly_failing",
        tests=change.failing(found),
        open=change.not_failed(results),
        flaky=flaky,
        shown=shown,
        many=many,
    )


def _suites(results: Results) -> str | None:
    """A row for each suite that was compared."""
    rows = []
    for suite, found in zip(results.suites, change.of_suites(results), strict=True):
        if found is None or found.delta is None:
            continue
        rows.append(
            [
                sanitize.cell(suite.name),
                numbers.score(found.head),
                numbers.score(found.base),
                numbers.signed(found.delta),
                numbers.change_interval(found.interval) if found.interval else "",
                numbers.chance(found.p) if change.tells_p(found) else "",
                f"{found.tests} of {suite.counts.tests}" if found.tests < suite.counts.tests else "",
            ]
        )
    headers = ["suite", change.score_column(results), "baseline", "change", "95 %", "p", "tests compared"]
    return table(headers, rows) if rows else None
