"""The change of the score since the baseline, in words that all reports share; not yet sanitized."""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import Change, Comparison, SuiteComparison, TestChange
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.verdict import Outcome
from ci_evals.reports.story.comparison import significance
from ci_evals.scoring.scores import ScoreRule, Validity, validity

COMMIT = 7
"""Characters of a commit's id that people know it by."""
_SHOWN_REASONS = 3
_MOST_TRIALS = 100
"""Trials of each test: to say that more would be needed helps nobody."""


@dataclass(frozen=True)
class Difference:
    """A list of tests that only one of the runs has, or that are defined differently."""

    title: str
    tests: tuple[str, ...]


def sentence(results: Results) -> str:
    """The score and, where there is a baseline, how it changed and what that is worth: one sentence.

    It also says what the run could have detected, for places without small print.
    """
    if too_little_decided(results):
        return brief(results)
    return "; ".join([brief(results)[:-1], *significance.detectable_drop(results.comparison)]) + "."


def brief(results: Results) -> str:
    """The score, its change, and the significance of the change. `detectable_drop` has the rest."""
    comparison = results.comparison
    if too_little := too_little_decided(results):
        return f"{too_little[:1].upper()}{too_little[1:]}."
    score = f"Score {numbers.score(results.score)}" if results.score is not None else "Nothing was scored"
    if results.interval:
        score += f" ({numbers.interval(results.interval)})"
    if comparison is None:
        return f"{score}."
    if comparison.delta is None:
        return f"{score}; not compared with the baseline: {why_not(comparison)}."
    interval = f" ({_interval(comparison)})" if comparison.interval else ""
    chance = f", {numbers.p_value(comparison.p)}" if shows_p(comparison) else ""
    part = compared_part(results, comparison)
    compared = f"; compared on {part}: {numbers.score(comparison.head)}" if part else ""
    return (
        f"{score}{compared}, baseline {numbers.score(comparison.base)}, "
        f"change {numbers.changed(comparison.base, comparison.head)}{interval}{chance}: "
        f"{significance_of(results, comparison)}."
    )


def _interval(change: Change) -> str:
    return numbers.change_interval(change.interval, change.base, change.head)


def too_little_decided(scored: Results | SuiteResult) -> str | None:
    """Return why the score is no headline; None where it is, or there is none."""
    if scored.score is None or numbers.headline(scored.score, scored.decided_share):
        return None
    decided = numbers.percent(scored.decided_share)
    return f"too little was decided for a score ({decided} of the criteria's weight)"


def why_not(comparison: Comparison) -> str:
    """Return why there is no change to tell of: the first reasons."""
    reasons = numbers.listed(comparison.reasons, _SHOWN_REASONS, "reason")
    return reasons or "they have nothing in common"


def significance_of(results: Results, comparison: Comparison) -> str:
    """The significance of the change: `a drop that may be chance`."""
    return significance.of(comparison, flawless=_flawless(results))


def detectable_drop(comparison: Comparison) -> str | None:
    """The drop that the run could have detected, in sentences; None if there is nothing to say."""
    clauses = significance.detectable_drop(comparison)
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses) or None


def shows_p(change: Change) -> bool:
    """Return whether p is worth showing: for a drop, and with enough trials for a small p."""
    fell = change.delta is not None and change.delta < 0
    return fell and change.p is not None and not significance.too_few(change)


def trials_to_prove(comparison: Comparison, results: Results) -> str | None:
    """The number of trials that would prove a drop of this size; None if it is proven, or none would."""
    needed = comparison.trials_needed
    most = max((len(test.trials) for suite in results.suites for test in suite.tests), default=0)
    if not shows_p(comparison) or needed is None or not most < needed <= _MOST_TRIALS:
        return None
    drop = numbers.score(-(comparison.delta or 0))
    trials = f"{needed} trials per test on each side"
    return f"With {trials}, a run would detect a drop of {drop} points 80 % of the time."


def small_print(comparison: Comparison, results: Results) -> str:
    """The meaning of the numbers of a comparison, and what a run with a verdict could have detected."""
    decided = not results.gate.reasons
    of_p = "p is the probability that chance alone shows a drop at least this large."
    sentences = [
        "The numbers in brackets are 95 % intervals, cut at the ends of the scale.",
        of_p if shows_p(comparison) else None,
        # Where earlier runs decide, their own sentence has it.
        detectable_drop(comparison)
        if decided and not (comparison.history and comparison.history.decides)
        else None,
        trials_to_prove(comparison, results) if decided else None,
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def shown_reasons(comparison: Comparison) -> tuple[str, ...]:
    """Return why not all could be compared, as far as the sentence does not say it."""
    in_sentence = comparison.delta is None and len(comparison.reasons) <= _SHOWN_REASONS
    return () if in_sentence else comparison.reasons


def moment(at: datetime) -> str:
    """`2026-11-20 09:30 UTC`."""
    return f"{_utc(at).isoformat(sep=' ', timespec='minutes')[:16]} UTC"


def age(results: Results, comparison: Comparison) -> str:
    """The baseline's age relative to the run: `2 days before this run`."""
    seconds = (_utc(results.run.started_at) - _utc(comparison.baseline.at)).total_seconds()
    return f"{numbers.age(abs(seconds))} {'before' if seconds >= 0 else 'after'} this run"


def pace(comparison: Comparison) -> str | None:
    """Cost, tokens and latency on both sides, in one line; None where nothing of it is known of this run."""
    head, base = comparison.head_efficiency, comparison.base_efficiency
    found = (
        ("cost per trial", numbers.money, head.cost_usd_per_trial, base.cost_usd_per_trial),
        ("tokens per trial", _tokens, head.tokens_per_trial, base.tokens_per_trial),
        ("median reply", numbers.latency, head.median_latency_seconds, base.median_latency_seconds),
        ("95 % of received replies within", _at_most, head.p95_latency_seconds, base.p95_latency_seconds),
    )
    parts = [f"{what} {show(here)} (baseline {show(there)})" for what, show, here, there in found if here]
    line = ", ".join(parts)
    return f"{line[0].upper()}{line[1:]}." if parts else None


def _at_most(seconds: float | None) -> str:
    return numbers.latency(seconds).removeprefix("below ")


def cost(results: Results) -> tuple[str, ...]:
    """The cost of the run and of the baseline: `cost $0.0031 (main $0.0031)`; nothing if it is not known.

    That of a base agent which was played in the run is part of the run's.
    """
    if results.usage.cost_usd is None or not results.usage.calls:
        return ()
    comparison = results.comparison
    each = comparison.base_efficiency.cost_usd_per_trial if comparison else None
    there = ""
    if comparison and comparison.method != "both-sides" and each:
        base = comparison.baseline
        there = f" ({base.branch or 'baseline'} {numbers.money(each * base.trials)})"
    return (f"cost {numbers.money(results.usage.cost_usd)}{there}",)


def baseline_score_differs(comparison: Comparison) -> bool:
    """Return whether the baseline's score differs from that of the tests that were compared."""
    whole, part = comparison.baseline.score, comparison.base
    return comparison.delta is not None and numbers.score(whole) != numbers.score(part)


def failing(comparison: Comparison) -> tuple[TestChange, ...]:
    """The newly failing tests, those first whose drop is confirmed, then the deepest fall."""
    return _by_drop(comparison.regressed)


def suspects(comparison: Comparison) -> tuple[TestChange, ...]:
    """The tests that fell far and are not named as newly failing, in the same order."""
    named = {(test.suite, test.name) for test in comparison.regressed}
    return _by_drop(test for test in comparison.suspects if (test.suite, test.name) not in named)


def scores(test: TestChange) -> str:
    """A test's score in the baseline and now: `79.9 → 70.0`."""
    return f"{numbers.score(test.base)} → {numbers.score(test.head)}"


def _by_drop(tests: Iterable[TestChange]) -> tuple[TestChange, ...]:
    return tuple(sorted(tests, key=lambda test: (not test.confirmed, test.delta or 0)))


def differences(comparison: Comparison) -> tuple[Difference, ...]:
    """The tests that were not compared."""
    found = (
        ("new", comparison.new),
        ("not in this run", comparison.removed),
        ("changed", comparison.changed),
    )
    many = len(comparison.suites) > 1
    return tuple(
        Difference(title, tuple(f"{test.suite} › {test.name}" if many else test.name for test in tests))
        for title, tests in found
        if tests
    )


def of_suites(results: Results) -> tuple[SuiteComparison | None, ...]:
    """For each suite what became of it. Suites of one name go by their order, as they were paired."""
    waiting: dict[str, deque[SuiteComparison]] = defaultdict(deque)
    for found in results.comparison.suites if results.comparison else ():
        waiting[found.name].append(found)
    return tuple(waiting[suite.name].popleft() if waiting[suite.name] else None for suite in results.suites)


def _tokens(number: float | None) -> str:
    return numbers.NONE if number is None else numbers.tokens(number)


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def compared_part(results: Results, comparison: Comparison) -> str:
    """The part of the tests that was compared, where it is not all of both runs; else empty."""
    compared, here = comparison.tests, results.counts.deciding
    there = _baseline_tests(results, comparison)
    if compared < here:
        of = f"{compared} of {numbers.count(here, 'test')}"
        of += f" (the baseline has {there:,})" if there not in {compared, here} else ""
    elif compared < there:
        of = f"{compared} of {numbers.count(there, 'test')} of the baseline"
    elif numbers.score(results.score) != numbers.score(comparison.head):
        of = numbers.count(compared, "test")
    else:
        return ""
    return of


def _baseline_tests(results: Results, comparison: Comparison) -> int:
    """Tests of the baseline; on a suite's own page of that suite, which its lists tell."""
    new_or_removed = len(comparison.removed) - len(comparison.new)
    here = results.counts.deciding + new_or_removed
    there = comparison.baseline.tests - results.counts.quarantined
    return here if len(comparison.suites) == 1 else max(here, there)


def _flawless(results: Results) -> bool:
    """Return whether every planned trial was completed, and nothing failed or is missing."""
    rule = ScoreRule(offline=results.run.offline)
    tests = [test for suite in results.suites for test in suite.tests]
    trials = [trial for test in tests for trial in test.trials]
    return not (
        any(test.not_run for test in tests)
        or any(validity(trial, rule) is Validity.ERRORED for trial in trials)
        or any(finding.outcome is Outcome.FAILED for trial in trials for finding in trial.findings)
    )
