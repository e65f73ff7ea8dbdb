"""Sentences that name an option, a key or a command: the one place where advice is worded."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ci_evals.domain.results.run import Results
from ci_evals.domain.verdict import Cause

OTHER_JUDGE = "Use a judge-model that passes"
DECIDE_ANYWAY = "set judge-check to warn, to decide by this one anyway"
NAME_A_BASELINE = "Set baseline to the path of a run; in CI each run on the default branch leaves one."
MERGE = "Run ci-evals merge to join all shards into one run."
REPORT_ONLY = "Report only: with no-gate the job does not fail."
FIX_GUIDELINES = "Read what it said, then fix the guidelines or use another user-model."
SPOT_CHECK = "(ci-evals label --spot-check)"
NO_JUDGE = "Add strict checks, which need no judge, or choose a provider for the judge."
FIX_FAILURES = "Fix the failures. If the new behavior is intended, change the tests."
REPLAYED = "A replay gives the same answers each time: to test the agent as it is now, run without replay."
MORE_LINES = "(set verbose to see all)"
_EVIDENCE = {
    Cause.NO_TRACE: "let the agent export its spans (trace: otlp in the suite, or the option otlp)",
    Cause.NO_EVIDENCE: "let its replies report their tool calls (adapterOptions.toolCalls or trace: otlp)",
    Cause.NO_JUDGE: "choose a provider for the judge",
    Cause.NO_MODEL: "set an embedding-model",
    Cause.CANNOT_TELL: "reword the criteria so that the conversation decides them",
}


class PartKind(Enum):
    """How a report shows a part of a next step."""

    WORDS = "words"
    COMMAND = "command"
    REPORT = "report"
    """Leads to the report."""
    EXIT_CODE = "exit code"


@dataclass(frozen=True)
class StepPart:
    """A part of a next step."""

    text: str
    kind: PartKind = PartKind.WORDS
    in_report: str = ""
    """The words where the reader is in the report already; empty if they are the same."""

    @property
    def gap(self) -> str:
        """The text between the part before it and this one."""
        return "" if self.text.startswith((".", ",", ":", ";")) else " "


@dataclass(frozen=True)
class NextStep:
    """The next step after a run."""

    parts: tuple[StepPart, ...] = ()
    """None if nothing is known."""

    @property
    def text(self) -> str:
        """All of it in plain text."""
        return "".join(f"{part.gap}{part.text}" for part in self.parts).strip()

    @property
    def commands(self) -> tuple[str, ...]:
        """Its commands."""
        return tuple(part.text for part in self.parts if part.kind is PartKind.COMMAND)


def read_failures() -> Iterator[StepPart]:
    """The place to read about failures."""
    return _read("Read what failed", "ci-evals show --failed")


def read_errors() -> Iterator[StepPart]:
    """The place to read why trials broke off and criteria are undecided."""
    return _read("Read each error", "ci-evals show")


def _read(what: str, command: str) -> Iterator[StepPart]:
    yield StepPart(what)
    yield StepPart("in the report", PartKind.REPORT, "below")
    yield StepPart(", or by")
    yield StepPart(command, PartKind.COMMAND)
    yield StepPart(".")


def other_floor() -> Iterator[StepPart]:
    """The next step if only tests fail that failed before."""
    yield StepPart("Fix the tests that fail, or set a floor that this agent meets:")
    yield StepPart("ci-evals odds", PartKind.COMMAND)
    yield StepPart("names one.")


def build_fails(results: Results) -> Iterator[StepPart]:
    """The reason why a run without a verdict fails the build."""
    yield StepPart("Without a verdict the build fails: undecided never counts as passed.")
    yield from exit_code(results)


def exit_code(results: Results) -> Iterator[StepPart]:
    """The exit code; nothing if the command exits with 0."""
    if results.gate.exit_code:
        yield StepPart(f"Exit code {results.gate.exit_code}.", PartKind.EXIT_CODE)


def evidence_for(causes: set[Cause]) -> str:
    """What gives the evidence that is missing for these causes, in a sentence; empty if nothing is known."""
    cures = [cure for cause, cure in _EVIDENCE.items() if cause in causes]
    if not cures:
        return ""
    return f"To decide more, {'; '.join(cures)}."
