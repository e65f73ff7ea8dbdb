"""The state of a running plan, and its lines in a log. `display` has more for a terminal."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from math import fsum

from ci_evals.cli.terminal.console import Console, width_of
from ci_evals.domain import numbers
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.progress import (
    Event,
    Extended,
    Listener,
    ModelAnswered,
    RunResumed,
    StillWaiting,
    TrialFinished,
)
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import END_REASONS, EndState
from ci_evals.domain.verdict import Cause, Finding, Outcome
from ci_evals.reports import sanitize
from ci_evals.reports.columns import shortened
from ci_evals.scoring.usage import cost_of

_LEAST_BETWEEN, _SUMMARIES = 10, 10
"""The trials between two summaries in a log, at least, and about how many summaries a run has."""
_PLAIN_ENDINGS = {EndState.COMPLETED, EndState.STOPPED, EndState.ESCALATED}
"""Ways to end that need no word."""
_ENDINGS = {EndState.AGENT_ERROR: END_REASONS[EndState.AGENT_ERROR]}
"""Ways to end in words, where one is not enough."""
_NOT_JUDGED = "not judged"
_WORDS = (*map(str, Outcome), _NOT_JUDGED)
_LEAST_NAME = 20
"""Columns of a name, if the terminal is wide enough for them."""

Prices = Callable[[], PriceTable]


def silent(_: Event) -> None:
    """Show nothing (`--quiet`)."""


class Tally:
    """Finished trials, the score and cost so far, and the time that is left."""

    def __init__(self, plan: Plan, prices: Prices, clock: Callable[[], float] = time.monotonic) -> None:
        self.plan, self.done, self.total = plan, 0, len(plan.trials)
        self._prices, self._clock, self._began = prices, clock, clock()
        self._played, self._cost = 0, 0.0
        self._scores: dict[tuple[int, int], list[float]] = defaultdict(list)

    def hear(self, event: Event) -> None:
        """Take an event into account."""
        match event:
            case RunResumed():
                self.done = event.trials
            case Extended():
                self.plan, self.total = event.plan, len(event.plan.trials)
            case ModelAnswered(_, usage):
                self._cost += cost_of(usage, self._prices()) or 0.0
            case TrialFinished(trial, result):
                self.done += 1
                self._played += 1
                tested = self.plan.arm_of(trial.suite) == 0
                if tested and result.scored and result.score is not None:
                    self._scores[trial.suite, trial.test].append(result.score)

    @property
    def progress(self) -> str:
        """`12 of 24 trials`."""
        return f"{self.done:,} of {numbers.count(self.total, 'trial')}"

    @property
    def summary(self) -> str:
        """`score 93 so far, $0.12, about 2 m left`, as far as it is known."""
        of_tests = [fsum(scores) / len(scores) for scores in self._scores.values()]
        parts = [f"score {numbers.points(fsum(of_tests) / len(of_tests))} so far"] if of_tests else []
        if self._cost:
            parts.append(numbers.money(self._cost))
        if self._played and self.done < self.total:
            left = (self._clock() - self._began) / self._played * (self.total - self.done)
            parts.append(f"about {numbers.about(left)} left")
        return ", ".join(parts)


def lines(plan: Plan, console: Console, prices: Prices) -> Listener:
    """Print a line for each finished trial, and now and then how far the run is."""
    tally = Tally(plan, prices)

    def listen(event: Event) -> None:
        tally.hear(event)
        if isinstance(event, TrialFinished):
            console.say(f"[{tally.done}/{tally.total}] {line(tally.plan, event, console)}")
            if tally.done % max(_LEAST_BETWEEN, tally.total // _SUMMARIES) == 0:
                console.say(f"{tally.progress}, {tally.summary}")
        elif notice := notice_of(event, tally.total):
            console.say(notice)

    return listen


def name_of(plan: Plan, trial: Trial, console: Console, width: int | None = None) -> str:
    """Return the name of a trial: its suite and test, and its number if there are several.

    Suite and test give way if it has more columns than `width`; the number stays.
    """
    suite, test = plan.suites[trial.suite].suite.name, plan.test_of(trial)
    loop = f" #{trial.index}" if plan.loops_of(test) > 1 else ""
    arm = plan.arm_of(trial.suite)
    agent = f"{plan.arms[arm]}: " if arm else ""
    # Secrets go first: what the sanitizer has changed, the redactor would not know.
    name = sanitize.log_line(console.redactor.text(f"{agent}{suite} › {test.name}"), 100)
    return (shortened(name, max(_LEAST_NAME, width - len(loop))) if width is not None else name) + loop


def line(plan: Plan, event: TrialFinished, console: Console) -> str:
    """Return the line for a finished trial."""
    result = event.result
    score = numbers.score(result.score) if result.scored else "not scored"
    turns = numbers.count(len(result.turns), "turn")
    rest = f"  {score} ({_summary(result)})  {turns}, {numbers.duration(result.duration_seconds)}"
    width = width_of(console.stream)
    name = name_of(plan, event.trial, console, width - len(rest) if width else None)
    return name + rest + (f"  {sanitize.log_line(result.error, 200)}" if result.error else "")


def notice_of(event: Event, total: int) -> str | None:
    """Return the line for a run that resumes, waits or is extended; None for other events."""
    match event:
        case RunResumed(trials, started_at):
            began = started_at.strftime("%Y-%m-%d %H:%M:%S UTC")
            return f"resuming the run of {began}: {trials} of {numbers.count(total, 'trial')} had finished"
        case StillWaiting(neighbor, seconds, reason):
            return f"waiting for {sanitize.log_line(neighbor, 100)} for {seconds:.0f} s: {reason}"
        case Extended(plan, because) if because:
            both_sides = len(plan.arms) > 1 and not plan.first_arm_only
            agents = "continuing with the base agent" if both_sides else "continuing"
            if both_sides and not plan.looks:
                agents = "the base agent is played too"
            each = f"up to {numbers.count(plan.loops, 'trial')} of each test"
            return f"{agents}, {each}: {'; '.join(because)}"
    return None


def _summary(result: TrialResult) -> str:
    """Describe how a trial ended, and count its verdicts by outcome."""
    if result.status is EndState.INVALID_USER:
        return "excluded"  # Its error says why.
    counts = Counter(_word(finding) for finding in result.findings)
    ending = [] if result.status in _PLAIN_ENDINGS else [_ENDINGS.get(result.status, result.status)]
    return ", ".join(ending + [f"{counts[word]} {word}" for word in _WORDS if counts[word]]) or "no checks"


def _word(finding: Finding) -> str:
    """As in the table at the end: a missing judge leaves nothing undecided that it was asked."""
    return _NOT_JUDGED if finding.cause is Cause.NO_JUDGE else str(finding.outcome)
