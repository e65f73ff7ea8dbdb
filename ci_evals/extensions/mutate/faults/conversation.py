"""A saved conversation in which a fault is planted, and what other tests of its suite hold."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.domain.suite import PlannedTurn
from ci_evals.domain.transcript import EndState, ProbeResult, Transcript, Turn


@dataclass(frozen=True)
class OtherTests:
    """What the conversations and users of a suite's other tests hold, the nearest following test first."""

    turns: tuple[Turn, ...] = ()
    user_info: tuple[Mapping[str, JsonValue], ...] = ()


@dataclass(frozen=True)
class Conversation:
    """A saved conversation in which a fault can be planted."""

    transcript: Transcript
    planned: Sequence[PlannedTurn]
    """The planned turns, at least one for each turn of the transcript."""
    user_info: Mapping[str, JsonValue] = field(default_factory=dict)
    before: Mapping[str, ProbeResult] = field(default_factory=dict)
    """The state of the world before the first message, by probe; none of those that were not taken."""
    others: OtherTests = OtherTests()
    may_escalate: bool = False
    """True if the test allows the agent to hand over before its last line."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the transcript."""
        return self.transcript.turns

    def with_turn(self, position: int, turn: Turn) -> Transcript:
        """Return the transcript with another turn of the same words, after which the user says the same."""
        turns = (*self.turns[:position], turn, *self.turns[position + 1 :])
        return self.transcript.copy_with(turns=turns)

    def with_words(self, position: int, words: str) -> Transcript:
        """Return the transcript in which the agent says something else in one turn.

        A fixed next message stays. One that a model writes could be another: there the conversation stops,
        and what its rest could decide is not known.
        """
        turn = self.turns[position].copy_with(agent=words, trace=None, raw=None)
        for later in range(position + 1, len(self.turns)):
            if self.planned[later].auto:
                changed = self.with_turn(position, turn)
                return changed.copy_with(
                    turns=changed.turns[:later], unanswered=later + 1, status=EndState.COMPLETED
                )
        return self.with_turn(position, turn)

    def texts(self) -> Iterator[str]:
        """Yield all that was said, and the user's own data."""
        for turn in self.turns:
            yield turn.user
            yield turn.agent
        yield from map(str, self.user_info.values())
