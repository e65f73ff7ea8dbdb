"""Results as CTRF (Common Test Report Format, ctrf.io): one test per test.

Failed is `failed`; an error, undecided or never begun is `other`; in quarantine, taken from an earlier run or
skipped on purpose is `skipped`. A run without a verdict has a failed test of its own, and so has one that
failed if no other test did: whoever counts failures must not take it for a pass. `retries` are trials that
were rerun after an error, not the trials of a test.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Outcome
from ci_evals.reports import case_texts, ctrf_form
from ci_evals.reports.case_texts import Ending
from ci_evals.reports.ctrf_form import Head, Status
from ci_evals.reports.names import PAGE
from ci_evals.reports.story import phrases, test_words
from ci_evals.reports.story.story import Story
from ci_evals.support.json_text import JsonObject

_NO_TESTS = '"tests": []'
_PAGE = {"name": "Conversations", "contentType": "text/html", "path": PAGE}


_STATUSES = {
    Ending.PASSED: Status.PASSED,
    Ending.FAILED: Status.FAILED,
    Ending.ERROR: Status.OTHER,
    Ending.OPEN: Status.OTHER,
    Ending.SKIPPED: Status.SKIPPED,
}


def render(story: Story) -> Iterator[str]:
    """Yield the whole file, a test at a time."""
    rows = [row for suite in story.suites for row in suite.tests]
    statuses = [_STATUSES[case_texts.ending_of(row, story)] for row in rows]
    no_verdict = story.run.gate.exit_code == Exit.INVALID
    own = case_texts.run_failure(story, shown=Status.FAILED in statuses and not no_verdict)
    if own:
        statuses.append(Status.FAILED)
    flaky = sum(row.test.flaky for row in rows)
    run = story.run
    of_run = Head(run.info, run.tool, run.gate, run.score, len(story.suites), run.baseline)
    document = json.dumps(ctrf_form.document(of_run, statuses, flaky), indent=2, ensure_ascii=False)
    head, _, tail = document.partition(_NO_TESTS)
    yield f'{head}"tests": ['
    separator = "\n"
    for test in _tests(story):
        yield f"{separator}{_json(test)}"
        separator = ",\n"
    if own:
        yield f"{separator}{_json(ctrf_form.run_failure(*own))}"
    yield f"\n    ]{tail}\n"


def _json(test: Mapping[str, Any]) -> str:
    return "      " + json.dumps(test, ensure_ascii=False)


def _tests(story: Story) -> Iterator[JsonObject]:
    names = case_texts.class_names([row.suite for row in story.suites])
    for suite_row, name in zip(story.suites, names, strict=True):
        suite = suite_row.suite
        for row in suite_row.tests:
            test, shown = row.test, case_texts.case_of(row, story)
            messages = {"message": shown.message, "trace": shown.text}
            yield {
                "name": case_texts.name_line(test.name),
                "status": _STATUSES[shown.ending].value,
                "duration": ctrf_form.milliseconds(sum(trial.duration_seconds for trial in test.trials)),
                "suite": [name],
                **{key: text for key, text in messages.items() if text},
                **_place(suite, test),
                "rawStatus": test.outcome.value,
                "type": "eval",
                "tags": [case_texts.name_line(tag) for tag in test.tags],
                **_retries(test),
                "flaky": test.flaky,
                "attachments": [_PAGE],
                "steps": [_step(trial) for trial in test.trials],
                "extra": {"score": test.score, "passRate": test.pass_rate, "critical": test.critical},
            }


def _place(suite: SuiteResult, test: TestResult) -> JsonObject:
    file = test_words.file_of(suite)
    return {"filePath": case_texts.name_line(file), "line": test.line} if file else {}


def _retries(test: TestResult) -> JsonObject:
    """Return the attempts at trials that were rerun: each ended with an error and decided nothing."""
    attempts = [(trial, attempt) for trial in test.trials for attempt in trial.attempts[:-1]]
    if not attempts:
        return {"retries": 0}
    earlier = [
        {
            "attempt": number,
            "status": Status.OTHER.value,
            "message": case_texts.message_line(attempt.error or phrases.spaced(attempt.status)),
            "extra": {"trial": trial.index},
        }
        for number, (trial, attempt) in enumerate(attempts, 1)
    ]
    return {"retries": len(earlier), "retryAttempts": earlier}


def _step(trial: TrialResult) -> JsonObject:
    outcomes = {finding.outcome for finding in trial.findings}
    if not trial.counts:
        status = Status.OTHER
    elif Outcome.FAILED in outcomes:
        status = Status.FAILED
    elif trial.scored and outcomes == {Outcome.PASSED}:
        status = Status.PASSED
    else:
        status = Status.OTHER
    name = f"Trial {trial.index}: {phrases.spaced(trial.status)}"
    return {"name": name, "status": status.value, "extra": {"score": trial.score}}
