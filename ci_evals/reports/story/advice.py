"""Sentences that name an option, a key or a command: the one place where advice is worded."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

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
SHOW_FAILURES = "ci-evals show --failed"
READ_FAILURES = f"Read what failed in the report, or by {SHOW_FAILURES}."
FIX_FAILURES = "Fix the failures. If the new behavior is intended, change the tests."
OTHER_FLOOR = "Fix the tests that fail, or set a floor that this agent meets: ci-evals odds names one."
REPLAYED = "A replay gives the same answers each time: to test the agent as it is now, run without replay."
MORE_LINES = "(set verbose to see all)"
_BUILD_FAILS = "Without a verdict the build fails{code}: undecided never counts as passed."
_EVIDENCE = {
    Cause.NO_TRACE: "let the agent export its spans (trace: otlp in the suite, or the option otlp)",
    Cause.NO_EVIDENCE: "let its replies report their tool calls (adapterOptions.toolCalls or trace: otlp)",
    Cause.NO_JUDGE: "choose a provider for the judge",
    Cause.NO_MODEL: "set an embedding-model",
    Cause.CANNOT_TELL: "reword the criteria so that the conversation decides them",
}


class StepPart(NamedTuple):
    """Words of a next step, or a command in it."""

    text: str
    is_command: bool
    gap: bool
    """True if a space precedes it."""


@dataclass(frozen=True)
class NextStep:
    """The next step after a run."""

    text: str
    """Empty if nothing is known."""
    commands: tuple[str, ...]
    """Commands that the text may name."""

    @property
    def parts(self) -> Iterator[StepPart]:
        """The text in parts, so that each report can show commands as such."""
        end = ""
        for part in re.split(f"({'|'.join(map(re.escape, self.commands))})", self.text):
            if part.strip():
                is_gap = end == " " or part.startswith(" ")
                yield StepPart(part.strip(), part in self.commands, bool(end) and is_gap)
            end = part[-1:]


def evidence_for(causes: set[Cause]) -> str:
    """What gives the evidence that is missing for these causes, in a sentence; empty if nothing is known."""
    cures = [cure for cause, cure in _EVIDENCE.items() if cause in causes]
    if not cures:
        return ""
    return f"To decide more, {'; '.join(cures)}."


def build_fails(results: Results) -> str:
    """The reason why a run without a verdict fails the build."""
    code = results.gate.exit_code
    return _BUILD_FAILS.format(code=f" (exit code {code})" if code else "")


def exit_code(results: Results) -> str:
    """The exit code of a failed run, in a sentence; empty if the command exits with 0."""
    return f"Exit code {results.gate.exit_code}." if results.gate.exit_code else ""
