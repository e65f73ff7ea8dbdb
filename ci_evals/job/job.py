"""Everything a run needs besides the parts that play it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from ci_evals.adapters.journal import Journal
from ci_evals.domain.journal import JournalHeader, RunIdentity
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.results.judge import CheckMode
from ci_evals.domain.results.run import Git, Origin, Results, Shard
from ci_evals.job.judge_check import CheckedJudge
from ci_evals.job.limits import Limits
from ci_evals.runner import Options, Participants, ParticipantsFor, SaveTrial
from ci_evals.scoring.gate.policy import Policy
from ci_evals.support.redaction import Redactor

Wrap = Callable[[Trial, Participants], Participants]
"""What stands between a trial and its participants, as a recorder does."""


def _as_it_is(_: Trial, participants: Participants) -> Participants:
    return participants


@dataclass(frozen=True)
class Job:
    """Everything a run needs besides the parts that play it."""

    plan: Plan
    policy: Policy
    options: Options
    redactor: Redactor
    baseline: Results | None = None
    baseline_note: str | None = None
    """Which baseline was found, or why there is none."""
    limits: Limits = field(default_factory=Limits)
    journal: Journal | None = None
    """Where finished trials are kept, and the past of a run that is taken up again."""
    participants_for: ParticipantsFor | None = None
    """Who plays in place of the agents and models that the suites name, as a recording does."""
    wrap: Wrap = _as_it_is
    before_playing: Callable[[JournalHeader, Collection[Trial]], Collection[Trial]] = lambda _, __: ()
    """Is told which run this is and what its journal holds, before anything is played. Returns what of
    that is to be played again; may refuse the run with a `UsageError`."""
    write_unfinished: Callable[[Results], None] | None = None
    """Takes the results of a run that has not finished, just before the first trial begins; may refuse with
    a `UsageError`."""
    save: tuple[SaveTrial, ...] = ()
    """Who else is given each finished trial, before its progress is told."""
    shard: Shard | None = None
    """Which part of the whole plan this one is."""
    origin: Origin | None = None
    """The run whose conversations these are, where none is held anew."""
    confirm: int = 0
    """Further trials of each test where the first look is close."""
    prices: Callable[[], PriceTable] = lambda: NO_PRICES
    """Read when they are first asked for: the bundled table takes a while."""
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    judge_check: CheckMode = CheckMode.OFF
    """Whether the judges are asked control questions. What a user starts says `auto`."""
    wrap_judges: Callable[[Sequence[CheckedJudge]], Sequence[CheckedJudge]] = tuple
    """Who is asked these questions in place of the judges, or what stands between, as a recording does."""
    after_judge_check: Callable[[], None] = lambda: None
    """Called once they are answered."""
    git: Git = field(default_factory=Git)
    context: RunIdentity = field(default_factory=RunIdentity)
    """The CI run and the commit, which a journal that is resumed must share."""
    ci: str | None = None
    warnings: tuple[str, ...] = ()
