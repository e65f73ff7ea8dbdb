"""Transcripts: lists of messages as JSON or JSON Lines, and plain text with `User:` and `Agent:` lines."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from ci_evals.domain.errors import Problem, SuiteError
from ci_evals.extension_support.drafting.conversation import (
    Kind,
    Part,
    RecordedConversation,
    assemble,
)
from ci_evals.extensions.importers.conversations.messages import (
    MessageError,
    is_message,
    parts_of,
    shows_calls,
)
from ci_evals.extensions.importers.conversations.recorded_file import LocatedValue, RecordedFile
from ci_evals.extensions.importers.records import MOST_TESTS, Remarks
from ci_evals.support import payload

_LISTS = ("messages", "conversation", "conversations", "transcript", "turns", "items", "input", "history")
"""Keys under which an object has its messages, or many conversations."""
_TITLES = ("title", "name", "subject")
_NAMES = ("id", "conversation_id", "conversationId", "session_id", "sessionId", "thread_id")
_GROUPS = ("conversation_id", "conversationId", "session_id", "sessionId", "thread_id", "threadId")
"""Keys by which lines that are single messages belong together."""
_USER_INFO = ("userInfo", "user_info")
_DEEPEST = 4
_TIME = r"(?:[\[(]?[\d:.,/ TZ+-]{4,40}[\])]?\s*[-–]?\s*)?"
_WHO = "user|human|customer|client|caller|agent|assistant|bot|ai|model|system"
_SPEAKER = re.compile(rf"\s*{_TIME}(?:\*\*)?({_WHO})(?:\*\*)?\s*:(?:\*\*)?[ \t]?(.*)", re.IGNORECASE)
_RULE = re.compile(r"\s*(?:-{3,}|={3,}|\*{3,}|_{3,})\s*")
_TITLE = re.compile(r"\s*#{1,6}\s+(.*)")


class _Messages(NamedTuple):
    """The messages of one conversation, and what its file says beside them."""

    place: LocatedValue
    messages: Sequence[JsonValue]
    about: Mapping[str, JsonValue]


def read(file: RecordedFile, remarks: Remarks) -> list[RecordedConversation]:
    """Read the conversations of a transcript.

    It is known that no tool was called only where the file shows calls at all.
    """
    if not file.begins_as_json:
        return _read_text(file, remarks)
    found = [*_conversations(file.values())]
    if not found:
        raise SuiteError(
            [Problem(file.name, 1, 1, "", "the file holds no messages with a role and a content")]
        )
    if len(found) > MOST_TESTS:
        raise found[MOST_TESTS].place.fault(f"more than {MOST_TESTS:,} conversations. Split the file.")
    known = any(shows_calls(one.messages) for one in found)
    conversations: list[RecordedConversation] = []
    for one in found:
        try:
            conversation = _conversation(one, calls_known=known)
        except MessageError as error:
            remarks.leave_out(one.place.document.problem(one.place.path, f"one of its messages {error}"))
        except ValueError as error:
            remarks.leave_out(one.place.document.problem(one.place.path, str(error)))
        else:
            if conversation.turns:
                conversations.append(conversation)
            else:
                problem = "the conversation has no message of a user with a reply"
                remarks.leave_out(one.place.document.problem(one.place.path, problem))
    return conversations


def _conversation(one: _Messages, *, calls_known: bool) -> RecordedConversation:
    assembled = assemble(parts_of(one.messages), calls_known=calls_known)
    info = next((one.about[key] for key in _USER_INFO if isinstance(one.about.get(key), dict)), {})
    return RecordedConversation(
        name=_first_name(one.about, _NAMES),
        title=_first_name(one.about, _TITLES),
        place=one.place.place,
        turns=assembled.turns,
        user_info=info if isinstance(info, dict) else {},
        notes=assembled.notes,
    )


def _first_name(holder: Mapping[str, JsonValue], keys: Iterable[str]) -> str:
    return next((name for key in keys if (name := _name(holder.get(key)))), "")


def _name(value: JsonValue) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)[:20]
    return payload.name(value) or ""


def _conversations(values: Sequence[LocatedValue]) -> Iterator[_Messages]:
    """Yield the conversations of a file: of a value each, or of lines that are single messages."""
    if len(values) > 1 and all(is_message(one.value) and not _holds_list(one.value) for one in values):
        yield from _groups(values)
        return
    for one in values:
        yield from _within(one, {}, 0)


def _within(one: LocatedValue, about: Mapping[str, JsonValue], depth: int) -> Iterator[_Messages]:
    value = one.value
    if isinstance(value, list):
        if any(is_message(item) and not _holds_list(item) for item in value):
            yield _Messages(one, value, about)
        elif depth < _DEEPEST:
            for item in one.items():
                yield from _within(item, {}, depth + 1)
    elif isinstance(value, dict) and depth < _DEEPEST:
        key = next((key for key in _LISTS if isinstance(value.get(key), list)), None)
        if key is not None:
            yield from _within(one.at(key), {**about, **value}, depth + 1)


def _holds_list(value: JsonValue) -> bool:
    """Return whether an object is a conversation, though it may have a type or a role of its own."""
    if not isinstance(value, dict):
        return False
    lists = (value.get(key) for key in ("messages", "conversation", "conversations", "transcript", "turns"))
    return any(isinstance(one, list) for one in lists)


def _groups(values: Sequence[LocatedValue]) -> Iterator[_Messages]:
    """Yield the conversations of messages in a line each: by their ids, or all as one."""
    groups: dict[str, list[LocatedValue]] = {}
    for one in values:
        message = one.value if isinstance(one.value, dict) else {}
        group = _first_name(message, _GROUPS)
        groups.setdefault(group, []).append(one)
    for name, group_values in groups.items():
        about: dict[str, JsonValue] = {"id": name}
        yield _Messages(group_values[0], [one.value for one in group_values], about)


def _read_text(file: RecordedFile, remarks: Remarks) -> list[RecordedConversation]:
    """Read plain text; a line of dashes or a Markdown title begins the next conversation."""
    conversations: list[RecordedConversation] = []
    for name, line, parts in _sections(file):
        assembled = assemble(parts, calls_known=False)
        place = Problem(file.name, line, 1, "", "")
        if assembled.turns:
            conversations.append(
                RecordedConversation(
                    name="",
                    title=name,
                    place=place,
                    turns=assembled.turns,
                    notes=assembled.notes,
                )
            )
        else:
            problem = "the conversation has no message of a user with a reply"
            remarks.leave_out(Problem(file.name, line, 1, "", problem))
        if len(conversations) > MOST_TESTS:
            message = f"more than {MOST_TESTS:,} conversations. Split the file."
            raise SuiteError([Problem(file.name, line, 1, "", message)])
    return conversations


class _Section(NamedTuple):
    name: str
    line: int
    parts: list[Part]


def _sections(file: RecordedFile) -> list[_Section]:
    lines = file.text().splitlines()
    if not any(_SPEAKER.fullmatch(line) for line in lines):
        message = "no line begins with 'User:' or 'Agent:', and the file is no JSON"
        raise SuiteError([Problem(file.name, 1, 1, "", message)])
    sections = [_Section("", 1, [])]
    said: list[str] = []
    speaker: Kind | None = None

    def end_message() -> None:
        if speaker is not None and (text := "\n".join(said).strip()):
            sections[-1].parts.append(Part(speaker, text))
        said.clear()

    for number, line in enumerate(lines, start=1):
        title, spoken = _TITLE.fullmatch(line), _SPEAKER.fullmatch(line)
        if title or _RULE.fullmatch(line):
            end_message()
            speaker = None
            name = title[1].strip() if title else ""
            if sections[-1].parts or not title:
                sections.append(_Section(name, number, []))
            else:
                sections[-1] = _Section(name, number, [])
        elif spoken:
            end_message()
            speaker = _SPEAKERS[spoken[1].lower()]
            said.append(spoken[2])
        elif speaker is not None:
            said.append(line)
        elif line.strip():
            message = "a line before the first 'User:' or 'Agent:'. Begin each message with one of them"
            raise SuiteError([Problem(file.name, number, 1, "", message)])
    end_message()
    return [section for section in sections if section.parts]


_SPEAKERS: Mapping[str, Kind] = {
    **dict.fromkeys(("user", "human", "customer", "client", "caller"), Kind.USER),
    **dict.fromkeys(("agent", "assistant", "bot", "ai", "model"), Kind.AGENT),
    "system": Kind.SYSTEM,
}
