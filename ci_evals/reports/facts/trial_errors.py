"""What went wrong in a run, each cause once, however many trials or verdicts it spoilt; not yet sanitised."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_evals.domain.results.simulated_user import Violation
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.reports import numbers

CAUSES = {
    Cause.NO_EVIDENCE: "no trace to decide it on",
    Cause.JUDGE_ERROR: "a model gave no usable answer",
    Cause.VOID_ANSWER: "the judge's answer does not count",
    Cause.NO_JUDGE: "no judge",
    Cause.NO_MODEL: "no embedding model",
    Cause.CANNOT_TELL: "the judge cannot tell",
}
_SPOILT = {
    EndState.AGENT_ERROR: "ended with an error of the agent",
    EndState.FAILED: "failed",
    EndState.INTERRUPTED: "interrupted",
    EndState.INVALID_USER: "left out, since the simulated user broke its role",
}

_Place = tuple[SuiteResult, TestResult]


@dataclass(frozen=True)
class Trouble:
    """One thing that went wrong, however many trials or verdicts it spoilt."""

    what: str
    """`24 trials failed`, `2 verdicts undecided`."""
    why: str
    result: TestOutcome
    """What it makes of a test, where nothing worse happens to that."""
    met: tuple[_Place, ...]
    """The tests that it met, in the order of the run."""

    @property
    def tests(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(test.name for _, test in self.met)


def troubles(suites: Iterable[SuiteResult]) -> tuple[Trouble, ...]:
    """Errors and undecided verdicts, those with one cause told once; a missing judge is a note of its own."""
    spoilt: dict[tuple[EndState, str], list[_Place]] = {}
    undecided: dict[tuple[Cause | None, str], list[_Place]] = {}
    places = [(suite, test) for suite in suites for test in suite.tests]
    not_run = [place for place in places if place[1].not_run]
    for place in places:
        _, test = place
        for trial in test.trials:
            if trial.status is EndState.INVALID_USER or not trial.counts:
                spoilt.setdefault((trial.status, _shared(trial)), []).append(place)
            # Of a trial that was cut off no verdict could be reached: it is told, and not each of them too.
            for finding in trial.findings if trial.complete else ():
                if finding.outcome is Outcome.UNDECIDED and finding.cause is not Cause.NO_JUDGE:
                    undecided.setdefault((finding.cause, finding.reason), []).append(place)
    return tuple(
        [
            _trouble(met, f"{{}} {_SPOILT[status]}", why, TestOutcome.ERROR)
            for (status, why), met in spoilt.items()
        ]
        + [
            _trouble(met, "{} undecided", f"{CAUSES[cause]}: {why}" if cause else why, TestOutcome.UNDECIDED)
            for (cause, why), met in undecided.items()
        ]
        + (
            [
                Trouble(
                    f"{numbers.count(sum(test.not_run for _, test in not_run), 'trial')} not run",
                    "the run ended before",
                    TestOutcome.NOT_RUN,
                    tuple(not_run),
                )
            ]
            if not_run
            else []
        )
    )


def mishap(trial: TrialResult) -> str | None:
    """Why the trial failed, or what the agent said of its error; None where there is nothing to tell."""
    if trial.error or trial.status not in _SPOILT:
        return trial.error
    if trial.status is EndState.INVALID_USER:
        found = trial.user_audit.violations if trial.user_audit else ()
        return "; ".join(f"{violation(one, trial)}: {one.reason}" for one in found) or None
    details = [turn.error_detail for turn in trial.turns.without_traces() if turn.error_detail]
    return details[-1] if details else None


def violation(found: Violation, trial: TrialResult) -> str:
    """Which rule a simulated user broke, and where: `repeats in turn 3`."""
    where = "on leaving" if found.turn > len(trial.turns) else f"in turn {found.turn}"
    return f"{rule(found.rule)} {where}"


def rule(name: str) -> str:
    """A rule of the user checks, as people read it."""
    return name.replace("_", " ")


def _shared(trial: TrialResult) -> str:
    """Why a trial was spoilt, in words that others share: of invalid users the broken rules."""
    if trial.status is EndState.INVALID_USER and trial.user_audit and trial.user_audit.violations:
        return ", ".join(dict.fromkeys(rule(one.rule) for one in trial.user_audit.violations))
    return mishap(trial) or "it gave no reason"


def _trouble(places: Sequence[_Place], what: str, why: str, result: TestOutcome) -> Trouble:
    noun = "verdict" if result is TestOutcome.UNDECIDED else "trial"
    met = {id(test): (suite, test) for suite, test in places}
    return Trouble(what.format(numbers.count(len(places), noun)), why, result, tuple(met.values()))
