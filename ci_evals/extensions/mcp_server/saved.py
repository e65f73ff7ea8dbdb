"""Answers about a finished run: names, verdicts, reasons of strict checks, numbers; words apart from them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turn
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.extensions.mcp_server.words import (
    LEFT_OUT,
    MOST_NAME,
    ReasonFilter,
    Words,
    names_of,
    verdict_words,
)
from ci_evals.planning.selection import Selection, name_matcher
from ci_evals.reports import sanitize

_MOST_TESTS = 50
"""Tests that an answer describes; the others are counted."""
_MOST_TRIALS = 20
_MOST_NAMED = 20
_MOST_CALLS = 50
"""Calls of a turn that an answer lists; the others are counted."""

SuiteTexts = Callable[[SuiteResult, TestResult], frozenset[str]]
"""Returns all texts of a test in its suite; none if the suite cannot be read."""


@dataclass(frozen=True)
class Answer:
    """An answer: facts, and words as untrusted data if they were asked for."""

    facts: dict[str, JsonValue]
    words: JsonValue = None
    words_cut: bool = False


def name(text: str) -> str:
    """Return a name on one line, bounded."""
    return sanitize.one_line(text, MOST_NAME)


def summary(results: Results) -> dict[str, JsonValue]:
    """Return the verdict of a run, its score, its counts and its checks."""
    counts = results.counts
    not_passed = [test for test in results.tests if test.outcome is not TestOutcome.PASSED]
    return {
        **_verdict(results),
        "counts": {
            "tests": counts.tests,
            "passed": counts.passed,
            "failed": counts.failed,
            "undecided": counts.undecided,
            "trials": counts.trials,
            "trialsWithoutVerdict": counts.errors,
            "trialsNotRun": counts.not_run,
        },
        "checks": [
            {
                "name": name(check.name),
                "passed": check.passed,
                "required": check.required,
                "seen": check.seen,
            }
            for check in results.gate.checks
        ],
        "notPassed": [
            {"test": name(test.name), "outcome": test.outcome.value} for test in not_passed[:_MOST_TESTS]
        ],
        "moreNotPassed": max(0, len(not_passed) - _MOST_TESTS),
        "costUsd": results.usage.cost_usd,
        "seconds": round(results.run.duration_seconds, 1),
    }


def failures(results: Results, tests: Sequence[str], texts: SuiteTexts, words: Words | None) -> Answer:
    """Return the tests that did not pass, each with the criteria that did not.

    Raises:
        UsageError: no test has one of these names.
    """
    found = [one for one in _named(results, tests) if one[1].outcome is not TestOutcome.PASSED]
    listed: list[JsonValue] = []
    quoted: list[JsonValue] = []
    for suite, test in found[:_MOST_TESTS]:
        reader = _Reader(suite, test, texts, words)
        trials = [_without_passes(trial) for trial in test.trials if _matters(trial)]
        listed.append({**reader.head(), "trials": [reader.trial(trial) for trial in trials[:_MOST_TRIALS]]})
        quoted += reader.quoted
    facts = {**_verdict(results), "failures": listed, "moreFailures": max(0, len(found) - _MOST_TESTS)}
    return Answer(facts, quoted if words else None)


def explain(results: Results, tests: Sequence[str], texts: SuiteTexts, words: Words | None) -> Answer:
    """Return tests with their trials, turn by turn.

    Raises:
        UsageError: no test has one of these names.
    """
    found = _named(results, tests)
    listed: list[JsonValue] = []
    quoted: list[JsonValue] = []
    for suite, test in found[:_MOST_TESTS]:
        reader = _Reader(suite, test, texts, words)
        trials: list[JsonValue] = []
        for trial in test.trials[:_MOST_TRIALS]:
            turns: list[JsonValue] = [_turn(turn) for turn in trial.turns.without_traces()]
            trials.append({**reader.trial(trial), "turns": turns})
        listed.append({**reader.head(), "trials": trials})
        quoted += reader.quoted
    facts = {**_verdict(results), "tests": listed, "moreTests": max(0, len(found) - _MOST_TESTS)}
    return Answer(facts, quoted if words else None)


def _verdict(results: Results) -> dict[str, JsonValue]:
    """Return the verdict and the score; without a verdict also why there is none."""
    verdicts: dict[int, str] = {Exit.PASSED: "passed", Exit.FAILED: "failed"}
    verdict = verdicts.get(results.gate.exit_code)
    if verdict:
        return {"verdict": verdict, "score": results.score}
    return {"verdict": "no verdict", "score": results.score, "noVerdict": _no_verdict(results)}


def _no_verdict(results: Results) -> dict[str, JsonValue]:
    """Return the reasons, without foreign words, and how often each cause was met."""
    judges = frozenset(check.model for check in results.judge_checks)
    reasons = ReasonFilter(judges, words=verdict_words())
    trials = [trial for test in results.tests for trial in test.trials]
    causes = Counter(trial.cause.value for trial in trials if trial.cause)
    causes.update(finding.cause.value for trial in trials for finding in trial.findings if finding.cause)
    return {
        "reasons": [sanitize.one_line(reasons.without_words(reason)) for reason in results.gate.reasons],
        "causes": {**causes},
    }


def _named(results: Results, names: Sequence[str]) -> list[tuple[SuiteResult, TestResult]]:
    every = [(suite, test) for suite in results.suites for test in suite.tests]
    if not names:
        return every
    known = [test.name for _, test in every]
    wanted = Selection.of(names, None).names
    is_named = name_matcher(wanted, known)
    found = [one for one in every if is_named(one[1].name)]
    if not found:
        listed = "; ".join(map(name, known[:_MOST_NAMED]))
        raise UsageError(f"No test of this run is named {', '.join(map(name, names))}. Its tests: {listed}")
    return found


def _matters(trial: TrialResult) -> bool:
    is_passed = all(finding.outcome is Outcome.PASSED for finding in trial.findings)
    return trial.error is not None or not trial.findings or not is_passed


def _without_passes(trial: TrialResult) -> TrialResult:
    open_findings = tuple(one for one in trial.findings if one.outcome is not Outcome.PASSED)
    return replace(trial, findings=open_findings)


class _Reader:
    """Reads one test; words go to `quoted`."""

    def __init__(self, suite: SuiteResult, test: TestResult, texts: SuiteTexts, words: Words | None) -> None:
        self._suite, self._test, self._words = suite, test, words
        self._texts = texts(suite, test)
        self.quoted: list[JsonValue] = []

    def head(self) -> dict[str, JsonValue]:
        test = self._test
        return {
            "suite": name(self._suite.file),
            "line": test.line,
            "test": name(test.name),
            "outcome": test.outcome.value,
            "score": test.score,
            "critical": test.critical,
            "flaky": test.flaky,
        }

    def trial(self, trial: TrialResult) -> dict[str, JsonValue]:
        """Return the facts of a trial. Its words are kept apart."""
        reasons = ReasonFilter.of(self._texts, trial)
        facts: dict[str, JsonValue] = {
            "trial": trial.index,
            "status": trial.status.value,
            "cause": trial.cause.value if trial.cause else None,
            "criteria": [_finding(finding, reasons) for finding in trial.findings],
        }
        if self._words:
            self.quoted.append(self._words_of(trial, self._words))
        return facts

    def _words_of(self, trial: TrialResult, words: Words) -> JsonValue:
        turns: list[JsonValue] = [
            {"turn": turn.index, "user": words.take(turn.user), "agent": words.take(turn.agent)}
            for turn in trial.turns.without_traces()
        ]
        reasons: list[JsonValue] = [
            {"criterion": name(finding.criterion), "reason": words.take(finding.reason)}
            for finding in trial.findings
        ]
        spoken: dict[str, JsonValue] = {
            "test": name(self._test.name),
            "trial": trial.index,
            "turns": turns,
            "reasons": reasons,
        }
        if trial.error:
            spoken["error"] = words.take(trial.error)
        return spoken


def _finding(finding: Finding, reasons: ReasonFilter) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {
        "criterion": name(finding.criterion),
        "kind": finding.strict or "judged",
        "outcome": finding.outcome.value,
        "turns": [*finding.evidence],
    }
    if finding.cause:
        facts["cause"] = finding.cause.value
    reason = reasons.reason(finding)
    if reason is not None:
        facts["reason"] = reason
    return facts


def _turn(turn: Turn) -> dict[str, JsonValue]:
    facts: dict[str, JsonValue] = {
        "turn": turn.index,
        "seconds": round(turn.latency_seconds, 2),
        "handedOver": turn.handed_over,
        "error": turn.error_response,
    }
    calls = turn.tool_calls
    if calls is not None:
        known = set(names_of(turn))
        facts["tools"] = [
            {"name": call.name if call.name in known else LEFT_OUT, "status": call.status.value}
            for call in calls[:_MOST_CALLS]
        ]
        facts["moreTools"] = max(0, len(calls) - _MOST_CALLS)
    return facts
