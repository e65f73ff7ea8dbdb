"""How a run came to its decision: rounds, the base agent, earlier runs. In sentences; not yet sanitized."""

from collections.abc import Iterator

from ci_evals.domain import numbers
from ci_evals.domain.choices import BothSides
from ci_evals.domain.results.comparison import Comparison, HistoryComparison
from ci_evals.domain.results.gate import CheckKind
from ci_evals.domain.results.run import Results, Rounds
from ci_evals.gate.rules.changes import CLOSE
from ci_evals.reports.story import advice
from ci_evals.reports.story.comparison import arms
from ci_evals.reports.story.judging.parts import capitalized
from ci_evals.scoring.usage import agent_models

_NAMED = 5


def sentences(results: Results) -> Iterator[str]:
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


def extent(results: Results, loops: int) -> str | None:
    """How much a run like this one plays and costs, if that depends on what it sees; else None.

    It does in rounds, and with a base agent (option `against`), which earlier runs may spare.
    `loops` is how often it plays each test at most.
    """
    run, config = results.run, results.run.config
    both_sides = config.get("bothSides")
    agents = _agents(results)
    if not run.rounds and agents == 1:
        return None
    least, spared = run.rounds.looks[0] if run.rounds else loops, both_sides != BothSides.ALWAYS
    first = least * (1 if spared and config.get("arms") is None else agents)
    last = loops * agents
    base = f", those of {'the base agent' if agents == 2 else 'all agents'} included" if agents > 1 else ""
    trials = f"{numbers.extent(first, last, str)} {'trial' if last == 1 else 'trials'}"
    text = f"Such a run has {trials} of each test{base}"
    if not results.usage.cost_usd or results.counts.taken_trials:
        return f"{text}."
    played = run.rounds.played if run.rounds else loops
    of_trial = results.usage.cost_usd / (played * (len(results.arms) or 1))
    cost = numbers.extent(of_trial * first, of_trial * last, numbers.money)
    return f"{text}, for about {cost}."


def _agents(results: Results) -> int:
    """The number of agents that such a run plays, with a base agent even if it was spared in this one."""
    return max(len(results.arms), 2 if results.run.config.get("against") is True else 1)


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
    most, played = rounds.looks[-1] * _agents(results), rounds.played * (len(results.arms) or 1)
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
        agent = capitalized(arms.base_agent(results))
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
    now = agent_models(next((arm.usage for arm in results.arms if arm.gated), results.usage))
    judged = any(suite.judge_model for suite in results.suites)
    if judged and before and now and before != now:
        was, is_now = (numbers.listed(models, _NAMED) for models in (before, now))
        yield (
            f"The agent's model changed from {was} to {is_now}: check on 50 + 50 verdicts whether the judge "
            f"treats the new answers alike {advice.SPOT_CHECK}."
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
