"""The job of a run: everything it needs besides the agents and models."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.adapters.journal import Journal
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.journal import JournalHeader, RunIdentity
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.results.run import Git, Origin, Results, Shard
from ci_evals.job.judge_check import CheckedJudge
from ci_evals.job.limits import Limits
from ci_evals.runner import Options, Participants, ParticipantsFor, SaveTrial
from ci_evals.scoring.gate.policy import Policy
from ci_evals.support.redaction import Redactor

Wrap = Callable[[Trial, Participants], Participants]
"""Puts something between a trial and its participants, as a recorder does."""


def _unchanged(_: Trial, participants: Participants) -> Participants:
    return participants


@dataclass(frozen=True)
class Job:
    """Everything a run needs besides its agents and models."""

    plan: Plan
    policy: Policy
    options: Options
    redactor: Redactor
    baseline: Results | None = None
    baseline_note: str | None = None
    """The baseline that was found, or the reason for which there is none."""
    limits: Limits = field(default_factory=Limits)
    journal: Journal | None = None
    """Keeps finished trials, and holds the past of a run that is resumed."""
    participants_for: ParticipantsFor | None = None
    """The participants in place of those that the suites name, as a recording has them."""
    wrap: Wrap = _unchanged
    before_playing: Callable[[JournalHeader, Collection[Trial]], Collection[Trial]] = lambda _, __: ()
    """Called with the run and the trials that its journal holds, before anything is played. Returns those
    of them that are to be played again; may refuse the run with a `UsageError`."""
    write_unfinished: Callable[[Results], None] | None = None
    """Takes the results of a run that has not finished, just before the first trial begins; may refuse with
    a `UsageError`."""
    save: tuple[SaveTrial, ...] = ()
    """Called with each finished trial before the listener hears of it, besides the journal."""
    shard: Shard | None = None
    """The part of the whole plan that this one is."""
    origin: Origin | None = None
    """The run whose conversations these are, if none is played anew."""
    confirm: int = 0
    """Further trials of each test if the results are close."""
    prices: Callable[[], PriceTable] = lambda: NO_PRICES
    """Read when they are first asked for: the bundled table takes a while."""
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    judge_check: CheckMode = CheckMode.OFF
    """The mode of the judge check; commands default to `auto`."""
    wrap_judges: Callable[[Sequence[CheckedJudge]], Sequence[CheckedJudge]] = tuple
    """Replaces or wraps the judges that are asked these questions, as a recording does."""
    after_judge_check: Callable[[], None] = lambda: None
    """Called once the control questions are answered."""
    git: Git = field(default_factory=Git)
    context: RunIdentity = field(default_factory=RunIdentity)
    """The CI run and the commit, which a journal that is resumed must share."""
    ci: str | None = None
    warnings: tuple[str, ...] = ()
