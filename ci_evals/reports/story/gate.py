"""The gate's checks in words: what each asks and what it found. Not yet sanitized."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.gate.checks import is_floor
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.rules import rule_of
from ci_evals.reports.story import advice

_ORDER = {False: 0, None: 1, True: 2}
_NAMED = 2
"""Checks that a sentence names."""


def in_order(results: Results) -> tuple[GateCheck, ...]:
    """The gate's checks as they are shown: first those that failed, then those that were not decided.

    A critical test whose trials broke off, and of which no trial failed, is shown as not decided. So is a
    floor of a run without a verdict in which nothing was scored.
    """
    unfinished = bool(results.gate.reasons) or results.gate.exit_code in {Exit.INTERRUPTED, Exit.BUG}
    nothing_scored = results.score is None and unfinished
    tests = {
        (suite_number, test_number): test
        for suite_number, suite in enumerate(results.suites, 1)
        for test_number, test in enumerate(suite.tests, 1)
    }

    def shown(check: GateCheck) -> GateCheck:
        test = tests.get((check.suite_number or 0, check.test_number or 0))
        open_yet = test is not None and test.outcome is not TestOutcome.FAILED
        unseen = nothing_scored and check.seen is None and is_floor(check)
        if check.passed is False and (unseen or (check.kind is CheckKind.CRITICAL and open_yet)):
            return replace(check, passed=None)
        return check

    return tuple(sorted(map(shown, results.gate.checks), key=lambda check: _ORDER[check.passed]))


def failing(results: Results) -> tuple[GateCheck, ...]:
    """The checks that failed."""
    return tuple(check for check in results.gate.checks if check.passed is False)


def not_made(results: Results) -> tuple[GateCheck, ...]:
    """The checks that were asked for and could not be made."""
    return tuple(check for check in results.gate.checks if check.passed is None)


def warnings(results: Results) -> tuple[str, ...]:
    """A sentence for each reason why checks could not be made, unless the verdict says it already."""
    by_reason: dict[str, list[GateCheck]] = defaultdict(list)
    for check in not_made(results):
        if not check.blocks_verdict:
            by_reason[check.note or "nobody said why"].append(check)
    sentences = []
    for why, checks in by_reason.items():
        cure = f" {advice.NAME_A_BASELINE}" if why == GateInput.no_baseline_reason else ""
        sentences.append(f"{_listed(checks)} not checked: {why}.{cure}")
    return tuple(sentences)


def _listed(checks: Sequence[GateCheck]) -> str:
    names = [check.name for check in checks[:_NAMED]]
    if len(checks) == 1:
        return f"{names[0]} was"
    more = len(checks) - _NAMED
    return f"{', '.join(names)} and {more} more were" if more > 0 else f"{' and '.join(names)} were"


def decision(check: GateCheck) -> str:
    """The outcome of a check in words."""
    match check.passed:
        case True:
            return "passed"
        case False:
            return "failed"
        case None:
            return "not checked" if check.seen is None else "not decided"


def in_words(check: GateCheck) -> str:
    """The reason why a check failed, in a clause for somebody who does not know its name."""
    return rule_of(check).failure(check)


def near_threshold(check: GateCheck) -> str:
    """The reason why a check is near its threshold."""
    return rule_of(check).nearness(check)


def required(check: GateCheck) -> str:
    """The requirement of a check, in words and its own unit."""
    return rule_of(check).required(check)


def seen(check: GateCheck) -> str:
    """The value that a check saw, for a floor with its interval. If undecided ones matter, that decides."""
    return rule_of(check).seen(check)
