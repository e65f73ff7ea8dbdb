"""Limits of a conversation's length, and of the agent's time to reply."""

from typing import Literal

from pydantic import Field

from ci_evals.domain.checks.replies import times, unless_unanswered
from ci_evals.domain.checks.strict_check import LastingCheck, family
from ci_evals.domain.criterion import TurnNumber
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Verdict


class MaxAgentTurns(LastingCheck):
    """Passes if the agent replied at most `turns` times."""

    strict: Literal["max_agent_turns"]
    turns: TurnNumber = Field(description="Maximum number of replies in the conversation.")

    @classmethod
    def evidence(cls) -> None:
        return None

    def _decide(self, transcript: Transcript) -> Verdict:
        count = len(transcript.turns)
        decided = Verdict.passed if count <= self.turns else Verdict.failed
        verdict = decided(f"the agent replied {times(count)}, at most {self.turns} allowed", count)
        return unless_unanswered(verdict, transcript)


class MaxLatency(LastingCheck):
    """Passes if the slowest reply took at most `seconds`."""

    strict: Literal["max_latency"]
    seconds: float = Field(gt=0, description="The longest that a reply may take, in seconds.")

    @classmethod
    def evidence(cls) -> None:
        return None

    def _decide(self, transcript: Transcript) -> Verdict:
        slowest = max(transcript.turns, key=lambda turn: turn.latency_seconds)
        seconds = slowest.latency_seconds
        decided = Verdict.passed if seconds <= self.seconds else Verdict.failed
        verdict = decided(
            f"the slowest reply, in turn {slowest.index}, took {seconds:.3f} s, "
            f"at most {self.seconds:g} s allowed",
            slowest.index,
        )
        return unless_unanswered(verdict, transcript)


FAMILY = family(MaxAgentTurns, MaxLatency)
