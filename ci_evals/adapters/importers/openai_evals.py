"""OpenAI's hosted evals, announced to end on 2026-11-30: rows (`eval_items_*.jsonl`) or promptfoo's file.

A row is an item of the data with what one run made of it: `run_id`, `data_source_idx`, `item`, `sample`,
`grades`, `passes`, as `promptfoo import` of promptfoo 0.123.1 takes them. It has no graders and no prompts:
the item's fields are all there is.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from ci_evals.adapters.importers.imported import (
    ANSWERS,
    JSON_LINES,
    SAYS_ITS_LINES,
    ImportedRecord,
    ImportedSuite,
    JsonObject,
    fixed,
    records,
    turns_at_most,
)
from ci_evals.adapters.importers.promptfoo import reader as promptfoo
from ci_evals.domain.errors import UsageError
from ci_evals.support.digest import digest

_USER = (
    "input",
    "question",
    "message",
    "query",
    "prompt",
    "user_input",
    "user_message",
    "text",
    "instruction",
)
_EXPECTED = (
    "expected",
    "expected_output",
    "expected_answer",
    "ground_truth",
    "reference",
    "reference_answer",
    "correct_label",
    "label",
    "ideal",
    "target",
    "answer",
)
_SYSTEM = ("system", "developer")


def read(text: str, file: str) -> ImportedSuite:
    """One test for each item of the data, whatever the number of runs over it."""
    if PurePath(file).suffix.lower() not in JSON_LINES:
        return promptfoo.read(text, file)
    imported = ImportedSuite(f"Imported from {PurePath(file).name}")
    known: dict[str, JsonObject] = {}
    graders: dict[str, None] = {}
    for record in records(text, file):
        item = record.values.get("item")
        if not isinstance(item, dict) or "data_source_idx" not in record.values:
            raise record.fault("item", "must be rows of OpenAI's evals, with 'item' and 'data_source_idx'")
        graders |= dict.fromkeys(map(str, _object(record.values.get("grades"))))
        key = digest([record.values["data_source_idx"], item])
        if key in known:
            continue
        test = _test(record, item, imported)
        if test is None:
            continue
        known[key] = test
        imported.add(str(test["turns"][0]["user"]), test)
    if not known:
        raise UsageError(f"{file}: no item has a field that the user says ({', '.join(_USER)})")
    if graders:
        named = ", ".join(sorted(graders)[:20])
        imported.notes.append(
            f"graders ({named[:300]}): the rows hold their grades, not what they check. Add criteria for them"
        )
    imported.notes.append("the agent's prompts and models are not in the rows: the agent has its own")
    return imported


def _test(record: ImportedRecord, item: JsonObject, imported: ImportedSuite) -> JsonObject | None:
    name = next((key for key in _USER if _lines(item.get(key))), None)
    if name is None:
        imported.leave(
            record.location(), f"item with {', '.join(sorted(map(str, item)))[:200]}", "names no user's line"
        )
        return None
    lines, system = _lines(item[name]), _system(item[name])
    expected = next((key for key in _EXPECTED if key != name and _is_answer(item.get(key))), None)
    test: JsonObject = {
        "guidelines": SAYS_ITS_LINES,
        "turns": [fixed(line) for line in lines],
        "maxTurns": turns_at_most(len(lines)),
        "evaluations": [_answer(str(item[expected]).strip()) if expected else dict(ANSWERS)],
        "tags": ["openai-evals"],
        "x-id": str(record.values["data_source_idx"]),
    }
    test |= {"systemPrompt": system} if system else {}
    if expected:
        imported.leave(
            record.location(), f"item.{expected}", "is what the reply must contain; edit the match if not"
        )
    if others := {str(key): value for key, value in item.items() if key not in {name, expected}}:
        test["x-item"] = others
        for key in others:
            imported.leave(record.location(), f"item.{key}", "kept as x-item; the agent is not given it")
    if reply := _reply(record.values.get("sample")):
        test["turns"][-1]["x-recorded-reply"] = reply
    return test


def _answer(expected: str) -> JsonObject:
    return {
        "criterion": "The reply contains the expected answer",
        "strict": "answer_matches",
        "expected": expected,
        "match": "contains",
    }


def _is_answer(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and bool(str(value).strip())


def _lines(value: Any) -> list[str]:
    """Return the user's lines: a text, or the user's messages of a list."""
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    said = [_content(one) for one in _messages(value) if one.get("role") == "user"]
    return [line for line in said if line]


def _system(value: Any) -> str:
    return "\n".join(filter(None, (_content(one) for one in _messages(value) if one.get("role") in _SYSTEM)))


def _messages(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return content.strip() if isinstance(content, str) else ""


def _reply(sample: Any) -> str:
    outputs = _messages(_object(sample).get("outputs"))
    return next((text for one in outputs if one.get("role") == "assistant" and (text := _content(one))), "")


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
