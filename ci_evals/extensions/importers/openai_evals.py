"""OpenAI's hosted evals, announced to end on 2026-11-30: rows (`eval_items_*.jsonl`) or promptfoo's file.

A row is an item of the data with what one run made of it: `run_id`, `data_source_idx`, `item`, `sample`,
`grades`, `passes`, as `promptfoo import` of promptfoo 0.123.1 takes them. It has no graders and no prompts:
the item's fields are all there is.
"""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.drafting.draft import ANSWERS, SAYS_ITS_LINES, fixed
from ci_evals.extensions.importers.imported import ImportedSuite, turns_at_most
from ci_evals.extensions.importers.importer import Importer
from ci_evals.extensions.importers.other_files import OtherFiles
from ci_evals.extensions.importers.promptfoo import reader as promptfoo
from ci_evals.extensions.importers.records import JSON_LINES, ImportedRecord, kind_of, records
from ci_evals.support.digest import digest
from ci_evals.support.json_text import JsonObject

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
_ROLES = ("user", "assistant", *_SYSTEM)


def read(text: str, file: str, files: OtherFiles | None = None) -> ImportedSuite:
    """One test for each item of the data, whatever the number of runs over it."""
    if PurePath(file).suffix.lower() not in JSON_LINES:
        return promptfoo.read(text, file, files)
    imported = ImportedSuite(f"Imported from {PurePath(file).name}")
    known: dict[str, JsonObject] = {}
    graders: dict[str, None] = {}
    unsaid = 0
    for record in records(text, file, imported):
        with imported.leaving_out():
            item = record.values.get("item")
            if not isinstance(item, dict):
                raise record.fault("item", "must be rows of OpenAI's evals, each with an object 'item'")
            graders |= dict.fromkeys(map(str, _part(record, "grades")))
            key = digest([record.values.get("data_source_idx"), item])
            if key in known:
                continue
            test = _test(record, item, imported)
            if test is None:
                unsaid += 1
                continue
            known[key] = test
            imported.add(str(test["turns"][0]["user"]), test, record.place())
    if unsaid and not known:
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
        keys = ", ".join(sorted(map(str, item)))[:200]
        note = f"{record.location()}: item with {keys}: names no user's line"
        imported.notes.append(note)
        imported.left_out.append(note)
        return None
    lines, system = _lines(item[name]), _system(item[name])
    if unread := _unread(item[name]):
        imported.note(record.document.problem((*record.path, "item", name), f"{unread}, and left out"))
    stated = [key for key in _EXPECTED if key != name and item.get(key) not in (None, "")]
    expected = next((key for key in stated if _answers(item[key])), None)
    answers = _answers(item[expected]) if expected else []
    if stated and not answers:
        found = kind_of(item[stated[0]])
        message = f"its {stated[0]!r} must be a string, a number or a list of them, found {found}"
        raise record.fault("item", message)
    test: JsonObject = {
        "guidelines": SAYS_ITS_LINES,
        "turns": [fixed(line) for line in lines],
        "maxTurns": turns_at_most(len(lines)),
        "evaluations": [_check(answers) if answers else dict(ANSWERS)],
        "tags": ["openai-evals"],
    }
    test |= {"x-id": given} if (given := record.text("data_source_idx")) else {}
    test |= {"systemPrompt": system} if system else {}
    if answers:
        imported.leave(
            record.location(), f"item.{expected}", "is what the reply must contain; edit the match if not"
        )
    if others := {str(key): value for key, value in item.items() if key not in {name, expected}}:
        test["x-item"] = others
        for key in others:
            imported.leave(record.location(), f"item.{key}", "kept as x-item; the agent is not given it")
    if reply := _reply(_part(record, "sample")):
        test["turns"][-1]["x-recorded-reply"] = reply
    return test


def _part(record: ImportedRecord, key: str) -> JsonObject:
    """Return an object of the row; none is empty."""
    value = record.values.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise record.fault(key, f"must be an object, found {kind_of(value)}")
    return value


def _check(answers: list[str]) -> JsonObject:
    return {
        "criterion": "The reply contains the expected answer",
        "strict": "answer_matches",
        "expected": answers[0] if len(answers) == 1 else answers,
        "match": "contains",
    }


def _answers(value: Any) -> list[str]:
    """Return a text or a number as answer, or the answers of a list; none if one of them is neither."""
    answers: list[str] = []
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, bool) or not isinstance(one, str | int | float) or not str(one).strip():
            return []
        answers.append(str(one).strip())
    return answers


def _lines(value: Any) -> list[str]:
    """Return the user's lines: a text, or the user's messages of a list."""
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    said = [_content(one) for one in _messages(value) if one.get("role") == "user"]
    return [line for line in said if line]


def _unread(value: Any) -> str:
    """Return which messages of a list are no messages; empty if all are."""
    messages = value if isinstance(value, list) else []
    odd = [
        i
        for i, one in enumerate(messages)
        if not isinstance(one, dict) or one.get("role") not in _ROLES or not _content(one)
    ]
    return f"the messages {', '.join(map(str, odd))} have no known role or no text" if odd else ""


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


def _reply(sample: JsonObject) -> str:
    outputs = _messages(sample.get("outputs"))
    return next((text for one in outputs if one.get("role") == "assistant" and (text := _content(one))), "")


IMPORTER = Importer("openai-evals", "rows of OpenAI's hosted evals (.jsonl), or a promptfoo file", read)
