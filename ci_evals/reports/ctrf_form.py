"""The form of a CTRF document (Common Test Report Format, ctrf.io), with tests that are made elsewhere."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import NAMESPACE_URL, uuid5

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.comparison import Baseline
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.results.run import RunInfo, Tool
from ci_evals.reports import sanitize
from ci_evals.support.json_text import JsonObject

_VERSION = "0.0.0"
_RUN = "urn:ci-evals:run:"


class Status(StrEnum):
    """The outcome of a test, in the words of the format."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    PENDING = "pending"
    OTHER = "other"


@dataclass(frozen=True)
class Head:
    """The sentences of a document on the run as a whole."""

    info: RunInfo
    tool: Tool
    gate: Decision
    score: float | None
    suites: int
    baseline: Baseline | None


def document(head: Head, statuses: Iterable[Status], flaky: int = 0) -> JsonObject:
    """Return the document of a run, with an empty list of tests.

    Args:
        head: Of the run.
        statuses: The status of each test that the list will have.
        flaky: How many of them are flaky.
    """
    run = head.info
    counts = Counter(statuses)
    document = {
        "reportFormat": "CTRF",
        "specVersion": _VERSION,
        "reportId": _report_id(run.id),
        "runId": _line(run.id),
        "timestamp": _time(run.finished_at),
        "generatedBy": head.tool.name,
        "results": {
            "tool": {"name": head.tool.name, "version": head.tool.version},
            "summary": {
                "tests": counts.total(),
                **{status.value: counts[status] for status in Status},
                "flaky": flaky,
                "suites": head.suites,
                "start": _milliseconds(run.started_at),
                "stop": _milliseconds(run.finished_at),
                "duration": milliseconds(run.duration_seconds),
            },
            "tests": [],
            "environment": _environment(head),
            "extra": {
                "score": head.score,
                "exitCode": head.gate.exit_code,
                "reasons": [_line(reason) for reason in head.gate.reasons],
            },
        },
    }
    if head.baseline:
        document["baseline"] = _baseline(head.baseline)
    return document


def milliseconds(seconds: float) -> int:
    """Return a duration as the format has it."""
    return round(1000 * seconds)


def run_failure(name: str, message: str) -> JsonObject:
    """Return a failed test of the run as a whole, for readers that look at tests alone."""
    return {
        "name": name,
        "status": Status.FAILED.value,
        "duration": 0,
        "suite": ["ci-evals"],
        "message": message,
    }


def _line(text: str) -> str:
    return sanitize.xml(sanitize.one_line(text))


def _time(at: datetime) -> str:
    """Return a time as `_results.json` has it, so that a report that is drawn again is the same."""
    return at.isoformat(timespec="milliseconds")


def _milliseconds(at: datetime) -> int:
    return milliseconds(at.replace(microsecond=at.microsecond // 1000 * 1000).timestamp())


def _report_id(run_id: str) -> str:
    """Return the id of a run's document, which is the same each time that it is written."""
    return str(uuid5(NAMESPACE_URL, f"{_RUN}{_line(run_id)}"))


def _environment(head: Head) -> JsonObject:
    git = head.info.git
    facts = {
        "commit": git.head_commit or git.commit,
        "branchName": git.branch,
        "repositoryName": git.repository,
    }
    known = {name: _line(fact) for name, fact in facts.items() if fact}
    return {**known, "healthy": head.gate.exit_code == Exit.PASSED}


def _baseline(baseline: Baseline) -> JsonObject:
    facts = {"reportId": _report_id(baseline.run_id), "timestamp": _time(baseline.at)}
    if baseline.commit:
        facts["commit"] = _line(baseline.commit)
    return facts
