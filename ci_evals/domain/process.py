"""How an agent went about its conversations: its steps, its time, and what of its logic they reached.

After the lecture on the evaluation of agents: whether an agent succeeds is told by verdicts, why by these.
"""

from enum import StrEnum

from pydantic import Field, JsonValue

from ci_evals.domain.base import Amount, Percent, Record, Seconds, Share


class LogicKind(StrEnum):
    """The parts of an agent's logic that its traces name."""

    WORKFLOW = "workflow"
    PARAMETER = "parameter"
    RULE = "rule"
    INTEGRATION = "integration"


class Process(Record):
    """The steps of one conversation, told from its traces.

    A step is a workflow that begins (one that goes on from the exchange before is the same step) or a call of
    an integration.
    """

    steps: Amount = 0
    tools: Amount = Field(0, description="Different workflows and integrations among the steps.")
    repeated: Amount = Field(
        0, description="Steps that had been taken before with the same parameters: they brought nothing new."
    )
    calls: Amount = Field(0, description="Steps that are calls of integrations.")
    failed_calls: Amount = Field(0, description="Calls that came to an error, or an HTTP status from 400 on.")
    backtracks: Amount = Field(0, description="Returns to a workflow that had been left for another one.")
    missed: Amount | None = Field(
        None, description="Of `optimalTools`: those that did not run, or not in that order. Null without it."
    )
    overhead: float | None = Field(
        None,
        description="Workflows begun beyond `optimalTools`, as a part of these: 0.5 is half as many again, "
        "-0.5 half of them. Null without it.",
    )


class Fired(Record):
    """What of the agent's logic fired in one conversation, each name once, in the order of appearance."""

    workflows: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    integrations: tuple[str, ...] = ()


class Times(Record):
    """Where the time of one trial went, in seconds."""

    agent: Seconds = Field(0, description="Waiting for the agent's replies, of the attempt that counts.")
    user: Seconds = Field(0, description="Waiting for the simulated user's model, of all attempts.")
    judge: Seconds = Field(0, description="From the end of the conversation to the last verdict.")
    other: Seconds = Field(
        0, description="The rest: sessions, earlier attempts, waiting for a place, and this tool's own work."
    )


class ProcessSummary(Record):
    """The process of several trials together: of a test, a suite or a run.

    What is told from traces is null where no trial carried one.
    """

    completion_rate: Share | None = Field(
        None, description="Of the planned trials, those whose conversation came to an end of its own."
    )
    success_rate: Share | None = Field(
        None, description="Of the planned trials, those that passed every evaluation that was wanted."
    )
    traced_trials: Amount = Field(0, description="Trials that carried a trace.")
    steps_per_trial: float | None = None
    redundancy_rate: Share | None = Field(None, description="Repeated steps, of all steps.")
    calls: Amount = 0
    failure_rate: Share | None = Field(None, description="Failed calls, of all calls of integrations.")
    backtracks_per_trial: float | None = None
    overhead: float | None = Field(None, description="Mean over the trials of tests with `optimalTools`.")
    missed: Amount | None = Field(None, description="Steps of `optimalTools` that were missed, in all.")
    first_reply_seconds: Seconds | None = Field(
        None, description="Median time from a conversation's first message to the agent's first reply."
    )
    times: Times | None = Field(None, description="Of all trials together. Null where none was measured.")
    cost_usd_per_trial: float | None = Field(
        None, description="What judge, simulated user and embedding model cost. Of a run alone."
    )
    cost_adjusted_score: Percent | None = Field(
        None,
        description="The score, less 20 points for each US dollar that a trial costs, at most 40. Of a run "
        "alone, and null where the cost is not known.",
    )


class Reach(Record):
    """How far the tests reached one part of the agent's logic."""

    kind: LogicKind
    name: str
    trials: Amount = Field(description="Trials in which it fired.")
    tests: Amount = Field(description="Tests in whose trials it fired.")
    wanted: bool = Field(description="Whether a criterion asks for it, or names it as its AUI Logic.")
    base_trials: Amount | None = Field(
        None, description="The same of the baseline, over the compared tests; null where there is none."
    )


class Coverage(Record):
    """Which parts of the agent's logic fired at least once, or are asked for and did not."""

    traced_trials: Amount = 0
    logic: tuple[Reach, ...] = ()


class Deed(Record):
    """One thing that an agent did for a reply, as its trace tells."""

    kind: LogicKind
    name: str
    value: JsonValue = Field(None, description="A parameter's value, or the status of a call.")
