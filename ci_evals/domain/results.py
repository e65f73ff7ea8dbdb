"""The results of a run: the value that every report is a function of, and the shape of `_results.json`."""

import math
import re
from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, computed_field, model_validator

from ci_evals.domain.base import (
    Amount,
    Clean,
    CleanText,
    Dollars,
    Instant,
    Interval,
    Percent,
    Positive,
    Record,
    Seconds,
    Share,
    as_written,
)
from ci_evals.domain.comparison import Comparison
from ci_evals.domain.process import Coverage, Fired, Process, ProcessSummary, Times
from ci_evals.domain.rubric import Rubric
from ci_evals.domain.suite import MOST_LOOPS, Turn
from ci_evals.domain.transcript import EndState, Exchange, Exchanges
from ci_evals.domain.trust import JudgeCheck, Studies, UserAudit, UserLedger, VoteAgreement
from ci_evals.domain.verdict import UNUSABLE, Finding, Outcome

_ENDS = frozenset({EndState.COMPLETED, EndState.STOPPED, EndState.ESCALATED})

MOST_TRIALS = 2 * MOST_LOOPS
"""Of one test: its loops, and as many more to confirm. Counts of a file are not believed beyond it."""

Role = Literal["user", "judge", "auditor", "embedder", "agent"]
"""Who used tokens: the two jobs of the LLM (simulated user, judge), the model that compares meanings, and an
agent that tells of its own."""


def passed_share(findings: Iterable[Finding]) -> Fraction | None:
    """The weighted share of the findings that passed, in points, exactly; None where nothing has weight.

    A graded one counts with its grade. The one formula behind every score.
    """
    return _passed_share(tuple((f.weight, _met(f)) for f in findings))


def _met(finding: Finding) -> Fraction | bool:
    """How far a criterion is met, 0 to 1; one that is undecided is not."""
    if finding.grade is not None and finding.outcome is not Outcome.UNDECIDED:
        return finding.grade.exact()
    return finding.outcome is Outcome.PASSED


def points(exact: Fraction | None) -> Percent | None:
    """The number to show: never above the exact one, so that no floor seems reached that was missed."""
    if exact is None:
        return None
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, 0)


@lru_cache(10_000)
def _passed_share(weights: tuple[tuple[float, Fraction | bool], ...]) -> Fraction | None:
    """The same of weights and how far what has them is met: in most trials of a test they are alike."""
    total = passed = Fraction()
    for number, met in weights:
        weight = as_written(number)
        total += weight
        passed += weight * met
    return 100 * passed / total if total else None


class Attempt(Record):
    """One try at playing a trial."""

    status: EndState
    error: str | None = None
    user_audit: UserAudit | None = Field(
        None, description="Of a conversation that was played again since its simulated user broke its role."
    )


class RoleUsage(Record):
    """Calls and tokens of one role with one model."""

    role: Role
    model: str | None = None
    calls: Amount = 0
    cached: Amount = Field(0, description="Of the calls, those whose answer was there from an earlier one.")
    input_tokens: Amount = 0
    output_tokens: Amount = 0
    uncounted: Amount = Field(
        0, description="Of the calls, those with an answer of which no usable count of tokens is known."
    )
    cost_usd: Dollars | None = Field(
        None,
        description="Of the run; of a trial only where the provider tells what a call has cost. "
        "Null where it is unknown.",
    )


class TrialResult(Record):
    """What came of one trial: how it ended, what was said, and the verdicts."""

    index: int = Field(description="Counted from 1 within its test.")
    status: EndState
    error: str | None = Field(None, description="Why it failed.")
    duration_seconds: Seconds
    attempts: tuple[Attempt, ...] = Field((), description="Every try, the last one being this result.")
    closing_remark: str | None = None
    exchanges: Exchanges = Exchanges()
    findings: tuple[Finding, ...] = ()
    usage: tuple[RoleUsage, ...] = Field(
        (), description="Calls and tokens of the models, all attempts together."
    )
    times: Times | None = Field(None, description="Null where they were not measured.")
    process: Process | None = Field(None, description="Null where no reply carried a trace.")
    fired: Fired | None = Field(None, description="Null where no reply carried a trace.")
    user_audit: UserAudit | None = Field(
        None, description="Whether the simulated user kept to its role; null where no model played it."
    )

    # mypy does not know decorated properties (python/mypy#1362); pydantic documents them so.
    @computed_field(description="Weighted share of the decided verdicts that passed, in points.")  # type: ignore[prop-decorator]
    @property
    def score(self) -> Percent | None:
        """The trial's score, 0 to 100; None where nothing was decided."""
        return points(self.exact_score())

    def kept(self) -> "TrialResult":
        """The same in a small part of the memory: for one that is held while others are played."""
        result = self.model_copy(update={"exchanges": self.exchanges.packed()})
        said = [one for found in result.findings for one in (*found.quotes, *(found.votes or ()))]
        for record in (result, *result.attempts, *result.findings, *said, *result.usage, result.times):
            if record:
                record.slim()
        return result

    def exact_score(self) -> Fraction | None:
        """The score, unrounded."""
        return passed_share(f for f in self.findings if f.outcome is not Outcome.UNDECIDED)

    def exchange_of(self, finding: Finding) -> Exchange | None:
        """The exchange that shows a verdict: the first that it rests on, else the last one."""
        exchanges = tuple(self.exchanges)
        by_number = {exchange.index: exchange for exchange in exchanges}
        named = [by_number[number] for number in finding.evidence if number in by_number]
        return next(iter([*named, *reversed(exchanges)]), None)

    @property
    def counts(self) -> bool:
        """Whether the trial counts: it ended by itself, or in the error that its test asks for.

        Any other is left out of every score, and counted. This is the one definition for scores, gate,
        comparison, odds and reports.
        """
        wants_error = any(finding.strict == "escalated_due_to_error" for finding in self.findings)
        return self.status in _ENDS or (self.status is EndState.AGENT_ERROR and wants_error)

    @property
    def scored(self) -> bool:
        """Whether the trial has a part in its test's score."""
        return self.counts and self.exact_score() is not None

    @property
    def judged(self) -> bool:
        """Whether a judge had a say in it."""
        return any(finding.kind == "judged" for finding in self.findings)

    @property
    def spoiled(self) -> bool:
        """Whether what stands around the agent failed: the trial broke off, or nothing could be judged."""
        judged = [finding for finding in self.findings if finding.kind == "judged"]
        return self.status is EndState.FAILED or (
            bool(judged) and all(finding.cause in UNUSABLE for finding in judged)
        )


class TestOutcome(StrEnum):
    """What a test as a whole came to: the worst that happened."""

    PASSED = "passed"
    """Every planned trial was sound and passed every evaluation."""
    FAILED = "failed"
    """A verdict failed in a conversation that was not cut off."""
    ERROR = "error"
    """A trial could not be played to its end, or not at all."""
    UNDECIDED = "undecided"
    """A verdict could not be reached."""
    NOT_RUN = "not_run"
    """No trial was started."""


class Group(Record):
    """Score of the findings that share a category, tag, difficulty or AUI logic id."""

    name: str
    score: Percent | None
    interval: Interval | None = None
    tests: int
    passed: int = Field(description="Verdicts that passed.")
    failed: int = Field(description="Verdicts that failed.")
    undecided: int = Field(description="Verdicts that could not be reached.")


class Statistics(Record):
    """What the scored trials of a test say together. Scores in points, shares from 0 to 1."""

    mean: Percent
    standard_deviation: float | None = Field(description="Of the sample; null with one scored trial.")
    min: Percent
    max: Percent
    pass_at_k: dict[int, Share] = Field(
        description="By k: how likely some of k trials pass every evaluation, estimated without bias."
    )
    pass_hat_k: dict[int, Share] = Field(
        description="By k: how likely all of k trials pass every evaluation (pass^k), estimated without bias."
    )


class TestResult(Record):
    """One test with all its trials."""

    name: str
    tags: tuple[str, ...] = ()
    difficulty: str | None = None
    critical: bool = False
    min_score: float | None = Field(None, description="The test's own floor.")
    line: int = Field(description="Where the test begins in its suite file.")
    digest: CleanText
    user_info: dict[str, JsonValue] = Field(default_factory=dict)
    guidelines: str
    turns: tuple[Turn, ...]
    optimal_tools: tuple[str, ...] | None = Field(
        None, description="The workflows that the shortest right conversation runs, in order."
    )
    rubrics: dict[int, Rubric] = Field(
        default_factory=dict,
        description="How criteria were graded, by the place of their finding, counted from 1.",
    )
    score: Percent | None = Field(description="Mean over the scored trials.")
    pass_rate: float | None = Field(
        description="Share of the scored trials in which every evaluation passed, 0 to 1."
    )
    passed: bool = Field(description="Whether every planned trial was sound and passed every evaluation.")
    outcome: TestOutcome
    flaky: bool = Field(description="Whether scored trials disagree on passing.")
    statistics: Statistics | None = Field(None, description="Null where no trial was scored.")
    process: ProcessSummary | None = None
    trials: tuple[TrialResult, ...] = ()
    not_run: int = Field(0, ge=0, le=MOST_TRIALS, description="Trials planned but not started.")


class Counts(Record):
    """How many of what."""

    tests: Amount = 0
    passed: Amount = Field(0, description="Tests that passed.")
    failed: Amount = Field(0, description="Tests with a failed verdict.")
    errors: Amount = Field(0, description="Trials that are unsound: errors, failures, undecided verdicts.")
    undecided: Amount = Field(0, description="Tests that came to nothing but an undecided verdict.")
    flaky: Amount = Field(0, description="Tests whose trials disagree.")
    trials: Amount = 0
    scored_trials: Amount = 0
    not_run: Amount = Field(0, description="Trials planned but not started.")
    invalid_users: Amount = Field(0, description="Trials left out, since the simulated user broke its role.")
    by_status: dict[EndState, int] = Field(default_factory=dict, description="Trials by how they ended.")
    by_outcome: dict[Outcome, int] = Field(default_factory=dict, description="Verdicts by outcome.")


class SuiteResult(Record):
    """One suite with its tests."""

    name: str
    file: CleanText
    description: str | None = None
    digest: CleanText
    agent_id: str | None = None
    adapter: str
    judge_model: str | None = None
    judge_panel: tuple[str, ...] = Field((), description="The models that vote in turn, where several do.")
    judge_votes: Positive = Field(1, description="The most votes on one criterion.")
    user_model: str | None = None
    embedding_model: str | None = Field(
        None,
        description="Compares meanings; null where no test of the suite wants that, or no model is there.",
    )
    min_score: float | None = Field(None, description="The suite's own floor.")
    folder: CleanText = Field(description="The suite's own folder, relative to the output folder.")
    score: Percent | None
    interval: Interval | None = Field(None, description="95 %, with the test as the unit.")
    decided_share: Share | None = Field(
        None,
        description="Share of the criteria's weight that was decided, over all planned trials. Below 0.5 no "
        "report shows the score as a headline. Null in results that earlier versions wrote.",
    )
    pass_at_k: dict[int, Share] = Field(
        default_factory=dict, description="Mean over the tests, as far as all go."
    )
    pass_hat_k: dict[int, Share] = Field(
        default_factory=dict, description="Mean over the tests, as far as all go."
    )
    counts: Counts
    categories: tuple[Group, ...] = ()
    aui_logic: tuple[Group, ...] = ()
    tags: tuple[Group, ...] = ()
    difficulties: tuple[Group, ...] = ()
    process: ProcessSummary | None = None
    tests: tuple[TestResult, ...]


class CheckKind(StrEnum):
    """Kind of a gate check."""

    MIN_SCORE = "min-score"
    """Floor of the run or, with `suite` or `test`, the floor that a suite file sets itself."""
    THRESHOLD = "threshold"
    """Floor of a part of the run (`--thresholds`)."""
    CRITICAL = "critical"
    MAX_DROP = "max-drop"
    REGRESSION = "regression"
    MAX_COST = "max-cost"
    MAX_P95_LATENCY = "max-p95-latency"
    MAX_ERRORS = "max-errors"
    MAX_INVALID_USERS = "max-invalid-users"
    FAIL_FAST = "fail-fast"


class CheckId(Record):
    """Identity of a gate check: its kind and the part of the run that it is about."""

    name: str = Field(description="For people only; the other keys identify the check.")
    kind: CheckKind
    suite: str | None = Field(
        None, description="The suite; null for a check of the whole run, or of a part that spans suites."
    )
    suite_number: Positive | None = Field(None, description="Its position in `suites`, counted from 1.")
    test: str | None = Field(None, description="The test; null unless the check is about a single test.")
    test_number: Positive | None = Field(
        None, description="Its position in the suite's `tests`, counted from 1."
    )
    selector: str | None = Field(
        None, description="The part of the run as the option names it, such as `category:safety`."
    )

    @property
    def key(self) -> tuple[str, int | None, int | None, str | None]:
        """The identity as one value that two different checks never share."""
        return self.kind, self.suite_number, self.test_number, self.selector

    @model_validator(mode="before")
    @classmethod
    def _of_older(cls, data: Any) -> Any:
        """Add the kind to checks of earlier versions' results files, which have nothing but a name."""
        if isinstance(data, dict) and "kind" not in data and isinstance(name := data.get("name"), str):
            return data | _identity_of_older(name)
        return data


def _identity_of_older(name: str) -> dict[str, str]:
    kind, separator, part = (
        re.split("([: ])", name, maxsplit=1) if re.search("[: ]", name) else (name, "", "")
    )
    if kind == CheckKind.CRITICAL:
        return {"kind": kind, "test": part}
    if kind in list(CheckKind):
        return {"kind": kind} | ({"selector": part} if separator else {})
    return {"kind": CheckKind.THRESHOLD, "selector": name}


class GateCheck(CheckId):
    """One rule of the gate: what it requires, what was seen, whether it holds."""

    required: float | None
    seen: float | None
    seen_if_undecided_failed: float | None = Field(
        None, description="For floors: the score in which undecided verdicts count as failed. It decides."
    )
    interval: Interval | None = Field(None, description="95 % interval of the score, or drop, that decides.")
    holds: bool | None = Field(
        description="Null: not checked. The check was asked for and could not be made; `note` says why."
    )
    note: str | None = None


class Decision(Record):
    """What the gate said."""

    passed: bool
    exit_code: int
    checks: tuple[GateCheck, ...] = ()
    reasons: tuple[str, ...] = Field((), description="Why the run cannot be trusted, where it cannot.")


class Tokens(Record):
    """Tokens of judge, simulated user and embedding model together."""

    input: Amount = 0
    output: Amount = 0


class Usage(Record):
    """What the run used."""

    calls: Amount = 0
    tokens: Tokens = Tokens()
    cost_usd: Dollars | None = Field(
        None, description="US dollars; null where a model's price or an answer's tokens are not known."
    )
    by_role: tuple[RoleUsage, ...] = ()
    prices_as_of: date | None = Field(None, description="The date of the price table.")
    unpriced: tuple[str, ...] = Field((), description="Models that were used and have no price.")


class Latency(Record):
    """How long the agent took to answer, in seconds, over all replies of the run."""

    replies: Amount = 0
    median: Seconds | None = None
    p95: Seconds | None = Field(None, description="The shortest time within which 95 % of the replies came.")
    slowest: Seconds | None = None


class Tool(Record):
    """Which program wrote the file."""

    name: CleanText = "ci-evals"
    version: CleanText


class Git(Record):
    """The commit that was tested, where the environment tells it."""

    commit: str | None = None
    ref: str | None = None
    repository: str | None = None
    head_commit: str | None = Field(
        None, description="The pull request's own commit; `commit` is then its merge with the base branch."
    )
    pull_request: int | None = None


class Digests(Record):
    """SHA-256 of each thing that the scores depend on: where two differ, so may the scores."""

    suites: CleanText = Field(description="What is asked: turns, users' data, criteria and weights.")
    agents: CleanText = Field(description="Adapters, ids, addresses and models of the agents.")
    models: CleanText = Field(
        description="Provider and models of judge and simulated user, and the embedding model if one is used."
    )
    judge_prompt: CleanText
    user_prompt: CleanText = Field(
        description="Of the simulated user: its prompt, or that it is scripted; and by what it is audited."
    )
    loops: CleanText = Field(description="How many trials of each test.")
    scoring: CleanText = Field("1", description="The version of the rules that make scores of verdicts.")


class Confirmation(Record):
    """More trials that were played since the first look was close."""

    trials: int = Field(description="Of each test, beyond those of the first look.")
    because: tuple[str, ...] = Field(description="What was close.")


class CheckOdds(CheckId):
    """How often an unchanged agent would fail one check of the gate."""

    share: float = Field(description="0 to 1.")


class Odds(Record):
    """How often an unchanged agent would fail this gate, told from the noise of these results."""

    share: float = Field(description="Of runs like this one that would fail the gate, 0 to 1.")
    checks: tuple[CheckOdds, ...] = ()
    floor: Percent | None = Field(description="The highest min-score that fewer than 5 % of such runs miss.")
    loops: int = Field(description="Trials of each test in such a run, at most.")


class Shard(Record):
    """Which part of a plan a run has played."""

    index: Positive = Field(description="Counted from 1.")
    of: Positive = Field(description="How many parts there are.")
    plan: CleanText = Field(description="SHA-256 of the whole plan: its suites, tests and loops.")
    split: CleanText = Field(description="SHA-256 of the plan and of which part plays which test.")
    suites: Annotated[tuple[str, ...], Clean()] = Field(
        description="The files of all suites of the plan, in its order."
    )
    tests: tuple[Positive, ...] = Field(
        description="Where in the plan each test of these results stands, in their order, counted from 1."
    )


class Origin(Record):
    """The earlier run whose conversations stand in these results, where none was held anew."""

    how: Literal["replay", "rejudge"] = Field(
        description="`replay`: agent and models were played from a recording. `rejudge`: saved transcripts "
        "were judged again."
    )
    run: CleanText = Field(description="The id of that run.")
    started_at: Instant = Field(description="When that run began.")


class Resumed(Record):
    """The part of a run that was played before the run was broken off, and taken from its journal."""

    trials: Amount = Field(description="Trials of these results that came from the journal.")
    written_at: Instant | None = Field(description="When the last of them was written.")
    attempt: Amount | None = Field(None, description="GitHub's attempt of the workflow run that began it.")
    commit: CleanText | None = Field(None, description="The commit at which they were played, if known.")


Status = Literal["completed", "stopped", "interrupted", "skipped", "unfinished"]
"""How a run ended; `skipped` if it was given no secrets and nothing was played, `unfinished` if it goes
on, or was killed."""


class RunInfo(Record):
    """When, where and how the run was made."""

    id: CleanText
    started_at: Instant
    finished_at: Instant
    duration_seconds: Seconds
    status: Status
    stopped_because: str | None = Field(None, description="Why it was stopped or skipped.")
    config: dict[str, JsonValue] = Field(description="The options in force, without secrets.")
    git: Git = Git()
    environment: dict[str, str | None] = Field(default_factory=dict)
    digests: Digests
    confirmation: Confirmation | None = None
    shard: Shard | None = Field(None, description="Null where the whole plan was played.")
    origin: Origin | None = Field(None, description="Null where the conversations were held in this run.")
    resumed: Resumed | None = Field(None, description="Null if no trial came from a journal.")
    baseline_note: str | None = Field(
        None, description="Which baseline was found, or why there is none; null where none was looked for."
    )
    warnings: tuple[str, ...] = ()


class Results(Record):
    """A whole run."""

    schema_version: Literal[1] = 1
    tool: Tool
    run: RunInfo
    score: Percent | None = Field(description="Mean over all tests of all suites, in points, unrounded.")
    interval: Interval | None = Field(None, description="95 %, with the test as the unit.")
    decided_share: Share | None = Field(
        None,
        description="Share of the criteria's weight that was decided, over all planned trials. Below 0.5 no "
        "report shows the score as a headline. Null in results that earlier versions wrote.",
    )
    pass_at_k: dict[int, Share] = Field(
        default_factory=dict, description="Mean over the tests, as far as all go."
    )
    pass_hat_k: dict[int, Share] = Field(
        default_factory=dict, description="Mean over the tests, as far as all go."
    )
    counts: Counts
    gate: Decision
    comparison: Comparison | None = Field(None, description="With the baseline; null where there is none.")
    odds: Odds | None = Field(
        None, description="Of an unchanged agent failing this gate; null where the run cannot be trusted."
    )
    usage: Usage
    latency: Latency = Latency()
    process: ProcessSummary | None = None
    coverage: Coverage | None = Field(None, description="Null in results that earlier versions wrote.")
    judge_check: JudgeCheck | None = Field(
        None, description="Control questions to the judge, the worst of `judgeChecks`; null without any."
    )
    judge_checks: tuple[JudgeCheck, ...] = Field((), description="One check for each model that judges.")
    vote_agreement: VoteAgreement | None = Field(None, description="Null where criteria had one vote each.")
    user_ledger: UserLedger | None = Field(None, description="Null where no model played the user.")
    studies: Studies = Studies()
    suites: tuple[SuiteResult, ...]
