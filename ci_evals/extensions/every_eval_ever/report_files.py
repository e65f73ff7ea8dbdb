"""Every Eval Ever: a run as records of the shared schema 0.3.0 (github.com/evaleval/every_eval_ever).

Each suite is an aggregate and a file of samples, one line for each trial. `every_eval_ever validate` of
every-eval-ever 0.3.0 accepts them; it warns where the agent's name does not say who developed it.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turn
from ci_evals.scoring.scores import deciding
from ci_evals.support.json_text import JsonObject

FORMAT = "eee"
SUMMARY = "records of Every Eval Ever in eee/data"
FOLDER = "eee/data/"
"""A suite's folder ends in a time."""
_SCHEMA = "0.3.0"
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}


def files(results: Results) -> dict[str, Iterable[str]]:
    """Return the files by their paths. A suite without a score has none, since the schema wants one."""
    found: dict[str, Iterable[str]] = {}
    for suite in results.suites:
        if suite.score is not None:
            path = _path(results, suite)
            found[f"{FOLDER}{path}.json"] = _aggregate(results, suite, path)
            found[f"{FOLDER}{path}_samples.jsonl"] = _samples(results, suite)
    return found


def _model(suite: SuiteResult) -> tuple[str, str]:
    """Return the developer and the name of what was tested."""
    developer, slash, name = (suite.agent_id or suite.adapter or "agent").partition("/")
    return (developer, name) if slash and name else ("unknown", developer)


def _path(results: Results, suite: SuiteResult) -> str:
    parts = (re.sub(r"[^\w.-]", "_", part).strip(".") or "_" for part in (suite.name, *_model(suite)))
    known = hashlib.sha256(f"{results.run.id} {suite.folder}".encode()).digest()
    return "/".join([*(part[:100] for part in parts), str(uuid.UUID(bytes=known[:16], version=4))])


def _id(results: Results, suite: SuiteResult) -> str:
    return f"{suite.name}/{'_'.join(_model(suite))}/{results.run.id}"


def _aggregate(results: Results, suite: SuiteResult, path: str) -> Iterator[str]:
    rows = sum(len(test.trials) for test in suite.tests)
    developer, _ = _model(suite)
    record = {
        "schema_version": _SCHEMA,
        "evaluation_id": _id(results, suite),
        "evaluation_timestamp": _time(results.run.started_at),
        "retrieved_timestamp": _time(results.run.finished_at),
        "source_metadata": {
            "source_name": "ci-evals",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": results.tool.name, "version": results.tool.version},
        "model_info": {
            "name": "/".join(_model(suite)),
            "id": "/".join(_model(suite)),
            "developer": developer,
            "additional_details": _UNKNOWN,
        },
        "evaluation_results": [_result(results, suite)],
    }
    record["detailed_evaluation_results"] = {
        "format": "jsonl",
        "file_path": f"data/{path}_samples.jsonl",
        "total_rows": rows,
    }
    yield json.dumps(record, ensure_ascii=False, indent=2) + "\n"


def _result(results: Results, suite: SuiteResult) -> JsonObject:
    scored = [test for test in deciding(suite.tests) if test.score is not None]
    uncertainty: JsonObject = {"num_samples": len(scored)}
    if suite.interval:
        uncertainty["confidence_interval"] = {
            "lower": suite.interval.low / 100,
            "upper": suite.interval.high / 100,
            "confidence_level": 0.95,
        }
    return {
        "evaluation_result_id": "score",
        "evaluation_name": suite.name,
        "source_data": {"dataset_name": suite.name, "source_type": "other"},
        "evaluation_timestamp": _time(results.run.started_at),
        "metric_config": {
            "evaluation_description": "Mean over the tests of the share of criteria that passed.",
            "metric_id": "score",
            "metric_name": "score",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {"score": (suite.score or 0) / 100, "uncertainty": uncertainty},
    }


def _samples(results: Results, suite: SuiteResult) -> Iterator[str]:
    for test in suite.tests:
        for trial in test.trials:
            yield json.dumps(_sample(results, suite, test, trial), ensure_ascii=False) + "\n"


def _sample(results: Results, suite: SuiteResult, test: TestResult, trial: TrialResult) -> JsonObject:
    turns = tuple(trial.turns)
    messages = list(_messages(turns))
    calls = sum(len(message.get("tool_calls") or ()) for message in messages)
    score = trial.score if trial.scored else None
    error = None if trial.scored else trial.error or f"ended as {trial.status}, without a verdict"
    return {
        "schema_version": _SCHEMA,
        "evaluation_id": _id(results, suite),
        "model_id": "/".join(_model(suite)),
        "evaluation_name": suite.name,
        "evaluation_result_id": "score",
        "sample_id": test.name,
        "sample_hash": test.digest,
        "interaction_type": "agentic" if calls else "multi_turn",
        "input": {"raw": turns[0].user if turns else test.name, "reference": []},
        "output": None,
        "messages": messages,
        "answer_attribution": [],
        "evaluation": {
            "score": (score or 0) / 100,
            "is_correct": score == 100,  # a trial that broke is not: `error` says why
            "num_turns": len(turns) or None,
            "tool_calls_count": calls,
        },
        "performance": {"latency_ms": 1000 * trial.duration_seconds},
        "error": error,
        "metadata": {"epoch": str(trial.index), "scored": "each epoch"},
    }


def _messages(turns: Iterable[Turn]) -> Iterator[JsonObject]:
    for number, turn in enumerate(turns):
        yield {"turn_idx": 2 * number, "role": "user", "content": turn.user}
        calls = [
            {
                "id": call.id or f"call-{number}-{i}",
                "name": call.name,
                "arguments": {key: _text(value) for key, value in (call.arguments or {}).items()},
            }
            for i, call in enumerate(turn.tool_calls or ())
        ]
        reply = {"turn_idx": 2 * number + 1, "role": "assistant", "content": turn.agent}
        yield reply | ({"tool_calls": calls} if calls else {})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _time(moment: datetime) -> str:
    return str(moment.timestamp())
