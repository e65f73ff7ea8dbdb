"""The head of the page: the verdict, the numbers that matter, and what must be known of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_evals.domain.results.comparison import Comparison
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import change, failed_tests, gate, highlights, judge, reliability
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.page.overview.test_links import TestLink, TestLinks
from ci_evals.scoring.statistics import ALPHA

_NOTE = 600
"""Characters of a note."""
_FIRST = 3
"""Newly failing tests that the head names."""
_CHECKS = 4
"""Checks that the headline shows."""
_NAME = 60
"""Characters of a suite's name."""
_FEW = 5
"""Suites that the head names."""


@dataclass(frozen=True)
class Tile:
    """A number that matters, with its remarks."""

    label: str
    value: str
    details: tuple[str, ...] = ()
    tone: str = ""
    large: bool = False
    tests: tuple[TestLink, ...] = ()
    """The first of the tests that it counts."""


@dataclass(frozen=True)
class Headline:
    """The head of the page, in plain text."""

    title: str
    """The document's."""
    suites: str
    tone: str
    words: str
    """The verdict."""
    checks: tuple[str, ...]
    """The reasons why the gate does not hold, a sentence a check."""
    more_checks: int
    """The number of checks that are not shown."""
    reasons: tuple[str, ...]
    """The reasons why the run cannot be trusted, or was skipped."""
    origin: str | None
    tiles: tuple[Tile, ...]
    baseline: str | None
    not_compared: tuple[str, ...]
    small_print: str | None
    warnings: tuple[str, ...]
    """Reasons to trust judge and simulated user less."""
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


def of(results: Results, links: TestLinks) -> Headline:
    """The head of these results' page."""
    comparison, outcome = results.comparison, highlights.run_outcome(results)
    words = outcome.value.words
    broken = gate.failing(results) if outcome is RunOutcome.FAILED else ()
    names = [sanitize.one_line(suite.name, _NAME) for suite in results.suites]
    suites = ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")
    return Headline(
        title=_line(f"{words[:1].upper()}{words[1:]}: {suites}" if suites else f"ci-evals: {words}"),
        suites=_line(suites),
        tone=outcome.value.tone.value,
        words=f"{words[:1].upper()}{words[1:]}",
        checks=_lines([gate.in_words(check) for check in broken[:_CHECKS]]),
        more_checks=len(broken[_CHECKS:]),
        reasons=_lines(
            [
                *results.gate.reasons,
                *gate.warnings(results),
                *[why for why in (highlights.why_skipped(results),) if why],
            ]
        ),
        origin=highlights.origin(results.run),
        tiles=() if outcome is RunOutcome.SKIPPED else _tiles(results, links),
        baseline=_baseline(results),
        not_compared=_lines(change.shown_reasons(comparison)) if comparison else (),
        small_print=_line(change.small_print(comparison, results))
        if comparison and comparison.delta is not None
        else None,
        warnings=_lines(reliability.warnings(results)),
        notes=_lines(highlights.notes(results)),
        facts=_facts(results),
    )


def _tiles(results: Results, links: TestLinks) -> tuple[Tile, ...]:
    comparison, counts = results.comparison, results.counts
    nothing = ["nothing was scored"] if results.score is None else []
    others = (
        (counts.failed, "failed"),
        (counts.undecided, "undecided"),
        (counts.flaky, "flaky"),
    )
    from_cache = [text for text in (judge.cached(results),) if text]
    left_out = [f"{numbers.count(counts.invalid_users, 'trial')} left out"] if counts.invalid_users else []
    unsound = [numbers.count(counts.errors, "unsound trial")] if counts.errors else []
    not_run = [f"{numbers.count(counts.not_run, 'trial')} not run"] if counts.not_run else []
    return (
        _score(results, (*nothing, *from_cache)),
        *((_changed(results, comparison),) if comparison else ()),
        *((_newly(results, comparison, links),) if comparison and comparison.delta is not None else ()),
        Tile(
            "Tests passed",
            f"{counts.passed:,} of {counts.tests:,}",
            tuple([f"{many:,} {what}" for many, what in others if many] + unsound + left_out + not_run),
            tone="bad" if counts.failed else "good" if counts.tests and counts.passed == counts.tests else "",
        ),
    )


def _score(results: Results, remarks: Sequence[str]) -> Tile:
    if too_little := change.too_little_decided(results):
        return Tile("Score", "not shown", (too_little, *remarks), large=True)
    interval = [f"95 % interval {numbers.interval(results.interval)}"] if results.interval else []
    return Tile("Score", numbers.score(results.score), ("of 100", *interval, *remarks), large=True)


def _changed(results: Results, comparison: Comparison) -> Tile:
    if comparison.delta is None:
        return Tile("Change since the baseline", "not compared", _lines([change.why_not(comparison)]))
    interval = (
        [f"95 % interval {numbers.change_interval(comparison.interval)}"] if comparison.interval else []
    )
    chance = [numbers.p_value(comparison.p)] if change.shows_p(comparison) else []
    from_to = f"{numbers.score(comparison.base)} → {numbers.score(comparison.head)}"
    return Tile(
        "Change since the baseline",
        numbers.signed(comparison.delta),
        (
            change.significance_of(results, comparison),
            f"{from_to} on {numbers.count(comparison.tests, 'compared test')}",
            *interval,
            *chance,
        ),
        tone=_tone(comparison),
    )


def _tone(comparison: Comparison) -> str:
    """Good or bad news; nothing if it may be noise."""
    if change.shows_p(comparison) and comparison.p is not None and comparison.p <= ALPHA:
        return "bad"
    return "good" if comparison.interval and comparison.interval.low > 0 else ""


def _newly(results: Results, comparison: Comparison, links: TestLinks) -> Tile:
    many, fixed = len(comparison.regressed), len(comparison.fixed)
    details = ["passed in the baseline, not now"] if many else ["none that passed in the baseline fails now"]
    return Tile(
        "Newly failing tests",
        f"{many:,}",
        tuple(details + ([f"{numbers.count(fixed, 'test')} fixed"] if fixed else [])),
        tone="bad" if many else "good",
        tests=tuple(links.link(one.test, one.change) for one in failed_tests.newly_failing(results)[:_FIRST]),
    )


def _baseline(results: Results) -> str | None:
    """The run that this one was compared with, or why there is none."""
    comparison, note = results.comparison, _line((results.run.baseline_note or "").rstrip("."))
    note = f"{note[:1].upper()}{note[1:]}"
    if comparison is None:
        return f"{note}." if note else None
    baseline = comparison.baseline
    which = f"commit {baseline.commit[: change.COMMIT]}" if baseline.commit else f"run {baseline.run_id[:80]}"
    when = f"{change.moment(baseline.at)}, {change.age(results, comparison)}"
    text = f"{note} ({when})" if note else f"Baseline: {which} of {when}"
    other = (
        f"; its score over all of its tests is {numbers.score(baseline.score)}"
        if change.baseline_score_differs(comparison)
        else ""
    )
    return _line(f"{text}{other}.")


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    run, counts = results.run, results.counts
    commit = run.git.head_commit or run.git.commit
    cost = numbers.money(results.usage.cost_usd) if highlights.paid(results) else None
    facts = (
        ("Started", change.moment(run.started_at)),
        ("Took", numbers.duration(run.duration_seconds)),
        ("Trials", f"{counts.trials:,}"),
        ("Cost", cost),
        ("Commit", commit[:40] if commit else None),
        ("Branch", run.git.ref),
        ("Pull request", str(run.git.pull_request) if run.git.pull_request else None),
        ("Run", run.id),
        ("Made by", f"{results.tool.name} {results.tool.version}"),
    )
    return tuple((label, _line(value)) for label, value in facts if value)


def _line(text: str) -> str:
    return sanitize.one_line(text, _NOTE)


def _lines(texts: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_line, texts))
