"""CTRF (Common Test Report Format, ctrf.io), as reporters for jest, vitest, mocha and others write it.

`other` is undecided; `skipped` and `pending` are not run. Attempts before the last one are in
`retryAttempts`; those that are only counted (`retries`, `flaky`) failed, since nothing else is run again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_evals.domain.errors import Exit
from ci_evals.extension_support.result_files import fields
from ci_evals.extension_support.result_files.reader import Reader
from ci_evals.extension_support.result_files.result_rows import ResultSet, Row
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.junit_names import identity, numbered, suite_name

_MOST_REASON = 4_000
_MOST_ATTEMPTS = 1_000
_STATUSES = ("passed", "failed", "skipped", "pending", "other")
_OLD_SEPARATOR = " > "
"""Between suites, in files that have them in one text."""
_NEVER_BEGAN = frozenset({"todo", "skipped", "pending", "disabled"})
"""Words of `rawStatus` by which a test with the status `other` was not run."""
_RERUN = "failed and was run again"
_OURS = "ci-evals"
"""The name of this tool in its own reports."""


def read(file: SourceFile) -> Sequence[ResultSet] | None:
    """Read all tests of a report as one suite."""
    document = file.json()
    report = document.get("results") if isinstance(document, dict) else None
    if not isinstance(report, dict) or not {"tool", "summary", "tests"} <= report.keys():
        return None
    tests = fields.tables(report["tests"], "tests")
    file.check_rows(len(tests))
    names = numbered([_name(test) for test in tests])
    ours = _is_ours(report)
    rows = [row for test, name in zip(tests, names, strict=True) for row in _rows(test, name, ours=ours)]
    report_id = fields.words(document.get("reportId"))
    return [
        ResultSet(
            suite=fields.name(fields.table(report["tool"], "tool").get("name"), "the name of the tool"),
            rows=rows,
            contradictions=tuple(_contradictions(report, tests)),
            run_ids=(report_id,) if report_id else (),
        )
    ]


READER = Reader(
    "ctrf",
    "a CTRF report",
    read,
    files="CTRF (Common Test Report Format), JSON ¹",
    tried_with="jest 30.5 with jest-ctrf-json-reporter 0.0.11, vitest 4.1 with "
    "@d2t/vitest-ctrf-json-reporter 1.3, mocha 12.0 with mocha-ctrf-json-reporter 0.0.11, this version",
    compared="`tests`, `passed`, `failed`, `skipped`, `pending` and `other` of `summary`; `healthy`; "
    "`exitCode` of this tool",
)


def _is_ours(report: Mapping[str, Any]) -> bool:
    tool = report["tool"]
    return isinstance(tool, dict) and tool.get("name") == _OURS


def _suites(test: Mapping[str, Any]) -> tuple[str, ...]:
    suites = test.get("suite") or []
    if isinstance(suites, str):
        own = suites == test.get("name")  # vitest's reporter has the test there too
        suites = [] if own else suites.split(_OLD_SEPARATOR)
    return tuple(suite_name(name) for name in fields.names(suites, "suite"))


def _name(test: Mapping[str, Any]) -> str:
    return identity(_suites(test), "", fields.test_name(test.get("name")).strip())


def _rows(test: Mapping[str, Any], name: str, *, ours: bool) -> Iterator[Row]:
    """Yield the attempts at a test, the last one at the end.

    In reports of this tool, an attempt that is `other` broke off, was played again and decided nothing, and
    `flaky` is about the trials of a test.
    """
    groups = dict.fromkeys([*_suites(test)[:1], *fields.names(test.get("tags") or [], "tags")])
    common = Row(name, groups=tuple(group for group in groups if group))
    earlier = fields.tables(test.get("retryAttempts") or [], "retryAttempts")
    rows = [_row(attempt, common) for attempt in earlier]
    last = _row(test, common)
    if wrong := _wrong_counts(test):
        last = common._replace(undecided=fields.ERROR, reason=wrong)
    for _ in range(_unlisted(test, rows, last, ours=ours)):
        yield common._replace(passed=False, reason=_RERUN)
    for attempt, row in zip(earlier, rows, strict=True):
        if not ours or attempt.get("status") != "other":
            yield row
    yield last


def _unlisted(test: Mapping[str, Any], listed: Sequence[Row], last: Row, *, ours: bool) -> int:
    """Return how many attempts the file counts and does not list."""
    retries = _count(test.get("retries")) or 0
    if retries > _MOST_ATTEMPTS:
        raise ValueError(f"retries of {last.test[:100]!r} is {retries:,}")
    unlisted = max(0, retries - len(listed))
    failed = unlisted or any(row.passed is False for row in listed)
    if not ours and test.get("flaky") is True and last.passed and not failed:
        return 1
    return unlisted


def _wrong_counts(test: Mapping[str, Any]) -> str | None:
    """Return what is no count of attempts: with it nobody knows whether one failed."""
    retries, flaky = test.get("retries"), test.get("flaky")
    if retries is not None and _count(retries) is None:
        return f"retries is {fields.shown(retries)}, which is no count"
    if flaky is not None and not isinstance(flaky, bool):
        return f"flaky is {fields.shown(flaky)}, which is neither true nor false"
    return None


def _count(value: Any) -> int | None:
    """Return a count, which some tools write as `5.0`; None for what is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return fields.count(value)


def _row(attempt: Mapping[str, Any], common: Row) -> Row:
    milliseconds = fields.amount(attempt.get("duration"))
    seconds = None if milliseconds is None else milliseconds / 1000
    status = attempt.get("status")
    reason = _reason(attempt)
    if status in ("passed", "failed"):
        return common._replace(passed=status == "passed", reason=reason, seconds=seconds)
    never_began = status == "other" and fields.words(attempt.get("rawStatus")) in _NEVER_BEGAN
    if status in ("skipped", "pending") or never_began:
        return common._replace(undecided=fields.SKIPPED, reason=reason, seconds=seconds)
    unclear = f"its status is {fields.shown(status)}"
    return common._replace(undecided=fields.ERROR, reason=reason or unclear, seconds=seconds)


def _reason(attempt: Mapping[str, Any]) -> str:
    parts = (fields.words(attempt.get(key)).strip() for key in ("message", "trace"))
    return "\n\n".join(part for part in parts if part)[:_MOST_REASON]


def _contradictions(report: Mapping[str, Any], tests: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the report states of its tests and they contradict."""
    summary = fields.table(report["summary"], "summary")
    counts = Counter(fields.words(test.get("status")) for test in tests)
    for key in ("tests", *_STATUSES):
        found = len(tests) if key == "tests" else counts[key]
        if key not in summary:
            yield f"summary.{key} is missing, and the list of tests has {found:,}."
            continue
        stated = _count(summary[key])
        if stated is None:
            yield f"summary.{key} is {fields.shown(summary[key])}, which is no count."
        elif stated != found:
            yield f"summary.{key} is {stated:,}, and the list of tests has {found:,}."
    extra = report.get("extra")
    exit_code = extra.get("exitCode") if isinstance(extra, dict) else None
    if _is_ours(report) and exit_code == Exit.INVALID:
        yield f"extra.exitCode is {Exit.INVALID:d}: the run has no verdict."
    environment = report.get("environment")
    healthy = environment.get("healthy") if isinstance(environment, dict) else None
    if healthy is False and counts["passed"] + counts["skipped"] + counts["pending"] == len(tests):
        yield "environment.healthy is false, and no test failed."
