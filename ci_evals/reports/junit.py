"""Results as JUnit XML: one test case per test, its verdicts in the text.

`junit-xml` builds the elements, out of sanitised text only; its own serialiser is not used. That one drops a
failure without a message, loses line breaks in attributes, and fails on characters that XML cannot hold.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC
from typing import Any
from xml.etree import ElementTree as ET

from junit_xml import TestCase, TestSuite
from tabulate import tabulate

from ci_evals.domain.results import Results, SuiteResult, TestResult, TrialResult
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.reports import highlights, numbers, sanitize

_MESSAGE_LIMIT = 500
"""Characters: readers show the message in a list, on one line."""
_REASON_BYTES = 4_096
_TRANSCRIPT_BYTES = 16_384


def render(results: Results) -> str:
    """The whole file.

    Failed is `failure`; an error or undecided is `error`; not run, or undecided for want of a judge alone, is
    `skipped`.
    """
    root = ET.Element("testsuites", name="ci-evals")
    for suite, class_name in zip(results.suites, _class_names(results.suites), strict=True):
        root.append(_suite(results, suite, class_name))
    for total in ("tests", "failures", "errors", "skipped"):
        root.set(total, str(sum(int(suite.get(total, 0)) for suite in root)))
    root.set("time", _time(suite.tests for suite in results.suites))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(results: Results, suite: SuiteResult, class_name: str) -> ET.Element:
    cases = [_case(suite, test, class_name) for test in suite.tests]
    started = results.run.started_at.astimezone(UTC).replace(tzinfo=None)
    # Old readers take no time zone.
    timestamp = started.isoformat(timespec="seconds")
    element: ET.Element = TestSuite(
        class_name, cases, timestamp=timestamp, properties=_properties(suite)
    ).build_xml_doc(encoding="utf-8")
    element.set("time", _time([suite.tests]))
    for test, case in zip(suite.tests, element.findall("testcase"), strict=True):
        # The library leaves a time of zero out, which some readers take for NaN.
        case.set("time", _time([[test]]))
    return element


def _class_names(suites: Iterable[SuiteResult]) -> list[str]:
    """Suites' names; of those with one name, the file is added: readers drop test cases that look alike."""
    suites = list(suites)
    names = Counter(sanitize.one_line(suite.name) for suite in suites)
    out: list[str] = []
    for suite in suites:
        name = sanitize.one_line(suite.name)
        if names[name] > 1:
            name = f"{name} ({sanitize.one_line(suite.file)})"
        number = 2
        unique = name
        while unique in out:
            unique, number = f"{name} ({number})", number + 1
        out.append(unique)
    return [sanitize.xml(name) for name in out]


def _properties(suite: SuiteResult) -> dict[str, str]:
    facts = {
        "score": numbers.score(suite.score),
        "agent": suite.agent_id,
        "adapter": suite.adapter,
        "judge-model": suite.judge_model,
        "user-model": suite.user_model,
    }
    return {name: sanitize.xml(sanitize.one_line(value)) for name, value in facts.items() if value}


def _case(suite: SuiteResult, test: TestResult, class_name: str) -> Any:
    case = TestCase(
        sanitize.xml(sanitize.one_line(test.name)),
        classname=class_name,
        file=sanitize.xml(sanitize.one_line(suite.file)),
        line=str(test.line),
        stdout=sanitize.xml(_trials(test)),
    )
    text = sanitize.xml("\n\n".join(_told(trial, test) for trial in test.trials))
    match test.outcome:
        case "passed":
            pass
        case "failed":
            failed = highlights.failed_criteria(test)
            kind = highlights.kind(failed[0].finding) if failed else "failed"
            case.add_failure_info(
                _message(test), text or _message(test), sanitize.xml(sanitize.one_line(kind))
            )
        case "error":
            case.add_error_info(_message(test), text or _message(test), "error")
        case "undecided" if not highlights.only_judge_missing(test):
            case.add_error_info(_message(test), text or _message(test), "undecided")
        case "undecided" | "not_run":
            case.add_skipped_info(_message(test), text or None)
    return case


def _message(test: TestResult) -> str:
    """One line, never empty: readers and the library drop a failure without one."""
    match test.outcome:
        case "failed":
            failed = [f"{f.finding.criterion}: {f.finding.reason}" for f in highlights.failed_criteria(test)]
            more = f" (and {numbers.count(len(failed) - 1, 'more failed criterion', 'more failed criteria')})"
            line = failed[0] + (more if len(failed) > 1 else "") if failed else "the test failed"
        case "not_run":
            line = "not run"
        case "undecided" if highlights.only_judge_missing(test):
            line = f"no judge ({highlights.tally(f for trial in test.trials for f in trial.findings)})"
        case _:
            ended = [(trial.status.replace("_", " "), highlights.mishap(trial)) for trial in test.trials]
            found = [f"{status}: {why}" for status, why in ended if why]
            found += [
                f"undecided: {finding.criterion}: {finding.reason}"
                for trial in test.trials
                for finding in trial.findings
                if finding.outcome is Outcome.UNDECIDED
            ]
            found += [trial.status.replace("_", " ") for trial in test.trials if not trial.scored]
            line = found[0] if found else "the test could not be decided"
    return sanitize.xml(sanitize.one_line(line, _MESSAGE_LIMIT))


def _told(trial: TrialResult, test: TestResult) -> str:
    """What is to be known of one trial: its verdicts, and the exchanges that failed ones rest on."""
    head = f"Trial {trial.index}: {trial.status.replace('_', ' ')}"
    why = highlights.mishap(trial)
    lines = [head + (f": {sanitize.cut(why, _REASON_BYTES)}" if why else "")]
    lines += [_verdict(finding) for finding in trial.findings]
    failed = [criterion for criterion in highlights.failed_criteria(test) if criterion.trial is trial]
    shown = {exchange.index: exchange for criterion in failed if (exchange := criterion.exchange)}
    for exchange in shown.values():
        said = f"  user: {exchange.user}\n  agent: {exchange.agent}"
        lines += ["", f"Exchange {exchange.index}, which shows it", sanitize.cut(said, _REASON_BYTES)]
    return "\n".join(lines)


def _verdict(finding: Finding) -> str:
    weight = "" if finding.weight == 1 else f", weight {numbers.plain(finding.weight)}"
    reason = sanitize.cut(finding.reason or "no reason was given", _REASON_BYTES)
    return f"{finding.outcome.upper()}  {finding.criterion} ({highlights.kind(finding)}{weight}): {reason}"


def _trials(test: TestResult) -> str:
    """What all trials came to, the verdicts where no failure tells them, and what was said."""
    rows = [
        [
            str(trial.index),
            trial.status.replace("_", " "),
            numbers.score(trial.score),
            highlights.tally(trial.findings),
            numbers.duration(trial.duration_seconds),
        ]
        for trial in test.trials
    ]
    head = f"score {numbers.score(test.score)}, pass rate {numbers.percent(test.pass_rate)}"
    table = (
        tabulate(rows, ["trial", "ended", "score", "verdicts", "time"], disable_numparse=True) if rows else ""
    )
    told = test.trials if test.outcome == "passed" else ()
    verdicts = [f"Trial {trial.index}\n" + "\n".join(map(_verdict, trial.findings)) for trial in told]
    said = "\n\n".join(_conversation(trial) for trial in test.trials)
    parts = [head, table, *verdicts, sanitize.cut(said, _TRANSCRIPT_BYTES)]
    return "\n\n".join(part for part in parts if part)


def _conversation(trial: TrialResult) -> str:
    lines = [f"Conversation of trial {trial.index}"]
    for exchange in trial.exchanges:
        lines += [f"{exchange.index} user: {exchange.user}", f"{exchange.index} agent: {exchange.agent}"]
    return "\n".join(lines)


def _time(tests: Iterable[Iterable[TestResult]]) -> str:
    return f"{sum(trial.duration_seconds for group in tests for test in group for trial in test.trials):.3f}"
