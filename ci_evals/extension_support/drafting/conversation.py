"""A conversation that really happened, and how its turns are put together from what a file has."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.domain.errors import Problem
from ci_evals.domain.transcript import ESCALATION, ToolCall, Turn, UserSource

MOST_CALLS = 1_000
"""Limit of the calls that are read of one turn."""


@dataclass(frozen=True)
class RecordedConversation:
    """A conversation between a user and an agent."""

    name: str
    """Its id; empty if it has none."""
    place: Problem
    """Its position in its file."""
    turns: tuple[Turn, ...]
    title: str = ""
    """Words on what it is about; empty if there are none."""
    user_info: dict[str, JsonValue] = field(default_factory=dict)
    system_prompt: str = ""
    """A prompt that the test gives the agent; recorded agents have their own."""
    history: tuple[dict[str, str], ...] = ()
    """Lines before the first turn, as a suite has them: `{"user": text}` or `{"assistant": text}`."""
    notes: tuple[str, ...] = ()
    """What of the conversation is not in the turns, a sentence each."""

    @property
    def origin(self) -> str:
        """The name and the place, for people."""
        where = f"{self.place.file}:{self.place.line}"
        return f"{self.name} ({where})" if self.name else where


class Kind(Enum):
    """What a part of a conversation is."""

    USER = auto()
    AGENT = auto()
    SYSTEM = auto()
    """Instructions of the agent, which has its own in a test."""
    CALL = auto()
    """A tool call, in any spelling that `tool_calls` reads."""
    RESULT = auto()
    """What a tool returned: an object with `tool_call_id`, `name` and `content`, as far as they are known."""


class Part(NamedTuple):
    """A part of a conversation: words, a tool call or its result."""

    kind: Kind
    text: str = ""
    item: JsonValue = None


class Assembled(NamedTuple):
    """The turns that parts make."""

    turns: tuple[Turn, ...]
    notes: tuple[str, ...]


def assemble(parts: Iterable[Part], *, calls_known: bool) -> Assembled:
    """Put the turns of a conversation together.

    Args:
        parts: In their order.
        calls_known: Whether a turn without calls is known to have none.

    Raises:
        ValueError: a call has no name.
    """
    assembly = _Assembly(calls_known)
    for part in parts:
        assembly.add(part)
    return assembly.finished()


class _Assembly:
    """Turns that are being put together."""

    def __init__(self, calls_known: bool) -> None:
        self._calls_known = calls_known
        self._turns: list[Turn] = []
        self._notes: list[str] = []
        self._open: _OpenTurn | None = None

    def add(self, part: Part) -> None:
        if part.kind is Kind.USER:
            self._begin(part.text)
        elif self._open:
            self._open.add(part)
        elif part.kind is Kind.AGENT:
            self._notes.append(f"The agent spoke first, which is not in the test: {part.text}")
        elif part.kind is Kind.CALL:
            self._notes.append("Decide: a tool was called before the first message, and is left out.")

    def _begin(self, text: str) -> None:
        """Begin a turn; messages without a reply between them are one."""
        if self._open and self._open.is_answered:
            self._end_turn(self._open)
        self._open = self._open or _OpenTurn()
        self._open.user.append(text)

    def _end_turn(self, open_turn: "_OpenTurn") -> None:
        self._turns.append(open_turn.turn(len(self._turns) + 1, calls_known=self._calls_known))
        self._open = None

    def finished(self) -> Assembled:
        if self._open and self._open.is_answered:
            self._end_turn(self._open)
        elif self._open:
            self._notes.append("The last message of the user has no reply, and is left out.")
        return Assembled(tuple(self._turns), tuple(self._notes))


@dataclass
class _OpenTurn:
    """A turn whose reply may not be complete."""

    user: list[str] = field(default_factory=list)
    agent: list[str] = field(default_factory=list)
    calls: list[JsonValue] = field(default_factory=list)
    results: list[dict[str, JsonValue]] = field(default_factory=list)

    @property
    def is_answered(self) -> bool:
        return bool(self.agent or self.calls)

    def add(self, part: Part) -> None:
        match part.kind:
            case Kind.AGENT:
                self.agent.append(part.text)
            case Kind.CALL:
                self.calls.append(part.item)
            case Kind.RESULT if isinstance(part.item, dict):
                self.results.append(part.item)

    def turn(self, index: int, *, calls_known: bool) -> Turn:
        """Return the turn; raise `ValueError` if a call cannot be read."""
        if len(self.calls) > MOST_CALLS:
            raise ValueError(f"turn {index} has more than {MOST_CALLS:,} tool calls")
        read = tool_calls.read_all(self.calls)
        if read is None:
            raise ValueError(f"a tool call in turn {index} has no name")
        calls = tool_calls.with_results(read, _with_ids(read, self.results))
        known = calls_known or bool(calls)
        return recorded_turn(index, "\n".join(self.user), "\n\n".join(self.agent), calls if known else None)


def _with_ids(
    calls: Sequence[ToolCall], results: Iterable[dict[str, JsonValue]]
) -> Iterator[dict[str, JsonValue]]:
    """Yield results with the id of their call; one that names only its tool is of its next call."""
    waiting = [call for call in calls if call.id]
    for result in results:
        call_id, name = result.get("tool_call_id"), result.get("name")
        mine = [call for call in waiting if call_id == call.id or (not call_id and call.name == name)]
        if mine:
            waiting.remove(mine[0])
            yield result | {"tool_call_id": mine[0].id}


def recorded_turn(
    index: int,
    user: str,
    agent: str,
    calls: Sequence[ToolCall] | None,
    latency_seconds: float = 0.0,
    *,
    partial: bool = False,
) -> Turn:
    """Return a turn as a file has it.

    Args:
        index: Its number, from 1 on.
        user: The user's message.
        agent: The agent's reply.
        calls: The tool calls; None if it is unknown what was called.
        latency_seconds: The time of the reply; 0 if it is unknown.
        partial: Whether there may be other calls.
    """
    handed_over = None
    if any(hands_over(call.name) for call in calls or ()):
        handed_over = True
    elif calls is not None and not partial:
        handed_over = False
    return Turn(
        index=index,
        user=user,
        user_source=UserSource.FIXED,
        agent=agent,
        latency_seconds=latency_seconds,
        tool_calls=None if calls is None else tuple(calls),
        tool_calls_partial=partial,
        handed_over=handed_over,
        handed_over_apart=True,
    )


_PERSON = r"human|person|operator|representative|live_?agent|real_?agent|support_?agent|staff"
_PASSING_ON = r"transfer|hand_?off|hand_?over|forward|connect|route|request|talk_?to|speak_?to|contact"
_HAND_OVER = re.compile(
    rf"escalat|(?:{_PASSING_ON}).*(?:{_PERSON})|(?:{_PERSON}).*(?:{_PASSING_ON})", re.IGNORECASE
)


def hands_over(tool: str) -> bool:
    """Return whether a tool's name says that it hands over to a person.

    It does if it begins as AUI's workflow does, says *escalate*, or joins a word for passing on (transfer,
    hand off, connect …) with one for a person (human, operator, live agent …). A transfer to another agent
    of the same program is none.
    """
    return tool.startswith(ESCALATION) or bool(_HAND_OVER.search(tool.replace("-", "_")))
