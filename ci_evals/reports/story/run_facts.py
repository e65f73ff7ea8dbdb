"""The run itself: its identity, commits, models, effort and cost. Not yet sanitized."""

from collections.abc import Iterator
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import Baseline
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.results.run import Git, Results, RunInfo, Tool
from ci_evals.reports.story import agents, changes, gate, phrases
from ci_evals.reports.story.phrases import COMMIT, sentence
from ci_evals.scoring.usage import agent_models

TESTED = frozenset({"Commit", "Branch", "Tag", "Pull request"})
"""The labels of facts on what was tested."""
_FEW = 5
"""Suite files and models that are named."""


@dataclass(frozen=True)
class RunStory:
    """The run itself."""

    info: RunInfo
    """Its own record: id, times, git."""
    tool: Tool
    gate: Decision
    """Exit code, reasons for no verdict, and checks."""
    contradictory: bool
    """True if it passed although a check failed: somebody else may have written the results."""
    score: float | None
    """0 to 100, exact."""
    baseline: Baseline | None
    """The run that it was compared with."""
    judges: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    """The facts that identify it, each with a label; those that readers look for come first."""
    effort: str
    """Trials, time and cost, in a sentence."""
    unknown_costs: tuple[str, ...]
    """Why the cost is not known, or not all of it, in sentences."""
    all_tests: str
    """`All 17 tests`."""
    cost_beside: tuple[str, ...]
    """`cost $0.0031 (main $0.0031)`; nothing if it is not known."""
    has_own_tests: bool
    """False of the results of another tool, whose scores have a meaning of their own."""

    @property
    def commit(self) -> str | None:
        """The commit that was tested, as the results claim: of a pull request its own."""
        return self.info.git.head_commit or self.info.git.commit

    @property
    def unfinished(self) -> str | None:
        """Why it was not finished, of a run that is under way; None of others."""
        return (self.info.stopped_because or "") if self.info.status == "unfinished" else None


def of_run(results: Results) -> RunStory:
    """Return what is known of a run."""
    judges = dict.fromkeys(judge for suite in results.suites for judge in suite.models.judges)
    number = results.counts.tests
    tests = numbers.count(number, "test")
    return RunStory(
        info=results.run,
        tool=results.tool,
        gate=results.gate,
        contradictory=results.gate.passed and bool(gate.failing(results)),
        score=results.score,
        baseline=results.comparison.baseline if results.comparison else None,
        judges=tuple(judges),
        facts=tuple((label, value) for label, value in _facts(results, judges) if value),
        effort=_effort(results),
        unknown_costs=tuple(_unknown_costs(results)),
        all_tests=f"All {tests}" if number > 1 else tests,
        cost_beside=changes.cost_beside(results),
        has_own_tests=not any(suite.of_other_tool for suite in results.suites),
    )


def _facts(results: Results, judges: dict[str, None]) -> Iterator[tuple[str, str | None]]:
    run, suites = results.run, results.suites
    users = dict.fromkeys(suite.user_model for suite in suites if suite.user_model)
    commit = run.git.head_commit or run.git.commit
    yield "Commit", commit[:COMMIT] + phrases.with_changes(run.git) if commit else None
    yield _ref(run.git)
    yield "Pull request", str(run.git.pull_request) if run.git.pull_request else None
    files = "Suite files" if len(suites) > 1 else "Suite file"
    if results.of_other_tools:
        files = "Results from"
    yield files, numbers.listed([suite.file for suite in suites], _FEW)
    yield "Agent's models", numbers.listed(agent_models(results.usage), _FEW)
    yield "Judge", numbers.listed([*judges], _FEW)
    yield "Simulated user", numbers.listed([*users], _FEW)
    yield "Started", phrases.moment(run.started_at)
    yield "Took", numbers.duration(run.duration_seconds) if run.duration_seconds else None
    yield "Trials", f"{_played(results):,}{_own_trials(results)}"
    yield "Cost", _cost(results)
    yield "Run", run.id
    yield "Made by", f"{results.tool.name} {results.tool.version}"


def _ref(git: Git) -> tuple[str, str | None]:
    """The branch or the tag that was tested. A pull request's ref says no more than its number."""
    ref = git.ref or ""
    if ref.startswith("refs/tags/"):
        return "Tag", ref.removeprefix("refs/tags/")
    return "Branch", git.branch


def _effort(results: Results) -> str:
    effort = [f"{numbers.count(_played(results), 'trial')}{_own_trials(results)}"]
    if results.run.duration_seconds:
        effort.append(numbers.duration(results.run.duration_seconds))
    if cost := _cost(results):
        effort.append(cost)
    if results.counts.flaky:
        effort.append(numbers.count(results.counts.flaky, "flaky test"))
    return sentence(", ".join(effort))


def _played(results: Results) -> int:
    """The trials of all agents."""
    beside = sum(arm.counts.played_trials for arm in results.arms if not arm.gated)
    return results.counts.played_trials + beside


def _own_trials(results: Results) -> str:
    """` (51 of “candidate”)`: those of the agent that decides; empty if there was no other."""
    own = results.counts.played_trials
    return f" ({own:,} of {_gated_agent(results)})" if own < _played(results) else ""


def _cost(results: Results) -> str | None:
    """`$0.72 ($0.31 of “candidate”)`; None if it is not known or nothing was paid."""
    if results.usage.cost_usd is None or not results.usage.calls:
        return None
    cost = numbers.money(results.usage.cost_usd)
    own = results.own_usage.cost_usd if results.arms else None
    return cost if own is None else f"{cost} ({numbers.money(own)} of {_gated_agent(results)})"


def _gated_agent(results: Results) -> str:
    return f"“{agents.gated_arm(results)}”" if agents.other_arms(results) else "the tested agent"


def _unknown_costs(results: Results) -> Iterator[str]:
    if unpriced := results.usage.unpriced:
        yield f"The cost is unknown: no price for {', '.join(unpriced)} (set prices)."
    for role in results.usage.by_role:
        if why := numbers.uncounted(role):
            yield f"The cost of {role.model or role.role} is unknown: {why}."
