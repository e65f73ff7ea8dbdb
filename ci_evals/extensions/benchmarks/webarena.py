"""Results of WebArena (github.com/web-arena-x/webarena): the log of `run.py`, or `json_dump.json`.

The log's lines are those of `run.py` at f62e0b9, the dump is what its `scripts/html2json.py` makes of the log
and the rendered trajectories. A task that crashed has no `[Result]` in the log, and stands in the dump as
failed. The dump renumbers `intent_template_id`, so the template itself is the cluster.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Message, ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.support.digest import digest

_SUITE = "WebArena"
_EVENT = re.compile(r"\[(Config file|Intent|Result|Unhandled Error|OpenAI Error)\]:? (.*)")
_ID = re.compile(r"(\d{1,9})\.json\s*$")
_CRASHED = "json_dump.json lists tasks that crashed as failures; the log does not"


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read a log or a dump."""
    dump = file.json()
    if isinstance(dump, dict):
        keys = [re.fullmatch(r"example_(\d{1,9})", key) for key in dump]
        if not dump or not all(keys):
            return None
        rows = [
            _of_dump(key[1], fields.table(task, key[0]))
            for key, task in zip(keys, dump.values(), strict=True)
            if key
        ]
        warnings = (_CRASHED,) if any(not row.passed for row in rows) else ()
        rule = "Tasks that crashed count as failures."
        return [ResultSet(suite=_SUITE, rows=rows, official=_official(rows, rule), warnings=warnings)]
    if b"[Config file]: " not in file.data or (text := file.text()) is None:
        return None
    rows = _of_log(text)
    return [ResultSet(suite=_SUITE, rows=rows, official=_official(rows, "Tasks that crashed are left out."))]


READER = Reader(
    "webarena",
    "a WebArena log or json_dump.json",
    read,
    files="`json_dump.json`, log of `run.py` ¹",
    tried_with="web-arena-x/webarena at f62e0b9",
)


def _official(rows: Sequence[Row], rule: str) -> OfficialScore:
    decided = [row for row in rows if row.passed is not None]
    value = sum(row.passed is True for row in decided) / len(decided) if decided else None
    return OfficialScore(name="average score", value=value, of=len(decided), rule=rule)


def _of_dump(key: str, task: Mapping[str, Any]) -> Row:
    passed = fields.truth(task["success"], f"success of example_{key}")
    intent, template = fields.words(task.get("intent")), fields.words(task.get("intent_template"))
    messages = task.get("messages")
    steps = [step for step in messages if isinstance(step, dict)] if isinstance(messages, list) else []
    found = (
        fields.message(role, step[role]) for step in steps for role in ("user", "assistant") if role in step
    )
    return Row(
        test=key,
        passed=passed,
        reason="" if passed else "failed",
        groups=tuple(dict.fromkeys(fields.names(task.get("sites") or [], "sites"))),
        cluster=template[:500] or None,
        definition=digest(intent) if intent else None,
        conversation=(Message("user", intent), *(one for one in found if one)) if intent else (),
    )


def _of_log(text: str) -> list[Row]:
    """Return the rows of each task: one for each attempt, except those that a continued run made good."""
    rows: dict[str, list[Row]] = {}
    key, intent = "", ""
    for line in text.splitlines():
        event = _EVENT.search(line[:10_000])
        if not event:
            continue
        kind, said = event[1], event[2]
        if kind == "Config file" and (found := _ID.search(said)):
            key, intent = found[1], ""
            attempts = rows.setdefault(key, [])
            _drop_unfinished(attempts)
            attempts.append(Row(test=key, undecided=fields.ERROR, reason="has no result in the log"))
        elif kind == "Intent":
            intent = said
        elif kind == "Result" and (found := _ID.search(said)):
            passed = said.startswith("(PASS)")
            definition = digest(intent) if intent and found[1] == key else None
            reason = "" if passed else "failed"
            attempts = rows.setdefault(found[1], [])
            _drop_unfinished(attempts)
            attempts.append(Row(test=found[1], passed=passed, reason=reason, definition=definition))
        elif kind in {"Unhandled Error", "OpenAI Error"} and key:
            definition = digest(intent) if intent else None
            rows[key][-1] = Row(test=key, undecided=fields.ERROR, reason=said, definition=definition)
    return [row for attempts in rows.values() for row in attempts]


def _drop_unfinished(attempts: list[Row]) -> None:
    """Remove the last attempt if it has no result: the one that follows is in its place."""
    if attempts and attempts[-1].undecided:
        attempts.pop()
