"""Suites as their authors write them: an agent and its tests. The format is that of `@aui.io/evals`."""

from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    JsonValue,
    SecretStr,
    Tag,
    WithJsonSchema,
    field_validator,
)

from ci_evals.domain.agents import COMMAND, DEFAULT_ADAPTER, PYTHON, is_program
from ci_evals.domain.base import JSON_SCHEMA, Model, NonBlank
from ci_evals.domain.canaries import CanaryKind
from ci_evals.domain.checks.evaluation import Evaluation
from ci_evals.domain.world import Step, World
from ci_evals.support.documentation import address
from ci_evals.support.json_text import JsonObject
from ci_evals.support.text import is_blank

DEFAULT_MAX_TURNS = 7
DEFAULT_TIMEOUT_SECONDS = 120.0
_LAST_PORT = 65535
AUTO = "auto"
MOST_TURNS = 1_000
MOST_LOOPS = 1_000
"""No suite means more; a slip of the keyboard must not fill the memory."""


COLLECTIONS = ("demo", "quack")
"""The folders of bundled suites, and the prefixes of their names: `demo:hr`."""


def is_bundled(file: str) -> bool:
    """Return whether a suite comes with the package, so that no repository has a file of this name."""
    collection, colon, _ = file.partition(":")
    return bool(colon) and collection in COLLECTIONS


def _names_an_adapter(name: str) -> str:
    """Check the form of an adapter's name. Which names exist depends on what is installed."""
    if name.startswith(PYTHON):
        module, colon, attribute = name.removeprefix(PYTHON).partition(":")
        parts = [*module.split("."), *attribute.split(".")]
        if not colon or not all(part.isidentifier() for part in parts):
            hint = "; the module of a file agents/shop.py is agents.shop" if "/" in module else ""
            raise ValueError(f"is not of the form python:module:attribute{hint}")
    elif name.startswith(COMMAND) and not name.removeprefix(COMMAND).strip():
        raise ValueError("names no program: command: node agent.js")
    elif not is_program(name) and not name.strip():
        raise ValueError("must not be empty")
    return name


AdapterName = Annotated[str, AfterValidator(_names_an_adapter)]


_STEPS = dict.fromkeys(("setup", "probes", "teardown"), True)


def _can_be_awaited(target: Any) -> str:
    """Check that a value is a port or an address, and return it as text."""
    text = "" if isinstance(target, bool) else str(target).strip()
    if text.isascii() and text.isdecimal() and 0 < int(text) <= _LAST_PORT:
        return text
    try:
        parts = urlsplit(text)
        fits = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        fits = False
    if not fits or "@" in parts.netloc or any(char.isspace() for char in text):
        raise ValueError("is neither an http(s):// address nor a port, 1 to 65535")
    return text


_PORT_SCHEMA = {"type": "integer", "minimum": 1, "maximum": _LAST_PORT}
AwaitedAddress = Annotated[
    str,
    BeforeValidator(_can_be_awaited),
    WithJsonSchema({"anyOf": [{"type": "string"}, _PORT_SCHEMA]}),
]
"""A URL or a port that answers once an agent is up."""


class PlannedTurn(Model):
    """One planned line of the user."""

    user: NonBlank = Field(description="The message to send, or `auto`: the simulated user writes it.")
    timeout: float = Field(
        default=DEFAULT_TIMEOUT_SECONDS, gt=0, description="Seconds that the agent may take to answer."
    )
    expectation: str | None = Field(
        default=None,
        description="What should happen here. Only the judge sees it, never the agent or the simulated user.",
    )

    @field_validator("user")
    @classmethod
    def _is_visible(cls, text: str) -> str:
        if is_blank(text):
            raise ValueError("has no visible character; write the message, or auto")
        return text

    @property
    def auto(self) -> bool:
        """True if the simulated user writes this line."""
        return self.user == AUTO

    @property
    def fixed(self) -> bool:
        """True if the test is only complete once this line was sent."""
        return not self.auto


class GivenReply(Model):
    """A reply that the agent finds in its history, as if it had given it before the test."""

    assistant: NonBlank = Field(description="The agent's words. Nothing of them is judged or checked.")

    @field_validator("assistant")
    @classmethod
    def _is_visible(cls, text: str) -> str:
        if is_blank(text):
            raise ValueError("has no visible character")
        return text


PLANNED_TURN, GIVEN_REPLY = "a planned turn", "a given reply"
"""Tags of the two kinds of lines."""


def _kind_of_line(line: Any) -> str:
    if isinstance(line, dict):
        return GIVEN_REPLY if "assistant" in line and "user" not in line else PLANNED_TURN
    return GIVEN_REPLY if isinstance(line, GivenReply) else PLANNED_TURN


Line = Annotated[
    Annotated[PlannedTurn, Tag(PLANNED_TURN)] | Annotated[GivenReply, Tag(GIVEN_REPLY)],
    Discriminator(_kind_of_line),
]
"""One of a test's `turns`. Those up to the last reply of the agent are its history, the others are played."""


def planned_turns(turns: Sequence[Line]) -> tuple[PlannedTurn, ...]:
    """Return the turns that are played."""
    return tuple(turn for turn in turns[_given(turns) :] if isinstance(turn, PlannedTurn))


def unsent_lines(turns: Sequence[PlannedTurn], sent: int) -> range:
    """Return the numbers of the turns after the first `sent` ones, up to the last fixed line.

    Turns of the simulated user count only if a fixed line follows: otherwise it may stop when it is done.
    """
    last = max((number for number, turn in enumerate(turns, 1) if turn.fixed), default=0)
    return range(sent + 1, last + 1)


def history(turns: Sequence[Line]) -> list[JsonObject]:
    """Return the messages before a test, `{"role": "user" or "assistant", "content": text}`, oldest first."""
    return [
        {"role": "user", "content": turn.user}
        if isinstance(turn, PlannedTurn)
        else {"role": "assistant", "content": turn.assistant}
        for turn in turns[: _given(turns)]
    ]


def _given(turns: Sequence[Line]) -> int:
    return max((place for place, turn in enumerate(turns, 1) if isinstance(turn, GivenReply)), default=0)


class Quarantine(Model):
    """A time in which a test is played and reported, and decides nothing."""

    reason: NonBlank = Field(description="Why the test decides nothing for now.")
    until: date = Field(description="The last day, as `2026-12-31` (UTC). Later the suite is not valid.")
    owner: NonBlank | None = Field(default=None, description="Who ends it.")


def _is_pattern(pattern: str) -> str:
    """Check that a pattern is one of paths below the root of a repository."""
    if pattern.startswith(("/", "!")) or "\\" in pattern or ".." in pattern.split("/"):
        raise ValueError("is no pattern relative to the root of the repository, such as src/agent/**")
    return pattern


PathPattern = Annotated[NonBlank, AfterValidator(_is_pattern)]


class When(Model):
    """When a test is worth playing."""

    paths: Annotated[tuple[PathPattern, ...], Field(min_length=1)] = Field(
        description="Everything in the repository that the result depends on: files, folders, and patterns "
        "such as `src/agent/**` and `prompts/*.md`."
    )


class Test(Model):
    """One scenario of a simulated user, and the evaluations to apply to the conversation."""

    __test__: ClassVar[bool] = False
    """Tells pytest, which collects classes of such names, to leave this one alone."""

    name: NonBlank = Field(description="Unique in the suite.")
    user_info: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="The user's data, for the simulated user and the agent. An AUI agent gets it as "
        "`agent_variables`, an `http` agent only where `send` holds `{{userInfo}}`.",
    )
    guidelines: str = Field(description="How the simulated user acts: personality, goals, tone.")
    system_prompt: str | None = Field(
        default=None, description="Passed to agents that can use it; AUI has no field for it."
    )
    canaries: dict[NonBlank, CanaryKind] = Field(
        default_factory=dict,
        description="Values that are new for each trial, by name: `code`, `number` or `email`. "
        "`{{canary.NAME}}` stands for one in all texts of the test and of its world's steps.",
    )
    turns: tuple[Line, ...] = Field(
        min_length=1,
        description="The user's lines. Fewer than `maxTurns` are filled up with `auto`. Lines up to the last "
        "`assistant` are not played: the agent finds them in its history.",
    )
    evaluations: tuple[Evaluation, ...] = Field(min_length=1, description="What is checked afterwards.")
    tags: tuple[NonBlank, ...] = Field(default=(), description="Names to select and group tests by.")
    difficulty: NonBlank | None = Field(default=None, description="A name such as `easy` or `level 2`.")
    max_turns: int | None = Field(
        default=None, ge=1, le=MOST_TURNS, description="Overrides the suite's `maxTurns`."
    )
    min_score: float | None = Field(
        default=None, ge=0, le=100, description="Minimum score of this test, 0 to 100."
    )
    critical: bool = Field(
        default=False, description="Whether the run passes only if every trial of this test passes."
    )
    loops: int | None = Field(
        default=None, ge=1, le=MOST_LOOPS, description="Trials of this test, instead of the option `loops`."
    )
    optimal_tools: Annotated[tuple[NonBlank, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="The workflows of the shortest right conversation, in order. Reports compare trials with "
        "them. It decides no verdict.",
    )
    setup: tuple[Step, ...] = Field(
        default=(), description="Steps before each conversation, after the suite's."
    )
    probes: dict[NonBlank, Step] = Field(
        default_factory=dict,
        description="Probes in addition to the suite's, or instead of one of the same name.",
    )
    teardown: tuple[Step, ...] = Field(
        default=(), description="Steps after each conversation, after the suite's."
    )
    lock: NonBlank | None = Field(
        default=None,
        description="Trials with the same lock never run at the same time; overrides the suite's.",
    )
    cluster: NonBlank | None = Field(
        default=None,
        description="A name that tests share which depend on each other, such as one task for several users. "
        "Intervals, odds and comparisons count a cluster as one test.",
    )
    may_escalate: bool = Field(
        default=False,
        description="Whether the agent may hand over to a person before the last line. What was said until "
        "then decides.",
    )
    audit_user: bool = Field(
        default=False,
        description="Whether a model checks this test's simulated user, as with the option `audit-user`.",
    )
    quarantine: Quarantine | None = Field(
        default=None,
        description="Play and report the test until a day, but leave it out of the score, of every floor, of "
        "the comparison and of the limits on errors.",
    )
    when: When | None = Field(
        default=None,
        description="With `changed-since` the test is played only if one of these paths changed, instead "
        "of the suite's.",
    )

    @field_validator("turns")
    @classmethod
    def _gives_what_is_known(cls, turns: tuple[Line, ...]) -> tuple[Line, ...]:
        for number, turn in enumerate(turns[: _given(turns)], 1):
            if isinstance(turn, PlannedTurn) and (turn.auto or turn.expectation):
                what = "auto" if turn.auto else "a message with an expectation"
                raise ValueError(
                    f"hold {what} (number {number}) before what the assistant said: all up to there is the "
                    "agent's history, which is not played; write the user's message, and no expectation"
                )
        # Most turns are alike, and need not be kept each by itself.
        return tuple(
            _auto_turn() if turn == _auto_turn() and turn.model_fields_set == {"user"} else turn
            for turn in turns
        )

    @property
    def planned_turns(self) -> tuple[PlannedTurn, ...]:
        """The turns that are played."""
        return planned_turns(self.turns)

    @property
    def history(self) -> list[JsonObject]:
        """The messages before the test, `{"role": "user" or "assistant", "content": text}`, oldest first."""
        return history(self.turns)


@cache
def _auto_turn() -> PlannedTurn:
    return PlannedTurn(user=AUTO)


class Suite(Model):
    """One agent and the tests to put it through."""

    name: NonBlank = Field(description="The suite's name in every report.")
    description: str | None = Field(default=None, description="What the suite is about.")
    agent_id: NonBlank | None = Field(default=None, description="Id of the agent under test.")
    api_key: SecretStr | None = Field(
        default=None, description="Network API key of the agent. Better from the environment: `${NAME}`."
    )
    adapter: AdapterName = Field(
        default=DEFAULT_ADAPTER,
        description=f"How to call the agent: the name of an adapter ({address('adapters')}), "
        "`python:module:attribute`, `command: program`, or the name of a plug-in.",
    )
    adapter_options: dict[str, JsonValue] | None = Field(
        default=None, description=f"What the adapter needs to know: {address('adapters')}"
    )
    base_url: NonBlank | None = Field(
        default=None, description="The agent's address, instead of the adapter's default."
    )
    start: NonBlank | None = Field(
        None,
        description="Command that serves the agent. A shell runs it in the suite's folder during the run.",
    )
    wait_for: AwaitedAddress | None = Field(
        None, description="Address or port that answers once the agent is up. Default: `baseUrl`."
    )
    start_timeout: float | None = Field(
        None,
        ge=1,
        le=3600,
        description="Maximum wait for the agent to start, in seconds. Default: 60.",
    )
    trace: Literal["otlp"] | None = Field(
        default=None,
        description="`otlp`: tool calls are read from the spans that the agent exports (OpenTelemetry).",
    )
    model: NonBlank | None = Field(
        default=None, description="Passed to agents that can use it; AUI has no field for it."
    )
    judge_model: NonBlank | None = Field(default=None, description="The judge's model.")
    user_model: NonBlank | None = Field(default=None, description="The simulated user's model.")
    audit_model: NonBlank | None = Field(
        default=None, description="Model of the option `audit-user`. Default: the simulated user's."
    )
    max_turns: int = Field(
        default=DEFAULT_MAX_TURNS,
        ge=1,
        le=MOST_TURNS,
        description="Turns are filled up with `auto` to this many.",
    )
    min_score: float | None = Field(
        default=None, ge=0, le=100, description="Minimum score of this suite, 0 to 100."
    )
    when: When | None = Field(
        default=None,
        description="With `changed-since` a test is played only if one of these paths changed.",
    )
    setup: tuple[Step, ...] = Field(default=(), description="Steps before each conversation, in order.")
    probes: dict[NonBlank, Step] = Field(
        default_factory=dict,
        description="What to look up after each conversation, by name, for `state` checks and the judge.",
    )
    teardown: tuple[Step, ...] = Field(
        default=(), description="Steps after each conversation, however it ended, in order."
    )
    lock: NonBlank | None = Field(
        default=None,
        description="Trials with the same lock, of any suite of a run, never run at the same time.",
    )
    tests: tuple[Test, ...] = Field(min_length=1, description="The tests.")

    def world_of(self, test: Test) -> World:
        """The steps and probes of the suite, and those of its test after them or in their place."""
        return World(
            setup=self.setup + test.setup,
            probes=self.probes | test.probes,
            teardown=self.teardown + test.teardown,
        )

    def worlds(self) -> JsonObject:
        """All steps and probes, of the suite and its tests, as they stand in its text."""
        return self.model_dump(by_alias=True, include=_STEPS | {"tests": {"__all__": _STEPS}})

    def lock_of(self, test: Test) -> str | None:
        """The lock that the test's trials share, its own or the suite's."""
        return test.lock or self.lock

    def turns_of(self, test: Test) -> tuple[PlannedTurn, ...]:
        """The test's turns to play, filled up with `auto` to its own or the suite's `maxTurns`."""
        planned = test.planned_turns
        missing = (test.max_turns or self.max_turns) - len(planned)
        return planned + (_auto_turn(),) * max(0, missing)

    def fewest_turns(self, test: Test) -> int:
        """Return the turns before the simulated user may end the conversation, by its first `auto`."""
        for index, turn in enumerate(test.planned_turns):
            if index and turn.auto:
                return index
        return len(test.planned_turns)


def suite_schema() -> JsonObject:
    """The JSON Schema of a suite, open for `$schema` and `x-…` keys."""
    schema = JSON_SCHEMA | Suite.model_json_schema(mode="validation", by_alias=True)
    for item in (schema, *schema["$defs"].values()):
        if item.get("additionalProperties") is False:
            item["patternProperties"] = {"^(\\$schema$|x-)": True}
    return schema
