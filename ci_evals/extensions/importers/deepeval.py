"""DeepEval's conversations: `ConversationalGolden`s and `ConversationalTestCase`s.

The keys are those that `EvaluationDataset.save_as` writes (JSON, JSONL, CSV), or those of its own JSON in
camelCase. In a table, what is no text is JSON in the cell, and `context` is cut by `|`.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from ci_evals.domain.suite import AUTO
from ci_evals.extension_support.drafting.draft import ANSWERS, SAYS_ITS_LINES, fixed
from ci_evals.extensions.importers.imported import ImportedSuite, turns_at_most
from ci_evals.extensions.importers.importer import Importer
from ci_evals.extensions.importers.other_files import OtherFiles
from ci_evals.extensions.importers.records import ImportedRecord, kind_of, records
from ci_evals.support.json_text import JsonObject

_HOLDERS = ("goldens", "conversational_goldens", "conversationalGoldens", "test_cases", "testCases")
_NESTED = (
    "turns",
    "additional_metadata",
    "metadata",
    "custom_column_key_values",
    "expectations",
    "persona",
    "tags",
    "expected_tools",
)
_TEXT_OF_JSON = ("turns",)
"""Keys that DeepEval's own loader also takes as a text of JSON, in every format."""
_KEPT = {
    "context": "x-context",
    "comments": "x-comments",
    "additional_metadata": "x-metadata",
    "metadata": "x-metadata",
    "custom_column_key_values": "x-custom-columns",
}
"""Fields that have no effect here and are kept with the test."""
_OF_PERSONA = {"name", "characteristics"}
_OF_EXPECTATIONS = {"must", "must_not", "mustNot"}
_READ = {
    "id",
    "name",
    "scenario",
    "turns",
    "user_description",
    "persona",
    "expected_outcome",
    "expectations",
    "chatbot_role",
    "tags",
    "expected_tools",
    *_KEPT,
}


def read(text: str, file: str, _files: OtherFiles | None = None) -> ImportedSuite:
    """One test for each conversation."""
    imported = ImportedSuite("DeepEval conversations")
    is_table = file.lower().endswith(".csv")
    for row in records(text, file, imported, _HOLDERS):
        with imported.leaving_out():
            record = _unfolded(_in_snake_case(row), _NESTED if is_table else _TEXT_OF_JSON)
            _check_types(record)
            imported.add(record.text("name", "scenario"), _test(record, imported), row.place())
    return imported


def _in_snake_case(row: ImportedRecord) -> ImportedRecord:
    values: JsonObject = {}
    for key, value in row.values.items():
        name = _snake(key)
        if name in values:
            raise row.fault(key, f"is {name!r} given twice, in two spellings")
        values[name] = value
    return ImportedRecord(values, row.document, row.path)


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()


def _unfolded(record: ImportedRecord, keys: Iterable[str]) -> ImportedRecord:
    """A record with the JSON read that is in the texts under these keys."""
    values = dict(record.values)
    for key in keys:
        text = values.get(key)
        if isinstance(text, str) and text.strip():
            try:
                values[key] = json.loads(text)
            except (ValueError, RecursionError):
                name = f"the cell {key!r}" if keys is _NESTED else f"the text of {key!r}"
                raise record.fault(key, f"{name} holds no JSON") from None
    if keys is _NESTED and isinstance(context := values.get("context"), str):
        values["context"] = context.split("|")
    return ImportedRecord(values, record.document, record.path)


def _check_types(record: ImportedRecord) -> None:
    """Refuse a record whose `persona` or `expectations` are none, since what they say would be lost."""
    for key in ("persona", "expectations"):
        value = record.values.get(key)
        if value not in (None, "") and not isinstance(value, dict):
            raise record.fault(key, f"must be an object, found {kind_of(value)}")


def _test(record: ImportedRecord, imported: ImportedSuite) -> JsonObject:
    scenario, turns = record.text("scenario"), _turns(record)
    if not scenario and not turns:
        if record.values.get("input"):
            raise record.fault(
                "input",
                "is a single question, not a conversation; save them as a table and import that as csv",
            )
        raise record.fault("scenario", "is missing: a conversation has a 'scenario' or 'turns'")
    guidelines = [part for part in (_persona(record), scenario) if part]
    test: JsonObject = {"guidelines": "\n\n".join(guidelines) if scenario else SAYS_ITS_LINES, "turns": turns}
    if not scenario:
        test["maxTurns"] = turns_at_most(len(turns))
    test["turns"] = turns or [{"user": AUTO}]
    test["evaluations"] = [*_criteria(record), *_tools(record)] or [ANSWERS]
    test["tags"] = record.texts("tags") or ["deepeval"]
    test |= {"x-id": given} if (given := record.text("id")) else {}
    test |= {kept: record.values[key] for key, kept in _KEPT.items() if record.values.get(key)}
    unmapped = _unmapped(record)
    of_turns = {f"turns.{key}": None for turn in turns for key in turn.get("x-unmapped", ())}
    for key, kept in _KEPT.items():
        if record.values.get(key):
            imported.leave(record.location(), key, f"kept as {kept}, which has no effect")
    if unmapped:
        test["x-unmapped"] = unmapped
    if left := [*unmapped, *of_turns]:
        imported.notes.append(f"{record.location()}: no counterpart for {', '.join(left)}")
    return test


def _unmapped(record: ImportedRecord) -> JsonObject:
    unmapped = {key: value for key, value in record.values.items() if key not in _READ and value}
    unmapped |= {"opening": opening} if (opening := _opening(record)) else {}
    for key, known in (("persona", _OF_PERSONA), ("expectations", _OF_EXPECTATIONS)):
        if isinstance(inner := record.values.get(key), dict):
            others = {name: value for name, value in inner.items() if name not in known and value}
            unmapped |= {f"{key}.{name}": value for name, value in others.items()}
    description = record.values.get("user_description")
    if description and _persona(record) != record.text("user_description"):
        unmapped["user_description"] = description
    return unmapped


def _persona(record: ImportedRecord) -> str:
    persona = record.values.get("persona")
    if isinstance(persona, dict):
        inner = ImportedRecord(persona, record.document, (*record.path, "persona"))
        name, characteristics = inner.text("name"), inner.text("characteristics")
        if characteristics:
            return f"You are {name}. {characteristics}" if name else characteristics
    return record.text("user_description")


def _turns(record: ImportedRecord) -> list[JsonObject]:
    """The user's lines, each with the agent's recorded reply."""
    given: Any = record.values.get("turns")
    if given in (None, ""):
        return []
    if not isinstance(given, list):
        raise record.fault("turns", f"must be a list of turns, found {kind_of(given)}")
    turns: list[JsonObject] = []
    for i, turn in enumerate(given):
        match turn:
            case {"role": "user", "content": str(line), **more} if line.strip():
                turns.append(fixed(line.strip()))
            case {"role": "assistant", "content": str(line), **more}:
                if turns:
                    turns[-1]["x-recorded-reply"] = line
            case _:
                raise record.fault("turns", f"turns[{i}] needs a role, user or assistant, and its content")
        if turns and turn["role"] == "assistant" and _calls(calls := _tools_called(more)):
            turns[-1]["x-recorded-tool-calls"] = calls
            more = {key: value for key, value in more.items() if _snake(str(key)) != "tools_called"}
        if turns and (left := {key: value for key, value in more.items() if value}):
            turns[-1].setdefault("x-unmapped", {}).update(left)
    return turns


def _tools_called(turn: Any) -> Any:
    fields = turn.items() if isinstance(turn, dict) else ()
    return next((value for key, value in fields if _snake(key) == "tools_called"), None)


def _tools(record: ImportedRecord) -> list[JsonObject]:
    """The check that the expected tools are called, or those of the recorded conversation."""
    expected, words = record.values.get("expected_tools"), "Calls the expected tools"
    if expected in (None, "", []):
        turns = record.values.get("turns")
        recorded = [_tools_called(turn) for turn in (turns if isinstance(turns, list) else [])[1:]]
        expected = [call for calls in recorded if _calls(calls) for call in calls]
        words = "Calls the tools of the recorded conversation"
    if expected == []:
        return []
    if not (calls := _calls(expected)):
        message = "must be a list of tools, each with a 'name', and 'input_parameters' that are an object"
        raise record.fault("expected_tools", message)
    return [
        {
            "criterion": words,
            "category": "tools",
            "strict": "tool_sequence",
            "tools": calls,
            "mode": "superset",
        }
    ]


def _calls(tools: Any) -> list[Any]:
    """Tools with the arguments that they are called with; empty if one has no name."""
    calls: list[Any] = []
    for tool in tools if isinstance(tools, list) else []:
        name = tool if isinstance(tool, str) else tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name.strip():
            return []
        fields = {_snake(key): value for key, value in tool.items()} if isinstance(tool, dict) else {}
        arguments = fields.get("input_parameters")
        if not isinstance(arguments, dict | None):
            return []
        if arguments:
            args = {
                key: {"equals": value} if isinstance(value, dict) else value
                for key, value in arguments.items()
            }
            calls.append({"name": name, "args": args})
        else:
            calls.append(name)
    return calls


def _opening(record: ImportedRecord) -> str:
    """The agent's message before the user's first one; here the user begins."""
    match record.values.get("turns"):
        case [{"role": "assistant", "content": str(line)}, *_]:
            return line
    return ""


def _criteria(record: ImportedRecord) -> list[JsonObject]:
    criteria: list[JsonObject] = []
    if outcome := record.text("expected_outcome"):
        criteria.append({"criterion": outcome, "category": "outcome"})
    if role := record.text("chatbot_role"):
        criteria.append({"criterion": f"The agent stays in its role: {role}", "category": "role"})
    if isinstance(expectations := record.values.get("expectations"), dict):
        inner = ImportedRecord(expectations, record.document, (*record.path, "expectations"))
        criteria += [{"criterion": text, "category": "must"} for text in inner.texts("must")]
        criteria += [
            {"criterion": f"This does not happen: {text}", "category": "must-not"}
            for text in inner.texts("must_not", "mustNot")
        ]
    return criteria


IMPORTER = Importer("deepeval", "conversational goldens or test cases (.json, .jsonl, .csv)", read)
