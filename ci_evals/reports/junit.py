"""Results as JUnit XML: one test case per test, its verdicts in the text.

`junit-xml` builds the elements, from sanitized text only. Its own serializer is not used: it drops a failure
without a message, loses line breaks in attributes, and fails on characters that XML cannot hold.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from junit_xml import TestCase, TestSuite
from tabulate import tabulate

from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.reports import case_texts, sanitize
from ci_evals.reports.case_texts import Ending
from ci_evals.reports.story import phrases, properties, test_words, verdict_words
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.tables import SuiteRow, TestRow

_TRANSCRIPT_BYTES = 16_384
_CASES = "cases"
"""The element in whose stead the test cases of a suite are written."""
_CASE = '    <testcase name="'
_COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
"""The number of a suite in which a test case with such an element is counted."""
_AT_ONCE = 500
"""Test cases that are elements at a time."""
_MOST_OUTPUTS = 5_000


_Outputs = dict[tuple[object, ...], str]
"""The trials of tests as text, by what it shows: in a large run most show what others do."""


def render(story: Story) -> Iterator[str]:
    """Yield the whole file, some test cases at a time: the elements of 100,000 take ten times their text.

    Failed is `failure`; an error, undecided or never begun is `error`; skipped on purpose, or undecided
    only for lack of a judge, is `skipped`. A run without a verdict has an error of its own if no test has
    one, and so has one that failed if no test did: whoever counts must not take it for a pass.
    """
    root = ET.Element("testsuites", name="ci-evals")
    outputs: _Outputs = {}
    cases: list[list[str]] = []
    names = case_texts.class_names([row.suite for row in story.suites])
    for row, name in zip(story.suites, names, strict=True):
        whole = TestSuite(name, timestamp=_started(story), properties=_properties(story, row)).build_xml_doc(
            "utf-8"
        )
        parts = (row.tests[start : start + _AT_ONCE] for start in range(0, len(row.tests), _AT_ONCE))
        cases.append([text for tests in parts for text in _cases(whole, tests, story, outputs)])
        whole.set("time", _time([row.suite.tests]))
        ET.SubElement(whole, _CASES)
        root.append(whole)
    has_errors = any(int(suite.get("errors", 0)) for suite in root)
    has_failures = any(int(suite.get("failures", 0)) for suite in root)
    no_verdict = story.run.gate.exit_code == Exit.INVALID
    shown = has_errors or (has_failures and not no_verdict)
    if own := case_texts.run_failure(story, shown=shown):
        root.append(_run_error(*own))
    for total in ("tests", "failures", "errors", "skipped"):
        root.set(total, str(sum(int(suite.get(total, 0)) for suite in root)))
    root.set("time", _time(row.suite.tests for row in story.suites))
    ET.indent(root)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    *heads, tail = ET.tostring(root, encoding="unicode").split(f"    <{_CASES} />\n")
    for head, row, texts in zip(heads, story.suites, cases, strict=True):
        yield head
        for test, text in zip(row.suite.tests, texts, strict=True):
            yield f"{_CASE}{_escaped(test.name)}{text}"
    yield f"{tail}\n"


def _run_error(name: str, message: str) -> ET.Element:
    """Return an error of the run as a whole, for readers that look at test cases alone."""
    case = TestCase(name, "ci-evals")
    case.add_error_info(message)
    element: ET.Element = TestSuite("ci-evals", [case]).build_xml_doc(encoding="utf-8")
    return element


def _cases(whole: ET.Element, rows: Sequence[TestRow], story: Story, outputs: _Outputs) -> Iterator[str]:
    """Yield the text of each test's element after its name; the suite's element counts them."""
    name = whole.get("name", "")
    some = TestSuite(name, [_case(row, name, story, outputs) for row in rows]).build_xml_doc("utf-8")
    for case, row in zip(some, rows, strict=True):
        case.set("time", _time([[row.test]]))  # the library leaves out zeros, which some readers take for NaN
        for count in ("tests", *(_COUNTS[part.tag] for part in case if part.tag in _COUNTS)):
            whole.set(count, str(int(whole.get(count, 0)) + 1))
    ET.indent(some, level=1)
    _, *texts = ET.tostring(some, encoding="unicode").removesuffix("  </testsuite>").split(_CASE)
    for row, text in zip(rows, texts, strict=True):
        yield text.removeprefix(_escaped(row.test.name))


def _escaped(name: str) -> str:
    return escape(case_texts.name_line(name), {'"': "&quot;"})


def _started(story: Story) -> str:
    # Old readers accept no time zone.
    return story.run.info.started_at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def _properties(story: Story, row: SuiteRow) -> dict[str, str]:
    """The facts of a suite and of the run: the format has properties for suites only."""
    base = story.run.baseline.commit if story.run.baseline else None
    facts = {**properties.of_suite(row, base), **story.properties}
    return {case_texts.name_line(name): case_texts.name_line(value) for name, value in facts.items() if value}


def _case(row: TestRow, class_name: str, story: Story, outputs: _Outputs) -> Any:
    test, file, shown = row.test, test_words.file_of(row.suite), case_texts.case_of(row, story)
    case = TestCase(
        case_texts.name_line(test.name),
        classname=class_name,
        file=case_texts.name_line(file) if file else None,
        line=str(test.line) if file else None,
        stdout=_output(test, case_texts.warnings_of(row, story), outputs),
    )
    match shown.ending:
        case Ending.FAILED:
            case.add_failure_info(shown.message, shown.text or shown.message, shown.kind)
        case Ending.ERROR:
            case.add_error_info(shown.message, shown.text or shown.message, shown.kind)
        case Ending.OPEN | Ending.SKIPPED:
            case.add_skipped_info(shown.message, shown.text or None)
    return case


def _output(test: TestResult, warnings: Mapping[str, str], outputs: _Outputs) -> str:
    if any(trial.turns for trial in test.trials):
        return sanitize.xml(_trials(test, warnings))
    shown = [
        (trial.index, id(trial.status), id(trial.findings), numbers.duration(trial.duration_seconds))
        for trial in test.trials
    ]
    key = test.outcome, test.score, test.pass_rate, *shown, *warnings.items()
    if key not in outputs:
        if len(outputs) >= _MOST_OUTPUTS:
            outputs.clear()
        outputs[key] = sanitize.xml(_trials(test, warnings))
    return outputs[key]


def _trials(test: TestResult, warnings: Mapping[str, str]) -> str:
    """Return a table of all trials, their verdicts unless a failure lists them, and the conversations."""
    rows = tuple(
        (
            str(trial.index),
            phrases.spaced(trial.status),
            numbers.score(trial.score),
            verdict_words.tally(trial.findings),
            numbers.duration(trial.duration_seconds),
        )
        for trial in test.trials
    )
    head = f"score {numbers.score(test.score)}, pass rate {numbers.percent(test.pass_rate)}"
    passed = [
        "\n".join(
            [
                f"Trial {trial.index}",
                *(case_texts.verdict_text(finding, warnings) for finding in trial.findings),
            ]
        )
        for trial in (test.trials if test.outcome == "passed" else ())
    ]
    parts = [head, _table(rows) if rows else "", *passed, _conversations(test.trials)]
    return "\n\n".join(part for part in parts if part)


@lru_cache(1_000)
def _table(rows: tuple[tuple[str, ...], ...]) -> str:
    """The table of trials; of thousands of tests most have the same."""
    return tabulate(rows, ["trial", "ended", "score", "verdicts", "time"], disable_numparse=True)


def _conversations(trials: Iterable[TrialResult]) -> str:
    """Return all conversations up to the limit; the rest is not even unpacked."""
    text = ""
    for trial in trials:
        text += ("\n\n" if text else "") + _conversation(trial)
        if len(sanitize.clean(text).encode()) > _TRANSCRIPT_BYTES:
            break
    return sanitize.cut(text, _TRANSCRIPT_BYTES)


def _conversation(trial: TrialResult) -> str:
    lines = [f"Conversation of trial {trial.index}"]
    for agent, number, user in trial.turns.said():
        lines += [f"{number} user: {user}", f"{number} agent: {agent}"]
    return "\n".join(lines)


def _time(tests: Iterable[Iterable[TestResult]]) -> str:
    return f"{sum(trial.duration_seconds for group in tests for test in group for trial in test.trials):.3f}"
