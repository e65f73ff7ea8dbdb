"""The errors of trials, each cause once; not yet sanitized."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ci_evals.domain.results.simulated_user import Violation
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState, FailureCause
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.reports import numbers
from ci_evals.reports.facts.labels import AT_FAULT, CAUSES, ERRORS, spaced

_Tests = list[tuple[SuiteResult, TestResult]]


@dataclass(frozen=True)
class TrialErrors:
    """Errors of trials, or undecided verdicts, with one cause."""

    what: str
    """`24 trials failed`, `2 verdicts undecided`."""
    reason: str
    outcome: TestOutcome
    """The outcome of an affected test, if nothing worse happens to it."""
    affected: tuple[tuple[SuiteResult, TestResult], ...]
    """In the order of the run."""
    number: str = ""
    """`24 trials`, `2 verdicts`."""
    at_fault: str = ""
    """Where to look first; empty if that is not known."""

    @property
    def tests(self) -> tuple[str, ...]:
        """The names of the affected tests."""
        return tuple(test.name for _, test in self.affected)


def by_cause(suites: Sequence[SuiteResult]) -> tuple[TrialErrors, ...]:
    """Errors and undecided verdicts, each cause once; a missing judge is a note of its own."""
    errors: dict[tuple[EndState, FailureCause | None, str], _Tests] = {}
    undecided: dict[tuple[Cause | None, str], _Tests] = {}
    for suite in suites:
        for test in suite.tests:
            for trial in test.trials:
                if trial.status is EndState.INVALID_USER or not trial.counts:
                    error = trial.status, trial.cause, _shared_reason(trial)
                    errors.setdefault(error, []).append((suite, test))
                # No verdict could be reached on a trial that was cut off: one line says so for all of them.
                for finding in trial.findings if trial.complete else ():
                    if finding.outcome is Outcome.UNDECIDED and finding.cause is not Cause.NO_JUDGE:
                        undecided.setdefault((finding.cause, finding.reason), []).append((suite, test))
    return (
        *(
            replace(
                _grouped(tests, "trial", ERRORS[status], reason, TestOutcome.ERROR),
                at_fault=AT_FAULT.get(cause or status, ""),
            )
            for (status, cause, reason), tests in errors.items()
        ),
        *(
            replace(
                _grouped(tests, "verdict", "undecided", _why_undecided(cause, reason), TestOutcome.UNDECIDED),
                at_fault=AT_FAULT.get(cause, "") if cause else "",
            )
            for (cause, reason), tests in undecided.items()
        ),
        *_not_run([(suite, test) for suite in suites for test in suite.tests if test.not_run]),
    )


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
    number = numbers.count(len(tests), noun)
    return TrialErrors(f"{number} {what}", reason, outcome, affected, number)


def at_fault(suites: Sequence[SuiteResult]) -> str:
    """Where to look first for the causes, each with its trials or verdicts; empty if that is not known."""
    found: dict[str, list[str]] = {}
    for errors in by_cause(suites):
        if errors.at_fault:
            found.setdefault(errors.at_fault, []).append(errors.number)
    return "; ".join(f"{what} ({' and '.join(many)})" for what, many in found.items())


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
