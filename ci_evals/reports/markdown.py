"""Results as Markdown: the run's summary, a suite's summary, and the whole story of one test."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import quote

from pydantic import JsonValue
from tabulate import tabulate

from ci_evals.domain.results import Group, Results, SuiteResult, TestResult
from ci_evals.domain.transcript import Exchange
from ci_evals.reports import highlights, numbers, sanitize
from ci_evals.templates import render

_REASON_LIMIT = 800
"""Characters of a reason in a summary; the test's own report has 4 KB of it."""
_SAID_LIMIT = 600
_REASON_BYTES = 4_096
_BLANK_LINES = re.compile(r"\n{3,}")
"""What conditions in a template leave behind. Foreign text has none: it stands in quotes and in JSON."""


class Section(NamedTuple):
    """A part of a summary: its name, for a note where it is left out, and its text with a newline.

    Both are Markdown, whole by themselves.
    """

    name: str
    text: str


def summary(results: Results) -> str:
    """The run's summary, the text of a pull request's comment."""
    return "\n".join(section.text for section in summary_sections(results))


def summary_sections(results: Results) -> tuple[Section, ...]:
    """The parts of the run's summary, the most important first."""
    failed = list(highlights.tests_of(results, "failed"))
    many = len(results.suites) > 1
    sections = (
        Section("the verdict", _section("head", results=results, look=highlights.standing(results).value)),
        Section("the gate", _gate(results)),
        Section("the suites' scores", _section("suites", table=_suite_table(results.suites))),
        *(
            Section(f"the failed test {sanitize.inline(test.name, 80)}", text)
            for (_, test), text in zip(failed, _failed_tests(failed, with_suite=many), strict=True)
        ),
        Section("errors and undecided", _troubles(results.suites)),
        *(
            Section(f"all tests of {sanitize.inline(suite.name, 80)}", _folded_suite(suite, many=many))
            for suite in results.suites
        ),
        Section("the run's facts", _section("foot", results=results)),
    )
    return tuple(section for section in sections if section.text)


def suite_summary(results: Results, suite: SuiteResult, stems: Sequence[str]) -> str:
    """A suite's `_summary.md`; `stems` are the names, without extension, of its tests' files."""
    failed = [(suite, test) for test in suite.tests if test.outcome == "failed"]
    missing = highlights.without_judge(results, [suite])
    sections = (
        _section("suite_head", results=results, suite=suite, missing=missing),
        _section("tests", table=_test_table(suite, stems)),
        *_group_sections(suite),
        *_failed_tests(failed, with_suite=False),
        _troubles([suite]),
        _section("foot", results=results),
    )
    return "\n".join(section for section in sections if section)


def test_report(suite: SuiteResult, test: TestResult) -> str:
    """The whole story of one test: every trial's conversation, what the agent did, and each verdict."""
    return _section("test", suite=suite, test=test, trials=_trial_table(test))


def _section(name: str, **values: object) -> str:
    text = render(f"reports/templates/{name}.md.j2", n=numbers, s=sanitize, h=highlights, v=_VIEW, **values)
    return _BLANK_LINES.sub("\n\n", text).strip("\n") + "\n"


def _gate(results: Results) -> str:
    rows = [
        [
            sanitize.cell(check.name),
            highlights.required(check),
            highlights.seen(check),
            "yes" if check.holds else "**no**",
            sanitize.cell(check.note or "", 300),
        ]
        for check in results.gate.checks
    ]
    headers = ["check", "required", "seen", "holds"]
    if any(check.note for check in results.gate.checks):
        headers.append("note")
    rows = [row[: len(headers)] for row in rows]
    return _section("gate", table=_table(headers, rows)) if rows else ""


def _suite_table(suites: Sequence[SuiteResult]) -> str:
    certain = any(suite.interval for suite in suites)
    rows = [
        [
            sanitize.cell(suite.name),
            numbers.score(suite.score),
            *([numbers.interval(suite.interval)] if certain else []),
            str(suite.counts.tests),
            str(suite.counts.passed),
            str(suite.counts.failed),
            str(suite.counts.undecided),
            str(suite.counts.errors),
            str(suite.counts.flaky),
        ]
        for suite in suites
    ]
    interval = ["95 %"] if certain else []
    counts = ["tests", "passed", "failed", "undecided", "unsound trials", "flaky"]
    return _table(["suite", "score", *interval, *counts], rows)


def _test_table(suite: SuiteResult, stems: Sequence[str] | None = None) -> str:
    rows = []
    for place, test in enumerate(suite.tests):
        name = sanitize.cell(test.name)
        scored = sum(trial.scored for trial in test.trials)
        rows.append(
            [
                f"[{name}]({quote(stems[place])}.md)" if stems else name,
                f"{highlights.OUTCOMES[test.outcome].sign} {highlights.result(test)}",
                numbers.score(test.score),
                numbers.percent(test.pass_rate),
                f"{scored} of {len(test.trials) + test.not_run}",
                numbers.duration(sum(trial.duration_seconds for trial in test.trials)),
            ]
        )
    return _table(["test", "result", "score", "pass rate", "trials scored", "time"], rows)


def _trial_table(test: TestResult) -> str:
    rows = [
        [
            str(trial.index),
            trial.status.replace("_", " "),
            numbers.score(trial.score),
            highlights.tally(trial.findings),
            str(len(trial.exchanges)),
            numbers.duration(trial.duration_seconds),
        ]
        for trial in test.trials
    ]
    return _table(["trial", "ended", "score", "verdicts", "exchanges", "time"], rows)


def _group_sections(suite: SuiteResult) -> tuple[str, ...]:
    groups = (
        ("By category", "category", suite.categories),
        ("By AUI Logic", "AUI logic", suite.aui_logic),
        ("By tag", "tag", suite.tags),
        ("By difficulty", "difficulty", suite.difficulties),
    )
    return tuple(
        _section("group", title=title, table=_group_table(header, found))
        for title, header, found in groups
        if found
    )


def _group_table(header: str, groups: Iterable[Group]) -> str:
    rows = [
        [
            sanitize.cell(group.name),
            numbers.score(group.score),
            str(group.tests),
            str(group.passed),
            str(group.failed),
            str(group.undecided),
        ]
        for group in groups
    ]
    return _table([header, "score", "tests", "passed", "failed", "undecided"], rows)


def _folded_suite(suite: SuiteResult, *, many: bool) -> str:
    return _section(
        "folded_suite",
        title=f"All tests of {suite.name}" if many else "All tests",
        tests=_test_table(suite),
        groups=_group_sections(suite),
    )


def _failed_tests(failed: Sequence[tuple[SuiteResult, TestResult]], *, with_suite: bool) -> tuple[str, ...]:
    return tuple(
        _section(
            "failed_test", first=place == 0, count=len(failed), suite=suite if with_suite else None, test=test
        )
        for place, (suite, test) in enumerate(failed)
    )


def _troubles(suites: Sequence[SuiteResult]) -> str:
    found = highlights.troubles(suites)
    return _section("troubles", troubles=found) if found else ""


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    # tabulate escapes nothing and, left to itself, reads numbers anew (007 becomes 7): cells come sanitised.
    align = ["left", *["right" if _is_number(header) else "left" for header in headers[1:]]]
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True, colalign=align if rows else None)


def _is_number(header: str) -> bool:
    return header in {
        "score",
        "tests",
        "passed",
        "failed",
        "undecided",
        "unsound trials",
        "flaky",
        "exchanges",
        "time",
    }


def _did(exchange: Exchange) -> tuple[str, ...]:
    """What the agent says it did for a reply. A trace that never came is not the same as nothing done."""
    traced = (exchange.workflows, exchange.params, exchange.rules, exchange.integrations)
    if all(part is None for part in traced) and not exchange.error_response:
        return ("no trace came with this reply",)
    params = [f"{name} = {_json(value)}" for name, value in (exchange.params or {}).items()]
    params += [f"{name} (value not told)" for name in exchange.named_params]
    calls = [
        " ".join(
            [call.code, f"({call.status if call.status is not None else call.type or 'no HTTP status'})"]
        )
        for call in exchange.integrations or ()
    ]
    workflows = "workflows (from the trace)" if exchange.workflows_derived else "workflows"
    lists = (
        (workflows, exchange.workflows),
        ("parameters", params),
        ("rules", exchange.rules),
        ("integrations", calls),
    )
    out = [f"{label}: {', '.join(map(sanitize.code, names))}" for label, names in lists if names]
    if exchange.error_response:
        detail = sanitize.inline(exchange.error_detail or "no detail", _REASON_LIMIT)
        out.append(f"**error response**: {detail}")
    return tuple(out) or ("nothing: no workflow, parameter, rule or integration",)


def _json(value: JsonValue, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _facts(user_info: Mapping[str, JsonValue]) -> str:
    return _json(dict(user_info), indent=2)


_VIEW = SimpleNamespace(
    did=_did,
    facts=_facts,
    json=_json,
    reason_limit=_REASON_LIMIT,
    said_limit=_SAID_LIMIT,
    reason_bytes=_REASON_BYTES,
)
