"""A whole run: the value that every report is a function of, and the shape of `_results.json`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, Self, TypeVar

from pydantic import JsonValue

from ci_evals.domain.base import (
    JSON_SCHEMA,
    Amount,
    CleanText,
    Instant,
    Percent,
    Positive,
    ResultPart,
    Seconds,
    Share,
)
from ci_evals.domain.definition import SuiteDefinition
from ci_evals.domain.errors import Exit
from ci_evals.domain.plan import BASE
from ci_evals.domain.providers import OFFLINE
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.comparison import Comparison
from ci_evals.domain.results.gate import Decision, Odds
from ci_evals.domain.results.judge import JudgeCheck, VoteAgreement
from ci_evals.domain.results.process import Coverage, ProcessSummary
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.domain.results.studies import Studies, Study
from ci_evals.domain.results.suite import OWN_RESULTS, ScoreSummary, SuiteResult, TestResult
from ci_evals.domain.results.usage import Latency, Usage
from ci_evals.domain.results.weakened import Weakened
from ci_evals.support import dataclass_json
from ci_evals.support.json_text import JsonObject
from ci_evals.support.redaction import Clean

S = TypeVar("S", bound=Study)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(ResultPart):
    """The program that wrote the file."""

    name: CleanText = "ci-evals"
    version: CleanText


@dataclass(frozen=True, slots=True, kw_only=True)
class Git(ResultPart):
    """The commit that was tested; null if neither git nor the CI service names it."""

    commit: str | None = None
    ref: str | None = None
    repository: str | None = None
    head_commit: str | None = None
    """The pull request's own commit; `commit` is then its merge with the base branch."""
    pull_request: int | None = None
    uncommitted_changes: bool = False
    """True if files differed from the commit. Only looked at outside CI."""

    @property
    def exact_commit(self) -> str | None:
        """The commit, of a pull request its own, if all that was tested is in it; else None."""
        return None if self.uncommitted_changes else self.head_commit or self.commit

    @property
    def branch(self) -> str | None:
        """The branch that was tested; None for a tag, a pull request or a merge queue."""
        branch = (self.ref or "").removeprefix("refs/heads/")
        return None if branch.startswith(("refs/", "gh-readonly-queue/")) else branch or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests(ResultPart):
    """SHA-256 of each thing that the scores depend on: where two differ, so may the scores."""

    suites: CleanText
    """What is asked: turns, users' data, criteria and weights."""
    agents: CleanText
    """Adapters, ids, addresses and models of the agents."""
    models: CleanText
    """Provider and models of judge and simulated user, and the embedding model if one is used."""
    judge_prompt: CleanText
    user_prompt: CleanText
    """Of the simulated user: its prompt, or that it is scripted; and by what it is audited."""
    loops: CleanText
    """How many trials of each test."""
    scoring: CleanText = "1"
    """The version of the rules that make scores of verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds(ResultPart):
    """The looks at a run that ends as soon as it is decided."""

    looks: tuple[Positive, ...]
    """Trials of each test after which it may end."""
    played: Positive
    """Trials of each test after which it ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard(ResultPart):
    """The part of a plan that a run has played."""

    index: Positive
    """Counted from 1."""
    of: Positive
    """How many parts there are."""
    plan: CleanText
    """SHA-256 of the whole plan: its suites, tests and loops."""
    split: CleanText
    """SHA-256 of the plan and of which part plays which test."""
    suites: Annotated[tuple[str, ...], Clean()]
    """The files of all suites of the plan, in its order."""
    tests: tuple[Positive, ...]
    """The position in the plan of each test of these results, in their order, counted from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(ResultPart):
    """The earlier run whose conversations stand in these results, if none was played now."""

    how: Literal["replay", "rejudge"]
    """`replay`: agent and models were played from a recording. `rejudge`: saved transcripts were
    judged again."""
    run: CleanText
    """The id of that run."""
    started_at: Instant
    """When that run began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(ResultPart):
    """The part of a run that was played before the run was interrupted, and taken from its journal."""

    trials: Amount
    """Trials of these results that came from the journal."""
    written_at: Instant | None
    """When the last of them was written."""
    attempt: Amount | None = None
    """GitHub's attempt of the workflow run that began it."""
    commit: CleanText | None = None
    """The commit at which they were played, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledRun(ResultPart):
    """An earlier attempt at this commit whose trials count with those of this run."""

    run: CleanText
    """Its id."""
    ci_run: CleanText | None = None
    """The id of its workflow run."""
    attempt: Positive | None = None
    """GitHub's attempt of that."""
    trials: Amount
    """Its trials that are in these results."""
    started_at: Instant
    score: Percent | None = None
    """The score that it came to, with the trials that it had pooled itself."""
    passed: bool | None = None
    """True if it passed the gate. Null if it had no verdict."""
    drop: bool | None = None
    """True if its check `regression` found a significant drop. Null if it did not look for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpooledRun(ResultPart):
    """An earlier attempt at this commit whose trials do not count in this run."""

    source: str
    """Its place on GitHub: `attempt 1 of run 12345`."""
    why: str
    """A clause."""
    unread: bool = False
    """True if there are results that could not be read. They may show a failure, so this run cannot pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reruns(ResultPart):
    """The facts about earlier attempts at the commit of a run that pools reruns."""

    ci_run: CleanText | None = None
    """The id of this workflow run."""
    attempt: Positive | None = None
    """GitHub's attempt of it."""
    level: Share
    """The highest p of a drop that fails, if all planned trials are looked at once."""
    not_pooled: tuple[UnpooledRun, ...] = ()
    setup: CleanText = ""
    """SHA-256 of how agents are reached, and of the options of the other agents."""


Status = Literal["completed", "stopped", "interrupted", "skipped", "unfinished"]
"""The way a run ended; `skipped` if it was given no secrets and nothing was played, `unfinished` if it goes
on, or was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo(ResultPart):
    """Time, place and settings of a run."""

    id: CleanText
    started_at: Instant
    finished_at: Instant
    duration_seconds: Seconds
    status: Status
    stopped_because: str | None = None
    """Why it was stopped or skipped."""
    config: dict[str, JsonValue]
    """The options in force, without secrets."""
    git: Git = Git()
    environment: dict[str, str | None] = field(default_factory=dict)
    digests: Digests
    rounds: Rounds | None = None
    """Null if every test was played as often as was planned."""
    shard: Shard | None = None
    """Null if the whole plan was played."""
    origin: Origin | None = None
    """Null if the conversations were played in this run."""
    resumed: Resumed | None = None
    """Null if no trial came from a journal."""
    pooled: tuple[PooledRun, ...] = ()
    """Earlier attempts at this commit whose trials count in these results, the first one first."""
    reruns: Reruns | None = None
    """Null if reruns are not pooled."""
    baseline_note: str | None = None
    """Which baseline was found, or why there is none; null if none was searched for."""
    null_score: Percent | None = None
    """The mean of the tests' `nullScore`, but for those in quarantine. Null if none has one."""
    definitions: tuple[SuiteDefinition, ...] | None = None
    """The requirements of the suites, including tests that were not selected. Null if unknown."""
    warnings: tuple[str, ...] = ()

    @property
    def provider(self) -> str | None:
        """The provider of judge and simulated user; None for the caller's own."""
        provider = self.config.get("provider")
        return provider if isinstance(provider, str) else None

    @property
    def offline(self) -> bool:
        """True if there was no judge on purpose."""
        return self.provider == OFFLINE.name


@dataclass(frozen=True, kw_only=True)
class _RunFields(ResultPart):
    """The fields of a run's results that come first in their JSON."""

    schema_version: Literal[3] = 3
    tool: Tool
    run: RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Results(ScoreSummary, _RunFields):
    """A whole run."""

    gate: Decision
    comparison: Comparison | None = None
    """With the baseline; null if there is none."""
    weakened: Weakened | None = None
    """Requirements of suites and gate that were dropped since the baseline. Null if not compared."""
    odds: Odds | None = None
    """How often an unchanged agent would fail this gate; null without a verdict, or with more than
    5,000 tests."""
    usage: Usage
    latency: Latency = Latency()
    process: ProcessSummary = ProcessSummary()
    coverage: Coverage = Coverage()
    judge_check: JudgeCheck | None = None
    """Control questions to the judge, the worst of `judgeChecks`; null without any."""
    judge_checks: tuple[JudgeCheck, ...] = ()
    """One check for each model that judges."""
    vote_agreement: VoteAgreement | None = None
    """Null if criteria had one vote each."""
    user_checks: UserChecks | None = None
    """Null if no model played the user."""
    studies: Studies = ()
    """What studies of this run found out, by the key of each."""
    arms: tuple[Arm, ...] = ()
    """The agents that were played side by side, if there were several: two or more. With `arms` the
    first is the reference."""
    suites: tuple[SuiteResult, ...]

    @property
    def tests(self) -> tuple[TestResult, ...]:
        """The tests of all suites."""
        return tuple(test for suite in self.suites for test in suite.tests)

    @property
    def skipped(self) -> bool:
        """True if nothing was played, and the gate has nothing against it."""
        fails = any(check.passed is False for check in self.gate.checks)
        return self.run.status == "skipped" and self.gate.exit_code == Exit.PASSED and not fails

    @property
    def of_other_tools(self) -> bool:
        """True if other tools played all of it, which never say what their tests require."""
        if self.run.definitions is not None:
            return False
        return all(suite.of_other_tool and suite.adapter != OWN_RESULTS for suite in self.suites)

    @property
    def base_side(self) -> "Results | None":
        """The results of the agent that this one is compared with, if it was played in this run."""
        names = [arm.name for arm in self.arms]
        return self.of_arm(BASE if BASE in names else names[0]) if names else None

    @property
    def own_usage(self) -> Usage:
        """The usage of the agent that the gate is about; `usage` is that of all agents."""
        return next((arm.usage for arm in self.arms if arm.gated), self.usage)

    def of_arm(self, name: str) -> "Results | None":
        """The run as if it had played this other agent alone; None if it did not, or the gate is about it."""
        arm = next((arm for arm in self.arms if arm.name == name and not arm.gated), None)
        if arm is None:
            return None
        return replace(
            self,
            score=arm.score,
            interval=arm.interval,
            decided_share=arm.decided_share,
            pass_at_k=arm.pass_at_k,
            pass_hat_k=arm.pass_hat_k,
            official=arm.official,
            counts=arm.counts,
            usage=arm.usage,
            latency=arm.latency,
            suites=arm.suites,
            run=replace(self.run, git=Git()),
            arms=(),
        )

    def study(self, kind: type[S]) -> S | None:
        """The study of this kind, if there is one."""
        return next((study for study in self.studies if isinstance(study, kind)), None)

    def with_studies(self, *studies: Study, without: Collection[str] = ()) -> Self:
        """A copy with these studies, instead of those of the same keys and of the keys in `without`."""
        gone = {*without, *(study.key for study in studies)}
        kept = tuple(study for study in self.studies if study.key not in gone)
        return replace(self, studies=kept + studies)


def results_schema(studies: Mapping[str, type[Study]]) -> JsonObject:
    """The JSON Schema of a `_results.json`, with these types of studies by their keys."""
    references, definitions = dataclass_json.schemas(Results, *studies.values())
    results = definitions.pop(references[Results]["$ref"].rpartition("/")[2])
    results["properties"]["studies"] |= {
        "properties": {key: references[kind] for key, kind in studies.items()},
        "additionalProperties": True,
    }
    return JSON_SCHEMA | results | {"$defs": definitions}
