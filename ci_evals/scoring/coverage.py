"""Coverage of the agent's logic: the parts that fired, are wanted, or fired in the baseline."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import comb

from ci_evals.domain.actions import LogicKind, LogicPart
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.plan import Plan
from ci_evals.domain.results.process import Coverage, Fired, Reach
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.scoring.comparison.pairing import TestPair

_SELDOM, _SELDOM_WANTED = 0.25, 0.5
"""The odds of a loss by chance, if shown first: 0.25 is two trials of two tests, of one trial each."""


def wanted_parts(plan: Plan, shown: Callable[[str], str] = str) -> frozenset[LogicPart]:
    """The parts that strict criteria of a plan want to fire, named as `shown` shows them in results.

    What must not fire is not wanted: that it never did is as it should be.
    """
    parts = set()
    for planned in plan.suites:
        for test in planned.tests:
            for evaluation in test.evaluations:
                part = evaluation.covers() if isinstance(evaluation, StrictCheck) else None
                if part is not None:
                    kind, name = part
                    parts.add((kind, shown(name)))
    return frozenset(parts)


def wanted_in(*coverages: Coverage) -> frozenset[LogicPart]:
    """The parts that were wanted in these runs."""
    return frozenset((reach.kind, reach.name) for one in coverages for reach in one.logic if reach.wanted)


@dataclass
class _Count:
    """Counts of the parts that fired in some tests."""

    trials: Counter[LogicPart] = field(default_factory=Counter)
    in_reporting: Counter[LogicPart] = field(default_factory=Counter)
    """Those of `trials` that report its kind in every reply."""
    tests: Counter[LogicPart] = field(default_factory=Counter)
    reporting: Counter[LogicKind] = field(default_factory=Counter)
    """Trials that report a kind in every reply."""
    complete: Counter[LogicKind] = field(default_factory=Counter)
    """The complete ones among them: what did not fire there is no matter of an early end."""
    traced: int = 0

    def trials_of(self, kinds: Container[LogicKind]) -> dict[LogicPart, int]:
        """Return the trials in which each part of these kinds fired."""
        return {part: number for part, number in self.trials.items() if part[0] in kinds}

    def add(self, test: TestResult) -> None:
        """Count the trials of a test."""
        if not _is_traced(test):
            return
        parts: set[LogicPart] = set()
        for fired, many, complete in _alike(test.trials):
            self.traced += many
            for kind in LogicKind:
                names = fired.names(kind)
                if names is None:
                    continue
                reports = kind not in fired.in_part
                if reports:
                    self.reporting[kind] += many
                    self.complete[kind] += complete
                for name in names:
                    self.trials[kind, name] += many
                    if reports:
                        self.in_reporting[kind, name] += many
                    parts.add((kind, name))
        self.tests.update(parts)


def _is_traced(test: TestResult) -> bool:
    return any(trial.fired for trial in test.trials)


def _alike(trials: Sequence[TrialResult]) -> Iterator[tuple[Fired, int, int]]:
    """Yield what fired, in how many trials, and in how many complete ones. Similar trials share it."""
    by_id = {id(trial.fired): trial.fired for trial in trials if trial.fired}
    many = Counter(id(trial.fired) for trial in trials)
    complete = Counter(id(trial.fired) for trial in trials if trial.complete)
    return ((fired, many[key], complete[key]) for key, fired in by_id.items())


def coverage_of(suites: Sequence[SuiteResult], parts: frozenset[LogicPart]) -> Coverage:
    """The coverage of a run, by kind and name; `parts` are those that are wanted."""
    count = _Count()
    logic: set[str] = set()
    for suite in suites:
        for test in suite.tests:
            count.add(test)
        logic.update(group.name for group in suite.aui_logic)
    reaches = []
    parts = frozenset(_as_fired(part, count.trials) for part in parts)
    for kind, name in sorted({*count.trials, *parts}, key=_order):
        part = kind, name
        reach = Reach(kind=kind, name=name, trials=None, tests=None, wanted=part in parts or name in logic)
        # What was seen is known, whatever other replies leave out.
        if kind in count.reporting or part in count.trials:
            reach = replace(reach, trials=count.trials[part], tests=count.tests[part])
        reaches.append(reach)
    return Coverage(traced_trials=count.traced, logic=tuple(reaches))


def _as_fired(part: LogicPart, fired: Counter[LogicPart]) -> LogicPart:
    """The part that a check means: a call of a tool may be that of an integration."""
    integration = LogicKind.INTEGRATION, part[1]
    is_call = part[0] is LogicKind.WORKFLOW and part not in fired and integration in fired
    return integration if is_call else part


def of_suite(suite: SuiteResult, whole: Coverage) -> Coverage:
    """The coverage of one suite of a run: of the parts that never fired, `whole` knows no suite."""
    wanted, coverage = wanted_in(whole), coverage_of([suite], frozenset())
    logic = (replace(reach, wanted=(reach.kind, reach.name) in wanted) for reach in coverage.logic)
    return replace(coverage, logic=tuple(logic))


_KINDS = tuple(LogicKind)


def _order(part: LogicPart) -> tuple[int, str]:
    return _KINDS.index(part[0]), part[1]


def compared(coverage: Coverage, pairs: Iterable[TestPair]) -> Coverage:
    """The coverage with what fired in the compared tests on both sides, for each kind by itself.

    A test counts for a kind if both of its sides have a complete trial whose trace reports it.
    """
    head, base = Counter[LogicPart](), Counter[LogicPart]()
    compared_kinds: set[LogicKind] = set()
    chance: dict[LogicPart, float] = {}
    for pair in pairs:
        if not _is_traced(pair.head) and not _is_traced(pair.base):
            continue
        here, there = _Count(), _Count()
        here.add(pair.head)
        there.add(pair.base)
        both = {kind for kind in LogicKind if here.complete[kind] and there.complete[kind]}
        compared_kinds |= both
        for part in there.trials:
            before, now, many = there.reporting[part[0]], here.complete[part[0]], there.in_reporting[part]
            if part[0] in both:
                # Of all ways in which these trials may be the baseline's or this run's.
                chance[part] = chance.get(part, 1.0) * (comb(before, many) / comb(before + now, many))
        head.update(here.trials_of(both))
        base.update(there.trials_of(both))
    of_this_run = {
        (reach.kind, reach.name): reach for reach in coverage.logic if reach.wanted or reach.trials
    }
    reaches = []
    for part in sorted({*of_this_run, *base}, key=_order):
        kind, name = part
        # What the baseline alone knows fired in no trial of this run.
        reach = of_this_run.get(part) or Reach(kind=kind, name=name, trials=0, tests=0, wanted=False)
        if kind in compared_kinds:
            reach = replace(reach, compared_trials=head[part], base_trials=base[part])
        else:
            reach = replace(reach, compared_trials=None, base_trials=None)
        is_lost = base[part] and not head[part]
        reaches.append(replace(reach, by_chance=chance[part] if is_lost else None))
    return replace(coverage, logic=tuple(reaches))


def named(coverage: Coverage) -> tuple[Reach, ...]:
    """The parts that criteria name, as far as traces tell of their kinds."""
    return tuple(reach for reach in coverage.logic if reach.wanted and reach.trials is not None)


def never(coverage: Coverage) -> tuple[Reach, ...]:
    """The parts of `named` that never fired."""
    return tuple(reach for reach in named(coverage) if not reach.trials)


def lost(coverage: Coverage) -> tuple[Reach, ...]:
    """The parts that fired in the baseline, and in the same tests no longer; the most frequent first."""
    gone = (reach for reach in coverage.logic if reach.base_trials and reach.compared_trials == 0)
    return tuple(sorted(gone, key=lambda reach: -(reach.base_trials or 0)))


def plainly_lost(coverage: Coverage) -> tuple[Reach, ...]:
    """The parts of `lost` that chance alone would seldom lose.

    What a criterion wants is included even if it fired in one trial of one test, of as many on both sides.
    """
    return tuple(
        reach
        for reach in lost(coverage)
        if (reach.by_chance or 0) <= (_SELDOM_WANTED if reach.wanted else _SELDOM)
    )


def gained(coverage: Coverage) -> tuple[Reach, ...]:
    """The parts that fire, and in the same tests of the baseline did not; the most frequent first."""
    new = (reach for reach in coverage.logic if reach.compared_trials and reach.base_trials == 0)
    return tuple(sorted(new, key=lambda reach: -(reach.compared_trials or 0)))
