"""The comparison of a run with an earlier one: test by test, and as a whole."""

from typing import Literal, TypeAlias

from pydantic import Field, JsonValue

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.base import CleanText, Instant, Interval, Percent, Points, Positive, Record
from ci_evals.domain.results.gate import LookDecision

Method: TypeAlias = Literal["recorded", "history", "both-sides", "rounds"]


class Baseline(Record):
    """The earlier run."""

    score: Percent | None
    commit: str | None = None
    branch: str | None = Field(None, description="The branch it ran on, if known.")
    of_base_commit: bool = Field(
        default=False,
        description="Whether it tested the very commit that the pull request is based on, and this run the "
        "pull request merged with that. If not, or if that is not known, a change may have come with "
        "another commit of the base branch.",
    )
    at: Instant = Field(description="When it began.")
    run_id: str
    tests: int = Field(0, description="Tests of it, compared or not.")
    trials: int = Field(description="Trials that it played.")
    agent_models: tuple[CleanText, ...] = Field(
        (), description="Models of its agent, as far as they were reported."
    )


class Change(Record):
    """The change of the paired tests' score, in points, and how sure it is."""

    tests: int = Field(0, description="Tests compared: of the same definition, and scored on both sides.")
    base: Percent | None = Field(None, description="The baseline's score over the compared tests.")
    head: Percent | None = Field(None, description="This run's score over the same tests.")
    delta: Points | None = Field(None, description="head - base.")
    interval: Interval | None = Field(None, description="95 % interval of delta.")
    p: float | None = Field(
        None,
        description="How often chance alone shows such a drop or a larger one; one-sided. Where several "
        "earlier runs decide (`history.decides`), it is theirs.",
    )
    test: Literal["enumerated", "drawn"] | None = Field(
        None,
        description="The kind of permutation test behind p: all arrangements counted, or some of them drawn.",
    )
    smallest_p: float | None = Field(None, description="The smallest p that this many trials can give.")
    fewest_broken: int | None = Field(
        None, description="How many tests must fail completely, at least, for this many trials to prove it."
    )
    estimated_from: Literal["trials", "tests"] | None = Field(
        None,
        description="Source of the noise: how trials of a test differ or, if few tests have several, tests.",
    )
    detectable: float | None = Field(
        None, description="The smallest drop, in points, that would have been seen with a chance of 80 %."
    )
    trials_needed: int | None = Field(
        None, description="Where a drop is not proven: trials of each test and side that would settle it."
    )


class Evidence(Record):
    """The verdict, and the turn it rests on, that show why a test failed."""

    criterion: str
    reason: str
    trial: int
    turn: int | None = None
    user: str | None = None
    agent: str | None = None


class DivergentAction(Record):
    """An action of the agent that the other conversation lacks."""

    kind: LogicKind
    name: str
    value: JsonValue = Field(None, description="A parameter's value, or the status of a call.")


class Divergence(Record):
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
    turn: int | None = Field(
        description="The first in which workflows, parameters, rules or integrations differ, or that only "
        "one side has. Null if the agent did the same throughout."
    )
    head: tuple[DivergentAction, ...] = Field(
        (), description="What it did there in this run, and not in the baseline."
    )
    base: tuple[DivergentAction, ...] = Field(
        (), description="What it did there in the baseline, and not in this run."
    )
    only: Literal["head", "base"] | None = Field(
        None, description="The side that has this turn, if the other conversation had ended."
    )
    user_differs: int | None = Field(
        None,
        description="The first turn, up to that one, in which the user had said something else: then the "
        "simulated user may be the cause.",
    )
    agent_differs: int | None = Field(
        None,
        description="Where the agent did the same throughout, the first turn in which it said something "
        "else; null if it did not.",
    )
    unknown: tuple[int, ...] = Field(
        (),
        description="Where the agent seems to have done the same throughout, the turns of which one side "
        "reports less than the other, or neither reports anything: there it may have done something else.",
    )


class TestName(Record):
    """A test by its suite and name."""

    suite: str
    name: str


class TestChange(TestName):
    """A paired test that came out differently."""

    base: Percent | None
    head: Percent | None
    delta: Points | None
    evidence: Evidence | None = Field(
        None, description="Of the failing side: this run if it fails now, the baseline if it is fixed."
    )
    p: float | None = Field(
        None,
        description="Of a suspect: the chance of such a drop, adjusted for how many tests are looked at; "
        "null if so few trials cannot prove it.",
    )
    confirmed: bool = Field(
        default=False, description="Whether the drop of this one test is proven (p at most 0.05)."
    )
    first_divergence: Divergence | None = Field(
        None, description="The first turn in which its conversations differ; null if one side has no trace."
    )


class SuiteComparison(Change):
    """One suite against its baseline."""

    name: str
    comparable: bool
    reasons: tuple[str, ...] = Field((), description="Why not, or what is to be known.")
    baseline_score: Percent | None = Field(
        None, description="The baseline's score of the whole suite; null if it is not comparable."
    )


class Efficiency(Record):
    """Cost, tokens and time per trial or reply, so that runs of different size can be compared."""

    cost_usd_per_trial: float | None = None
    tokens_per_trial: float | None = None
    median_latency_seconds: float | None = None
    p95_latency_seconds: float | None = None


class ComparisonLook(Record):
    """The p of a drop at one look at a run in rounds."""

    trials: Positive = Field(description="Of each test, until then.")
    p: float
    decision: LookDecision


class HistoryComparison(Record):
    """This run against the newest runs of the base branch, pooled."""

    runs: Positive = Field(description="Runs that could be compared, and are not smaller.")
    smaller: int = Field(
        0,
        description="Runs left out: they lack a test of the newest one, or have fewer trials of it than both "
        "the newest and this run.",
    )
    together: Positive = Field(
        description="The newest of them that belong together. Fewer than `runs` if the base branch moved."
    )
    tests: int = Field(description="Tests that were scored in all of them: those of the newest.")
    delta: Points | None = Field(description="Against the mean of the runs that belong together.")
    p: float | None = Field(description="How often an unchanged agent shows such a drop: the larger of two.")
    p_of_trials: float = Field(
        description="The same by the trials alone, as if all runs had been made under the same conditions. "
        "Undecided verdicts count as failed: it screens for `against`."
    )
    spread: Points | None = Field(description="The standard deviation of the runs' scores; null of one run.")
    smallest_drop: float = Field(
        description="The drop that would stand out with a chance of 80 %, in points."
    )
    decides: bool = Field(
        default=False,
        description="Whether the p of `comparison` is theirs: three or more belong together, and `against` "
        "names no base agent.",
    )


class Comparison(Change):
    """This run (head) against the baseline (base)."""

    comparable: bool = Field(description="Whether anything could be compared.")
    reasons: tuple[str, ...] = Field((), description="Why not, or why not all of it.")
    method: Method = Field(
        "recorded",
        description="With the base agent, played in this run (`both-sides`); in rounds, with recorded runs "
        "(`rounds`); at once, with the newest recorded runs (`history`) or the newest alone (`recorded`).",
    )
    looks: tuple[ComparisonLook, ...] = Field(
        (), description="The looks at p of a run in rounds (option `rounds`)."
    )
    history: HistoryComparison | None = Field(
        None, description="With the newest runs of the base branch; null if fewer than two were found."
    )
    baseline: Baseline
    broken: tuple[TestName, ...] = Field(
        (),
        description="Tests that broke, by earlier runs. A false one is among them in at most 5 % of runs.",
    )
    probably_broken: tuple[TestName, ...] = Field(
        (), description="Tests that probably broke: of all that are named, one in ten is false."
    )
    regressed: tuple[TestChange, ...] = Field(
        (), description="Newly failing: passed in the baseline, and do not pass now. Worst first."
    )
    fixed: tuple[TestChange, ...] = Field((), description="Failed in the baseline, and pass now.")
    suspects: tuple[TestChange, ...] = Field(
        (), description="Fell by 15 points or more; by chance alone some always do, so see `confirmed`."
    )
    new: tuple[TestName, ...] = Field((), description="Not in the baseline.")
    removed: tuple[TestName, ...] = Field((), description="In the baseline, and not in this run.")
    changed: tuple[TestName, ...] = Field((), description="Defined differently, so not compared.")
    deltas: tuple[Points, ...] = Field(
        (), description="How the score of each compared test changed, in points, the deepest fall first."
    )
    suites: tuple[SuiteComparison, ...] = ()
    head_efficiency: Efficiency = Efficiency()
    base_efficiency: Efficiency = Efficiency()
