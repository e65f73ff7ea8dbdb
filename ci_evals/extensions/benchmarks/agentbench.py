"""Runs of AgentBench (github.com/THUDM/AgentBench): `outputs/TIME/AGENT/TASK/runs.jsonl`.

The shape is that of `src/assigner.py` and `src/typings/output.py` at 578c5e9; the result of each task is its
own: `is_correct` (dbbench), `result` (os, alfworld), `reward` (webshop). A status can be `unknown` beside
`result: true`: the status counts first. The name of the task and the agent stand only in the path of the
file.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile

_BROKEN = {"task error", "unknown", "cancelled", "running"}
_LIMITS = {"agent context limit", "agent validation failed", "agent invalid action", "task limit reached"}
_RULE = "Samples that broke count as failures."


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the runs of one agent on one task."""
    lines = file.json_lines()
    if lines is None:
        return None
    runs: list[dict[str, object]] = []
    for line in lines:
        if not isinstance(line, dict) or not {"index", "output", "time"} <= line.keys():
            if runs:
                raise ValueError(f"line {len(runs) + 1} has no index, output or time")
            return None
        runs.append(line)
    if not runs:
        return None
    agent, task = _path(file.name)
    rows = [_row(run) for run in runs]
    return [ResultSet(suite=task or "AgentBench", arm=agent, rows=rows, official=_official(runs))]


READER = Reader(
    "agentbench",
    "runs of AgentBench (runs.jsonl)",
    read,
    files="`runs.jsonl`",
    tried_with="its data classes at 578c5e9",
)


def _path(name: str) -> tuple[str | None, str | None]:
    parts = re.split(r"[/\\]", name)
    return (parts[-3], parts[-2]) if len(parts) > 2 and parts[-1] == "runs.jsonl" else (None, None)


def _row(run: Mapping[str, Any]) -> Row:
    output = run["output"]
    known = output if isinstance(output, dict) else {}
    history = [turn for turn in known.get("history") or [] if isinstance(turn, dict)]
    row = Row(
        test=fields.name(run["index"], "index"),
        conversation=fields.conversation(history),
    )
    status = known.get("status")
    result = known.get("result")
    if run.get("error") or not known or status in _BROKEN:
        told = result.get("error") if isinstance(result, dict) else None
        reason = fields.words(run.get("error")) or fields.words(told) or fields.words(run.get("info"))
        return row._replace(
            undecided=fields.INFRASTRUCTURE, reason=f"{status}: {reason}" if reason else str(status)
        )
    if status in _LIMITS:
        return row._replace(passed=False, reason=str(status))
    if status != "completed":
        raise ValueError(f"the status of sample {row.test} is {fields.shown(status)}")
    score = _score(result)
    if score == 1 and isinstance(result, dict) and result.get("error"):
        reason = f"completed, with the error {fields.shown(result['error'])}"
        return row._replace(undecided=fields.ERROR, reason=reason)
    if score is None:
        return row._replace(undecided=fields.EMPTY, reason="completed without is_correct, result or reward")
    return row._replace(passed=score == 1, score=score, reason="" if score == 1 else _reason(result))


def _score(result: Any) -> float | None:
    known = result if isinstance(result, dict) else {"result": result}
    found = next(
        (known[key] for key in ("is_correct", "result", "reward") if known.get(key) is not None), None
    )
    return None if found is None else fields.share(found, "the result of a sample")


def _reason(result: Any) -> str:
    if isinstance(result, dict) and "ground_truth" in result:
        return (
            f"the answer {fields.shown(result.get('answer'))} is not {fields.shown(result['ground_truth'])}"
        )
    told = result.get("reason") if isinstance(result, dict) else None
    return fields.words(told) or "wrong"


def _official(runs: Sequence[Mapping[str, Any]]) -> OfficialScore | None:
    """Return what the tasks' `calculate_overall` does; dbbench has none."""
    outputs = [run["output"] for run in runs if isinstance(run["output"], dict)]
    results = [one["result"] for one in outputs if isinstance(one.get("result"), dict)]
    if rewards := [fields.share(one["reward"], "a reward") for one in results if "reward" in one]:
        mean = sum(rewards) / len(rewards)
        value = None if fields.is_nan(mean) else mean
        return OfficialScore(name="reward", value=value, of=len(rewards), rule=_RULE)
    if any("result" in one for one in results):
        passed = sum(bool(one.get("result")) for one in results)
        return OfficialScore(name="acc", value=passed / len(outputs), of=len(outputs), rule=_RULE)
    return None
