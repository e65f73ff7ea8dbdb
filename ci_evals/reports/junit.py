"""Results as JUnit XML: one test case per test, its verdicts in the text.

`junit-xml` builds the elements, out of sanitized text only; its own serialiser is not used. That one drops a
failure without a message, loses line breaks in attributes, and fails on characters that XML cannot hold.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from math import floor
from typing import Any
from xml.etree import ElementTree as ET

from junit_xml import TestCase, TestSuite
from tabulate import tabulate

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.comparison import SuiteComparison
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.reports import numbers, sanitize
from ci_evals.reports.facts import (
    change,
    failed_tests,
    gate,
    highlights,
    judge,
    labels,
    reliability,
    trial_errors,
)
from ci_evals.reports.facts.failed_tests import FailedCriterion
from ci_evals.reports.facts.labels import RunOutcome
from ci_evals.reports.markdown import judged

_GATE = {
    RunOutcome.PASSED: "holds",
    RunOutcome.UNCHECKED: "passed, with checks not made",
    RunOutcome.FAILED: "does not hold",
    RunOutcome.NO_VERDICT: "cannot be trusted",
    RunOutcome.INTERRUPTED: "interrupted",
    RunOutcome.SKIPPED: "not tested",
}
_MESSAGE_LIMIT = 500
"""Characters: readers show the message in a list, on one line."""
_REASON_BYTES = 4_096
_TRANSCRIPT_BYTES = 16_384


@dataclass(frozen=True)
class _Told:
    """What the run has to say of its tests."""

    before: Mapping[tuple[str, str], str]
    """Of those that fail newly, by suite and name."""
    not_tested: str | None
    """Why no test was played."""
    warnings: reliability.CriterionWarnings


def render(results: Results) -> str:
    """The whole file.

    Failed is `failure`; an error or undecided is `error`; not run, or undecided for want of a judge alone, is
    `skipped`. A run that did not pass has an error of its own if no test has any.
    """
    root = ET.Element("testsuites", name="ci-evals")
    changes = change.of_suites(results)
    told = _Told(_passed_before(results), _why_not_tested(results), reliability.CriterionWarnings(results))
    for suite, found, name in zip(results.suites, changes, _class_names(results.suites), strict=True):
        cases = [_case(suite, test, name, told) for test in suite.tests]
        whole = TestSuite(
            name, cases, timestamp=_started(results), properties=_properties(results, suite, found)
        )
        root.append(_timed(whole.build_xml_doc(encoding="utf-8"), suite))
    clean = not any(int(suite.get(bad, 0)) for suite in root for bad in ("failures", "errors"))
    if results.run.status == "unfinished":
        root.append(_of_the_whole("run unfinished", results.run.stopped_because or ""))
    elif results.gate.exit_code != Exit.HOLDS and clean:
        said = highlights.verdict(results)
        root.append(_of_the_whole("gate", "; ".join([said, *results.gate.reasons])))
    for total in ("tests", "failures", "errors", "skipped"):
        root.set(total, str(sum(int(suite.get(total, 0)) for suite in root)))
    root.set("time", _time(suite.tests for suite in results.suites))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _of_the_whole(name: str, message: str) -> ET.Element:
    """An error of the run as a whole, for readers that look at test cases alone."""
    case = TestCase(name, "ci-evals")
    case.add_error_info(sanitize.xml(sanitize.one_line(message, _MESSAGE_LIMIT)))
    element: ET.Element = TestSuite("ci-evals", [case]).build_xml_doc(encoding="utf-8")
    return element


def _timed(element: ET.Element, suite: SuiteResult) -> ET.Element:
    """The suite's element with all times: the library leaves those of zero out, which some take for NaN."""
    element.set("time", _time([suite.tests]))
    for test, case in zip(suite.tests, element.findall("testcase"), strict=True):
        case.set("time", _time([[test]]))
    return element


def _started(results: Results) -> str:
    # Old readers take no time zone.
    return results.run.started_at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")


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


def _properties(results: Results, suite: SuiteResult, found: SuiteComparison | None) -> dict[str, str]:
    most = max(suite.pass_hat_k, default=1)
    facts = {
        "score": numbers.score(suite.score),
        "interval-low": numbers.score(suite.interval.low) if suite.interval else None,
        "interval-high": numbers.score(suite.interval.high) if suite.interval else None,
        f"pass-hat-{most}": f"{floor(100 * suite.pass_hat_k[most] + 1e-9) / 100:g}" if most > 1 else None,
        **(_change(results, found) if found else {}),
        "agent": suite.agent_id,
        "adapter": suite.adapter,
        "judge-model": suite.judge_model,
        "judge-panel": ", ".join(suite.judge_panel),
        "judge-votes": str(suite.judge_votes) if suite.judge_votes > 1 else None,
        "invalid-users": str(suite.counts.invalid_users or ""),
        "user-model": suite.user_model,
        "embedding-model": suite.embedding_model,
        **_of_run(results),
    }
    return {name: sanitize.xml(sanitize.one_line(value)) for name, value in facts.items() if value}


def _change(results: Results, found: SuiteComparison) -> dict[str, str | None]:
    """The suite against the baseline; its scores are those of the compared tests."""
    if found.delta is None:
        return {}
    commit = results.comparison.baseline.commit if results.comparison else None
    return {
        "compared-score": numbers.score(found.head),
        "baseline-score": numbers.score(found.base),
        "delta": numbers.signed(found.delta),
        "delta-low": numbers.signed(found.interval.low) if found.interval else None,
        "delta-high": numbers.signed(found.interval.high) if found.interval else None,
        "p": numbers.decimal(found.p) if change.shows_p(found) else None,
        "baseline-commit": commit,
    }


def _of_run(results: Results) -> dict[str, str | None]:
    """The run's own facts. The format has properties for suites alone, so each suite tells them."""
    found, odds, cost = results.comparison, results.odds, results.usage.cost_usd
    compared = found if found and found.delta is not None else None
    drop = compared.detectable if compared else None
    confirmation = results.run.confirmation
    return {
        "run-score": numbers.score(results.score),
        "run-delta": numbers.signed(compared.delta) if compared else None,
        "run-p": numbers.decimal(compared.p) if compared and change.shows_p(compared) else None,
        "run-detectable-drop": numbers.least(drop) if drop is not None else None,
        "run-odds": numbers.decimal(odds.share) if odds else None,
        "run-cost-usd": numbers.plain(round(cost, 6)) if cost is not None else None,
        "run-confirm-trials": str(confirmation.trials) if confirmation else None,
        "run-origin": highlights.origin(results.run),
        "run-judge-check": ", ".join(
            f"{one.model} {one.right} of {one.asked}{'' if one.passed else ', not passed'}"
            for one in results.judge_checks
        ),
        "run-passes-on-absence": str(judge.passes_by_grounds(results)[0] or ""),
        "run-judge-cached": judge.cached(results),
        **_agreement(results),
        "gate": _GATE[highlights.run_outcome(results)],
        "gate-failed": ", ".join(check.name for check in gate.failing(results)),
        "gate-not-checked": " ".join(gate.warnings(results)),
    }


def _agreement(results: Results) -> dict[str, str | None]:
    """How far the judge's votes agree, and on what they do not."""
    if (found := results.vote_agreement) is None:
        return {}
    share, alpha = found.whole.share, found.whole.alpha
    return {
        "run-vote-agreement": numbers.decimal(share.value) if share else None,
        "run-vote-alpha": numbers.coefficient(alpha.value) if alpha else None,
        "run-votes-disagree": ", ".join(part.name for part in found.criteria if part.low),
    }


def _passed_before(results: Results) -> dict[tuple[str, str], str]:
    """What is to be said of the tests that fail newly, by suite and name."""
    if results.comparison is None:
        return {}
    commit = results.comparison.baseline.commit
    said = f"It passed in the baseline{f' (commit {commit})' if commit else ''}."
    return {(test.suite, test.name): said for test in results.comparison.regressed}


def _why_not_tested(results: Results) -> str | None:
    if highlights.run_outcome(results) is not RunOutcome.SKIPPED:
        return None
    told = [highlights.verdict(results), results.run.stopped_because]
    return sanitize.xml(sanitize.one_line(": ".join(part for part in told if part), _MESSAGE_LIMIT))


def _case(suite: SuiteResult, test: TestResult, class_name: str, run: _Told) -> Any:
    file, warnings = highlights.file_of(suite), run.warnings.of_test(suite.name, test.name)
    case = TestCase(
        sanitize.xml(sanitize.one_line(test.name)),
        classname=class_name,
        file=sanitize.xml(sanitize.one_line(file)) if file else None,
        line=str(test.line) if file else None,
        stdout=sanitize.xml(_trials(test, warnings)),
    )
    if run.not_tested:
        case.add_skipped_info(run.not_tested)
        return case
    if _left_out(test):
        trials = numbers.count(len(test.trials), "trial")
        why = (
            f"{trials} left out: {trial_errors.reason(test.trials[0]) or 'the simulated user broke its role'}"
        )
        case.add_skipped_info(sanitize.xml(sanitize.one_line(why, _MESSAGE_LIMIT)))
        return case
    if test.outcome == "passed":
        return case
    failed = failed_tests.failed_criteria(test)  # looks through all trials: once for a test, not for each
    message = _message(test, failed)
    told = [
        run.before.get((suite.name, test.name)),
        *(_told(trial, failed, warnings) for trial in test.trials),
    ]
    text = sanitize.xml("\n\n".join(text for text in told if text))
    match test.outcome:
        case "failed":
            kind = highlights.kind(failed[0].finding) if failed else "failed"
            case.add_failure_info(message, text or message, sanitize.xml(sanitize.one_line(kind)))
        case "error":
            case.add_error_info(message, text or message, "error")
        case "undecided" if not highlights.only_judge_missing(test):
            case.add_error_info(message, text or message, "undecided")
        case "undecided" | "not_run":
            case.add_skipped_info(message, text or None)
    return case


def _message(test: TestResult, failed: Sequence[FailedCriterion]) -> str:
    """One line, never empty: readers and the library drop a failure without one."""
    match test.outcome:
        case "failed":
            why = [f"{one.finding.criterion}: {one.finding.reason}" for one in failed]
            more = f" (and {numbers.count(len(why) - 1, 'more failed criterion', 'more failed criteria')})"
            line = why[0] + (more if len(why) > 1 else "") if why else "the test failed"
        case "not_run":
            line = "not run"
        case "undecided" if highlights.only_judge_missing(test):
            line = f"no judge ({highlights.tally(f for trial in test.trials for f in trial.findings)})"
        case _:
            ended = [(labels.spaced(trial.status), trial_errors.reason(trial)) for trial in test.trials]
            found = [f"{status}: {why}" for status, why in ended if why]
            found += [
                f"undecided: {finding.criterion}: {finding.reason}"
                for trial in test.trials
                for finding in trial.findings
                if finding.outcome is Outcome.UNDECIDED
            ]
            found += [labels.spaced(trial.status) for trial in test.trials if not trial.scored]
            line = found[0] if found else "the test could not be decided"
    return sanitize.xml(sanitize.one_line(line, _MESSAGE_LIMIT))


def _left_out(test: TestResult) -> bool:
    """Whether the simulated user broke its role in all trials, so that nothing is known of the agent."""
    ended = {trial.status for trial in test.trials}
    return ended == {EndState.INVALID_USER} and not test.not_run


def _told(trial: TrialResult, all_failed: Sequence[FailedCriterion], warnings: Mapping[str, str]) -> str:
    """What is to be known of one trial: its verdicts, and the turns that failed ones rest on."""
    head = f"Trial {trial.index}: {labels.spaced(trial.status)}"
    why = trial_errors.reason(trial)
    lines = [head + (f": {sanitize.cut(why, _REASON_BYTES)}" if why else "")]
    lines += [_verdict(finding, warnings) for finding in trial.findings]
    failed = [criterion for criterion in all_failed if criterion.trial is trial]
    shown = {turn.index: turn for criterion in failed if (turn := criterion.turn)}
    for turn in shown.values():
        said = f"  user: {turn.user}\n  agent: {turn.agent}"
        lines += ["", f"Turn {turn.index}, which shows it", sanitize.cut(said, _REASON_BYTES)]
    return "\n".join(lines)


def _verdict(finding: Finding, warnings: Mapping[str, str]) -> str:
    weight = "" if finding.weight == 1 else f", weight {numbers.plain(finding.weight)}"
    reason = sanitize.cut(finding.reason or "no reason was given", _REASON_BYTES)
    head = f"{finding.outcome.upper()}  {finding.criterion} ({highlights.kind(finding)}{weight}): {reason}"
    behind = judged.lines(finding, warnings.get(finding.criterion))
    return "\n".join([head, *(f"    {sanitize.one_line(line)}" for line in behind)])


def _trials(test: TestResult, warnings: Mapping[str, str]) -> str:
    """What all trials came to, the verdicts where no failure tells them, and what was said."""
    rows = [
        [
            str(trial.index),
            labels.spaced(trial.status),
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
    verdicts = [
        "\n".join([f"Trial {trial.index}", *(_verdict(finding, warnings) for finding in trial.findings)])
        for trial in told
    ]
    parts = [head, table, *verdicts, _conversations(test.trials)]
    return "\n\n".join(part for part in parts if part)


def _conversations(trials: Iterable[TrialResult]) -> str:
    """What was said in all of them, cut where there is no more room; what has none is not even looked at."""
    said = ""
    for trial in trials:
        said += ("\n\n" if said else "") + _conversation(trial)
        if len(sanitize.clean(said).encode()) > _TRANSCRIPT_BYTES:
            break
    return sanitize.cut(said, _TRANSCRIPT_BYTES)


def _conversation(trial: TrialResult) -> str:
    lines = [f"Conversation of trial {trial.index}"]
    for turn in trial.turns.without_traces():
        lines += [f"{turn.index} user: {turn.user}", f"{turn.index} agent: {turn.agent}"]
    return "\n".join(lines)


def _time(tests: Iterable[Iterable[TestResult]]) -> str:
    return f"{sum(trial.duration_seconds for group in tests for test in group for trial in test.trials):.3f}"
