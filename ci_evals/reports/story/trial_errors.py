"""The errors of trials, each cause once; not yet sanitized."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ci_evals.domain import numbers
from ci_evals.domain.results.simulated_user import Violation
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState, FailureCause
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.reports.story.labels import AT_FAULT, CAUSES, ERRORS, spaced

_Tests = list[tuple[SuiteResult, TestResult]]
_Error = tuple[EndState, FailureCause | None, str]
_Undecided = tuple[Cause | None, str]


@dataclass(frozen=True)
class TrialErrors:
    """Errors of trials, or undecided criteria, with one cause."""

    what: str
    """`24 trials failed`, `2 criteria undecided`."""
    reason: str
    outcome: TestOutcome
    """The outcome of an affected test, if nothing worse happens to it."""
    affected: tuple[tuple[SuiteResult, TestResult], ...]
    """In the order of the run."""
    number: int = 0
    """Of its `noun`."""
    noun: str = "trial"
    """`trial` or `criterion`."""
    at_fault: str = ""
    """Where to look first; empty if that is not known."""

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of the affected tests."""
        return tuple(test.name for _, test in self.affected)


def by_cause(suites: Sequence[SuiteResult]) -> tuple[TrialErrors, ...]:
    """Errors and undecided criteria, each cause once; a missing judge is a note of its own."""
    errors: dict[_Error, _Tests] = {}
    tries: dict[_Error, list[int]] = {}
    undecided: dict[_Undecided, _Tests] = {}
    for suite in suites:
        for test in suite.tests:
            own_errors, own_undecided = _of_test(test)
            for error, number in own_errors:
                errors.setdefault(error, []).append((suite, test))
                tries.setdefault(error, []).append(number)
            for verdict in own_undecided:
                undecided.setdefault(verdict, []).append((suite, test))
    return (
        *(
            replace(
                _grouped(tests, "trial", _after(ERRORS[status], own_tries), reason, TestOutcome.ERROR),
                at_fault=AT_FAULT.get(cause or status, ""),
            )
            for ((status, cause, reason), tests), own_tries in zip(
                errors.items(), tries.values(), strict=True
            )
        ),
        *(
            replace(
                _grouped(
                    tests, "criterion", "undecided", _why_undecided(cause, reason), TestOutcome.UNDECIDED
                ),
                at_fault=AT_FAULT.get(cause, "") if cause else "",
            )
            for (cause, reason), tests in undecided.items()
        ),
        *_not_run([(suite, test) for suite in suites for test in suite.tests if test.not_run]),
    )


def _of_test(test: TestResult) -> tuple[list[tuple[_Error, int]], list[_Undecided]]:
    """Each error with the number of its tries, and each undecided verdict."""
    errors = [
        # An invalid user was retried as often as it could be: what is said of it implies that.
        (
            (trial.status, trial.cause, _shared_reason(trial)),
            1 if trial.status is EndState.INVALID_USER else max(1, len(trial.attempts)),
        )
        for trial in test.trials
        if trial.status is EndState.INVALID_USER or not trial.counts
    ]
    undecided: list[_Undecided] = [
        (finding.cause, finding.reason)
        for trial in test.trials
        # No verdict could be reached on a trial that was cut off: one line says so for all of them.
        for finding in (trial.findings if trial.complete else ())
        if finding.outcome is Outcome.UNDECIDED and not finding.fails and finding.cause is not Cause.NO_JUDGE
    ]
    return errors, undecided


def _after(what: str, tries: Sequence[int]) -> str:
    """What became of trials, and after how many tries if they were retried: `errored after 2 tries each`."""
    least, most = min(tries), max(tries)
    if most == 1:
        return what
    return f"{what} after {numbers.extent(least, most, str)} tries{' each' if len(tries) > 1 else ''}"


def _why_undecided(cause: Cause | None, reason: str) -> str:
    # A judge's error says by itself that there was no usable answer.
    if cause is None or (cause is Cause.JUDGE_ERROR and reason):
        return reason
    return f"{CAUSES[cause]}: {reason}"


def _not_run(tests: _Tests) -> Iterator[TrialErrors]:
    if tests:
        trials = numbers.count(sum(test.not_run for _, test in tests), "trial")
        yield TrialErrors(f"{trials} not run", "the run ended before", TestOutcome.NOT_RUN, tuple(tests))


def _grouped(tests: _Tests, noun: str, what: str, reason: str, outcome: TestOutcome) -> TrialErrors:
    affected = tuple({id(test): (suite, test) for suite, test in tests}.values())
    what = f"{_count(len(tests), noun)} {what}"
    return TrialErrors(what, reason, outcome, affected, len(tests), noun)


def _count(number: int, noun: str) -> str:
    return numbers.count(number, noun, "criteria" if noun == "criterion" else None)


def at_fault(suites: Sequence[SuiteResult]) -> str:
    """The likely culprits, each with the number of its trials or criteria; empty if none is known."""
    found: dict[str, Counter[str]] = {}
    for errors in by_cause(suites):
        if errors.at_fault:
            found.setdefault(errors.at_fault, Counter())[errors.noun] += errors.number
    return "; ".join(
        f"{what} ({' and '.join(_count(number, noun) for noun, number in many.items())})"
        for what, many in found.items()
    )


def reason(trial: TrialResult) -> str | None:
    """Return why a trial failed, or what the agent said of its error; None if nothing is known."""
    if trial.error or trial.status not in ERRORS:
        return trial.error
    if trial.status is EndState.INVALID_USER:
        found = trial.user_audit.violations if trial.user_audit else ()
        return "; ".join(f"{violation(one, trial)}: {one.reason}" for one in found) or None
    details = [turn.error_detail for turn in trial.turns.without_traces() if turn.error_detail]
    return details[-1] if details else None


def _shared_reason(trial: TrialResult) -> str:
    """The reason in words that trials share: of invalid users the broken rules."""
    if trial.status is EndState.INVALID_USER and trial.user_audit and trial.user_audit.violations:
        return ", ".join(dict.fromkeys(spaced(one.rule) for one in trial.user_audit.violations))
    return reason(trial) or "it gave no reason"


def violation(broken: Violation, trial: TrialResult) -> str:
    """The rule that a simulated user broke, and where: `repeats in turn 3`."""
    where = "on leaving" if broken.turn > len(trial.turns) else f"in turn {broken.turn}"
    return f"{spaced(broken.rule)} {where}"
