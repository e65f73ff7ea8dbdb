"""What became of the score since the baseline, in plain words that all reports share; not yet sanitised."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from math import comb

from ci_evals.domain.comparison import Change, Comparison, SuiteComparison, TestChange
from ci_evals.domain.results import Results, SuiteResult
from ci_evals.reports import numbers
from ci_evals.scoring.compare import SUSPECT
from ci_evals.scoring.statistics import ALPHA

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
    """The score and, where there is a baseline, how it changed and what that is worth: one sentence."""
    comparison = results.comparison
    score = f"Score {numbers.score(results.score)}" if results.score is not None else "Nothing was scored"
    if results.interval:
        score += f" ({numbers.interval(results.interval)})"
    if comparison is None:
        return f"{score}."
    if comparison.delta is None:
        return f"{score}; not compared with the baseline: {_joined(comparison.reasons)}."
    interval = f" ({numbers.change_interval(comparison.interval)})" if comparison.interval else ""
    confirmation = results.run.confirmation
    after = f" after {numbers.count(confirmation.trials, 'more trial')} of each test" if confirmation else ""
    chance = f", {numbers.p_value(comparison.p)}" if tells_p(comparison) else ""
    return (
        f"{score}{_compared(results, comparison)}, baseline {numbers.score(comparison.base)}, "
        f"change {numbers.signed(comparison.delta)}{interval}{chance}{after}: "
        f"{_worth(comparison, single=single_trials(results, comparison))}."
    )


def tells_p(change: Change) -> bool:
    """Whether p says something: of a drop, and where the trials are enough for a small one."""
    fell = change.delta is not None and change.delta < 0
    return fell and change.p is not None and not _too_few(change)


def single_trials(results: Results, comparison: Comparison) -> bool:
    """Whether a side has one trial of each test, so that nothing is known of how a test varies by itself."""
    tests = [test for suite in results.suites for test in suite.tests]
    base_tests = len(tests) - len(comparison.new) + len(comparison.removed)
    return all(len(test.trials) < 2 for test in tests) or comparison.baseline.trials <= base_tests


def settling(comparison: Comparison, results: Results) -> str | None:
    """How many trials would tell a drop like this one from chance; None where it is proven, or none would."""
    wanted = comparison.trials_needed
    most = max((len(test.trials) for suite in results.suites for test in suite.tests), default=0)
    if not tells_p(comparison) or wanted is None or not most < wanted <= _MOST_TRIALS:
        return None
    return f"{wanted} trials of each test on each side would show a drop of this size in four of five cases."


def shown_reasons(comparison: Comparison) -> tuple[str, ...]:
    """Why not all could be compared, as far as the sentence does not say it."""
    told = comparison.delta is None and len(comparison.reasons) <= _SHOWN_REASONS
    return () if told else comparison.reasons


def moment(at: datetime) -> str:
    """`2026-11-20 09:30 UTC`."""
    return f"{_utc(at).isoformat(sep=' ', timespec='minutes')[:16]} UTC"


def age(results: Results, comparison: Comparison) -> str:
    """How much older than the run its baseline is, told from the two alone: `2 days before this run`."""
    seconds = (_utc(results.run.started_at) - _utc(comparison.baseline.at)).total_seconds()
    return f"{numbers.age(abs(seconds))} {'before' if seconds >= 0 else 'after'} this run"


def pace(comparison: Comparison) -> str | None:
    """Cost, tokens and latency on both sides, in one line; None where nothing of it is known of this run."""
    head, base = comparison.head_pace, comparison.base_pace
    found = (
        ("cost a trial", numbers.money, head.cost_usd_per_trial, base.cost_usd_per_trial),
        ("tokens a trial", _tokens, head.tokens_per_trial, base.tokens_per_trial),
        ("median reply", numbers.latency, head.median_latency_seconds, base.median_latency_seconds),
        ("95 % of replies within", numbers.latency, head.p95_latency_seconds, base.p95_latency_seconds),
    )
    parts = [f"{what} {show(here)} (baseline {show(there)})" for what, show, here, there in found if here]
    line = ", ".join(parts)
    return f"{line[0].upper()}{line[1:]}." if parts else None


def other_score(comparison: Comparison) -> bool:
    """Whether the baseline's score is another than that of the tests that were compared."""
    whole, part = comparison.baseline.score, comparison.base
    return comparison.delta is not None and numbers.score(whole) != numbers.score(part)


def failing(comparison: Comparison) -> tuple[TestChange, ...]:
    """The newly failing tests, those first whose drop is confirmed, then the deepest fall."""
    return _by_drop(comparison.regressed)


def suspects(comparison: Comparison) -> tuple[TestChange, ...]:
    """The tests that fell far and are not named as newly failing, in the same order."""
    named = {(test.suite, test.name) for test in comparison.regressed}
    return _by_drop(test for test in comparison.suspects if (test.suite, test.name) not in named)


def on_failing(tests: Collection[TestChange]) -> str:
    """What a reader must know of tests that passed in the baseline."""
    one = len(tests) == 1
    did = "It passed in the baseline, and does" if one else "They passed in the baseline, and do"
    return f"{did} not pass now. {_by_chance(tests)}"


def on_suspects(tests: Collection[TestChange]) -> str:
    """What a reader must know of tests that fell far."""
    return f"{'It' if len(tests) == 1 else 'They'} fell by {SUSPECT} points or more. {_by_chance(tests)}"


def _by_chance(tests: Collection[TestChange]) -> str:
    confirmed = sum(test.confirmed for test in tests)
    which = "none is" if not confirmed else "one is" if confirmed == 1 else f"{confirmed} are"
    which = ("it is" if confirmed else "it is not") if len(tests) == 1 else which
    return f"Noise alone does that to some tests: the drop of a test is proven only where confirmed; {which}."


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


def narrowed(results: Results, suite: SuiteResult, found: SuiteComparison | None) -> Results:
    """The results with this suite alone, its score, and its comparison. Gate and usage stay the run's."""
    comparison = results.comparison
    return results.model_copy(
        update={
            "suites": (suite,),
            "score": suite.score,
            "interval": suite.interval,
            "pass_at_k": suite.pass_at_k,
            "pass_hat_k": suite.pass_hat_k,
            "counts": suite.counts,
            "comparison": _narrowed(comparison, found) if comparison and found else comparison,
        }
    )


def _narrowed(comparison: Comparison, suite: SuiteComparison) -> Comparison:
    lists = ("regressed", "fixed", "suspects", "new", "removed", "changed")
    return comparison.model_copy(
        update={
            **{name: getattr(suite, name) for name in Change.model_fields},
            **{
                name: tuple(test for test in getattr(comparison, name) if test.suite == suite.name)
                for name in lists
            },
            "comparable": suite.comparable,
            "reasons": suite.reasons,
            "baseline": comparison.baseline.model_copy(update={"score": suite.base}),
            "suites": (suite,),
        }
    )


def _tokens(number: float | None) -> str:
    return numbers.NONE if number is None else numbers.tokens(number)


def _utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _compared(results: Results, comparison: Comparison) -> str:
    """On which tests the change is told, where they are not all of both runs."""
    pairs = ((results.score, comparison.head), (comparison.baseline.score, comparison.base))
    if all(numbers.score(whole) == numbers.score(part) for whole, part in pairs):
        return ""
    tests = numbers.count(max(results.counts.tests, comparison.tests), "test")
    of = f"{comparison.tests} of " if results.counts.tests > comparison.tests else ""
    return f"; on the {of}{tests} compared {numbers.score(comparison.head)}"


def _worth(change: Change, *, single: bool) -> str:
    """What a change is worth, in words."""
    delta, bounds = change.delta or 0, change.interval
    of_it = " of this one test" if change.tests == 1 else ""
    if delta > 0 and bounds and bounds.low > 0:
        return "a rise, and more than chance explains"
    if delta < 0 and _too_few(change):
        return f"cannot conclude with so few trials ({_enough(change)})"
    if delta < 0 and change.p is not None and change.p <= ALPHA:
        return f"a proven drop{of_it}"
    perfect = change.head == change.base == 100
    held = "no drop" if delta > 0 else "no change, nothing failed in either run" if perfect else "no change"
    return (f"not a proven drop{of_it}" if delta < 0 else held) + _seen(change, single=single)


def _seen(change: Change, *, single: bool) -> str:
    """Which drop would not have gone unseen."""
    if _too_few(change):
        return f"; so few trials could not have proven a drop ({_enough(change)})"
    if change.detectable is None or change.detectable <= -(change.delta or 0):
        return ""
    if change.detectable >= 100:
        return "; the scores vary so much that no drop would have been caught for sure"
    caught = f"a drop of {numbers.least(change.detectable)} or more"
    if single:
        return f"; single trials do not show how a test varies by itself, and would have caught {caught}"
    return f"; this run would have caught {caught}"


def _too_few(change: Change) -> bool:
    """Whether no drop at all could have been proven with so many trials."""
    return change.smallest_p is not None and change.smallest_p > ALPHA


def _enough(change: Change) -> str:
    """How many trials could prove a drop."""
    able = next(k for k in (1, 2, 3) if comb(2 * k, k) ** -max(1, change.tests) <= ALPHA)
    trials = numbers.count(max(able, change.trials_needed or 1), "trial")
    return f"{trials} {'' if change.tests == 1 else 'of each test '}on each side would do"


def _joined(reasons: tuple[str, ...]) -> str:
    more = len(reasons) - _SHOWN_REASONS
    rest = [f"and {numbers.count(more, 'more reason')}"] if more > 0 else []
    return "; ".join([*reasons[:_SHOWN_REASONS], *rest]) or "they have nothing in common"
