"""How sure the result is: what chance explains, what the run could notice, and how it came to decide."""

from collections.abc import Iterator
from math import comb

from ci_evals.domain import numbers
from ci_evals.domain.choices import BothSides
from ci_evals.domain.results.comparison import Change, Comparison, HistoryComparison
from ci_evals.domain.results.gate import CheckKind, CheckOdds, Odds
from ci_evals.domain.results.run import Results, Rounds
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.verdict import Outcome
from ci_evals.gate.odds import WORTH_TELLING
from ci_evals.gate.rule import Nature
from ci_evals.gate.rules import rule_of
from ci_evals.gate.rules.changes import CLOSE
from ci_evals.reports.story import agents, changes, gate
from ci_evals.reports.story.advice import SPOT_CHECK
from ci_evals.reports.story.failures import News
from ci_evals.reports.story.phrases import capitalized
from ci_evals.scoring.scores import ScoreRule, Validity, validity
from ci_evals.scoring.statistics import ALPHA
from ci_evals.scoring.usage import agent_models

_MOST_ADVISED = 20
"""Trials of each test that a reader is told to play."""
NOT_FALLEN = "–"
"""In place of a p where no score fell, or trials are too few for any."""
_MOST_TRIALS = 100
"""Trials of each test: to say that more would be needed helps nobody."""
_NAMED = 5
_FLAKY_NAMED = 3
"""Tests that a sentence names."""
_ODDS_TESTS, _ODDS_TRIALS = 10, 3
"""The size of a run from which on the odds of its gate mean something."""
_MOSTLY = 2 / 3
"""The part of all failures from which on one check is named for them."""


def significance(change: Change, *, flawless: bool) -> str:
    """The significance: `no change`, `a drop that may be chance`.

    `flawless`: nothing in the run failed or is missing.
    """
    delta, of_it = change.delta or 0, " of this one test" if change.tests == 1 else ""
    if rose(change):
        return "a rise larger than chance explains"
    if delta < 0 and too_few(change):
        return f"too few trials to tell it from chance ({_enough(change)})"
    if delta < 0:
        is_proven = proven(change)
        # An interval without zero beside an unproven drop, or the other way around, looks like a mistake.
        at_odds = change.interval is not None and is_proven != (change.interval.high < 0)
        text = f"a drop{of_it} {'larger than chance explains' if is_proven else 'that may be chance'}"
        if not is_proven and change.p is not None and change.p <= ALPHA:
            return f"{text} ({_why_lower(change)})"
        return f"{text}; p decides, not the interval" if at_odds else text
    if delta > 0:
        return "no drop"
    return "no change" + (
        ", nothing failed in this run" if flawless and change.head == change.base == 100 else ""
    )


def _why_lower(change: Change) -> str:
    """Why a p proves nothing that is as low as is usually enough."""
    if _level(change) < ALPHA and not (isinstance(change, Comparison) and change.looks):
        return f"p must be at most {numbers.plain(_level(change))}, since a commit can be rerun"
    return "after so few trials p must be lower"


def detectable_clauses(change: Change | None) -> tuple[str, ...]:
    """The drop that could have been detected, in clauses; none if nothing was compared or more is known."""
    if change is None or change.delta is None or rose(change) or proven(change):
        return ()
    if too_few(change):
        text = f"with so few trials any drop can be chance ({_enough(change)})"
        return () if change.delta < 0 else (text,)
    most = (change.fewest_broken or 1) - 1
    caught = _caught(change)
    few = "with so few trials, " if not caught or change.estimated_from != "tests" else ""
    broken = f"{few}up to {numbers.count(most, 'newly failing test')} can be chance"
    return (*caught, *([broken] if most else []))


def too_few(change: Change) -> bool:
    """Return whether there are too few trials to prove any drop."""
    return change.smallest_p is not None and change.smallest_p > ALPHA


def rose(change: Change) -> bool:
    """Return whether the score rose more than chance explains."""
    bounds = change.interval
    return (change.delta or 0) > 0 and bounds is not None and bounds.low > 0


def proven(change: Change) -> bool:
    """Return whether the score fell more than chance explains."""
    return (
        (change.delta or 0) < 0 and not too_few(change) and change.p is not None and _is_low(change, change.p)
    )


def _is_low(change: Change, p: float) -> bool:
    """Return whether p proves a drop. In rounds the last look says so, since each is a chance to err."""
    if isinstance(change, Comparison) and change.looks:
        return change.looks[-1].decision == "fail"
    return p <= _level(change)


def _level(change: Change) -> float:
    """The highest p that proves a drop."""
    return change.level if isinstance(change, Comparison) else ALPHA


def _caught(change: Change) -> tuple[str, ...]:
    if change.detectable is None or change.detectable <= -(change.delta or 0):
        return ()
    if change.detectable >= 100:
        return ("the scores vary too much to notice any drop reliably",)
    if change.base is not None and change.detectable > change.base:
        # No score falls so far.
        return ()
    drop = numbers.at_least(change.detectable)
    noticed = f"this run would detect a drop of {drop} points or more 80 % of the time"
    return (f"with so few trials per test, {noticed}" if change.estimated_from == "tests" else noticed,)


def _enough(change: Change) -> str:
    """The number of trials that it takes to prove a drop."""
    able = next(k for k in (1, 2, 3) if comb(2 * k, k) ** -min(max(1, change.tests), 100) <= ALPHA)
    trials = numbers.count(max(able, change.trials_needed or 1), "trial")
    return f"at least {trials} {'' if change.tests == 1 else 'per test '}on each side are required"


def score_and_change(results: Results) -> str:
    """The score and, where there is a baseline, how it changed and what that is worth: one sentence.

    It also says what the run could have detected, for places without small print.
    """
    if too_little_decided(results):
        return brief(results)
    return "; ".join([brief(results)[:-1], *detectable_clauses(results.comparison)]) + "."


def brief(results: Results, *, why_not: bool = True) -> str:
    """The score, its change, and the significance of the change. `detectable_drop` has the rest.

    `why_not`: whether it says why nothing was compared.
    """
    comparison = results.comparison
    if too_little := too_little_decided(results):
        return f"{too_little[:1].upper()}{too_little[1:]}."
    score = f"Score {numbers.score(results.score)}" if results.score is not None else "Nothing was scored"
    if results.interval:
        score += f" ({numbers.interval(results.interval)})"
    if comparison is None or (comparison.delta is None and not why_not):
        return f"{score}."
    if comparison.delta is None:
        return f"{score}; not compared with the baseline: {changes.why_not(comparison)}."
    interval = f" ({_interval(comparison)})" if comparison.interval else ""
    chance = f", {numbers.p_value(comparison.p)}" if shows_p(comparison) else ""
    base = changes.base_name(results).removeprefix("the ")
    part = changes.compared_part(results, comparison)
    if part and results.counts.errors:
        part += ", as far as their trials were scored"
    compared = f"; compared on {part}: {numbers.score(comparison.head)}" if part else ""
    return (
        f"{score}{compared}, {base} {numbers.score(comparison.base)}, "
        f"change {numbers.changed(comparison.base, comparison.head)}{interval}{chance}: "
        f"{significance(comparison, flawless=_flawless(results))}."
    )


def _interval(change: Change) -> str:
    return numbers.change_interval(change.interval, change.base, change.head)


def too_little_decided(scored: Results | SuiteResult) -> str | None:
    """Return why the score is no headline; None where it is, or there is none."""
    if scored.score is None or numbers.headline(scored.score, scored.decided_share):
        return None
    decided = numbers.percent(scored.decided_share)
    return f"too little was decided for a score ({decided} of the criteria's weight)"


def detectable_drop(comparison: Comparison) -> str | None:
    """The drop that the run could have detected, in sentences; None if there is nothing to say."""
    clauses = detectable_clauses(comparison)
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses) or None


def shows_p(change: Change) -> bool:
    """Return whether p is worth showing: for a drop, and with enough trials for a small p."""
    fell = change.delta is not None and change.delta < 0
    return fell and change.p is not None and not too_few(change)


def confirmed(comparison: Comparison) -> str:
    """The tests whose own drop is larger than chance explains, in a sentence; empty if there are none."""
    names = [f"{test.name} ({numbers.p_value(test.p)})" for test in comparison.suspects if test.confirmed]
    if not names:
        return ""
    return f"Larger than chance explains for a single test: {numbers.listed(names, _NAMED, 'test')}."


def trials_to_prove(comparison: Comparison, results: Results) -> str | None:
    """The number of trials that would prove a drop of this size; None if it is proven, or none would."""
    needed = _needed(comparison, results)
    if needed is None:
        return None
    drop = numbers.score(-(comparison.delta or 0))
    trials = f"{needed} trials per test on each side"
    return f"With {trials}, a run would detect a drop of {drop} points 80 % of the time."


def _needed(comparison: Comparison, results: Results) -> int | None:
    needed, (_, most) = comparison.trials_needed, _trials_per_test(results)
    if not shows_p(comparison) or needed is None or not most < needed <= _MOST_TRIALS:
        return None
    return needed


def small_print(results: Results) -> str:
    """The meaning of the numbers of a comparison, and what a run with a verdict could have detected.

    Empty if nothing was compared.
    """
    comparison = results.comparison
    if comparison is None or comparison.delta is None:
        return ""
    decided = not results.gate.reasons
    of_p = (
        "p is the probability that chance alone shows a drop at least this large; "
        f"there is none ({NOT_FALLEN}) where no score fell."
    )
    sentences = [
        "The numbers in brackets are 95 % intervals, cut at the ends of the scale.",
        "Scores and shares are rounded down; a change is the difference of the scores shown.",
        of_p if shows_p(comparison) else None,
        # Where earlier runs decide, their own sentence has it.
        detectable_drop(comparison)
        if decided and not (comparison.history and comparison.history.decides)
        else None,
        trials_to_prove(comparison, results) if decided else None,
    ]
    return " ".join(sentence for sentence in sentences if sentence)


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


def decision_sentences(results: Results) -> Iterator[str]:
    """Yield what the run played and why, what earlier runs say, and the tests that broke."""
    comparison = results.comparison
    yield from _rounds(results)
    if comparison is None:
        return
    if comparison.method == "both-sides":
        yield _both_sides(results, comparison)
    if history := comparison.history:
        yield from _earlier_runs(history, comparison)
        yield from _names(comparison, history)
    yield from _spot_check(results, comparison)


def _rounds(results: Results) -> Iterator[str]:
    """When the run was decided, what that saved, and what p came to."""
    rounds = results.run.rounds
    if rounds is None or results.gate.reasons or results.run.status != "completed":
        return
    if rounds.played < rounds.looks[-1]:
        yield _decided_early(results, rounds)
    elif len(rounds.looks) > 1:
        yield "Earlier rounds were not clear, so all were played."


def _decided_early(results: Results, rounds: Rounds) -> str:
    tests = sum(bool(test.trials) for test in results.tests)
    most, played = rounds.looks[-1] * agents.number(results), rounds.played * (len(results.arms) or 1)
    saved = f", which saved up to {numbers.count(tests * (most - played), 'conversation')}"
    looks = results.comparison.looks if results.comparison else ()
    reason = "more could hardly change the verdict"
    if looks and looks[-1].decision == ("pass" if results.gate.passed else "fail"):
        reason = "no sign of a drop" if results.gate.passed else "a proven drop"
    return (
        f"Decided after {rounds.played} of at most {rounds.looks[-1]} trials of each test"
        f"{'' if results.counts.taken_trials else saved}: {reason}."
    )


def _both_sides(results: Results, comparison: Comparison) -> str:
    history, screened = comparison.history, results.run.config.get("bothSides") != BothSides.ALWAYS
    if history and screened and history.p_of_trials <= CLOSE:
        runs = numbers.count(history.together, "run")
        begun = (
            f"The score looked lower than in the last {runs}, so the base agent was played in the same run"
        )
    else:
        agent = capitalized(agents.base_agent(results))
        begun = f"{agent} was played in the same run, alternating trial by trial"
    return _outcome(begun, results, comparison)


def _outcome(begun: str, results: Results, comparison: Comparison) -> str:
    if comparison.delta is None:
        return f"{begun}; no test was scored on both sides."
    chance = (
        f" ({numbers.p_value(comparison.p)})" if comparison.p is not None and comparison.delta < 0 else ""
    )
    if comparison.delta == 0:
        return f"{begun}: in this run both score the same."
    points = numbers.changed(comparison.base, comparison.head).lstrip("+−")
    lower = "lower" if comparison.delta < 0 else "higher"
    failed = any(
        check.kind is CheckKind.REGRESSION and check.passed is False for check in results.gate.checks
    )
    fails = ", which fails" if chance and failed else ""
    return f"{begun}: in this run, this agent scores {points} {lower}{chance}{fails}."


def _earlier_runs(history: HistoryComparison, comparison: Comparison) -> Iterator[str]:
    both_sides = comparison.method == "both-sides"
    branch = None if both_sides else comparison.baseline.branch
    name = branch or "the base branch"
    if history.smaller:
        runs = numbers.count(history.smaller, "earlier run")
        have, are = ("has", "is") if history.smaller == 1 else ("have", "are")
        yield f"{runs} of {name} {have} fewer tests or trials than the newest and {are} left out."
    if history.together < history.runs:
        subject, runs = branch or "The base branch", numbers.count(history.together, "run")
        yield f"{subject} changed: its last {runs} differ from those before, which are left out."
    if history.spread is None:
        return
    yield (
        f"Runs of {name} differ among themselves by {numbers.score(history.spread)} points; a drop below "
        f"{numbers.score(history.smallest_drop)} would not stand out."
    )
    if history.decides:
        yield f"p compares this run with the last {history.together} runs of {name} together."


def _spot_check(results: Results, comparison: Comparison) -> Iterator[str]:
    """Advice where the agent has another model, whose style the judge may like more or less."""
    before = comparison.baseline.agent_models
    now = agent_models(results.own_usage)
    judged = any(suite.judge_model for suite in results.suites)
    if judged and before and now and before != now:
        was, is_now = (numbers.listed(models, _NAMED) for models in (before, now))
        yield (
            f"The agent's model changed from {was} to {is_now}: check on 50 + 50 verdicts whether the judge "
            f"treats the new answers alike {SPOT_CHECK}."
        )


def _names(comparison: Comparison, history: HistoryComparison) -> Iterator[str]:
    broken = [test.name for test in comparison.broken]
    probably = [test.name for test in comparison.probably_broken]
    if broken:
        tests = numbers.count(history.tests, "test")
        yield (
            f"Broken: {numbers.listed(broken, _NAMED)} (with all {tests} looked at, a false name in at most "
            "5 % of runs)."
        )
    if probably:
        yield f"Probably broken: {numbers.listed(probably, _NAMED)} (of all such names one in ten is false)."


def broke_for_sure(results: Results) -> bool:
    """Return whether tests broke as far as this gate is concerned, so that chance is no excuse."""
    comparison = results.comparison
    if comparison is not None and proven(comparison):
        return True
    natures = {rule_of(check).nature for check in gate.failing(results)}
    return not natures.isdisjoint({Nature.FLOOR, Nature.TEST})


def certainty(results: Results, news: News) -> str:
    """How sure the result is, in a sentence or two without p or interval. Nothing else says it again.

    Empty if nothing was scored.
    """
    if results.score is None:
        return ""
    trials = _trials_played(results)
    comparison = results.comparison
    if results.gate.reasons:
        return f"Without a verdict these numbers prove nothing ({trials[0].lower()}{trials[1:]})"
    if too_little_decided(results):
        return trials
    if comparison and comparison.delta is not None and news.broke:
        sure = f"{_sure_of_broken(results, comparison, news)} ({trials[0].lower()}{trials[1:]})"
        needed = _needed(comparison, results) or _MOST_ADVISED + 1
        if not proven(comparison) and needed <= _MOST_ADVISED:
            sure += f". To be surer, play {needed} trials per test"
        flaky = [one.name for one in news.broke if one.test is not None and one.test.flaky]
        some = f"Passed in some trials, and may pass in a rerun: {numbers.listed(flaky, _FLAKY_NAMED)}"
        return f"{sure}. {some}" if flaky and proven(comparison) else sure
    if comparison is None or comparison.delta is None:
        more = "" if _trials_per_test(results)[0] > 1 else ": a rerun may differ"
        return f"{trials}{more}"
    return f"{trials}; {_sure_of_change(results, comparison)}"


def _trials_played(results: Results) -> str:
    least, most = _trials_per_test(results)
    rounds = results.run.rounds
    played = f"{least} to {most}" if least < most else f"{most}"
    if rounds and rounds.played < rounds.looks[-1]:
        return f"{played} of at most {rounds.looks[-1]} trials per test"
    return "One trial per test" if least == most == 1 else f"{played} trials per test"


def _sure_of_broken(results: Results, comparison: Comparison, news: News) -> str:
    """What is proven where tests broke, and what is not: a sentence each."""
    if proven(comparison):
        return "Proven: the score fell by more than chance explains"
    if (comparison.delta or 0) >= 0:
        return "The score did not fall, and single tests can fail by chance"
    sentence = f"That the agent got worse is not proven: {_sure_of_change(results, comparison, 'it')}"
    most = (comparison.fewest_broken or 1) - 1
    if most < len(news.broke):
        return sentence
    return f"{sentence}, and up to {numbers.count(most, 'test')} can break by chance"


def _sure_of_change(results: Results, comparison: Comparison, drop: str = "the drop") -> str:
    if proven(comparison) or rose(comparison):
        return f"the {'rise' if (comparison.delta or 0) > 0 else 'drop'} is larger than chance explains"
    fell = (comparison.delta or 0) < 0
    if fell and _trials_per_test(results)[1] == 1 and comparison.interval and comparison.delta is not None:
        low, high = comparison.interval.low, comparison.interval.high
        spread = max(comparison.delta - low, high - comparison.delta)
        if spread > 0:
            return f"in a rerun the change may differ by up to {numbers.at_least(spread)} points"
    if too_few(comparison):
        return "too few trials to tell a drop from chance"
    if fell:
        return f"{drop} may be chance"
    least = comparison.detectable
    if least is None or least >= 100:
        return "the scores vary too much to notice a drop"
    too_low = f"{changes.base_name(results)} scores too low for a drop to show"
    unseen = f"drops below {numbers.at_least(least)} points can go unseen"
    return too_low if least > (comparison.base or 0) else unseen


def odds(results: Results) -> str | None:
    """The odds that the same agent fails this gate again; None for runs too small to tell."""
    if results.odds is None or not _large_enough(results):
        return None
    if results.comparison is not None and proven(results.comparison):
        return None
    return odds_sentence(results.odds)


def fails_mostly(results: Results) -> bool:
    """True if the same agent, run again, would fail this gate more often than not."""
    return _large_enough(results) and results.odds is not None and results.odds.share > 0.5


def _large_enough(results: Results) -> bool:
    return results.counts.tests >= _ODDS_TESTS and _trials_per_test(results)[0] >= _ODDS_TRIALS


def _trials_per_test(results: Results) -> tuple[int, int]:
    """The least and the most trials of a test."""
    counts = [len(test.trials) for test in results.tests] or [0]
    return min(counts), max(counts)


def odds_sentence(odds: Odds) -> str:
    """The odds that the same agent fails the gate in another run, and the floor that it would pass."""
    failing = sorted((check for check in odds.checks if check.share), key=lambda check: -check.share)
    if not failing or odds.share < 0.01:
        return "The same agent, run again, would fail this gate in fewer than 1 % of runs."
    first, *others = failing
    if not others:
        which = first.name
    elif first.share > _MOSTLY * odds.share:
        which = f"mostly {first.name}"
    else:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        which = f"{first.name}, {others[0].name}{more}"
    about = "" if odds.share > 0.99 else "about "
    share = f"{about}{numbers.odds(odds.share)}"
    sentence = f"The same agent, run again, would fail this gate in {share} of runs ({which})"
    if not _is_run_floor(first) or first.share <= WORTH_TELLING or not odds.floor:
        return f"{sentence}."
    return f"{sentence}. It would score below {numbers.plain(odds.floor)} in fewer than 5 % of runs."


def _is_run_floor(check: CheckOdds) -> bool:
    return check.kind is CheckKind.MIN_SCORE and check.suite is None and check.test is None
