"""The lines of a running plan in a log, one for each trial. `display` has more for a terminal."""

from ci_evals.cli.terminal.console import Console
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.progress import (
    Event,
    Extended,
    Listener,
    RunResumed,
    StillWaiting,
    TrialFinished,
)
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Outcome
from ci_evals.reports import numbers, sanitize


def silent(_: Event) -> None:
    """Show nothing (`--quiet`)."""


def lines(plan: Plan, console: Console) -> Listener:
    """Print one line for each finished trial."""
    total, done = len(plan.trials), 0

    def listen(event: Event) -> None:
        nonlocal done, plan, total
        match event:
            case TrialFinished():
                done += 1
                console.say(f"[{done}/{total}] {line(plan, event, console)}")
            case RunResumed():
                done = event.trials
                console.say(taken_up(event, total))
            case StillWaiting():
                console.say(waiting(event))
            case Extended():
                plan, total = event.plan, len(event.plan.trials)
                console.say(extended(event))

    return listen


def name_of(plan: Plan, trial: Trial, console: Console) -> str:
    """Return the name of a trial: its suite and test, and its number if there are several."""
    suite, test = plan.suites[trial.suite].suite.name, plan.test_of(trial)
    loop = f" #{trial.index}" if plan.loops_of(test) > 1 else ""
    # Secrets go first: what the sanitiser has changed, the redactor would not know.
    return sanitize.log_line(console.redactor.text(f"{suite} › {test.name}{loop}"), 100)


def line(plan: Plan, event: TrialFinished, console: Console) -> str:
    """Return the line for a finished trial."""
    result = event.result
    parts = [
        name_of(plan, event.trial, console),
        f"{numbers.score(result.score if result.scored else None)} ({_summary(result)})",
        f"{numbers.count(len(result.turns), 'turn')}, {numbers.duration(result.duration_seconds)}",
    ]
    return "  ".join(parts + ([sanitize.log_line(result.error, 200)] if result.error else []))


def taken_up(event: RunResumed, total: int) -> str:
    """Return the line for a resumed run."""
    began = event.started_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"going on with the run of {began}: {event.trials} of {numbers.count(total, 'trial')} had finished"


def waiting(event: StillWaiting) -> str:
    """Return the line for a run that waits."""
    return f"waiting {event.seconds:.0f} s for {sanitize.log_line(event.neighbor, 100)}: {event.reason}"


def extended(event: Extended) -> str:
    """Return the line for trials that are added."""
    more = numbers.count(event.plan.more, "more trial")
    return f"the first look is close, so {more} of each test follow: {'; '.join(event.because)}"


def _summary(result: TrialResult) -> str:
    """Describe how a trial ended, and count its verdicts by outcome."""
    counts = {outcome: sum(f.outcome is outcome for f in result.findings) for outcome in Outcome}
    counts_by_outcome = [f"{count} {outcome}" for outcome, count in counts.items() if count]
    if result.status is EndState.INVALID_USER:
        return "left out"  # Its error says why.
    return ", ".join([f"ended {result.status.replace('_', ' ')}", *counts_by_outcome])
