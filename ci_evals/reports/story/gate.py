"""The gate's decision in words: the outcome, each check, and why a run has no verdict. Not yet sanitized."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.comparison import Change
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.judge import JudgeCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.gate.checks import is_floor
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.invalid_run import (
    BaseNotPlayed,
    EarlierUnread,
    Incomplete,
    InvalidRunReason,
    JudgeFailed,
    NotChecked,
    NotCompared,
    NothingScored,
    NotRun,
    Stopped,
    TooManyErrored,
    TooManyExcluded,
    UncountedDecide,
)
from ci_evals.gate.rule import wanting
from ci_evals.gate.rules import rule_of
from ci_evals.reports.story import changes
from ci_evals.reports.story.advice import DECIDE_ANYWAY, NAME_A_BASELINE, OTHER_JUDGE
from ci_evals.reports.story.outcome_labels import RunOutcome

_ORDER = {False: 0, None: 1, True: 2}
_NAMED = 2
"""Checks that a sentence names."""


def run_outcome(results: Results) -> RunOutcome:
    """The verdict on the run."""
    if results.skipped:
        return RunOutcome.SKIPPED
    match results.gate.exit_code, results.gate.passed:
        case Exit.INTERRUPTED, _:
            return RunOutcome.INTERRUPTED
        case Exit.INVALID | Exit.BUG, _:
            return RunOutcome.NO_VERDICT
        case _, True:
            return RunOutcome.UNCHECKED if not_made(results) else RunOutcome.PASSED
        case _:
            return RunOutcome.FAILED


def only_reported(results: Results) -> bool:
    """Return whether the gate failed without failing the run, as the option `no_gate` asks."""
    return run_outcome(results) is RunOutcome.FAILED and results.gate.exit_code == Exit.PASSED


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
        cure = f" {NAME_A_BASELINE}" if why == GateInput.no_baseline_reason else ""
        sentences.append(f"{_checks_not_made(checks)} not checked: {why}.{cure}")
    return tuple(sentences)


def _checks_not_made(checks: Sequence[GateCheck]) -> str:
    names = [check.name for check in checks[:_NAMED]]
    if len(checks) == 1:
        return f"{names[0]} was"
    more = len(checks) - _NAMED
    return f"{', '.join(names)} and {more} more were" if more > 0 else f"{' and '.join(names)} were"


def check_name(check: GateCheck) -> str:
    """The name of a check; `regression` has two meanings, which its option tells apart."""
    if check.kind is not CheckKind.REGRESSION:
        return check.name
    return f"{check.name} ({'significant' if check.required else 'any'})"


def decision(check: GateCheck) -> str:
    """The outcome of a check in words."""
    match check.passed:
        case True:
            return "passed"
        case False:
            return "failed"
        case None:
            return "not checked" if check.seen is None else "not decided"


def failure(check: GateCheck, results: Results) -> str:
    """The reason why a check failed, in a clause for somebody who does not know its name."""
    rule = rule_of(check)
    if drop := _shown_drop(check, results):
        return rule.worded_failure(check, drop, rule.required(check))
    return rule.failure(check)


def _shown_drop(check: GateCheck, results: Results) -> str:
    """The drop that the shown scores differ by; empty if no two scores are shown for the check.

    A drop that reads as allowed in whole points has a decimal.
    """
    if check.kind is not CheckKind.MAX_DROP or check.seen is None or wanting(check):
        return ""
    change = _change_of(check, results)
    if change is None or change.base is None or change.head is None:
        return ""
    drop = -numbers.points_between(change.base, change.head)
    allowed = check.required or 0
    return str(drop) if drop > allowed else numbers.least(check.seen, allowed)


def _change_of(check: GateCheck, results: Results) -> Change | None:
    """The change of the run or suite that a check is about; None if it is about another part."""
    if check.test is not None:
        return None
    if check.suite_number is not None:
        return changes.of_suites(results)[check.suite_number - 1]
    return results.comparison if check.selector is None else None


def near_threshold(check: GateCheck) -> str:
    """The reason why a check is near its threshold."""
    return rule_of(check).nearness(check)


def required(check: GateCheck) -> str:
    """The requirement of a check, in words and its own unit."""
    return rule_of(check).required(check)


def seen(check: GateCheck) -> str:
    """The value that a check saw, for a floor with its interval. If undecided ones matter, that decides."""
    return rule_of(check).seen(check)


def run_floor(results: Results) -> GateCheck | None:
    """The floor of the whole run, if it has one."""
    checks = (check for check in results.gate.checks if check.kind is CheckKind.MIN_SCORE)
    return next((check for check in checks if check.suite is None and check.test is None), None)


def reason_in_words(reason: InvalidRunReason) -> str:  # noqa: C901, PLR0911, PLR0912  # one case for each reason
    """The reason as results and reports have it, without a full stop."""
    match reason:
        case Incomplete(why):
            return why
        case Stopped(why):
            return f"the run stopped early: {why}"
        case NotRun(trials, planned):
            return f"{trials} of {numbers.count(planned, 'trial')} did not run"
        case TooManyErrored(trials, played, broke_off):
            what = "errored" if broke_off else ""
            what += " or " if 0 < broke_off < trials else ""
            what += "could not be judged" if broke_off < trials else ""
            return f"{trials} of {numbers.count(played, 'trial')} {what}"
        case TooManyExcluded(trials, played):
            return (
                f"the simulated user broke character twice in a row in {trials} of "
                f"{numbers.count(played, 'trial')}"
            )
        case JudgeFailed(check):
            return f"the judge failed its check: {why_not_passed(check)}"
        case BaseNotPlayed(errored, not_run, planned, error):
            return _base_not_played(errored, not_run, planned) + (f": {error.rstrip('.')}" if error else "")
        case NothingScored(quarantined):
            return f"nothing could be scored{': all tests are in quarantine' if quarantined else ''}"
        case UncountedDecide(trials):
            return f"{numbers.count(trials, 'trial')} without a result would decide the verdict"
        case NotCompared(why):
            return f"not compared with the required baseline: {why}"
        case NotChecked(check):
            return f"{check.name} was not checked: {check.note}"
        case EarlierUnread(source, why):
            return f"{source} of this commit cannot be read, and may have failed: {why}"
        case _:
            assert_never(reason)


def _base_not_played(errored: int, not_run: int, planned: int) -> str:
    what = "errored or could not be judged" if errored else "did not run"
    lost = errored or not_run
    if not lost:
        return "nothing of the base agent could be scored"
    return f"{lost} of {numbers.count(planned, 'trial')} of the base agent {what}"


def why_not_passed(check: JudgeCheck, *, only_warn: bool = False) -> str:
    """The reason why a judge did not pass its check, and what to do about it.

    Args:
        check: The one that it did not pass.
        only_warn: Whether the run decides by this judge all the same (option `judge_check`: `warn`).
    """
    cure = OTHER_JUDGE if only_warn else f"{OTHER_JUDGE}, or {DECIDE_ANYWAY}"
    return f"{check.model} {check.why or 'did not pass'}. {cure}"
