"""Tests out of conversations: the user's lines as they were, and a check for each thing the agent did."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from ci_evals.domain import numbers
from ci_evals.domain.actions import calls_of
from ci_evals.domain.errors import Problem
from ci_evals.domain.suite import AUTO, MOST_TURNS
from ci_evals.domain.transcript import ToolCall, ToolStatus, Turn
from ci_evals.extension_support.drafting.conversation import RecordedConversation, hands_over
from ci_evals.extension_support.drafting.given_values import GivenValues
from ci_evals.planning.documents.document import Path
from ci_evals.reports import sanitize
from ci_evals.support.json_text import JsonObject, canonical, written
from ci_evals.support.typography import names

SAYS_ITS_LINES = "You say the planned lines and nothing else."
"""Guidelines of a test whose lines are all fixed."""
ANSWERS: JsonObject = {"criterion": "The agent answers", "strict": "regex", "pattern": r"\S"}
"""The check of a test for which there is no other; it suits any agent that answers in text."""

LONGEST_NAME = 80

_LONGEST_REPLY = 2_000
_LONGEST_VALUE = 80
_MOST_VALUES = 12
_MOST_ORIGINS = 20
_WORDS = re.compile(r"\w+")
_DATES = re.compile(
    r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)|(?<!\d)\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d{2})(?!\d)"
    r"|\b(?:today|tonight|tomorrow|yesterday|(?:next|last|this) (?:week|month|year|weekend"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class DraftedTest:
    """A test without its name, and what people should know of it."""

    title: str
    """A name for it, which need not be the only one of its kind."""
    fields: JsonObject
    notes: dict[Path, str]
    """Notes by the path of what they are about, within the test."""
    place: Problem
    """The position of the first conversation that it was made of."""
    origins: tuple[str, ...]
    """These conversations, for people."""
    path: str
    """Equal for conversations in which the agent did the same."""
    hand_over_tools: tuple[str, ...] = ()
    """Called tools that hand over to a person, by their names."""


@dataclass
class _Notes:
    """Notes as they are found, by path."""

    lines: dict[Path, list[str]] = field(default_factory=dict)

    def add(self, path: Path, line: str) -> None:
        self.lines.setdefault(path, []).append(line)

    def texts(self) -> dict[Path, str]:
        return {path: sanitize.log("\n".join(lines)) for path, lines in self.lines.items()}


@dataclass
class _WantedCall:
    """A tool, the arguments that the user gave, and how many recorded calls had them."""

    tool: str
    args: dict[str, JsonValue]
    given: dict[str, JsonValue]
    """The recorded values of these arguments."""
    call: ToolCall
    left_out: dict[str, JsonValue]
    times: int = 1


def draft(conversation: RecordedConversation, *, tags: Sequence[str]) -> DraftedTest:
    """Draft the test of a conversation, which has at least one turn.

    The lines of the user are fixed. There is a `tool_called` for each different call, with those arguments
    whose values the user gave (`GivenValues`), and `escalated` or `not_escalated`. What the agent said is
    checked by nothing: its last reply is a note, since a person must decide what of it matters.
    """
    turns, later = _until_hand_over(conversation.turns)
    turns, later = turns[:MOST_TURNS], later + len(turns[MOST_TURNS:])
    notes = _Notes()
    for line in conversation.notes:
        notes.add((), line)
    if later:
        notes.add((), f"{numbers.count(later, 'later line')} left out: the test ends with the hand-over.")
    begun = len(conversation.history)
    for number, turn in enumerate(turns):
        if found := _DATES.search(turn.user):
            notes.add(("turns", begun + number), f"Decide: {found[0]!r} is another day each time, or past.")
    wanted = _wanted(conversation, turns)
    escalated = _escalated(turns)
    evaluations: list[JsonObject] = []
    for one in wanted:
        _note_call(one, ("evaluations", len(evaluations)), turns, notes)
        evaluations.append(_check(one))
    if escalated is not None:
        evaluations.append(_hand_over_check(escalated=escalated))
    if not wanted and not escalated:
        evaluations.insert(0, dict(ANSWERS))
    _note_unknown(turns, escalated, notes)
    _note_reply(turns[-1].agent, ("evaluations", len(evaluations) - 1), notes)
    fields: JsonObject = {"guidelines": SAYS_ITS_LINES}
    if conversation.user_info:
        fields["userInfo"] = conversation.user_info
    if conversation.system_prompt:
        fields["systemPrompt"] = conversation.system_prompt
    lines = [*conversation.history, *(fixed(turn.user) for turn in turns)]
    fields |= {"turns": lines, "maxTurns": len(turns), "evaluations": evaluations, "tags": [*tags]}
    return DraftedTest(
        title=conversation.title or _telling_line(turns),
        fields=fields,
        notes=notes.texts(),
        place=conversation.place,
        origins=(conversation.origin,),
        path=_path(turns, wanted, escalated=bool(escalated)),
        hand_over_tools=tuple(dict.fromkeys(one.tool for one in wanted if hands_over(one.tool))),
    )


def joined(drafts: Iterable[DraftedTest]) -> list[DraftedTest]:
    """Return the first draft of each path, with a note on the conversations that took it too."""
    by_path: dict[str, list[DraftedTest]] = {}
    for one in drafts:
        by_path.setdefault(one.path, []).append(one)
    return [_with_origins(first, others) for first, *others in by_path.values()]


def _with_origins(first: DraftedTest, others: Sequence[DraftedTest]) -> DraftedTest:
    own = first.notes.get((), "")
    lines = [f"Drafted from {first.origins[0]}."]
    origins = [origin for other in others for origin in other.origins]
    if origins:
        listed = ", ".join(origins[:_MOST_ORIGINS])
        more = len(origins) - _MOST_ORIGINS
        named = f"{listed} and {more} more" if more > 0 else listed
        lines.append(
            f"The agent did the same in {numbers.count(len(origins), 'more conversation')}: {named}."
        )
    note = sanitize.log("\n".join([*lines, own] if own else lines))
    return replace(first, notes={**first.notes, (): note}, origins=(*first.origins, *origins))


def short_name(text: str) -> str:
    """Return the first words of a text, for a name."""
    text = " ".join(text.split())
    if len(text) <= LONGEST_NAME:
        return text
    return text[: LONGEST_NAME - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def fixed(line: str) -> JsonObject:
    """Return a turn that says this line, also where it is the word that stands for the simulated user."""
    return {"user": f"{line}." if line == AUTO else line}


def _telling_line(turns: Sequence[Turn]) -> str:
    """Return the first line upon which the agent did something; the first of all if it did nothing."""
    return next((turn.user for turn in turns if calls_of(turn).seen), turns[0].user)


def _until_hand_over(turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], int]:
    """Return the turns up to the hand-over, which ends a conversation here, and the number of the others."""
    for number, turn in enumerate(turns, 1):
        if turn.escalated:
            return tuple(turns[:number]), len(turns) - number
    return tuple(turns), 0


def _escalated(turns: Sequence[Turn]) -> bool | None:
    """Return whether the agent handed over; None if that is unknown."""
    if turns[-1].escalated:
        return True
    return False if all(turn.hand_over is False for turn in turns) else None


def _wanted(conversation: RecordedConversation, turns: Sequence[Turn]) -> list[_WantedCall]:
    """Return the different calls, in their order.

    A call that failed is left out if the tool was called with success too: the agent tried again.
    """
    said = [line["user"] for line in conversation.history if "user" in line]
    made: list[_WantedCall] = []
    for turn in turns:
        said.append(turn.user)
        given = GivenValues(said, conversation.user_info)
        made += (_wanted_call(call, given) for call in calls_of(turn).seen)
    succeeded = {names.folded(one.tool) for one in made if one.call.status is not ToolStatus.ERROR}
    made = [one for one in made if _counts(one, succeeded)]
    different: dict[tuple[str, str], _WantedCall] = {}
    for one in made:
        different.setdefault((names.folded(one.tool), canonical(one.args)), one)
    for one in different.values():
        one.times = sum(_has(other, one) for other in made)
    return [*different.values()]


def _counts(one: _WantedCall, succeeded: set[str]) -> bool:
    return one.call.status is not ToolStatus.ERROR or names.folded(one.tool) not in succeeded


def _has(other: _WantedCall, one: _WantedCall) -> bool:
    """Return whether a recorded call passes the check of another."""
    if not names.same(other.tool, one.tool):
        return False
    arguments = other.call.arguments or {}
    return all(
        name in arguments and canonical(arguments[name]) == canonical(value)
        for name, value in one.given.items()
    )


def _wanted_call(call: ToolCall, given: GivenValues) -> _WantedCall:
    args: dict[str, JsonValue] = {}
    recorded: dict[str, JsonValue] = {}
    left_out: dict[str, JsonValue] = {}
    for name, value in (call.arguments or {}).items():
        condition = given.condition(value) if name.strip() else None
        if condition is None:
            left_out[name] = value
        else:
            args[name], recorded[name] = condition.condition, value
    return _WantedCall(call.name, args, recorded, call, left_out)


def _check(one: _WantedCall) -> JsonObject:
    told = f" with {_listed(one.args)}" if one.args else ""
    check: JsonObject = {
        "criterion": f"The agent calls {one.tool}{told}",
        "strict": "tool_called",
        "toolName": one.tool,
    }
    if one.args:
        check["args"] = one.args
    if one.times > 1:
        check["times"] = {"min": one.times}
    return check


def _listed(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _hand_over_check(*, escalated: bool) -> JsonObject:
    if escalated:
        return {"criterion": "The agent hands over to a person", "strict": "escalated"}
    return {"criterion": "The agent does not hand over to a person", "strict": "not_escalated"}


def _note_call(one: _WantedCall, path: Path, turns: Sequence[Turn], notes: _Notes) -> None:
    if one.call.status is ToolStatus.ERROR:
        notes.add(path, "Decide: the call failed when it was recorded.")
    if not one.left_out:
        return
    notes.add(path, "Not checked, since the user gave no such value. Decide whether it must be the same:")
    for name, value in [*one.left_out.items()][:_MOST_VALUES]:
        source = _source(value, turns)
        text = sanitize.one_line(written(value), _LONGEST_VALUE)
        notes.add(path, f"  {sanitize.one_line(name, _LONGEST_VALUE)}: {text}{source}")


def _source(value: JsonValue, turns: Sequence[Turn]) -> str:
    """Return which tool returned a value, for a note."""
    if not isinstance(value, str | int) or isinstance(value, bool) or len(str(value)) < 2:
        return ""
    for turn in turns:
        for call in calls_of(turn).seen:
            if call.result is not None and _holds(call.result, value):
                return f" (in the result of {sanitize.one_line(call.name, _LONGEST_VALUE)})"
    return ""


def _holds(holder: JsonValue, value: JsonValue) -> bool:
    match holder:
        case dict():
            return any(_holds(item, value) for item in holder.values())
        case list():
            return any(_holds(item, value) for item in holder)
    return type(holder) is type(value) and holder == value


def _note_unknown(turns: Sequence[Turn], escalated: bool | None, notes: _Notes) -> None:
    first: Path = ("evaluations", 0)
    if not all(calls_of(turn).complete for turn in turns):
        notes.add(first, "Decide: it is not recorded which tools were called. Add a tool_called for each.")
    if escalated is None:
        notes.add(
            first, "Decide: it is not recorded whether the agent handed over. Add not_escalated if not."
        )


def _note_reply(reply: str, path: Path, notes: _Notes) -> None:
    text = sanitize.cut(reply, _LONGEST_REPLY, "… (cut)").strip()
    if not text:
        return
    notes.add(path, "Decide what the last reply had to say, and add a criterion or a text check. It was:")
    for line in text.splitlines():
        notes.add(path, f"  {line}")


def _path(turns: Sequence[Turn], wanted: Sequence[_WantedCall], *, escalated: bool) -> str:
    """Return the same for conversations in which the agent did the same.

    These have the same tools in the same order, expected with arguments of the same names, and the same end.
    Where no tool was called, the user said the same words.
    """
    fold: Callable[[str], str] = names.folded
    order = [fold(call.name) for turn in turns for call in calls_of(turn).seen]
    expected: list[JsonValue] = [[fold(one.tool), *sorted(one.args)] for one in wanted]
    said: list[JsonValue] = []
    if not order:
        said = [" ".join(_WORDS.findall(turn.user.casefold())) for turn in turns]
    return canonical([list(_without_repeats(order)), expected, said, escalated])


def _without_repeats(order: Iterable[str]) -> Iterator[str]:
    before = None
    for name in order:
        if name != before:
            yield name
        before = name
