"""Results of ci-evals itself: the `_results.json` of a run, with all agents that it played."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ci_evals.domain.definition import SuiteDefinition
from ci_evals.domain.providers import OFFLINE
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Cause, Finding, Outcome
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import Check, Message, ResultSet, Row, Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.support import dataclass_json
from ci_evals.support.json_text import JsonObject


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read the suites of a run; of a run with several agents each is an arm."""
    if not is_own(file):
        return None
    document = file.json()
    if document["schemaVersion"] != 3:
        raise file.broken("was written by another version of ci-evals.")
    run = document["run"]
    if run["status"] == "unfinished":
        raise file.broken("is of a run that has not finished.")
    if shard := run.get("shard"):
        raise file.broken(
            f"is shard {shard['index']} of {shard['of']} of a run. Merge all of them first: ci-evals merge "
            "SHARD..., and gate the merged results."
        )
    if reasons := document["gate"].get("reasons"):
        raise file.broken(f"is of a run without a verdict: {str(reasons[0])[:300]}.")
    arms = document.get("arms") or []
    gated = next((arm["name"] for arm in arms if arm.get("gated")), None)
    offline = run["config"].get("provider") == OFFLINE.name
    sets = [*_sets(document["suites"], gated, offline=offline)]
    for arm in (arm for arm in arms if not arm.get("gated")):
        sets += _sets(arm["suites"], arm["name"], offline=offline)
    run_ids = (fields.name(run["id"], "run.id"),)
    definitions = tuple(
        dataclass_json.from_value(SuiteDefinition, item) for item in run.get("definitions") or ()
    )
    return [replace(one, run_ids=run_ids, definitions=definitions) for one in sets]


def is_own(file: SourceFile) -> bool:
    """Return whether a file is a `_results.json` of ours, of any version."""
    document = file.json()
    return isinstance(document, dict) and {"schemaVersion", "suites"} <= document.keys()


READER = Reader(
    "ci-evals",
    "results of ci-evals",
    read,
    files="`_results.json` of a run",
    tried_with="this version",
)


def _sets(suites: Iterable[Mapping[str, Any]], arm: str | None, *, offline: bool) -> Iterator[ResultSet]:
    for suite in suites:
        rows = [row for test in suite["tests"] for row in _rows(test, offline=offline)]
        yield ResultSet(
            suite=suite["name"],
            arm=arm,
            rows=rows,
            fingerprint=dict(suite.get("fingerprint") or {}),
            min_score=_floor(suite),
        )


def _rows(test: Mapping[str, Any], *, offline: bool) -> Iterator[Row]:
    name, groups, digest = test["name"], tuple(test["tags"]), test["digest"]
    rules: JsonObject = {"critical": bool(test.get("critical")), "min_score": _floor(test)}
    if test.get("quarantine"):
        yield Row(test=name, undecided=Undecided.SKIPPED, groups=groups, definition=digest)
        return
    for item in test["trials"]:
        trial = _with_failures(dataclass_json.from_value(TrialResult, item))
        if offline:  # what a judge would have said was not wanted
            wanted = tuple(one for one in trial.findings if one.cause is not Cause.NO_JUDGE)
            trial = replace(trial, findings=wanted)
        yield _row(trial, name, groups, digest)._replace(**rules)
    for _ in range(min(test["notRun"], 1000)):
        yield Row(
            test=name,
            undecided=Undecided.EMPTY,
            reason="planned, but not started",
            groups=groups,
            **rules,
        )
    if not test["trials"] and not test["notRun"]:
        yield Row(test=name, undecided=Undecided.SKIPPED, groups=groups, definition=digest, **rules)


def _floor(part: Mapping[str, Any]) -> float | None:
    """Return the floor of a suite or a test, in points."""
    floor = part.get("minScore")
    return None if floor is None else 100 * fields.share(floor / 100, "minScore")


def _with_failures(trial: TrialResult) -> TrialResult:
    """Return the trial with verdicts that count as failed as such: rows do not know their cause."""
    findings = tuple(
        replace(finding, outcome=Outcome.FAILED, cause=None) if finding.fails else finding
        for finding in trial.findings
    )
    return replace(trial, findings=findings)


def _row(trial: TrialResult, test: str, groups: tuple[str, ...], digest: str) -> Row:
    exact = trial.exact_score() if trial.counts else None
    undecided, score = None, None if exact is None else min(1.0, float(exact / 100))
    if score is None:
        undecided = Undecided.ERROR
    elif any(finding.outcome is Outcome.UNDECIDED for finding in trial.findings):
        undecided, score = Undecided.EMPTY, None
    paid = [usage.cost_usd for usage in trial.usage if usage.cost_usd is not None]
    return Row(
        test=test,
        trial=trial.index,
        passed=None if undecided else all(f.outcome is Outcome.PASSED for f in trial.findings),
        score=score,
        undecided=undecided,
        reason=trial.error or "",
        groups=groups,
        checks=tuple(map(_check, trial.findings)),
        conversation=tuple(_messages(trial)),
        definition=digest,
        cost_usd=sum(paid) if paid else None,
        seconds=trial.duration_seconds,
    )


def _check(finding: Finding) -> Check:
    decided = finding.outcome is not Outcome.UNDECIDED
    return Check(
        name=finding.criterion,
        passed=finding.outcome is Outcome.PASSED if decided else None,
        score=finding.grade.score if finding.grade and decided else None,
        reason=finding.reason,
    )


def _messages(trial: TrialResult) -> Iterator[Message]:
    for turn in trial.turns:
        yield Message("user", turn.user)
        yield Message("assistant", turn.agent, turn.tool_calls or ())
