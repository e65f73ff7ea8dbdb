"""Reports of SWE-bench (github.com/SWE-bench/SWE-bench): of a run, and `report.json` of an instance.

Read from what `harness/reporting.py` and `harness/grading.py` of swebench 5.0.2 write (schema version 2). The
ids of infrastructure failures also stand among the unresolved or the errors. `submitted_ids` may hold ids
that are not in the data set.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_evals.domain.results.suite import OfficialScore
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.support.digest import of_tests

_SUITE = "SWE-bench"
_RULE = "Instances that broke, were not submitted or have an empty patch count as not resolved."


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the report of a run, or of one instance."""
    report = file.json()
    if not isinstance(report, dict):
        return None
    if {"resolved_ids", "total_instances", "empty_patch_ids"} <= report.keys():
        return [_of_run(file, report)]
    if report and all(
        isinstance(one, dict) and {"resolved", "patch_exists"} <= one.keys() for one in report.values()
    ):
        rows = [_of_instance(name, one) for name, one in report.items()]
        return [ResultSet(suite=_SUITE, arm=_arm_of_path(file), rows=rows, official=official(rows))]
    return None


def official(rows: Sequence[Row]) -> OfficialScore:
    """Return the share of resolved instances; everything else counts as not resolved."""
    value = sum(row.passed is True for row in rows) / len(rows) if rows else None
    return OfficialScore(name="resolved", value=value, of=len(rows), rule=_RULE)


READER = Reader(
    "swe-bench",
    "a SWE-bench report",
    read,
    official,
    files="run report, `report.json` of instances",
    tried_with="swebench 5.0.2",
    compared="the counts and lists of ids with each other",
)


def _of_run(file: SourceFile, report: Mapping[str, Any]) -> ResultSet:
    ids = {key: fields.names(report.get(key) or [], key) for key in _LISTS}
    reasons = fields.table(report.get("failure_reasons") or {}, "failure_reasons")
    infra, ambiguous = set(ids["infra_failure_ids"]), set(ids["ambiguous_failure_ids"])
    rows = [Row(test=name, passed=True, groups=_repository(name)) for name in ids["resolved_ids"]]
    for name in ids["unresolved_ids"]:
        reason = fields.words(reasons.get(name))
        if name in infra:
            rows.append(_undecided(name, reason))
        else:
            note = f"ambiguous: {reason}" if name in ambiguous else "not resolved"
            rows.append(Row(test=name, passed=False, reason=note, groups=_repository(name)))
    rows += [_undecided(name, fields.words(reasons.get(name))) for name in ids["error_ids"]]
    rows += [
        Row(test=name, passed=False, reason="empty patch", groups=_repository(name))
        for name in ids["empty_patch_ids"]
    ]
    rows += [
        Row(
            test=name,
            undecided=fields.EMPTY,
            reason="no prediction was submitted",
            groups=_repository(name),
        )
        for name in ids["incomplete_ids"]
    ]
    total, resolved = fields.count(report["total_instances"]), len(ids["resolved_ids"])
    return ResultSet(
        suite=_SUITE,
        arm=_arm(file),
        rows=rows,
        fingerprint={"instances": of_tests(sorted(row.test for row in rows))},
        official=OfficialScore(
            name="resolved", value=resolved / total if total else None, of=total or 0, rule=_RULE
        ),
        contradictions=tuple(_contradictions(report, ids, rows)),
        warnings=tuple(_warnings(ids, rows)),
    )


def _contradictions(
    report: Mapping[str, Any], ids: Mapping[str, Sequence[str]], rows: Sequence[Row]
) -> Iterator[str]:
    """Yield the totals and lists of a report that contradict each other."""
    total = fields.count(report["total_instances"])
    if total != len(rows):
        shown = fields.shown(report["total_instances"])
        yield f"total_instances is {shown}, and its lists have {len(rows):,} ids."
    twice = [name for name, times in Counter(row.test for row in rows).items() if times > 1]
    if twice:
        yield f"its lists have {twice[0][:100]!r} and {len(twice) - 1:,} other ids more than once."
    for key in (*_COUNTED, "submitted_ids", "completed_ids"):
        stated = fields.count(report.get(f"{key.removesuffix('_ids')}_instances"))
        if key in report and stated is not None and stated != len(ids[key]):
            yield f"{key.removesuffix('_ids')}_instances is {stated:,}, and {key} has {len(ids[key]):,} ids."
    decided = {*ids["resolved_ids"], *ids["unresolved_ids"]}
    if lost := [name for name in ids["completed_ids"] if name not in decided]:
        yield f"completed_ids has {lost[0][:100]!r}, which is neither resolved nor unresolved."


def _warnings(ids: Mapping[str, Sequence[str]], rows: Sequence[Row]) -> Iterator[str]:
    listed = {row.test for row in rows}
    if outside := [name for name in ids["submitted_ids"] if name not in listed]:
        yield (
            f"{len(outside):,} submitted predictions are of instances that the "
            f"data set does not have, such as {outside[0][:100]!r}: they are not counted"
        )


_COUNTED = ("resolved_ids", "unresolved_ids", "empty_patch_ids", "error_ids")
_LISTS = (
    "submitted_ids",
    "completed_ids",
    "resolved_ids",
    "unresolved_ids",
    "empty_patch_ids",
    "error_ids",
    "incomplete_ids",
    "infra_failure_ids",
    "ambiguous_failure_ids",
)


def _of_instance(name: str, report: Mapping[str, Any]) -> Row:
    if report.get("infra_failure") is True:
        return _undecided(name, fields.words(report.get("infra_failure_reason")))
    resolved = fields.truth(report["resolved"], f"resolved of {name}")
    reason = "not resolved"
    if report.get("patch_is_None") is True or report["patch_exists"] is False:
        reason = "empty patch"
    elif report.get("patch_successfully_applied") is False:
        reason = "the patch was not applied, or its tests left no results"
    elif failures := _failures(report.get("tests_status")):
        reason = "failed: " + ", ".join(failures[:10])
    if resolved and reason != "not resolved":
        return Row(
            test=name,
            undecided=fields.ERROR,
            reason=f"resolved is true, and {reason}",
            groups=_repository(name),
        )
    return Row(test=name, passed=resolved, reason="" if resolved else reason, groups=_repository(name))


def _failures(status: Any) -> list[str]:
    kinds = [status.get(key) for key in ("FAIL_TO_PASS", "PASS_TO_PASS")] if isinstance(status, dict) else []
    lists = [kind.get("failure") for kind in kinds if isinstance(kind, dict)]
    return [name for one in lists if isinstance(one, list) for name in one if isinstance(name, str)]


def _undecided(name: str, reason: str) -> Row:
    why = reason.replace("_", " ") or "the harness broke before a report"
    return Row(test=name, undecided=fields.INFRASTRUCTURE, reason=why, groups=_repository(name))


def _repository(name: str) -> tuple[str, ...]:
    found = re.fullmatch(r"(.+)-\d+", name)
    return (found[1].replace("__", "/"),) if found else ()


def _arm(file: SourceFile) -> str | None:
    """Return the model, which stands only in the name of the file: `MODEL.RUN_ID.json`."""
    model = file.stem.partition(".")[0]
    return model.replace("__", "/") if model != file.stem else None


def _arm_of_path(file: SourceFile) -> str | None:
    """Return the model of an instance: `logs/run_evaluation/RUN_ID/MODEL/INSTANCE/report.json`."""
    found = re.search(r"run_evaluation[/\\][^/\\]+[/\\]([^/\\]+)[/\\][^/\\]+[/\\]report\.json$", file.name)
    return found[1].replace("__", "/") if found else None
