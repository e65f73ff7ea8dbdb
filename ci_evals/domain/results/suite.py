"""Tests and suites: their trials, counts, scores and groups."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue

from ci_evals.domain.base import Amount, CleanText, Interval, Percent, Positive, ResultPart, Share
from ci_evals.domain.checks.rubric import Rubric
from ci_evals.domain.plan import SuiteModels
from ci_evals.domain.results.process import ProcessSummary
from ci_evals.domain.results.reused import TakenFrom
from ci_evals.domain.results.trial import MOST_TRIALS, TrialResult
from ci_evals.domain.suite import Line, Quarantine
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Outcome

OTHER_TOOL = "results:"
OWN_RESULTS = f"{OTHER_TOOL}ci-evals"
"""The beginning of the adapter of suites that another tool ran; the format of its results follows."""


class TestOutcome(StrEnum):
    """The outcome of a test: the worst that happened."""

    PASSED = "passed"
    """Every planned trial was valid and passed every evaluation."""
    FAILED = "failed"
    """A verdict failed in a conversation that was not cut off."""
    ERROR = "error"
    """A trial could not be played to its end, or not at all."""
    UNDECIDED = "undecided"
    """A verdict could not be reached."""
    NOT_RUN = "not_run"
    """No trial was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialScore(ResultPart):
    """A tool's own score by its own rules, next to ours."""

    name: CleanText
    """As the tool calls it: `accuracy`, `resolved`, `pass^1`."""
    value: Share | None
    """Null if the tool computes none from these results."""
    pass_at_k: dict[int, Share] | None = None
    """By k; pass^k if `name` is `pass^1`. Null if the tool has none."""
    of: Amount
    """Its denominator: tests or trials, as the tool counts."""
    rule: CleanText | None = None
    """How its rules differ from ours, in one sentence; shown where the scores differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGroup(ResultPart):
    """Score of the findings that share a category, tag, difficulty or AUI logic id."""

    name: str
    score: Percent | None
    interval: Interval | None = None
    tests: int
    passed: int
    """Verdicts that passed."""
    failed: int
    """Verdicts that failed."""
    undecided: int
    """Verdicts that could not be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics(ResultPart):
    """Statistics of the scored trials of a test. Scores in points, shares from 0 to 1."""

    mean: Percent
    standard_deviation: float | None
    """Of the sample; null with one scored trial."""
    min: Percent
    max: Percent
    pass_at_k: dict[int, Share]
    """By k: how likely some of k trials pass every evaluation, estimated without bias."""
    pass_hat_k: dict[int, Share]
    """By k: how likely all of k trials pass every evaluation (pass^k), estimated without bias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult(ResultPart):
    """One test with all its trials."""

    name: str
    tags: tuple[str, ...] = ()
    cluster: str | None = None
    """Tests of one cluster depend on each other, such as one task for several users: intervals, odds and
    comparisons count clusters."""
    difficulty: str | None = None
    critical: bool = False
    may_escalate: bool = False
    """True if the agent may hand over to a person before the last line."""
    min_score: float | None = None
    """The test's own floor."""
    quarantine: Quarantine | None = None
    """Why the test decides nothing: it is in no score and no check. Null if it does."""
    taken_from: TakenFrom | None = None
    """The earlier run whose trials these are. Null if this run played the test."""
    line: int
    """Where the test begins in its suite file."""
    digest: CleanText
    user_info: dict[str, JsonValue] = field(default_factory=dict)
    guidelines: str
    turns: tuple[Line, ...]
    optimal_tools: tuple[str, ...] | None = None
    """The workflows that the shortest right conversation runs, in order."""
    rubrics: dict[int, Rubric] = field(default_factory=dict)
    """How criteria were graded, by the place of their finding, counted from 1."""
    score: Percent | None
    """Mean over the scored trials."""
    pass_rate: float | None
    """Share of the scored trials in which every evaluation passed, 0 to 1."""
    passed: bool
    """Whether every planned trial was valid and passed every evaluation."""
    outcome: TestOutcome
    flaky: bool
    """Whether a scored trial passed and another one failed."""
    statistics: Statistics | None = None
    """Null if no trial was scored."""
    process: ProcessSummary = ProcessSummary()
    null_score: Percent | None = None
    """The score of an agent that refuses everything, by strict criteria alone. Null without any, and if
    the run was not played here."""
    trials: tuple[TrialResult, ...] = ()
    not_run: Annotated[int, Field(ge=0, le=MOST_TRIALS)] = 0
    """Trials planned but not started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(ResultPart):
    """Counts of tests, trials and verdicts. Quarantined tests are only in the counts that name them."""

    tests: Amount = 0
    """All tests, quarantined ones too."""
    quarantined: Amount = 0
    """Tests in quarantine: they decide nothing."""
    taken: Amount = 0
    """Tests that were not played, but taken from an earlier run."""
    passed: Amount = 0
    """Tests that passed."""
    failed: Amount = 0
    """Tests with a failed verdict."""
    errors: Amount = 0
    """Invalid trials of this run: errors, failures, undecided verdicts. Pooled trials are not among them."""
    undecided: Amount = 0
    """Tests with no failed verdict and an undecided one."""
    flaky: Amount = 0
    """Tests whose trials disagree."""
    trials: Amount = 0
    """Trials that were played or taken, those of quarantined tests too."""
    taken_trials: Amount = 0
    """Those of them that an earlier run played."""
    scored_trials: Amount = 0
    not_run: Amount = 0
    """Trials planned but not started, those of quarantined tests too."""
    invalid_users: Amount = 0
    """Trials left out, because the simulated user broke character."""
    by_status: dict[EndState, int] = field(default_factory=dict)
    """All trials by how they ended."""
    by_outcome: dict[Outcome, int] = field(default_factory=dict)
    """All verdicts by outcome."""

    @property
    def deciding(self) -> int:
        """The tests that pass or fail for the run."""
        return self.tests - self.quarantined

    @property
    def played_trials(self) -> int:
        """The trials that this run played itself."""
        return max(0, self.trials - self.taken_trials)


@dataclass(frozen=True, kw_only=True)
class ScoreSummary(ResultPart):
    """The score of a suite or a run, and what it rests on."""

    score: Percent | None
    """Mean over all tests, in points, unrounded."""
    interval: Interval | None = None
    """95 %, with the test as the unit."""
    decided_share: Share | None = None
    """Share of the criteria's weight that was decided, over all planned trials. Only above 0.5 do
    reports show the score as a headline."""
    pass_at_k: dict[int, Share] = field(default_factory=dict)
    """Mean over the tests, as far as all go."""
    pass_hat_k: dict[int, Share] = field(default_factory=dict)
    """Mean over the tests, as far as all go."""
    official: OfficialScore | None = None
    """The score of the tool whose results these are, by its own rules; null without any."""
    counts: Counts


@dataclass(frozen=True, kw_only=True)
class _SuiteFields(ResultPart):
    """The fields of a suite's result that come first in its JSON: all but its numbers and tests."""

    name: str
    file: CleanText
    description: str | None = None
    digest: CleanText
    agent_id: str | None = None
    adapter: str
    judge_model: str | None = None
    judge_panel: tuple[str, ...] = ()
    """The models that vote in turn, if there are several."""
    judge_votes: Positive = 1
    """The most votes on one criterion."""
    user_model: str | None = None
    embedding_model: str | None = None
    """The model that compares meanings; null if no test needs one, or there is none."""
    min_score: float | None = None
    """The suite's own floor."""
    fingerprint: dict[CleanText, CleanText] = field(default_factory=dict)
    """Of another tool's results: what must be equal in two runs that are compared, by name."""
    folder: CleanText
    """The suite's own folder, relative to the output folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult(ScoreSummary, _SuiteFields):
    """One suite with its tests."""

    categories: tuple[ScoreGroup, ...] = ()
    aui_logic: tuple[ScoreGroup, ...] = ()
    tags: tuple[ScoreGroup, ...] = ()
    difficulties: tuple[ScoreGroup, ...] = ()
    process: ProcessSummary = ProcessSummary()
    tests: tuple[TestResult, ...]

    @property
    def of_other_tool(self) -> bool:
        """True if another tool ran it, and `file` is the file of its results."""
        return self.adapter.startswith(OTHER_TOOL)

    @property
    def models(self) -> SuiteModels:
        """The models that the suite was run with; which one audited is not known."""
        judges = self.judge_panel or ((self.judge_model,) if self.judge_model else ())
        return SuiteModels(judges, self.judge_votes, self.user_model, self.embedding_model)
