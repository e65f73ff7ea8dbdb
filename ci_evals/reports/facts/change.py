"""The change of the score since the baseline, in words that all reports share; not yet sanitized."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from ci_evals.domain.results.comparison import Change, Comparison, SuiteComparison, TestChange
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestOutcome
from ci_evals.domain.verdict import Outcome
from ci_evals.reports import numbers
from ci_evals.reports.facts import significance
from ci_evals.scoring.comparison.compare import SUSPECT
from ci_evals.scoring.scores import UndecidedRule
from ci_evals.scoring.validity import Validity, validity

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
    interval = f" ({numbers.change_interval(comparison.interval)})" if comparison.interval else ""
    confirmation = results.run.confirmation
    after = f" after {numbers.count(confirmation.trials, 'more trial')} of each test" if confirmation else ""
    chance = f", {numbers.p_value(comparison.p)}" if shows_p(comparison) else ""
    return (
        f"{score}{_compared(results, comparison)}, baseline {numbers.score(comparison.base)}, "
        f"change {numbers.signed(comparison.delta)}{interval}{chance}{after}: "
        f"{significance_of(results, comparison)}."
    )


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
    """The significance of the change: `not a proven drop`."""
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
    return f"{needed} trials of each test on each side would show a drop of this size in four of five cases."


def small_print(comparison: Comparison, results: Results) -> str:
    """The meaning of the numbers of a comparison, and what the run could have detected."""
    sentences = [
        "95 %: the interval that would hold the true change in 95 of 100 such comparisons.",
        "p: how often chance alone would show a drop like this one or a larger one."
        if shows_p(comparison)
        else None,
        detectable_drop(comparison),
        trials_to_prove(comparison, results),
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
        ("cost a trial", numbers.money, head.cost_usd_per_trial, base.cost_usd_per_trial),
        ("tokens a trial", _tokens, head.tokens_per_trial, base.tokens_per_trial),
        ("median reply", numbers.latency, head.median_latency_seconds, base.median_latency_seconds),
        ("95 % of replies within", numbers.latency, head.p95_latency_seconds, base.p95_latency_seconds),
    )
    parts = [f"{what} {show(here)} (baseline {show(there)})" for what, show, here, there in found if here]
    line = ", ".join(parts)
    return f"{line[0].upper()}{line[1:]}." if parts else None


def baseline_score_differs(comparison: Comparison) -> bool:
    """Return whether the baseline's score differs from that of the tests that were compared."""
    whole, part = comparison.baseline.score, comparison.base
    return comparison.delta is not None and numbers.score(whole) != numbers.score(part)


def score_column(results: Results) -> str:
    """The header of the scores of this run's suites, of which not all tests may have been compared."""
    pairs = zip(results.suites, of_suites(results), strict=True)
    compared = [(suite, found) for suite, found in pairs if found and found.delta is not None]
    part = any(numbers.score(suite.score) != numbers.score(found.head) for suite, found in compared)
    return "score, compared tests" if part else "score"


def newly_failing_outcomes(results: Results) -> dict[tuple[str, str], str]:
    """The outcomes of newly failing tests in which nothing failed, by suite and name: `undecided`."""
    comparison = results.comparison
    newly_failing = {(test.suite, test.name) for test in comparison.regressed} if comparison else set()
    return {
        (suite.name, test.name): test.outcome.value
        for suite in results.suites
        for test in suite.tests
        if (suite.name, test.name) in newly_failing and test.outcome is not TestOutcome.FAILED
    }


def failing(comparison: Comparison) -> tuple[TestChange, ...]:
    """The newly failing tests, those first whose drop is confirmed, then the deepest fall."""
    return _by_drop(comparison.regressed)


def suspects(comparison: Comparison) -> tuple[TestChange, ...]:
    """The tests that fell far and are not named as newly failing, in the same order."""
    named = {(test.suite, test.name) for test in comparison.regressed}
    return _by_drop(test for test in comparison.suspects if (test.suite, test.name) not in named)


def on_failing(tests: Collection[TestChange], *, titled: bool = False) -> str:
    """A remark on tests that passed in the baseline; shorter if a title says that they did."""
    one = len(tests) == 1
    did = "It passed in the baseline, and does" if one else "They passed in the baseline, and do"
    fell = any(test.delta is None or test.delta < 0 for test in tests)
    sentences = [] if titled else [f"{did} not pass now."]
    return " ".join([*sentences, *([_by_chance(tests)] if fell else [])])


def on_fixed(tests: Collection[TestChange]) -> str:
    """A remark on tests that failed in the baseline."""
    if len(tests) == 1:
        return "It failed in the baseline, and passes now."
    return "They failed in the baseline, and pass now."


def on_suspects(tests: Collection[TestChange]) -> str:
    """A remark on tests whose score fell far."""
    return f"{'It' if len(tests) == 1 else 'They'} fell by {SUSPECT} points or more. {_by_chance(tests)}"


def _by_chance(tests: Collection[TestChange]) -> str:
    fell = [test for test in tests if test.delta is not None and test.delta <= -SUSPECT]
    if fell and all(test.p is None for test in fell):
        few = "so few trials cannot confirm one (the option confirm plays more)"
        return f"Noise alone may do that to a test: {few}."
    confirmed = sum(test.confirmed for test in tests)
    which = "none is" if not confirmed else "one is" if confirmed == 1 else f"{confirmed} are"
    which = ("it is" if confirmed else "it is not") if len(tests) == 1 else which
    return f"Noise alone may do that to a test: its drop is proven only where confirmed; {which}."


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


def _compared(results: Results, comparison: Comparison) -> str:
    """On how many tests the change rests and their score, where they are not all of both runs."""
    compared, here = comparison.tests, results.counts.tests
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
    return f"; compared on {of}: {numbers.score(comparison.head)}"


def _baseline_tests(results: Results, comparison: Comparison) -> int:
    """Tests of the baseline; on a suite's own page of that suite, which its lists tell."""
    here = results.counts.tests - len(comparison.new) + len(comparison.removed)
    return here if len(comparison.suites) == 1 else max(here, comparison.baseline.tests)


def _flawless(results: Results) -> bool:
    """Return whether every planned trial was completed, and nothing failed or is missing."""
    rule = UndecidedRule(offline=results.run.offline)
    tests = [test for suite in results.suites for test in suite.tests]
    trials = [trial for test in tests for trial in test.trials]
    return not (
        any(test.not_run for test in tests)
        or any(validity(trial, rule) is Validity.ERRORED for trial in trials)
        or any(finding.outcome is Outcome.FAILED for trial in trials for finding in trial.findings)
    )
