"""Labels of outcomes: of verdicts, tests, conversations and runs. Not yet sanitized."""

from dataclasses import dataclass
from enum import Enum

from ci_evals.domain.transcript import EndState, FailureCause
from ci_evals.domain.verdict import Cause

CAUSES = {
    Cause.NO_TRACE: "no spans of the agent arrived",
    Cause.NO_EVIDENCE: "no evidence to decide it on",
    Cause.JUDGE_ERROR: "a model gave no usable answer",
    Cause.VOID_ANSWER: "the judge's answer does not count",
    Cause.NO_JUDGE: "no judge",
    Cause.NO_USER: "nobody played the simulated user",
    Cause.NO_MODEL: "no embedding model",
    Cause.CANNOT_TELL: "the judge cannot tell",
    Cause.NOT_REACHED: "the agent ended the conversation before; counts as failed",
}
"""Reasons why a verdict is undecided."""
ENDINGS = {
    EndState.COMPLETED: "All planned turns were played.",
    EndState.STOPPED: "The simulated user said that it was done.",
    EndState.ESCALATED: "The agent handed over to a person.",
    EndState.AGENT_ERROR: "The agent answered with an error.",
    EndState.FAILED: "The conversation failed.",
    EndState.INVALID_USER: "Excluded from every score, since the simulated user broke character.",
    EndState.INTERRUPTED: "The run was stopped while this trial was under way.",
}
"""End states of a conversation, in a sentence each."""
ERRORS = {
    EndState.AGENT_ERROR: "errored",
    EndState.FAILED: "errored",
    EndState.INTERRUPTED: "interrupted",
    EndState.INVALID_USER: "excluded, since the simulated user broke character",
}
"""End states of excluded trials, to follow their number: `2 trials failed`."""
AT_FAULT = {
    EndState.AGENT_ERROR: "the agent, which answered with an error",
    EndState.FAILED: "the agent or model that the error names",
    EndState.INVALID_USER: "the simulated user: its guidelines or its model",
    FailureCause.AGENT_FAILED: "the agent or its network",
    FailureCause.MODEL_FAILED: "the simulated user's model or its network",
    FailureCause.SETUP_FAILED: "the suite's setup",
    Cause.NO_TRACE: "the agent's traces",
    Cause.NO_EVIDENCE: "what the agent reports, or the suite that asks for more",
    Cause.JUDGE_ERROR: "the judge's model or its network",
    Cause.VOID_ANSWER: "the judge's model",
    Cause.NO_MODEL: "the settings: no embedding model is set",
    Cause.CANNOT_TELL: "the suite: the judge cannot decide by the criterion's words",
}
"""The place to look first for the cause of errors and undecided verdicts."""


class Tone(Enum):
    """The tone of a piece of news: good, bad, or open."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True)
class OutcomeLabel:
    """The words, sign and tone of an outcome."""

    words: str
    sign: str
    tone: Tone


OUTCOMES = {
    "passed": OutcomeLabel("passed", "✅", Tone.GOOD),
    "failed": OutcomeLabel("failed", "❌", Tone.BAD),
    "error": OutcomeLabel("errored", "⚠️", Tone.OPEN),
    "undecided": OutcomeLabel("undecided", "❔", Tone.OPEN),
    "not_run": OutcomeLabel("not run", "⏸️", Tone.OPEN),
}
"""Labels of tests and of verdicts."""


class RunOutcome(Enum):
    """The outcome of a run as a whole.

    `UNCHECKED`: nothing failed, and a check that was asked for could not be made.
    """

    PASSED = OutcomeLabel("passed", "✅", Tone.GOOD)
    UNCHECKED = OutcomeLabel("passed, some checks not made", "⚠️", Tone.OPEN)
    FAILED = OutcomeLabel("failed", "❌", Tone.BAD)
    NO_VERDICT = OutcomeLabel("no verdict", "⚠️", Tone.OPEN)
    INTERRUPTED = OutcomeLabel("interrupted", "⚠️", Tone.OPEN)
    SKIPPED = OutcomeLabel("skipped", "⏭️", Tone.OPEN)


UNFINISHED = frozenset({RunOutcome.NO_VERDICT, RunOutcome.INTERRUPTED})
"""Outcomes without a verdict."""
