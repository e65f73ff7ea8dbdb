"""Measures of an agent's process: its steps, its time, and the parts of its logic that tests reached.

After the lecture on the evaluation of agents: whether an agent succeeds is told by verdicts, why by these.
"""

from dataclasses import dataclass

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.base import Amount, Percent, ResultPart, Seconds, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProcess(ResultPart):
    """The steps of one conversation, from its traces.

    A step is a workflow that begins, or a call of a tool or an integration. A workflow that also ran for the
    reply before is the same step, even if replies without a workflow came in between. A workflow that one
    reply names twice is two steps.

    What a reply does not report is null: a missing trace is no evidence that nothing was done.
    """

    steps: Amount = 0
    tools: Amount = 0
    """Different workflows and integrations among the steps."""
    begun: tuple[str, ...] | None = None
    """The workflows and tools in the order in which they began, the first thousand. Null:
    unknown."""
    repeated: Amount | None = None
    """Steps that had been taken before with the same parameters: they brought nothing new. Calls of
    tools: with the same arguments. Null if a reply does not report parameters."""
    calls: Amount | None = None
    """Steps that are calls of tools or integrations. Null: unknown."""
    failed_calls: Amount | None = None
    """Calls that came to an error, or to an HTTP status from 400 on. Null: unknown."""
    backtracks: Amount | None = None
    """Returns to a workflow that had been left for another one. Null: unknown."""
    missed: Amount | None = None
    """Of `optimalTools`: those that did not run, or not in that order. Null without it."""
    overhead: float | None = None
    """Workflows begun beyond `optimalTools`, as a part of these: 0.5 is half as many again, -0.5
    half of them. Null without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired(ResultPart):
    """The parts of the agent's logic that fired in one conversation, each name once, in order.

    The first thousand names of each kind; null if no reply reported that kind.
    """

    in_part: tuple[LogicKind, ...] = ()
    """The kinds that some replies report and others do not: more may have fired."""

    workflows: tuple[str, ...] | None = None
    parameters: tuple[str, ...] | None = None
    """Those extracted with a value."""
    rules: tuple[str, ...] | None = None
    integrations: tuple[str, ...] | None = None

    def names(self, kind: LogicKind) -> tuple[str, ...] | None:
        """The names of one kind."""
        return {
            LogicKind.WORKFLOW: self.workflows,
            LogicKind.PARAMETER: self.parameters,
            LogicKind.RULE: self.rules,
            LogicKind.INTEGRATION: self.integrations,
        }[kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times(ResultPart):
    """The time of one trial by who took it, in seconds."""

    agent: Seconds = 0
    """Waiting for the agent's replies, of the attempt that counts."""
    user: Seconds = 0
    """Waiting for the simulated user's model, of all attempts."""
    judge: Seconds = 0
    """Reaching the verdicts. Of a conversation that was judged again, of that; all else is of the
    run that held it."""
    other: Seconds = 0
    """The rest: sessions, earlier attempts, replies that never came, waiting for a place, and this
    tool's own work."""

    @property
    def whole(self) -> float:
        """All of it."""
        return self.agent + self.user + self.judge + self.other


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSummary(ResultPart):
    """The process of several trials together: of a test, a suite or a run.

    Values from traces are null if no trial reports them. Steps, backtracks, overhead and missed are of the
    trials that did not break off: what others did not do, they may not have come to.
    """

    completion_rate: Share | None = None
    """Share of the planned trials whose conversation ended by itself, or in the error that its test
    expects. Trials that are excluded for their simulated user do not count. Null if none was
    played."""
    success_rate: Share | None = None
    """Share of the planned trials that also passed every criterion."""
    traced_trials: Amount = 0
    """Trials that carried a trace."""
    steps_per_trial: float | None = None
    redundancy_rate: Share | None = None
    """Repeated steps, of all steps."""
    calls: Amount | None = None
    """Calls of tools and integrations."""
    failure_rate: Share | None = None
    """Failed calls, of all calls."""
    backtracks_per_trial: float | None = None
    overhead: float | None = None
    """Mean over the trials of tests with `optimalTools`."""
    missed: Amount | None = None
    """Steps of `optimalTools` that were missed in total."""
    first_reply_seconds: Seconds | None = None
    """Median time from a conversation's first message to the agent's first reply."""
    times: Times | None = None
    """Of all trials together. Null if nothing was measured."""
    cost_usd_per_trial: float | None = None
    """The cost of judge, simulated user and embedding model. Only of a run."""
    cost_adjusted_score: Percent | None = None
    """The score, less 20 points for each US dollar that a trial costs, at most 40. Only of a run;
    null if the cost is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach(ResultPart):
    """The trials and tests that reached one part of the agent's logic. Null if no trace reports its kind."""

    kind: LogicKind
    name: str
    trials: Amount | None
    """Trials in which it fired. Null if no trace reports its kind."""
    tests: Amount | None
    """Tests in whose trials it fired. Null as `trials` is."""
    wanted: bool
    """Whether a criterion wants it to fire, or names it as its AUI Logic."""
    compared_trials: Amount | None = None
    """Of `trials`, those of tests that are compared with the baseline and whose traces report its
    kind on both sides. Null if there are none."""
    base_trials: Amount | None = None
    """The baseline's trials of the same tests."""
    by_chance: Share | None = None
    """If it fired only in the baseline: how often that would happen with an unchanged agent. Null
    otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage(ResultPart):
    """The parts of the agent's logic that fired, and those that were wanted and did not."""

    traced_trials: Amount = 0
    logic: tuple[Reach, ...] = ()
