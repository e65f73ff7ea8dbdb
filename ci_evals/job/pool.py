"""Earlier attempts at the commit of a run, and what is pooled of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_evals.domain.results.run import PooledRun, Results, UnpooledRun
from ci_evals.domain.results.trial import TrialResult

Place = tuple[int, int, int]
"""The numbers of an arm, from 0, of a suite in it and of a test in that, both from 1."""
PooledTrials = Mapping[Place, tuple[TrialResult, ...]]


def source_of(ci_run: str | None, attempt: int) -> str:
    """Return the place of an attempt on GitHub, as results name it."""
    return f"attempt {attempt} of run {ci_run}"


@dataclass(frozen=True)
class EarlierAttempt:
    """An earlier attempt at the commit of this run."""

    results: Results
    source: str
    """Its place on GitHub: `attempt 1 of run 12345`."""
    ci_run: str
    """The id of its workflow run."""
    attempt: int
    """GitHub's attempt of that."""


@dataclass(frozen=True)
class Reruns:
    """Earlier attempts at the commit of this run, as far as they are known."""

    attempts: tuple[EarlierAttempt, ...] = ()
    """The oldest first."""
    not_pooled: tuple[UnpooledRun, ...] = ()
    """Those whose results were not found or not read."""
    ci_run: str | None = None
    attempt: int | None = None


@dataclass(frozen=True)
class Pool:
    """The trials that a run pools, and the attempts that it does not."""

    reruns: Reruns = Reruns()
    runs: tuple[PooledRun, ...] = ()
    trials: PooledTrials = field(default_factory=dict)
    not_pooled: tuple[UnpooledRun, ...] = ()

    @property
    def drops(self) -> list[bool]:
        """For each earlier attempt that looked for a drop, True if it found one."""
        return [run.drop for run in self.runs if run.drop is not None]

    @property
    def of_other_arms(self) -> bool:
        """True if trials of agents other than the first are pooled."""
        return any(arm and trials for (arm, _, _), trials in self.trials.items())
