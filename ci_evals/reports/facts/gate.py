"""The gate's checks in words: what each asks and what it found. Not yet sanitized."""

from collections import defaultdict
from collections.abc import Sequence
from typing import assert_never

from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import CheckKind, CheckNature, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.gate.checks import IF_UNDECIDED_FAILED, GateInput
from ci_evals.gate.selectors import Selector, SelectorKind

_KINDS = {kind: f"the {kind}" for kind in SelectorKind} | {SelectorKind.LOGIC: "the AUI Logic"}
_ERRORED = {
    CheckKind.MAX_ERRORS: "errored or could not be judged",
    CheckKind.MAX_INVALID_USERS: "excluded, since the simulated user broke character twice",
}
_HOW_TO_GET_ONE = " Name one with --baseline=PATH; in CI each run on the default branch leaves one."
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
        unseen = nothing_scored and check.seen is None and check.kind.nature is CheckNature.FLOOR
        if check.passed is False and (unseen or (check.kind is CheckKind.CRITICAL and open_yet)):
            return check.model_copy(update={"passed": None})
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
    return tuple(
        f"{_listed(checks)} not checked: {why}.{_HOW_TO_GET_ONE if why == GateInput.unpaired else ''}"
        for why, checks in by_reason.items()
    )


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


def in_words(check: GateCheck) -> str:  # noqa: PLR0911  # one case for each kind
    """The reason why a check failed, in a clause for somebody who does not know its name."""
    if check.kind is CheckKind.CRITICAL:
        return f"the critical test {_test(check)} failed"
    if (check.seen is None and not _fails_unscored(check)) or check.required is None:
        return f"{check.name}: {check.note or 'nothing was seen'}"
    value, limit = _value(check), required(check)
    match check.kind:
        case CheckKind.MAX_DROP:
            return f"the score{_of(check)} fell by {value}, {limit} allowed"
        case CheckKind.REGRESSION if is_chance(check):
            return f"the score fell by more than chance explains{_of_undecided(check)}"
        case CheckKind.REGRESSION:
            return f"{numbers.count(int(check.seen or 0), 'test')} passed in the baseline and no longer"
        case CheckKind.MAX_ERRORS | CheckKind.MAX_INVALID_USERS as kind:
            return f"{numbers.count(int(check.seen or 0), 'trial')} {_ERRORED[kind]}, {limit} allowed"
        case CheckKind.MAX_COST:
            return f"the run cost {value}, {limit} allowed"
        case CheckKind.MAX_P95_LATENCY:
            return f"95 % of the replies took up to {value}, {limit} allowed"
        case CheckKind.MIN_SCORE | CheckKind.THRESHOLD | CheckKind.FAIL_FAST:
            return f"the score{_of(check)} is {value}, {limit} required"
        case _:
            assert_never(check.kind)


def _value(check: GateCheck) -> str:
    """The value that decides a check, without its interval."""
    return seen(check.model_copy(update={"interval": None}))


def _of_undecided(check: GateCheck) -> str:
    """A remark if the score that is shown did not fall."""
    return f" {IF_UNDECIDED_FAILED}" if IF_UNDECIDED_FAILED in (check.note or "") else ""


def near_threshold(check: GateCheck) -> str:
    """The reason why a check is near its threshold."""
    if is_chance(check):
        return f"regression: chance alone shows such a drop with {numbers.p_value(check.seen)}"
    low, high = (check.interval.low, check.interval.high) if check.interval else (0, 100)
    return f"{check.name}: {check.required:g} lies within {low:.1f} to {high:.1f}"


def _of(check: GateCheck) -> str:
    """The part of the run that a check is about, in words; empty for the whole run."""
    if check.test is not None:
        return f" of the test {_test(check)}"
    if check.suite is not None:
        return f" of the suite “{check.suite}”"
    if selector := Selector.read(check.selector or ""):
        return f" of {_KINDS[selector.kind]} “{selector.name}”"
    return ""


def _test(check: GateCheck) -> str:
    return f"“{check.test}”" + (f" of the suite “{check.suite}”" if check.suite else "")


def required(check: GateCheck) -> str:
    """The requirement of a check, in words and its own unit."""
    if check.required is None:
        return ""
    if check.kind is CheckKind.CRITICAL:
        return "all trials pass"
    if is_chance(check):
        return f"no significant drop (p above {numbers.plain(check.required)})"
    match check.kind:
        case CheckKind.MAX_COST:
            limit = numbers.budget(check.required, check.required)
        case CheckKind.MAX_P95_LATENCY:
            limit = f"{numbers.plain(check.required)} s"
        case _:
            limit = numbers.plain(check.required)
    return f"{'at most' if _is_limit(check) else 'at least'} {limit}"


def seen(check: GateCheck) -> str:  # noqa: PLR0911  # one line a kind of value
    """The value that a check saw, for a floor with its interval. If undecided ones matter, that decides."""
    if _fails_unscored(check):
        return f"{numbers.score(check.seen_if_undecided_failed, check.required)} {IF_UNDECIDED_FAILED}"
    if check.seen is None:
        return numbers.NONE if check.required is not None else ""
    if is_chance(check):
        return numbers.p_value(check.seen)
    match check.kind:
        case CheckKind.MAX_COST:
            return numbers.budget(check.seen, check.required)
        case CheckKind.MAX_P95_LATENCY:
            return numbers.latency(check.seen, check.required)
    write = numbers.least if _is_limit(check) else numbers.score
    interval = f" ({numbers.interval(check.interval)})" if check.interval and not _is_limit(check) else ""
    if wanting(check):
        return f"{write(check.seen_if_undecided_failed, check.required)}{interval} {IF_UNDECIDED_FAILED}"
    rose = _is_drop(check) and check.seen < 0
    return (
        f"rose by {numbers.score(-check.seen)}" if rose else f"{write(check.seen, check.required)}{interval}"
    )


def is_chance(check: GateCheck) -> bool:
    """Return whether the check compares a p with its limit: `regression`, unless it counts failing tests."""
    return check.kind is CheckKind.REGRESSION and bool(check.required)


def _fails_unscored(check: GateCheck) -> bool:
    """Return whether a floor failed by verdicts that are undecided and count as failed, without any other."""
    no_score = check.seen is None and check.seen_if_undecided_failed is not None
    return no_score and check.passed is False and check.kind.nature is CheckNature.FLOOR


def wanting(check: GateCheck) -> bool:
    """Return whether undecided verdicts make a difference to the check."""
    return check.seen_if_undecided_failed is not None and check.seen_if_undecided_failed != check.seen


def _is_limit(check: GateCheck) -> bool:
    """Return whether the requirement is a maximum; otherwise it is a minimum."""
    return check.kind.nature in {CheckNature.CHANGE, CheckNature.LIMIT}


def _is_drop(check: GateCheck) -> bool:
    return check.kind is CheckKind.MAX_DROP
