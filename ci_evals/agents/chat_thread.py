"""The conversation before an answer, and where the turn begins in an answer that repeats it. Pure.

Many agents answer with the whole thread, and frameworks add messages of the role `user` that nobody sent,
such as "Observation: …". So the turn begins after the message that was sent, found by its text, and not after
the last message of the user.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import regex
from pydantic import JsonValue

from ci_evals.support.json_text import canonical

NOT_FOUND = (
    "its messages repeat the conversation, but the message that was sent is not among them. Have the agent "
    "keep the user's messages as they are, or return only its new ones"
)
IN_FRONT = (
    "tool calls that no earlier answer has stand in front of the message that was sent: they may belong to "
    "this turn. Have the agent return only its new messages, after the user's"
)


class Seen(NamedTuple):
    """A message as far as it matters here."""

    role: str
    """`user`, `agent`, or another one."""
    text: str
    calls: str = ""
    """The digest of its tool calls; empty if it has none."""


class Beginning(NamedTuple):
    """The first message of a turn in a list."""

    place: int
    doubt: str | None = None
    """Why there may be messages of the turn in front of it, if there may."""


@dataclass
class Thread:
    """The messages of a conversation that are known before an answer."""

    sent: list[str] = field(default_factory=list)
    """The user's messages, the one to be answered last."""
    replies: set[str] = field(default_factory=set)
    """The agent's texts: whole replies, and the messages that they consist of."""
    calls: set[str] = field(default_factory=set)
    """Digests of the tool calls in earlier answers."""

    @classmethod
    def of(cls, history: Iterable[dict[str, str]]) -> "Thread":
        """Return the conversation that begins with these messages."""
        thread = cls()
        for message in history:
            if message["role"] == "user":
                thread.ask(message["content"])
            else:
                thread.replies.add(folded(message["content"]))
        return thread

    def ask(self, text: str) -> None:
        """Add a message of the user's."""
        self.sent.append(folded(text))

    def take(self, reply: str, messages: Iterable[Seen]) -> None:
        """Add an answer: its text, and the messages in it."""
        self.replies.add(folded(reply))
        for message in messages:
            if message.role == "agent":
                self.replies.add(folded(message.text))
            if message.calls:
                self.calls.add(message.calls)
        self.replies.discard("")

    def begin(self, messages: Sequence[Seen]) -> Beginning:
        """Find the first message of the turn in an answer."""
        sent = self._place_of_sent(messages)
        if sent is None:
            return Beginning(0, NOT_FOUND if self._repeats(messages) else None)
        before, after = messages[:sent], messages[sent + 1 :]
        are_old = all(message.calls in self.calls for message in before if message.calls)
        if are_old or not any(message.role == "agent" for message in after):
            return Beginning(sent + 1)
        if self._repeats(before) or _opened_by_user(before):
            return Beginning(sent + 1, IN_FRONT)
        return Beginning(0)

    def _place_of_sent(self, messages: Sequence[Seen]) -> int | None:
        """Return the place of the message that was sent last, as it was sent or within another text."""
        texts = {
            place: folded(message.text) for place, message in enumerate(messages) if message.role == "user"
        }
        for matches in (_is, _holds):
            if (place := self._earliest(texts, matches)) is not None:
                return place
        return None

    def _earliest(self, texts: dict[int, str], matches: Callable[[str, str], bool]) -> int | None:
        """Return the earliest place for the last message, after as many of those before it as there are."""
        for first in range(len(self.sent)):
            place = _in_order(self.sent[first:], texts, matches)
            if place is not None:
                return place
        return None

    def _repeats(self, messages: Sequence[Seen]) -> bool:
        """Return whether messages are clearly some of earlier turns."""
        earlier = self.sent[:-1]
        if _opened_by_user(messages) and any(message.calls in self.calls for message in messages):
            return True
        last = max((place for place, message in enumerate(messages) if message.role == "user"), default=0)
        for place, message in enumerate(messages):
            text = folded(message.text)
            if message.role == "user" and text in earlier:
                return True
            if message.role == "agent" and place < last and text in self.replies:
                return True
        return False


def _opened_by_user(messages: Sequence[Seen]) -> bool:
    """Return whether the first message of user or agent is the user's."""
    return next((one.role for one in messages if one.role in ("user", "agent")), None) == "user"


def digest(calls: JsonValue) -> str:
    """Return a digest of tool calls, by which they are recognized in a later answer."""
    return hashlib.sha256(canonical(calls).encode(errors="replace")).hexdigest()


def folded(text: str) -> str:
    """Return a text as it is compared: white space differs between frameworks."""
    return " ".join(text.split())


def _is(text: str, sent: str) -> bool:
    return text == sent


def _holds(text: str, sent: str) -> bool:
    """Return whether a text holds a message as whole words, as `Question: …` does."""
    if not sent:
        return False
    return sent in text and regex.search(rf"(?<!\w){regex.escape(sent)}(?!\w)", text) is not None


def _in_order(sent: Sequence[str], texts: dict[int, str], matches: Callable[[str, str], bool]) -> int | None:
    """Return the earliest place at which all messages have come in their order."""
    waiting = list(sent)
    for place, text in texts.items():
        if matches(text, waiting[0]):
            waiting.pop(0)
        if not waiting:
            return place
    return None
