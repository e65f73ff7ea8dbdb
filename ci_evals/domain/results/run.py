"""A whole run: the value that every report is a function of, and the shape of `_results.json`."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, JsonValue
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from ci_evals.domain.base import JSON_SCHEMA, Amount, CleanText, Instant, Positive, Record, Seconds
from ci_evals.domain.plan import BASE
from ci_evals.domain.providers import Provider
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.comparison import Comparison
from ci_evals.domain.results.gate import Decision, Odds
from ci_evals.domain.results.judge import JudgeCheck, VoteAgreement
from ci_evals.domain.results.process import Coverage, ProcessSummary
from ci_evals.domain.results.simulated_user import UserChecks
from ci_evals.domain.results.studies import Studies, Study
from ci_evals.domain.results.suite import ScoreSummary, SuiteResult, TestResult
from ci_evals.domain.results.usage import Latency, Usage
from ci_evals.support.redaction import Clean

S = TypeVar("S", bound=Study)


class Tool(Record):
    """The program that wrote the file."""

    name: CleanText = "ci-evals"
    version: CleanText


class Git(Record):
    """The commit that was tested; null if neither git nor the CI service names it."""

    commit: str | None = None
    ref: str | None = None
    repository: str | None = None
    head_commit: str | None = Field(
        None, description="The pull request's own commit; `commit` is then its merge with the base branch."
    )
    pull_request: int | None = None

    @property
    def branch(self) -> str | None:
        """The branch that was tested; None for a tag, a pull request or a merge queue."""
        branch = (self.ref or "").removeprefix("refs/heads/")
        return None if branch.startswith(("refs/", "gh-readonly-queue/")) else branch or None


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


class Rounds(Record):
    """The looks at a run that ends as soon as it is decided."""

    looks: tuple[Positive, ...] = Field(description="Trials of each test after which it may end.")
    played: Positive = Field(description="Trials of each test after which it ended.")


class Shard(Record):
    """The part of a plan that a run has played."""

    index: Positive = Field(description="Counted from 1.")
    of: Positive = Field(description="How many parts there are.")
    plan: CleanText = Field(description="SHA-256 of the whole plan: its suites, tests and loops.")
    split: CleanText = Field(description="SHA-256 of the plan and of which part plays which test.")
    suites: Annotated[tuple[str, ...], Clean()] = Field(
        description="The files of all suites of the plan, in its order."
    )
    tests: tuple[Positive, ...] = Field(
        description="The position in the plan of each test of these results, in their order, counted from 1."
    )


class Origin(Record):
    """The earlier run whose conversations stand in these results, if none was played now."""

    how: Literal["replay", "rejudge"] = Field(
        description="`replay`: agent and models were played from a recording. `rejudge`: saved transcripts "
        "were judged again."
    )
    run: CleanText = Field(description="The id of that run.")
    started_at: Instant = Field(description="When that run began.")


class Resumed(Record):
    """The part of a run that was played before the run was interrupted, and taken from its journal."""

    trials: Amount = Field(description="Trials of these results that came from the journal.")
    written_at: Instant | None = Field(description="When the last of them was written.")
    attempt: Amount | None = Field(None, description="GitHub's attempt of the workflow run that began it.")
    commit: CleanText | None = Field(None, description="The commit at which they were played, if known.")


Status = Literal["completed", "stopped", "interrupted", "skipped", "unfinished"]
"""The way a run ended; `skipped` if it was given no secrets and nothing was played, `unfinished` if it goes
on, or was killed."""


class RunInfo(Record):
    """Time, place and settings of a run."""

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
    rounds: Rounds | None = Field(None, description="Null if every test was played as often as was planned.")
    shard: Shard | None = Field(None, description="Null if the whole plan was played.")
    origin: Origin | None = Field(None, description="Null if the conversations were played in this run.")
    resumed: Resumed | None = Field(None, description="Null if no trial came from a journal.")
    baseline_note: str | None = Field(
        None, description="Which baseline was found, or why there is none; null if none was searched for."
    )
    warnings: tuple[str, ...] = ()

    @property
    def provider(self) -> str | None:
        """The provider of judge and simulated user; None for the caller's own."""
        provider = self.config.get("provider")
        return provider if isinstance(provider, str) else None

    @property
    def offline(self) -> bool:
        """True if there was no judge on purpose."""
        return self.provider == Provider.OFFLINE


class _RunFields(Record):
    """The fields of a run's results that come first in their JSON."""

    schema_version: Literal[3] = 3
    tool: Tool
    run: RunInfo


class Results(ScoreSummary, _RunFields):
    """A whole run."""

    gate: Decision
    comparison: Comparison | None = Field(None, description="With the baseline; null if there is none.")
    odds: Odds | None = Field(
        None,
        description="How often an unchanged agent would fail this gate; null without a verdict, or with more "
        "than 5,000 tests.",
    )
    usage: Usage
    latency: Latency = Latency()
    process: ProcessSummary = ProcessSummary()
    coverage: Coverage = Coverage()
    judge_check: JudgeCheck | None = Field(
        None, description="Control questions to the judge, the worst of `judgeChecks`; null without any."
    )
    judge_checks: tuple[JudgeCheck, ...] = Field((), description="One check for each model that judges.")
    vote_agreement: VoteAgreement | None = Field(None, description="Null if criteria had one vote each.")
    user_checks: UserChecks | None = Field(None, description="Null if no model played the user.")
    studies: Studies = Field((), description="What studies of this run found out, by the key of each.")
    arms: tuple[Arm, ...] = Field(
        (),
        description="The agents that were played side by side, if there were several: two or more. With "
        "`arms` the first is the reference.",
    )
    suites: tuple[SuiteResult, ...]

    @property
    def tests(self) -> tuple[TestResult, ...]:
        """The tests of all suites."""
        return tuple(test for suite in self.suites for test in suite.tests)

    @property
    def base_side(self) -> "Results | None":
        """The results of the agent that this one is compared with, if it was played in this run."""
        names = [arm.name for arm in self.arms]
        return self.of_arm(BASE if BASE in names else names[0]) if names else None

    def of_arm(self, name: str) -> "Results | None":
        """The run as if it had played this other agent alone; None if it did not, or the gate is about it."""
        arm = next((arm for arm in self.arms if arm.name == name and not arm.gated), None)
        if arm is None:
            return None
        own = {field: getattr(arm, field) for field in _OF_ARM}
        return self.model_copy(update={**own, "run": self.run.model_copy(update={"git": Git()}), "arms": ()})

    def study(self, kind: type[S]) -> S | None:
        """The study of this kind, if there is one."""
        return next((study for study in self.studies if isinstance(study, kind)), None)

    def with_studies(self, *studies: Study, without: Collection[str] = ()) -> Self:
        """A copy with these studies, instead of those of the same keys and of the keys in `without`."""
        gone = {*without, *(study.key for study in studies)}
        kept = tuple(study for study in self.studies if study.key not in gone)
        return self.model_copy(update={"studies": kept + studies})


_OF_ARM = (*ScoreSummary.model_fields, "usage", "latency", "suites")


def results_schema(studies: Mapping[str, type[Study]]) -> dict[str, Any]:
    """The JSON Schema of a `_results.json`, with these types of studies by their keys."""
    models: list[tuple[type[Record], JsonSchemaMode]] = [(Results, "serialization")]
    models += [(kind, "serialization") for kind in studies.values()]
    references, definitions = models_json_schema(models, by_alias=True)
    shared = definitions["$defs"]
    results: dict[str, Any] = shared.pop(references[Results, "serialization"]["$ref"].rpartition("/")[2])
    results["properties"]["studies"] |= {
        "properties": {key: references[kind, "serialization"] for key, kind in studies.items()},
        "additionalProperties": True,
    }
    return JSON_SCHEMA | results | {"$defs": shared}
