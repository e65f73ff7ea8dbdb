"""The comparison of a run with an earlier one: test by test, and as a whole."""

from dataclasses import dataclass, replace
from typing import Literal, Self, TypeAlias

from pydantic import JsonValue

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.base import CleanText, Instant, Interval, Percent, Points, Positive, ResultPart, Share
from ci_evals.domain.results.gate import LookDecision

Method: TypeAlias = Literal["recorded", "history", "both-sides", "rounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(ResultPart):
    """The earlier run."""

    score: Percent | None
    commit: str | None = None
    uncommitted_changes: bool = False
    """True if files differed from the commit."""
    branch: str | None = None
    """The branch it ran on, if known."""
    of_base_commit: bool = False
    """True if it tested the very commit that the pull request is based on, and this run the pull
    request merged with that. If not, or if that is not known, a change may have come with another
    commit of the base branch."""
    at: Instant
    """When it began."""
    run_id: str
    tests: int = 0
    """Tests of it, compared or not."""
    trials: int
    """Trials that it played."""
    agent_models: tuple[CleanText, ...] = ()
    """Models of its agent, as far as they were reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(ResultPart):
    """The change of the paired tests' score, in points, and how sure it is."""

    tests: int = 0
    """Tests compared: of the same definition, and scored on both sides."""
    base: Percent | None = None
    """The baseline's score over the compared tests."""
    head: Percent | None = None
    """This run's score over the same tests."""
    delta: Points | None = None
    """head - base."""
    interval: Interval | None = None
    """95 % interval of delta."""
    p: float | None = None
    """How often chance alone shows such a drop or a larger one; one-sided. Where several earlier
    runs decide (`history.decides`), it is theirs."""
    test: Literal["enumerated", "drawn"] | None = None
    """The kind of permutation test behind p: all arrangements counted, or some of them drawn."""
    smallest_p: float | None = None
    """The smallest p that this many trials can give."""
    fewest_broken: int | None = None
    """How many tests must fail completely, at least, for this many trials to prove it."""
    estimated_from: Literal["trials", "tests"] | None = None
    """Source of the noise: how trials of a test differ or, if few tests have several, tests."""
    detectable: float | None = None
    """The smallest drop, in points, that would have been seen with a chance of 80 %."""
    trials_needed: int | None = None
    """The trials of each test and side that would settle an unproven drop."""

    def with_change(self, change: "Change") -> Self:
        """A copy with the numbers of this change."""
        return replace(
            self,
            tests=change.tests,
            base=change.base,
            head=change.head,
            delta=change.delta,
            interval=change.interval,
            p=change.p,
            test=change.test,
            smallest_p=change.smallest_p,
            fewest_broken=change.fewest_broken,
            estimated_from=change.estimated_from,
            detectable=change.detectable,
            trials_needed=change.trials_needed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(ResultPart):
    """The verdict, and the turn it rests on, that show why a test failed."""

    criterion: str
    reason: str
    trial: int
    turn: int | None = None
    user: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergentAction(ResultPart):
    """An action of the agent that the other conversation lacks."""

    kind: LogicKind
    name: str
    value: JsonValue = None
    """A parameter's value, or the status of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence(ResultPart):
    """The first turn in which a conversation differs from the baseline's, and what the agent did there.

    It compares the trial that shows the change (the first that does not pass, or the first if all do) with
    the baseline's first with the other outcome (or its first, if there is none). Errored trials count
    only if all did.

    Turns are compared by number, and only what both replies report: the names of workflows, the parameters
    with their values in this turn (empty ones do not count), the codes of rules, the integrations with their
    status. How often and in which order does not matter.
    """

    head_trial: int
    base_trial: int
    turn: int | None
    """The first in which workflows, parameters, rules or integrations differ, or that only one side
    has. Null if the agent did the same throughout."""
    head: tuple[DivergentAction, ...] = ()
    """What it did there in this run, and not in the baseline."""
    base: tuple[DivergentAction, ...] = ()
    """What it did there in the baseline, and not in this run."""
    only: Literal["head", "base"] | None = None
    """The side that has this turn, if the other conversation had ended."""
    user_differs: int | None = None
    """The first turn, up to that one, in which the user had said something else: then the simulated
    user may be the cause."""
    agent_differs: int | None = None
    """Where the agent did the same throughout, the first turn in which it said something else; null
    if it did not."""
    unknown: tuple[int, ...] = ()
    """Where the agent seems to have done the same throughout, the turns of which one side reports
    less than the other, or neither reports anything: there it may have done something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestName(ResultPart):
    """A test by its suite and name."""

    suite: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestChange(TestName):
    """A paired test that came out differently."""

    base: Percent | None
    head: Percent | None
    delta: Points | None
    evidence: Evidence | None = None
    """Of the failing side: this run if it fails now, the baseline if it is fixed."""
    p: float | None = None
    """Of a suspect: the chance of such a drop, adjusted for how many tests are looked at; null if
    so few trials cannot prove it."""
    confirmed: bool = False
    """Whether the drop of this one test is proven (p at most 0.05)."""
    first_divergence: Divergence | None = None
    """The first turn in which its conversations differ; null if one side has no trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteComparison(Change):
    """One suite against its baseline."""

    name: str
    comparable: bool
    reasons: tuple[str, ...] = ()
    """Why not, or what is to be known."""
    baseline_score: Percent | None = None
    """The baseline's score of the whole suite; null if it is not comparable."""
    base_scores: tuple[Percent | None, ...] = ()
    """The baseline's score of each test, in the order of this run's suite; null of a test that was not
    compared. Those at the end that were not compared are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency(ResultPart):
    """Cost, tokens and time per trial or reply, so that runs of different size can be compared."""

    cost_usd_per_trial: float | None = None
    tokens_per_trial: float | None = None
    median_latency_seconds: float | None = None
    p95_latency_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonLook(ResultPart):
    """The p of a drop at one look at a run in rounds."""

    trials: Positive
    """Of each test, until then."""
    p: float
    decision: LookDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryComparison(ResultPart):
    """This run against the newest runs of the base branch, pooled."""

    runs: Positive
    """Runs that could be compared, and are not smaller."""
    smaller: int = 0
    """Runs left out: they lack a test of the newest one, or have fewer trials of it than both the
    newest and this run."""
    together: Positive
    """The newest of them that belong together. Fewer than `runs` if the base branch moved."""
    tests: int
    """Tests that were scored in all of them: those of the newest."""
    delta: Points | None
    """Against the mean of the runs that belong together."""
    p: float | None
    """How often an unchanged agent shows such a drop: the larger of two."""
    p_of_trials: float
    """The same by the trials alone, as if all runs had been made under the same conditions.
    Undecided verdicts count as failed: it screens for `against`."""
    spread: Points | None
    """The standard deviation of the runs' scores; null of one run."""
    smallest_drop: float
    """The drop that would stand out with a chance of 80 %, in points."""
    decides: bool = False
    """Whether the p of `comparison` is theirs: three or more belong together, and `against` names
    no base agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Change):
    """This run (head) against the baseline (base)."""

    comparable: bool
    """Whether anything could be compared."""
    reasons: tuple[str, ...] = ()
    """Why not, or why not all of it."""
    method: Method = "recorded"
    """With the base agent, played in this run (`both-sides`); in rounds, with recorded runs
    (`rounds`); at once, with the newest recorded runs (`history`) or the newest alone
    (`recorded`)."""
    level: Share = 0.05
    """The highest p that proves a drop, in a run that is looked at once. Lower if reruns are pooled."""
    looks: tuple[ComparisonLook, ...] = ()
    """The looks at p of a run in rounds (option `rounds`)."""
    history: HistoryComparison | None = None
    """With the newest runs of the base branch; null if fewer than two were found."""
    baseline: Baseline
    broken: tuple[TestName, ...] = ()
    """Tests that broke, by earlier runs. A false one is among them in at most 5 % of runs."""
    probably_broken: tuple[TestName, ...] = ()
    """Tests that probably broke: of all that are named, one in ten is false."""
    regressed: tuple[TestChange, ...] = ()
    """Newly failing: passed in the baseline, and do not pass now. Worst first."""
    fixed: tuple[TestChange, ...] = ()
    """Failed in the baseline, and pass now."""
    suspects: tuple[TestChange, ...] = ()
    """Fell by 15 points or more; by chance alone some always do, so see `confirmed`."""
    new: tuple[TestName, ...] = ()
    """Not in the baseline."""
    removed: tuple[TestName, ...] = ()
    """In the baseline, and not in this run."""
    changed: tuple[TestName, ...] = ()
    """Defined differently, so not compared."""
    deltas: tuple[Points, ...] = ()
    """How the score of each compared test changed, in points, the deepest fall first."""
    suites: tuple[SuiteComparison, ...] = ()
    head_efficiency: Efficiency = Efficiency()
    base_efficiency: Efficiency = Efficiency()
