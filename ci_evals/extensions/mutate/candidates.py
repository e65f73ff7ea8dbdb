"""Checks that a person would write for a conversation, the most specific evidence first."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from pydantic import JsonValue, TypeAdapter

from ci_evals.domain.actions import calls_of
from ci_evals.domain.checks.evaluation import Evaluation
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.transcript import ESCALATION, ToolCall, ToolStatus, Transcript, is_empty
from ci_evals.extensions.mutate.faults.changed_values import first_number
from ci_evals.extensions.mutate.faults.conversation import Conversation
from ci_evals.extensions.mutate.faults.replies import foreign_datum
from ci_evals.support.json_text import canonical

Check = dict[str, JsonValue]
"""An evaluation as it stands in a suite."""

_LONG_WORD = 7
_LAST_WORDS = 4
_MOST_WORDS = 8
"""Words of a reply that are tried."""
_ENDED = r"[.!?…:)\"'”»]\s*$"
"""The end of a whole sentence."""
_CLAUSE_ENDS = r"[.!?…:;,]"


def tiers(conversation: Conversation) -> Iterator[Sequence[Check]]:
    """Yield checks that fit a conversation, in the order in which they should be chosen.

    Nothing is known yet of whether they notice a fault.
    """
    transcript = conversation.transcript
    yield tuple(_states(conversation))
    yield tuple(_calls(transcript))
    yield (_only_these(transcript),) if _calls_in(transcript) else ()
    yield (_hand_over(transcript),)
    yield tuple(_rules(transcript))
    yield tuple(_params(transcript))
    yield tuple(_workflows(transcript))
    yield tuple(_texts(transcript))
    yield tuple(_data_of_others(conversation))


def _states(conversation: Conversation) -> Iterator[Check]:
    """Yield a check of each plain value that the conversation changed."""
    for name, after in conversation.transcript.probes.items():
        before = conversation.before.get(name)
        if before is None or before.error is not None or after.error is not None:
            continue
        for path, value in _changed_values(before.value, after.value, "$"):
            yield {
                "criterion": f"Afterwards {path} of {name} is {json.dumps(value, ensure_ascii=False)}",
                "strict": "state",
                "probe": name,
                "path": path,
                "equals": value,
            }


def _changed_values(before: JsonValue, after: JsonValue, path: str) -> Iterator[tuple[str, JsonValue]]:
    if before == after:
        return
    if isinstance(after, dict):
        known = before if isinstance(before, dict) else {}
        for key, value in after.items():
            yield from _changed_values(known.get(key), value, f"{path}[{_quoted(key)}]")
    elif isinstance(after, list):
        items = before if isinstance(before, list) else []
        for index, value in enumerate(after):
            earlier = items[index] if index < len(items) else None
            yield from _changed_values(earlier, value, f"{path}[{index}]")
    elif after is not None:
        yield path, after


def _quoted(key: str) -> str:
    escaped = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _calls_in(transcript: Transcript) -> list[ToolCall]:
    calls = []
    for turn in transcript.turns:
        calls += [call for call in calls_of(turn).seen if not call.name.startswith(ESCALATION)]
    return calls


def _calls(transcript: Transcript) -> Iterator[Check]:
    """Yield a check of each call with known arguments, and of how often it was made."""
    calls = [call for call in _calls_in(transcript) if call.arguments is not None]
    seen = set()
    for call in calls:
        arguments = {name: value for name, value in (call.arguments or {}).items() if _is_plain(value)}
        key = canonical([call.name, arguments])
        if key in seen:
            continue
        seen.add(key)
        same = [other for other in calls if _has(other, call.name, arguments)]
        check: Check = {
            "criterion": _described(call.name, arguments, len(same)),
            "strict": "tool_called",
            "toolName": call.name,
        }
        if arguments:
            check["args"] = arguments
        check["times"] = len(same)
        if all(other.status is ToolStatus.OK for other in same):
            check["status"] = "ok"
        yield check


def _has(call: ToolCall, name: str, arguments: dict[str, JsonValue]) -> bool:
    own = call.arguments or {}
    return call.name == name and all(key in own and own[key] == value for key, value in arguments.items())


def _described(name: str, arguments: dict[str, JsonValue], count: int) -> str:
    how_often = "once" if count == 1 else f"{count} times"
    if not arguments:
        return f"Calls {name} {how_often}"
    listed = ", ".join(f"{key} {value}" for key, value in arguments.items())
    return f"Calls {name} {how_often} with {listed}"


def _is_plain(value: JsonValue) -> bool:
    return isinstance(value, str | int | float | bool) and not is_empty(value)


def _only_these(transcript: Transcript) -> Check:
    """Return a check that nothing else was called. Hand-overs count, which some agents report as calls."""
    every = [call for turn in transcript.turns for call in calls_of(turn).seen]
    tools: list[JsonValue] = [call.name for call in every]
    names = dict.fromkeys(call.name for call in every)
    return {
        "criterion": f"Calls nothing but {', '.join(names)}",
        "strict": "tool_sequence",
        "tools": tools,
        "mode": "subset",
    }


def _hand_over(transcript: Transcript) -> Check:
    if any(turn.escalated for turn in transcript.turns):
        return {"criterion": "Hands over to a person", "strict": "escalated"}
    return {"criterion": "Does not hand over to a person", "strict": "not_escalated"}


def _rules(transcript: Transcript) -> Iterator[Check]:
    for rule in dict.fromkeys(rule for turn in transcript.turns for rule in turn.rules or ()):
        yield {"criterion": f"The rule {rule} fires", "strict": "rule_triggered", "ruleCode": rule}


def _params(transcript: Transcript) -> Iterator[Check]:
    last: dict[str, JsonValue] = {}
    for turn in transcript.turns:
        last |= {name: value for name, value in (turn.params or {}).items() if _is_plain(value)}
    for name, value in last.items():
        yield {
            "criterion": f"Understands {name} as {value}",
            "strict": "param_equals",
            "paramName": name,
            "paramValue": value,
        }


def _workflows(transcript: Transcript) -> Iterator[Check]:
    for name in dict.fromkeys(call.name for call in _calls_in(transcript)):
        yield {"criterion": f"Uses {name}", "strict": "tool_used", "toolName": name}


def _texts(transcript: Transcript) -> Iterator[Check]:
    """Yield a check of the facts in each reply, of its end, and of words that it uses."""
    for turn in transcript.turns:
        fact = first_number(turn.agent)
        if fact:
            yield _contains(fact, turn.index, f"States {fact!r}")
    for turn in transcript.turns:
        if re.search(_ENDED, turn.agent):
            yield {
                "criterion": f"Reply {turn.index} is a whole sentence",
                "strict": "regex",
                "pattern": _ENDED,
                "turn": turn.index,
            }
    for turn in transcript.turns:
        clauses = [clause.strip() for clause in re.split(_CLAUSE_ENDS, turn.agent) if clause.strip()]
        if clauses:
            end = " ".join(clauses[-1].split()[-_LAST_WORDS:])
            yield _contains(end, turn.index, f"Reply {turn.index} ends with {end!r}")
    for turn in transcript.turns:
        words = re.findall(r"[^\W_]+", turn.agent)
        for word in sorted(set(words), key=len, reverse=True)[:_MOST_WORDS]:
            if len(word) >= _LONG_WORD:
                yield _contains(word, turn.index, f"Reply {turn.index} speaks of {word!r}")


def _contains(text: str, turn: int, criterion: str) -> Check:
    return {"criterion": criterion, "strict": "contains", "text": text, "turn": turn}


def _data_of_others(conversation: Conversation) -> Iterator[Check]:
    """Yield a check that the data of the next user who has some is not told."""
    found = foreign_datum(conversation)
    if found is not None:
        name, value = found
        yield {
            "criterion": f"Does not tell another user's {name}",
            "strict": "not_contains",
            "text": value,
            "turn": "any",
        }


def as_evaluation(check: Check) -> StrictCheck:
    """Return the strict check that stands in a suite like this."""
    evaluation: StrictCheck = _evaluations().validate_python(check)
    return evaluation


@cache
def _evaluations() -> TypeAdapter[Any]:
    return TypeAdapter(Evaluation)
