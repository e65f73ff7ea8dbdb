"""Coverage of the agent's logic: the parts that fired, are wanted, or fired in the baseline."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import comb

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.evaluation import (
    Criterion,
    IntegrationCalled,
    ParamEquals,
    ParamExists,
    RuleTriggered,
    ToolUsed,
)
from ci_evals.domain.plan import Plan
from ci_evals.domain.results.process import Coverage, Fired, Reach
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.scoring.comparison.pairing import TestPair

_SELDOM, _SELDOM_WANTED = 0.25, 0.5
"""How often chance may lose what is told first: 0.25 is two trials of two tests, of one trial each."""

Part = tuple[LogicKind, str]
"""A part of the agent's logic: its kind and its name."""


def wanted(plan: Plan, shown: Callable[[str], str] = str) -> frozenset[Part]:
    """The parts that strict criteria of a plan want to fire, named as `shown` shows them in results.

    What must not fire is not wanted: that it never did is as it should be.
    """
    found = (
        _wanted(evaluation)
        for planned in plan.suites
        for test in planned.tests
        for evaluation in test.evaluations
    )
    return frozenset((part[0], shown(part[1])) for part in found if part)


def _wanted(evaluation: Criterion) -> Part | None:
    match evaluation:
        case ToolUsed():
            return LogicKind.WORKFLOW, evaluation.tool_name
        case ParamEquals() | ParamExists():
            return LogicKind.PARAMETER, evaluation.param_name
        case RuleTriggered():
            return LogicKind.RULE, evaluation.rule_code
        case IntegrationCalled():
            return LogicKind.INTEGRATION, evaluation.integration_code
    return None


def wanted_of(runs: Iterable[Results]) -> frozenset[Part]:
    """The parts that were wanted in these runs."""
    return frozenset(
        (reach.kind, reach.name) for results in runs for reach in results.coverage.logic if reach.wanted
    )


@dataclass
class _Count:
    """Counts of the parts that fired in some tests."""

    trials: Counter[Part] = field(default_factory=Counter)
    in_told: Counter[Part] = field(default_factory=Counter)
    """Those of `trials` that tell of its kind."""
    tests: Counter[Part] = field(default_factory=Counter)
    told: Counter[LogicKind] = field(default_factory=Counter)
    """Trials that tell of a kind, in every reply."""
    whole: Counter[LogicKind] = field(default_factory=Counter)
    """Those among them that did not break off: what did not fire there is no matter of an early end."""
    traced: int = 0

    def take(self, test: TestResult) -> None:
        """Counts a test's trials."""
        parts: set[Part] = set()
        for fired, many, whole in _alike(test.trials):
            self.traced += many
            for kind in LogicKind:
                names = fired.names(kind)
                if names is None:
                    continue
                tells = kind not in fired.in_part
                if tells:
                    self.told[kind] += many
                    self.whole[kind] += whole
                for name in names:
                    self.trials[kind, name] += many
                    if tells:
                        self.in_told[kind, name] += many
                    parts.add((kind, name))
        self.tests.update(parts)


def _alike(trials: Sequence[TrialResult]) -> Iterator[tuple[Fired, int, int]]:
    """Yield what fired, in how many trials, and in how many complete ones. Similar trials share it."""
    by_id = {id(trial.fired): trial.fired for trial in trials if trial.fired}
    many = Counter(id(trial.fired) for trial in trials)
    whole = Counter(id(trial.fired) for trial in trials if trial.complete)
    return ((fired, many[key], whole[key]) for key, fired in by_id.items())


def coverage(suites: Sequence[SuiteResult], parts: frozenset[Part]) -> Coverage:
    """The coverage of a run, by kind and name; `parts` are those that are wanted."""
    count = _Count()
    logic: set[str] = set()
    for suite in suites:
        for test in suite.tests:
            count.take(test)
        logic.update(group.name for group in suite.aui_logic)
    return Coverage(
        traced_trials=count.traced,
        logic=tuple(
            Reach(
                kind=part[0],
                name=part[1],
                # What was seen is known, whatever other replies leave out.
                trials=count.trials[part] if part[0] in count.told or part in count.trials else None,
                tests=count.tests[part] if part[0] in count.told or part in count.trials else None,
                wanted=part in parts or part[1] in logic,
            )
            for part in sorted({*count.trials, *parts}, key=_place)
        ),
    )


def of_suite(suite: SuiteResult, whole: Coverage) -> Coverage:
    """The coverage of one suite of a run: of the parts that never fired, `whole` knows no suite."""
    wanted_there = {(reach.kind, reach.name) for reach in whole.logic if reach.wanted}
    found = coverage([suite], frozenset())
    logic = (
        reach.model_copy(update={"wanted": (reach.kind, reach.name) in wanted_there}) for reach in found.logic
    )
    return found.model_copy(update={"logic": tuple(logic)})


_KINDS = tuple(LogicKind)


def _place(part: Part) -> tuple[int, str]:
    return _KINDS.index(part[0]), part[1]


def against(found: Coverage, pairs: Iterable[TestPair]) -> Coverage:
    """The coverage with what fired in the compared tests on both sides, told of each kind by itself.

    A test counts for a kind where both of its sides have a trial that did not break off, and whose trace
    tells of it.
    """
    head, base, told = Counter[Part](), Counter[Part](), set[LogicKind]()
    chance: dict[Part, float] = {}
    for pair in pairs:
        here, there = _Count(), _Count()
        here.take(pair.head)
        there.take(pair.base)
        both = {kind for kind in LogicKind if here.whole[kind] and there.whole[kind]}
        told |= both
        for part in there.trials:
            before, now, many = there.told[part[0]], here.whole[part[0]], there.in_told[part]
            if part[0] in both:
                # Of all ways in which these trials may be the baseline's or this run's.
                chance[part] = chance.get(part, 1.0) * (comb(before, many) / comb(before + now, many))
        for sums, count in ((head, here), (base, there)):
            sums.update({part: many for part, many in count.trials.items() if part[0] in both})
    own = {(reach.kind, reach.name): reach for reach in found.logic if reach.wanted or reach.trials}
    return found.model_copy(
        update={
            "logic": tuple(
                # What the baseline alone knows fired in no trial of this run.
                (
                    own.get(part) or Reach(kind=part[0], name=part[1], trials=0, tests=0, wanted=False)
                ).model_copy(
                    update={
                        "compared_trials": head[part] if part[0] in told else None,
                        "base_trials": base[part] if part[0] in told else None,
                        "by_chance": chance[part] if base[part] and not head[part] else None,
                    }
                )
                for part in sorted({*own, *base}, key=_place)
            )
        }
    )


def named(found: Coverage) -> tuple[Reach, ...]:
    """The parts that criteria name, as far as traces tell of their kinds."""
    return tuple(reach for reach in found.logic if reach.wanted and reach.trials is not None)


def never(found: Coverage) -> tuple[Reach, ...]:
    """The parts of `named` that never fired."""
    return tuple(reach for reach in named(found) if not reach.trials)


def lost(found: Coverage) -> tuple[Reach, ...]:
    """The parts that fired in the baseline, and in the same tests no longer; the most frequent first."""
    gone = (reach for reach in found.logic if reach.base_trials and reach.compared_trials == 0)
    return tuple(sorted(gone, key=lambda reach: -(reach.base_trials or 0)))


def plainly_lost(found: Coverage) -> tuple[Reach, ...]:
    """The parts of `lost` that chance alone would seldom lose.

    What a criterion wants is told also where it fired in one trial of one test, of as many on both sides.
    """
    return tuple(
        reach
        for reach in lost(found)
        if (reach.by_chance or 0) <= (_SELDOM_WANTED if reach.wanted else _SELDOM)
    )


def gained(found: Coverage) -> tuple[Reach, ...]:
    """The parts that fire, and in the same tests of the baseline did not; the most frequent first."""
    new = (reach for reach in found.logic if reach.compared_trials and reach.base_trials == 0)
    return tuple(sorted(new, key=lambda reach: -(reach.compared_trials or 0)))
