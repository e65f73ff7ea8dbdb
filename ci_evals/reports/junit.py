"""Results as JUnit XML: one test case per test, its verdicts in the text.

`junit-xml` builds the elements, from sanitized text only. Its own serializer is not used: it drops a failure
without a message, loses line breaks in attributes, and fails on characters that XML cannot hold.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from functools import lru_cache
from math import floor
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from junit_xml import TestCase, TestSuite
from tabulate import tabulate

from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.comparison import SuiteComparison
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.reports import case_texts, sanitize
from ci_evals.reports.story import certainty, changes, failures, gate, judging, wording
from ci_evals.reports.story.judging import CriterionWarnings
from ci_evals.reports.story.story import Story

_TRANSCRIPT_BYTES = 16_384
_CASES = "cases"
"""The element in whose stead the test cases of a suite are written."""
_CASE = '    <testcase name="'
_COUNTS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
"""The number of a suite in which a test case with such an element is counted."""
_AT_ONCE = 500
"""Test cases that are elements at a time."""
_MOST_OUTPUTS = 5_000


class _RunNotes(NamedTuple):
    """Notes of the run about its tests."""

    regressed: Mapping[tuple[str, str], str]
    """Notes on tests that newly fail, by suite and name."""
    not_tested: str | None
    """The reason if no test was played."""
    warnings: CriterionWarnings
    outputs: dict[tuple[object, ...], str]
    """The trials of tests as text, by what it shows: in a large run most show what others do."""

    def of(self, suite: SuiteResult, test: TestResult) -> tuple[object, ...]:
        """Return the notes about one test."""
        warnings = self.warnings.of_test(suite.name, test.name)
        return (self.regressed.get((suite.name, test.name)), *warnings.items())


def render(story: Story) -> Iterator[str]:
    """Yield the whole file, some test cases at a time: the elements of 100,000 take ten times their text.

    Failed is `failure`; an error, undecided or never begun is `error`; skipped on purpose, or undecided
    only for lack of a judge, is `skipped`. A run without a verdict has an error of its own if no test has
    one, and so has one that failed if no test did: whoever counts must not take it for a pass.
    """
    results = story.results
    root = ET.Element("testsuites", name="ci-evals")
    compared = changes.of_suites(results)
    regressed, not_tested = case_texts.regressed(results), case_texts.not_tested(story)
    notes = _RunNotes(regressed, not_tested, story.judging.of_criteria, {})
    cases: list[list[str]] = []
    names = case_texts.class_names(results.suites)
    for suite, comparison, name in zip(results.suites, compared, names, strict=True):
        facts = _properties(story, suite, comparison)
        whole = TestSuite(name, timestamp=_started(results), properties=facts).build_xml_doc("utf-8")
        parts = (suite.tests[start : start + _AT_ONCE] for start in range(0, len(suite.tests), _AT_ONCE))
        cases.append([text for tests in parts for text in _cases(whole, suite, tests, notes)])
        whole.set("time", _time([suite.tests]))
        ET.SubElement(whole, _CASES)
        root.append(whole)
    has_errors = any(int(suite.get("errors", 0)) for suite in root)
    is_clean = not has_errors and not any(int(suite.get("failures", 0)) for suite in root)
    hides_no_verdict = results.gate.exit_code == Exit.INVALID and not has_errors
    if results.run.status == "unfinished":
        root.append(_run_error("run unfinished", results.run.stopped_because or ""))
    elif hides_no_verdict or (results.gate.exit_code != Exit.PASSED and is_clean):
        reasons = [story.verdict(), *results.gate.reasons[1:]]
        root.append(_run_error("gate", "; ".join(reasons)))
    for total in ("tests", "failures", "errors", "skipped"):
        root.set(total, str(sum(int(suite.get(total, 0)) for suite in root)))
    root.set("time", _time(suite.tests for suite in results.suites))
    ET.indent(root)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    *heads, tail = ET.tostring(root, encoding="unicode").split(f"    <{_CASES} />\n")
    for head, suite, texts in zip(heads, results.suites, cases, strict=True):
        yield head
        for test, text in zip(suite.tests, texts, strict=True):
            yield f"{_CASE}{_escaped(test.name)}{text}"
    yield f"{tail}\n"


def _run_error(name: str, message: str) -> ET.Element:
    """Return an error of the run as a whole, for readers that look at test cases alone."""
    case = TestCase(name, "ci-evals")
    case.add_error_info(case_texts.message_line(message))
    element: ET.Element = TestSuite("ci-evals", [case]).build_xml_doc(encoding="utf-8")
    return element


def _cases(
    whole: ET.Element, suite: SuiteResult, tests: Sequence[TestResult], notes: _RunNotes
) -> Iterator[str]:
    """Yield the text of each test's element after its name; the suite's element counts them."""
    name = whole.get("name", "")
    cases = [_case(suite, test, name, notes) for test in tests]
    some = TestSuite(name, cases).build_xml_doc("utf-8")
    for case, test in zip(some, tests, strict=True):
        case.set("time", _time([[test]]))  # the library leaves out zeros, which some readers take for NaN
        for count in ("tests", *(_COUNTS[part.tag] for part in case if part.tag in _COUNTS)):
            whole.set(count, str(int(whole.get(count, 0)) + 1))
    ET.indent(some, level=1)
    _, *texts = ET.tostring(some, encoding="unicode").removesuffix("  </testsuite>").split(_CASE)
    for test, text in zip(tests, texts, strict=True):
        yield text.removeprefix(_escaped(test.name))


def _escaped(name: str) -> str:
    return escape(case_texts.name_line(name), {'"': "&quot;"})


def _started(results: Results) -> str:
    # Old readers accept no time zone.
    return results.run.started_at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def _properties(story: Story, suite: SuiteResult, comparison: SuiteComparison | None) -> dict[str, str]:
    most = max(suite.pass_hat_k, default=1)
    facts = {
        "score": numbers.score(suite.score),
        "interval-low": numbers.score(suite.interval.low) if suite.interval else None,
        "interval-high": numbers.score(suite.interval.high) if suite.interval else None,
        f"pass-hat-{most}": f"{floor(100 * suite.pass_hat_k[most] + 1e-9) / 100:g}" if most > 1 else None,
        **(_change(story.results, comparison) if comparison else {}),
        "agent": suite.agent_id,
        "adapter": suite.adapter,
        "judge-model": suite.judge_model,
        "judge-panel": ", ".join(suite.judge_panel),
        "judge-votes": str(suite.judge_votes) if suite.judge_votes > 1 else None,
        "invalid-users": str(suite.counts.invalid_users or ""),
        "user-model": suite.user_model,
        "embedding-model": suite.embedding_model,
        **_of_run(story),
    }
    return {name: case_texts.name_line(value) for name, value in facts.items() if value}


def _change(results: Results, comparison: SuiteComparison) -> dict[str, str | None]:
    delta, interval = comparison.delta, comparison.interval
    if delta is None:
        return {}
    commit = results.comparison.baseline.commit if results.comparison else None
    return {
        "compared-score": numbers.score(comparison.head),
        "baseline-score": numbers.score(comparison.base),
        "delta": numbers.changed_for_programs(comparison.base, comparison.head),
        "delta-low": numbers.signed_for_programs(interval.low) if interval else None,
        "delta-high": numbers.signed_for_programs(interval.high) if interval else None,
        "p": numbers.decimal(comparison.p) if certainty.shows_p(comparison) else None,
        "baseline-commit": commit,
    }


def _of_arm(arm: Arm) -> str:
    """Return the score of another agent of the run, and its change from the first one."""
    if arm.delta is None:
        return f"{numbers.score(arm.score)}, not compared"
    chance = f", {numbers.p_value(arm.p_adjusted)}" if arm.p_adjusted is not None else ""
    return f"{numbers.score(arm.score)}, change {numbers.signed(arm.delta)}{chance}"


def _of_run(story: Story) -> dict[str, str | None]:
    """Return the run's own facts. The format has properties for suites only, so each suite repeats them."""
    results = story.results
    comparison, odds, cost = results.comparison, results.odds, results.usage.cost_usd
    compared = comparison if comparison and comparison.delta is not None else None
    drop = compared.detectable if compared else None
    return {
        "run-score": numbers.score(results.score),
        "run-delta": numbers.changed_for_programs(compared.base, compared.head) if compared else None,
        "run-p": numbers.decimal(compared.p) if compared and certainty.shows_p(compared) else None,
        "run-detectable-drop": numbers.least(drop) if drop is not None else None,
        "run-odds": numbers.decimal(odds.share) if odds else None,
        "run-cost-usd": numbers.plain(round(cost, 6)) if cost is not None else None,
        **{f"arm: {case_texts.name_line(arm.name)}": _of_arm(arm) for arm in changes.other_arms(results)},
        "run-origin": story.notices.origin,
        "run-judge-check": ", ".join(
            f"{check.model} {check.right} of {check.asked}{'' if check.passed else ', not passed'}"
            for check in results.judge_checks
        ),
        "run-passes-on-absence": str(judging.passes_by_grounds(results)[0] or ""),
        "run-judge-cached": story.judging.cached_answers,
        **_agreement(results),
        "gate": story.outcome.value.words,
        "gate-failed": ", ".join(check.name for check in gate.failing(results)),
        "gate-not-checked": " ".join(story.notices.checks_not_made),
    }


def _agreement(results: Results) -> dict[str, str | None]:
    agreement = results.vote_agreement
    if agreement is None:
        return {}
    share, alpha = agreement.whole.share, agreement.whole.alpha
    return {
        "run-vote-agreement": numbers.decimal(share.value) if share else None,
        "run-vote-alpha": numbers.coefficient(alpha.value) if alpha else None,
        "run-votes-disagree": ", ".join(part.name for part in agreement.criteria if part.low),
    }


def _case(suite: SuiteResult, test: TestResult, class_name: str, notes: _RunNotes) -> Any:
    file, warnings = wording.file_of(suite), notes.warnings.of_test(suite.name, test.name)
    case = TestCase(
        case_texts.name_line(test.name),
        classname=class_name,
        file=case_texts.name_line(file) if file else None,
        line=str(test.line) if file else None,
        stdout=_output(test, warnings, notes),
    )
    if notes.not_tested:
        case.add_skipped_info(notes.not_tested)
        return case
    if aside := case_texts.set_aside(test):
        case.add_skipped_info(case_texts.message_line(aside))
        return case
    if test.outcome == "passed":
        if source := wording.taken_from(test):
            case.add_skipped_info(case_texts.message_line(f"passed; {source}"))
        return case
    failed = failures.failed_criteria(test)  # once for a test, as it looks through all trials
    message = case_texts.reason_line(test, failed)
    parts = [wording.taken_from(test), notes.regressed.get((suite.name, test.name))]
    parts += [case_texts.trial_text(test, trial, failed, warnings) for trial in test.trials]
    text = sanitize.xml("\n\n".join(filter(None, parts)))
    match test.outcome:
        case "failed":
            kind = wording.verdict_kind(failed[0].finding) if failed else "failed"
            case.add_failure_info(message, text or message, case_texts.name_line(kind))
        case "error":
            case.add_error_info(message, text or message, "error")
        case "not_run" if test.not_run:
            case.add_error_info(message, text or message, "not run")
        case "undecided" if not wording.only_judge_missing(test):
            case.add_error_info(message, text or message, "undecided")
        case "undecided" | "not_run":
            case.add_skipped_info(message, text or None)
    return case


def _output(test: TestResult, warnings: Mapping[str, str], notes: _RunNotes) -> str:
    if any(trial.turns for trial in test.trials):
        return sanitize.xml(_trials(test, warnings))
    shown = [
        (trial.index, id(trial.status), id(trial.findings), numbers.duration(trial.duration_seconds))
        for trial in test.trials
    ]
    key = test.outcome, test.score, test.pass_rate, *shown, *warnings.items()
    if key not in notes.outputs:
        if len(notes.outputs) >= _MOST_OUTPUTS:
            notes.outputs.clear()
        notes.outputs[key] = sanitize.xml(_trials(test, warnings))
    return notes.outputs[key]


def _trials(test: TestResult, warnings: Mapping[str, str]) -> str:
    """Return a table of all trials, their verdicts unless a failure lists them, and the conversations."""
    rows = tuple(
        (
            str(trial.index),
            wording.spaced(trial.status),
            numbers.score(trial.score),
            wording.tally(trial.findings),
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
