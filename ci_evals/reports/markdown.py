"""Results as Markdown: the run's summary, a suite's summary, and the whole story of one test."""

import json
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from pydantic import JsonValue

from ci_evals.domain.results import Group, Results, SuiteResult, TestResult
from ci_evals.domain.transcript import Exchange
from ci_evals.reports import baseline, highlights, numbers, sanitize
from ci_evals.reports.pieces import REASON_LIMIT, Section, section, table

_MOST_K = 10
"""Numbers of trials for which a test's own report tells how likely some and all of them pass."""


def summary(results: Results) -> str:
    """The run's summary, the text of a pull request's comment."""
    return "\n".join(section.text for section in summary_sections(results))


def summary_sections(results: Results) -> tuple[Section, ...]:
    """The parts of the run's summary, the most important first."""
    failed = list(highlights.tests_of(results, "failed"))
    many = len(results.suites) > 1
    shown = {(suite.name, test.name) for suite, test in failed}
    return _present(
        Section("the verdict", section("head", results=results, look=highlights.standing(results).value)),
        _gate(results),
        baseline.against(results),
        *baseline.otherwise(results, shown),
        Section("the suites' scores", _suites(results.suites)),
        *(
            Section(f"the failed test {sanitize.inline(test.name, 80)}", text)
            for (_, test), text in zip(failed, _failed_tests(failed, with_suite=many), strict=True)
        ),
        _flaky(results),
        _troubles(results.suites),
        baseline.differing(results.comparison),
        *(
            Section(f"all tests of {sanitize.inline(suite.name, 80)}", _folded_suite(suite, many=many))
            for suite in results.suites
        ),
        Section("the run's facts", section("foot", results=results)),
    )


def suite_summary(results: Results, suite: SuiteResult, stems: Sequence[str]) -> str:
    """A suite's `_summary.md`.

    Args:
        results: The suite's own.
        suite: The one suite of them.
        stems: The names, without extension, of its tests' files.
    """
    failed = [(suite, test) for test in suite.tests if test.outcome == "failed"]
    missing = highlights.without_judge(results, [suite])
    sections = _present(
        Section("the score", section("suite_head", results=results, suite=suite, missing=missing)),
        baseline.against(results, pace=False),
        *baseline.otherwise(results, {(suite.name, test.name) for _, test in failed}),
        Section("the tests", section("tests", table=_full_test_table(suite, stems))),
        *(Section("a group", text) for text in _group_sections(suite)),
        *(Section("a failed test", text) for text in _failed_tests(failed, with_suite=False)),
        _troubles([suite]),
        baseline.differing(results.comparison),
        Section("the run's facts", section("foot", results=results)),
    )
    return "\n".join(section.text for section in sections)


def comparison(results: Results) -> str:
    """The comparison with the baseline as a text of its own, with the gate's checks of it."""
    look = highlights.standing(results).value if results.gate.checks else None
    sections = _present(
        Section("the verdict", section("comparison_head", results=results, look=look)),
        _gate(results),
        baseline.against(results),
        *baseline.otherwise(results),
        baseline.differing(results.comparison),
    )
    return "\n".join(section.text for section in sections)


def test_report(suite: SuiteResult, test: TestResult) -> str:
    """The whole story of one test: every trial's conversation, what the agent did, and each verdict."""
    return section(
        "test",
        suite=suite,
        test=test,
        trials=_trial_table(test),
        repeated=len(highlights.pass_hat_k(test)) > 1,
        most_k=_MOST_K,
        did=_did,
        facts=_facts,
        json=_json,
    )


def _present(*sections: Section | None) -> tuple[Section, ...]:
    return tuple(section for section in sections if section and section.text)


def _gate(results: Results) -> Section | None:
    rows = [
        [
            sanitize.cell(check.name),
            highlights.required(check),
            highlights.seen(check),
            "yes" if check.holds else "**no**",
            sanitize.cell(check.note or "", 300),
        ]
        for check in highlights.checks(results)
    ]
    shown = table(["check", "required", "seen", "holds", "note"], rows)
    return Section("the gate", section("gate", table=shown)) if rows else None


def _suites(suites: Sequence[SuiteResult]) -> str:
    """Their scores, and of what there was none nothing."""
    most = min((max(suite.pass_hat_k, default=1) for suite in suites), default=1)
    rows = [
        [
            sanitize.cell(suite.name),
            numbers.score(suite.score),
            numbers.interval(suite.interval) if suite.interval else "",
            *([numbers.percent(suite.pass_hat_k.get(k)) for k in (1, most)] if most > 1 else []),
            f"{suite.counts.passed} of {suite.counts.tests}",
            str(suite.counts.failed),
            str(suite.counts.undecided),
            str(suite.counts.errors),
            str(suite.counts.flaky),
        ]
        for suite in suites
    ]
    passes = ["one passes", f"all of {most} pass"] if most > 1 else []
    counts = ["tests passed", "failed", "undecided", "unsound trials", "flaky"]
    shown = table(["suite", "score", "95 %", *passes, *counts], rows)
    return section("suites", table=shown, most=most)


def _test_table(suite: SuiteResult) -> str:
    """What one needs of each test."""
    headers = ["test", "result", "score", "pass rate", "trials scored", "time"]
    return table(headers, [[sanitize.cell(test.name), *_test_cells(test)] for test in suite.tests])


def _full_test_table(suite: SuiteResult, stems: Sequence[str]) -> str:
    """The same with links to the tests' reports, and where trials were repeated what they say together."""
    names = [
        f"[{sanitize.cell(test.name)}]({quote(stem)}.md)"
        for stem, test in zip(stems, suite.tests, strict=True)
    ]
    most = max((len(highlights.pass_hat_k(test)) for test in suite.tests), default=0)
    if most < 2:
        headers = ["test", "result", "score", "pass rate", "trials scored", "time"]
        cells = [_test_cells(test) for test in suite.tests]
    else:
        spread = ["sd", "min to max"]
        headers = [
            "test",
            "result",
            "score",
            *spread,
            "pass rate",
            f"all of {most} pass",
            "trials scored",
            "time",
        ]
        cells = [_with_spread(test, most) for test in suite.tests]
    return table(headers, [[name, *row] for name, row in zip(names, cells, strict=True)])


def _test_cells(test: TestResult) -> list[str]:
    scored = sum(trial.scored for trial in test.trials)
    return [
        f"{highlights.OUTCOMES[test.outcome].sign} {highlights.result(test)}",
        numbers.score(test.score),
        numbers.percent(test.pass_rate),
        f"{scored} of {len(test.trials) + test.not_run}",
        numbers.duration(sum(trial.duration_seconds for trial in test.trials)),
    ]


def _with_spread(test: TestResult, most: int) -> list[str]:
    result, score, rate, *rest = _test_cells(test)
    found = test.statistics
    return [
        result,
        score,
        numbers.spread(found.standard_deviation if found else None),
        numbers.extent(found.min, found.max, numbers.score) if found else numbers.NONE,
        rate,
        numbers.percent(highlights.pass_hat_k(test).get(most)),
        *rest,
    ]


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
    return table(["trial", "ended", "score", "verdicts", "exchanges", "time"], rows)


def _group_sections(suite: SuiteResult) -> tuple[str, ...]:
    groups = (
        ("By category", "category", suite.categories),
        ("By AUI Logic", "AUI logic", suite.aui_logic),
        ("By tag", "tag", suite.tags),
        ("By difficulty", "difficulty", suite.difficulties),
    )
    return tuple(
        section("group", title=title, table=_group_table(header, found))
        for title, header, found in groups
        if found
    )


def _group_table(header: str, groups: Iterable[Group]) -> str:
    rows = [
        [
            sanitize.cell(group.name),
            numbers.score(group.score),
            numbers.interval(group.interval) if group.interval else "",
            str(group.tests),
            str(group.passed),
            str(group.failed),
            str(group.undecided),
        ]
        for group in groups
    ]
    return table([header, "score", "95 %", "tests", "passed", "failed", "undecided"], rows)


def _folded_suite(suite: SuiteResult, *, many: bool) -> str:
    return section(
        "folded_suite",
        title=f"All tests of {suite.name}" if many else "All tests",
        tests=_test_table(suite),
        groups=_group_sections(suite),
    )


def _failed_tests(failed: Sequence[tuple[SuiteResult, TestResult]], *, with_suite: bool) -> tuple[str, ...]:
    return tuple(
        section(
            "failed_test", first=place == 0, count=len(failed), suite=suite if with_suite else None, test=test
        )
        for place, (suite, test) in enumerate(failed)
    )


def _flaky(results: Results) -> Section | None:
    found = [(suite, test) for suite in results.suites for test in suite.tests if test.flaky]
    text = section("flaky", tests=found, many=len(results.suites) > 1) if found else ""
    return Section("the flaky tests", text)


def _troubles(suites: Sequence[SuiteResult]) -> Section | None:
    found = highlights.troubles(suites)
    return Section("errors and undecided", section("troubles", troubles=found)) if found else None


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
        detail = sanitize.inline(exchange.error_detail or "no detail", REASON_LIMIT)
        out.append(f"**error response**: {detail}")
    return tuple(out) or ("nothing: no workflow, parameter, rule or integration",)


def _json(value: JsonValue, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _facts(user_info: Mapping[str, JsonValue]) -> str:
    return _json(dict(user_info), indent=2)
