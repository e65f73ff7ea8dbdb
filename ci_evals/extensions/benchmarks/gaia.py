"""Submissions to GAIA's leaderboard, compared with the expected answers of `--answers`.

A submission has a JSON object in each line, `task_id` and `model_answer`, as the leaderboard's page
(huggingface.co/spaces/gaia-benchmark/leaderboard) asks for; the answers are the data set's `metadata.jsonl`.
The scorer is the leaderboard's own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ci_evals.domain.checks.answer_matching import final_answer, gaia
from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.support.digest import digest

_PRIVATE = "?"
_RULE = "Questions without a submitted answer count as wrong."


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read a submission; `options["answers"]` is the `SourceFile` of the answers."""
    lines = file.json_lines()
    if lines is None:
        return None
    submitted: dict[str, object] = {}
    for line in lines:
        if not isinstance(line, dict) or not {"task_id", "model_answer"} <= line.keys():
            if submitted:
                raise ValueError(f"line {len(submitted) + 1} has no task_id or model_answer")
            return None
        task = fields.name(line["task_id"], "task_id")
        if task in submitted:
            raise ValueError(f"task {task} appears twice")
        submitted[task] = line["model_answer"]
    if not submitted:
        return None
    answers = file.options.get("answers")
    if not isinstance(answers, SourceFile):
        raise file.broken("is a GAIA submission. Name the expected answers: `answers=metadata.jsonl`")
    expected = _expected(answers)
    if unknown := submitted.keys() - expected.keys():
        raise file.broken(
            f"answers {len(unknown)} tasks that {answers.name} does not have: {min(unknown)[:100]}."
        )
    rows = [_row(task, record, submitted) for task, record in expected.items()]
    correct = sum(row.passed is True for row in rows) / len(rows)
    official = OfficialScore(name="accuracy", value=correct, of=len(rows), rule=_RULE)
    return [ResultSet(suite="GAIA", rows=rows, official=official)]


READER = Reader(
    "gaia",
    "a GAIA submission",
    read,
    files="submissions ¹, with the questions as `--answers`",
    tried_with="by hand",
)


def _expected(answers: SourceFile) -> dict[str, Mapping[str, Any]]:
    """Return the questions that have an answer, by task."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in answers.json_lines() or ():
        record = fields.table(line, f"a line of {answers.name}")
        if fields.words(record.get("Final answer")) not in {"", _PRIVATE}:
            found[fields.name(record.get("task_id"), "task_id")] = record
    if not found:
        raise answers.broken(
            "has no question with an answer: is it the metadata.jsonl of the validation split?"
        )
    return found


def _row(task: str, record: Mapping[str, Any], submitted: Mapping[str, Any]) -> Row:
    level = record.get("Level")
    expected = fields.words(record["Final answer"])
    row = Row(
        test=task,
        groups=(f"level {level}",) if isinstance(level, int | str) else (),
        definition=digest([record.get("Question"), expected]),
    )
    if task not in submitted:
        return row._replace(undecided=fields.EMPTY, reason="no answer was submitted")
    answer = submitted[task]
    said = answer if isinstance(answer, str) else fields.shown(answer)
    passed = answer is not None and gaia(final_answer(said[:10_000]), expected)
    asked = fields.message("user", record.get("Question")), fields.message("assistant", said)
    conversation = tuple(one for one in asked if one and one.text)
    # The expected answer is private and stays out of the reports.
    return row._replace(passed=passed, reason="" if passed else "wrong answer", conversation=conversation)
