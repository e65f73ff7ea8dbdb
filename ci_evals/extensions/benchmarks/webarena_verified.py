"""Results of WebArena-Verified (github.com/ServiceNow/webarena-verified): `eval_result.json` of each task.

Read from what `webarena-verified eval-tasks` 1.2.3 writes. The batch's `eval_results.json` names no rows and
gives the official score. Its three version and checksum fields say what is comparable.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, ResultSet, Row, StatedTotals
from ci_evals.extension_support.result_files.source import SourceFile

_SUITE = "WebArena-Verified"
_RULE = "Tasks that could not be evaluated count as failures."
_FINGERPRINT = {
    "webarena_verified_version": "version of webarena-verified",
    "webarena_verified_evaluator_checksum": "evaluator checksum",
    "webarena_verified_data_checksum": "data set checksum",
}


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the result of one task, or the summary of a batch."""
    result = file.json()
    if not isinstance(result, dict) or "webarena_verified_version" not in result:
        return None
    fingerprint = {title: fields.name(result.get(key), key) for key, title in _FINGERPRINT.items()}
    if "summary" in result:
        overall = fields.table(fields.table(result["summary"], "summary")["overall"], "summary.overall")
        total, passed = fields.count(overall["total"]) or 0, fields.count(overall["success_count"]) or 0
        value = fields.share(passed / total, "success_count / total") if total else None
        stated = OfficialScore(name="success rate", value=value, of=total, rule=_RULE)
        totals = StatedTotals(place="summary.overall.total", samples=total, passed=passed)
        return [ResultSet(suite=_SUITE, fingerprint=fingerprint, official=stated, stated=totals)]
    rows = [_row(result)]
    return [ResultSet(suite=_SUITE, rows=rows, fingerprint=fingerprint, official=official(rows))]


def official(rows: Sequence[Row]) -> OfficialScore:
    """Return the success rate over all tasks."""
    value = sum(row.passed is True for row in rows) / len(rows) if rows else None
    return OfficialScore(name="success rate", value=value, of=len(rows), rule=_RULE)


READER = Reader(
    "webarena-verified",
    "WebArena-Verified results",
    read,
    official,
    files="`eval_result.json` ¹",
    tried_with="webarena-verified 1.2.3",
    compared="the counts in `eval_results.json`",
)


def _row(result: Mapping[str, Any]) -> Row:
    status = result["status"]
    evaluators = fields.tables(result.get("evaluators_results") or [], "evaluators_results")
    revision = fields.count(result.get("task_revision"))
    row = Row(
        test=fields.name(result["task_id"], "task_id"),
        groups=tuple(dict.fromkeys(fields.names(result.get("sites") or [], "sites"))),
        cluster=fields.name(result["intent_template_id"], "intent_template_id"),
        definition=None if revision is None else f"revision {revision}",
        checks=tuple(_check(one) for one in evaluators) if len(evaluators) > 1 else (),
    )
    if status == "error":
        broken = fields.words(result.get("error_msg")) or "; ".join(filter(None, map(_reason, evaluators)))
        return row._replace(undecided=fields.ERROR, reason=broken or "could not be evaluated")
    if status not in {"success", "failure", "partial_match"}:
        raise ValueError(f"the status is {fields.shown(status)}")
    passed, score = status == "success", fields.share(result["score"], "score")
    denied = [one for one in evaluators if one.get("status") != "success"]
    if passed and (score != 1 or denied or result.get("error_msg")):
        reason = "the status is success, and the score, an evaluator or an error denies it"
        return row._replace(undecided=fields.EMPTY, reason=reason)
    reason = "" if passed else "; ".join(filter(None, map(_reason, evaluators)))
    return row._replace(passed=passed, score=score, reason=reason)


def _check(evaluator: Mapping[str, Any]) -> Check:
    status = evaluator.get("status")
    return Check(
        fields.name(evaluator.get("evaluator_name"), "evaluator_name"),
        passed=None if status == "error" else status == "success",
        score=None if status == "error" else fields.share_or_none(evaluator.get("score")),
        reason=_reason(evaluator),
    )


def _reason(evaluator: Mapping[str, Any]) -> str:
    told = evaluator.get("assertions")
    failed = (
        [one for one in told if isinstance(one, dict) and one.get("status") != "success"]
        if isinstance(told, list)
        else []
    )
    lines = [line for one in failed for line in one.get("assertion_msgs") or [one.get("assertion_name")]]
    return fields.words(evaluator.get("error_msg")) or "; ".join(fields.words(line) for line in lines)
