"""From stored runs to pairs of an unchanged agent."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ci_evals.domain.results.run import Results
from ci_evals.extensions.backtest.figures import LeftOutRun
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.earlier_runs import EarlierRuns

_SELECTING = ("test", "tag", "commentKey")
"""Options by which runs of the same suites are other runs."""
_MAIN = ("main", "master")
_TRIED = 20
"""Runs of the branch that a run of a pull request is tried to be compared with."""


@dataclass(frozen=True)
class Compared:
    """A run, with the run before it as its baseline."""

    head: Results
    before: tuple[Results, ...] = ()
    """Runs of the branch before it, oldest first; the last one is the baseline."""
    comparer: RunComparer | None = None
    """None if there is nothing to compare with."""
    _earlier: dict[int, EarlierRuns] = field(default_factory=dict)

    @property
    def base(self) -> Results:
        """The baseline, if there is one."""
        return self.before[-1]

    def earlier_runs(self, history: int) -> EarlierRuns | None:
        """Return the comparison with the newest runs before, if they are enough to decide by."""
        runs = self.before[-history:] if history else ()
        if len(runs) < 2:  # the baseline alone is no history
            return None
        if len(runs) not in self._earlier:
            self._earlier[len(runs)] = EarlierRuns(self.head, runs)
        earlier = self._earlier[len(runs)]
        return earlier if earlier.decide else None

    @property
    def same_commit(self) -> bool:
        """True if both runs are known to be of one commit."""
        commit = self.head.run.git.exact_commit
        return commit is not None and commit == self.base.run.git.exact_commit


@dataclass(frozen=True)
class History:
    """The runs of a folder, sorted."""

    branch: str
    runs: tuple[Results, ...]
    """Runs of the branch, oldest first."""
    pull_requests: tuple[Results, ...]
    left_out: tuple[LeftOutRun, ...]


def compact(results: Results) -> Results:
    """Return the results without conversations and studies: no check of the gate reads them."""
    suites = []
    for suite in results.suites:
        tests = []
        for test in suite.tests:
            trials = tuple(replace(trial, turns=type(trial.turns)()) for trial in test.trials)
            tests.append(replace(test, trials=trials))
        suites.append(replace(suite, tests=tuple(tests)))
    return replace(results, suites=tuple(suites), studies=(), arms=())


def history_of(runs: Iterable[Results], branch: str | None) -> History:
    """Sort runs: those of the branch, by default the one with most runs, and those of pull requests."""
    of_branches, pull_requests, left_out = [], [], []
    for run in runs:
        if why := _unfit(run):
            left_out.append(LeftOutRun(name=run.run.id, why=why))
        elif run.run.git.pull_request is not None:
            pull_requests.append(run)
        else:
            of_branches.append(run)
    branch = branch or _most_frequent(of_branches)
    own = []
    for run in of_branches:
        if run.run.git.branch == branch:
            own.append(run)
        else:
            why = f"of the branch {run.run.git.branch}, not {branch}"
            left_out.append(LeftOutRun(name=run.run.id, why=why))
    return History(branch, tuple(own), tuple(pull_requests), tuple(left_out))


def pairs_of(runs: Sequence[Results]) -> list[Compared]:
    """Return pairs of consecutive comparable runs, each run in one of them at most.

    So no two pairs share a trial, and exact intervals of how many fail hold. Verdicts play no part in who is
    paired with whom. `runs` are of one branch, oldest first.
    """
    lineages: dict[object, list[Results]] = defaultdict(list)
    for run in runs:
        lineages[_lineage(run)].append(run)
    pairs = []
    for lineage in lineages.values():
        waiting: int | None = None
        for place, head in enumerate(lineage):
            comparer = None if waiting is None else RunComparer(head, lineage[waiting])
            if waiting is not None and comparer and _comparable(comparer):
                pairs.append(Compared(head, tuple(lineage[: waiting + 1]), comparer))
                waiting = None
            else:
                waiting = place
    return sorted(pairs, key=lambda pair: pair.head.run.started_at)


def against_branch(run: Results, runs: Sequence[Results]) -> Compared:
    """Return a run of a pull request with the baseline that it had, or else the newest one before it."""
    suites = _suites(run)
    before = [one for one in runs if one.run.started_at < run.run.started_at and _suites(one) == suites]
    recorded = run.comparison.baseline.run_id if run.comparison else None
    places = [place for place, one in enumerate(before) if one.run.id == recorded]
    places += range(len(before) - 1, max(-1, len(before) - 1 - _TRIED), -1)
    for place in places:
        comparer = RunComparer(run, before[place])
        if _comparable(comparer):
            return Compared(run, tuple(before[: place + 1]), comparer)
    return Compared(run)


def _comparable(comparer: RunComparer) -> bool:
    return bool(comparer.pairs) and comparer.overall_change().tests > 0


def _unfit(run: Results) -> str | None:
    """Return why a run is no trial of the gate; None if it is one."""
    from ci_evals.cli.files.stored_runs import unfit  # noqa: PLC0415  # settings import this module

    if why := unfit(run):
        return why
    if run.run.git.branch is None and run.run.git.pull_request is None:
        return "names no branch"
    return None


def _most_frequent(runs: Sequence[Results]) -> str:
    counts = Counter(run.run.git.branch or "" for run in runs)
    if not counts:
        return _MAIN[0]
    return max(counts, key=lambda name: (counts[name], name in _MAIN, name))


def _suites(run: Results) -> tuple[str, ...]:
    return tuple(sorted(suite.name for suite in run.suites))


def _lineage(run: Results) -> object:
    """Return what runs have in common that may follow each other."""
    info = run.run
    selected = tuple(str(info.config.get(name)) for name in _SELECTING)
    return (info.git.repository or "").lower(), info.digests.agents, selected, _suites(run)
