"""Suites as their authors write them: an agent and its tests. The format is that of `@aui.io/evals`."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, JsonValue, SecretStr, field_validator

from ci_evals.domain.agents import COMMAND, PYTHON, is_program
from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.evaluation import Evaluation
from ci_evals.support.text import is_blank

DEFAULT_MAX_TURNS = 7
DEFAULT_TIMEOUT_SECONDS = 120.0
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


class PlannedTurn(Model):
    """One planned line of the user."""

    user: NonBlank = Field(description="The message to send, or `auto`: the simulated user writes it.")
    timeout: float = Field(
        default=DEFAULT_TIMEOUT_SECONDS, gt=0, description="Seconds that the agent may take to answer."
    )
    expectation: str | None = Field(
        default=None,
        description="What should happen here: told to the judge only, never to agent or simulated user.",
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


class Test(Model):
    """One scenario of a simulated user, and the evaluations to apply to the conversation."""

    __test__: ClassVar[bool] = False
    """Tells pytest, which collects classes of such names, to leave this one alone."""

    name: NonBlank = Field(description="Unique in the suite.")
    user_info: dict[str, JsonValue] = Field(
        default_factory=dict, description="The user's data, sent to the agent whole as `agent_variables`."
    )
    guidelines: str = Field(description="How the simulated user acts: personality, goals, tone.")
    system_prompt: str | None = Field(
        default=None, description="Passed to agents that can use it; AUI has no field for it."
    )
    turns: tuple[PlannedTurn, ...] = Field(
        min_length=1, description="The user's lines. Fewer than `maxTurns` are filled up with `auto`."
    )
    evaluations: tuple[Evaluation, ...] = Field(min_length=1, description="What is checked afterwards.")
    tags: tuple[NonBlank, ...] = Field(default=(), description="Names to select and group tests by.")
    difficulty: NonBlank | None = Field(default=None, description="A name such as `easy` or `level 2`.")
    max_turns: int | None = Field(
        default=None, ge=1, le=MOST_TURNS, description="In place of the suite's `maxTurns`."
    )
    min_score: float | None = Field(
        default=None, ge=0, le=100, description="Least score of this test, 0 to 100."
    )
    critical: bool = Field(default=False, description="Whether every trial must pass for the gate to hold.")
    loops: int | None = Field(
        default=None, ge=1, le=MOST_LOOPS, description="How many trials of this test, in place of `--loops`."
    )
    optimal_tools: Annotated[tuple[NonBlank, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="The workflows that the shortest right conversation runs, in order: what trials are "
        "held against in the reports. It decides no verdict.",
    )


class Suite(Model):
    """One agent and the tests to put it through."""

    name: NonBlank = Field(description="The suite's name in every report.")
    description: str | None = Field(default=None, description="What the suite is about.")
    agent_id: NonBlank | None = Field(default=None, description="Id of the agent under test.")
    api_key: SecretStr | None = Field(
        default=None, description="Network API key of the agent. Better from the environment: `${NAME}`."
    )
    adapter: AdapterName = Field(
        default="aui",
        description="How the agent is spoken to: `aui`; `demo`, the embedded demo agent; `openai`, any "
        "chat-completions endpoint; `http`, any JSON endpoint; `python:module:attribute`; "
        "`command: program`; or the name of a plug-in.",
    )
    adapter_options: dict[str, JsonValue] | None = Field(
        default=None, description="What the adapter needs to know: see docs/adapters.md."
    )
    base_url: NonBlank | None = Field(
        default=None, description="Where the agent is, in place of the adapter's default."
    )
    model: NonBlank | None = Field(
        default=None, description="Passed to agents that can use it; AUI has no field for it."
    )
    judge_model: NonBlank | None = Field(default=None, description="The judge's model.")
    user_model: NonBlank | None = Field(default=None, description="The simulated user's model.")
    max_turns: int = Field(
        default=DEFAULT_MAX_TURNS,
        ge=1,
        le=MOST_TURNS,
        description="Turns are filled up with `auto` to this many.",
    )
    min_score: float | None = Field(
        default=None, ge=0, le=100, description="Least score of this suite, 0 to 100."
    )
    tests: tuple[Test, ...] = Field(min_length=1, description="The tests.")

    def turns_of(self, test: Test) -> tuple[PlannedTurn, ...]:
        """The test's turns, filled up with `auto` to its own or the suite's `maxTurns`."""
        missing = (test.max_turns or self.max_turns) - len(test.turns)
        return test.turns + (PlannedTurn(user=AUTO),) * max(0, missing)
