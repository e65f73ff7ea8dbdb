"""The base of strict checks: what the program asks of every kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple, get_args

from pydantic import Field

from ci_evals.domain.actions import LogicPart
from ci_evals.domain.canaries import filled, referred
from ci_evals.domain.checks.evidence import EvidenceKind
from ci_evals.domain.checks.replies import NO_REPLY
from ci_evals.domain.criterion import Criterion, TurnChoice
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.domain.verdict import Cause, Verdict


def unknown_canary(criterion: Criterion) -> Verdict | None:
    """Return that a criterion cannot be decided if it still refers to a canary: nothing discloses a name."""
    for name in referred(criterion):
        reason = f"the trial has no value for the canary {name!r}"
        return Verdict.undecided(Cause.NO_EVIDENCE, reason)
    return None


class WeakSpot(NamedTuple):
    """A warning about a check that can be run."""

    key: str | None
    """The key of the check that it is about; None if it is about the whole check."""
    message: str


class ConversationLength(NamedTuple):
    """How long a test's conversation may be."""

    written: int
    """The turns that the suite writes."""
    most: int
    """The same with those that `maxTurns` adds, which the simulated user may or may not use."""
    ends_open: bool
    """True if turns are added after a line of the suite's own."""


class StrictCheck(Criterion, ABC):
    """A criterion that a program decides.

    A kind is a class with a key `strict`, in the module of its family. It must implement the abstract
    methods, since a wrong default there could let a bad agent pass. The other members have defaults.
    """

    expects_end: ClassVar[EndState | None] = None
    """The end of a conversation that the check wants the agent to bring about."""
    is_unhappy: ClassVar[bool] = False
    """True if a test with the check is no happy path: it wants a refusal, an error or a hand-over."""
    is_quiz: ClassVar[bool] = False
    """True if a test with the check is a question with its answer."""

    code_key: ClassVar[str | None] = None
    """The key that names code to run, which only a trusted suite may do."""

    @classmethod
    def kind(cls) -> str:
        """Return the value of the key `strict`."""
        (name,) = get_args(cls.model_fields["strict"].annotation)
        return str(name)

    @property
    def strict_kind(self) -> str:
        """The name of the check."""
        return self.kind()

    @classmethod
    @abstractmethod
    def evidence(cls) -> EvidenceKind | None:
        """Return the part of a trace that decides; None if replies, or the world, decide without one."""

    @classmethod
    def chooses_reply(cls) -> bool:
        """Return whether its key `turn` chooses the reply whose text decides."""
        return "turn" in cls.model_fields and cls.evidence() is None

    @abstractmethod
    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        """Return those of these later turns whose replies could turn a pass into a failure."""

    def decide(self, transcript: Transcript) -> Verdict:
        """Return the verdict."""
        if not transcript.turns:
            return NO_REPLY
        check = filled(self, transcript.canaries)
        return unknown_canary(check) or check._decide(transcript)  # noqa: SLF001  # a copy of this one

    @abstractmethod
    def _decide(self, transcript: Transcript) -> Verdict:
        """Return the verdict on at least one reply; undecided if unknown evidence could change it."""

    def covers(self) -> LogicPart | None:
        """Return the part of the agent's logic that must fire; None if the check needs none to."""
        return None

    def tool_names(self) -> Sequence[str]:
        """Return the names of tools that the check compares with those called."""
        return ()

    def forbidden_tool(self) -> str | None:
        """Return the tool that must not be used at any time; None if there is none."""
        return None

    def reads_arguments(self) -> bool:
        """Return whether the check looks at arguments of tool calls."""
        return False

    def reads_values(self) -> bool:
        """Return whether the check looks at arguments, or at what became of them."""
        return self.reads_arguments()

    def arguments_hint(self) -> str | None:
        """Return how to check arguments too, if any call of the tool passes; else None."""
        return None

    def answers(self) -> Sequence[str]:
        """Return answers that the agent must find itself: the user must not say them."""
        return ()

    def codes(self) -> Sequence[str]:
        """Return names of tools and rules that a user would not know."""
        return ()

    def weak_spots(self, length: ConversationLength) -> Iterator[WeakSpot]:
        """Yield what makes the check weaker than it looks, in a test of this length."""
        del length
        yield from ()


class PositiveCheck(StrictCheck, ABC):
    """A check that something happened or was said: no later reply undoes a pass."""

    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        """Return none."""
        del later
        return ()


class LastingCheck(StrictCheck, ABC):
    """A check that something never happened, of a limit, or of the end: any later reply can undo a pass."""

    def undone_by(self, later: Sequence[int]) -> Sequence[int]:
        """Return all of them."""
        return later


class ReplyCheck(StrictCheck, ABC):
    """A check of what the agent says in one reply, or in any."""

    turn: TurnChoice = Field("last", description="Which reply of the agent: its number, `last`, or `any`.")

    @classmethod
    def evidence(cls) -> None:
        """Return none: every reply has a text."""

    def weak_spots(self, length: ConversationLength) -> Iterator[WeakSpot]:
        """Yield that the last reply is another one in a longer conversation."""
        if length.ends_open and "turn" not in self.model_fields_set:
            last = length.written
            yield WeakSpot(
                None,
                f"{self.kind()} checks the last reply, which is that of turn {last} or a later one, up to "
                f"{length.most}, since maxTurns adds auto turns; "
                f'write "turn": {last} or "any", or in the test "maxTurns": {last}',
            )


def family(*kinds: type[StrictCheck]) -> tuple[type[StrictCheck], ...]:
    """Return the kinds of a family. mypy refuses a kind that leaves out an abstract method."""
    return kinds
