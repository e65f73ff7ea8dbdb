"""The world of a test: what is done before and after its conversation, and what is looked up there."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from ci_evals.domain.base import Model, NonBlank
from ci_evals.domain.transcript import ProbeResult
from ci_evals.support.json_text import JsonObject, written

STEP_SECONDS = 30.0
KINDS = ("http", "sql", "command", "python", "file")
"""The kinds of steps, by the key that holds them."""

NAMES = ("userInfo", "trial.id", "session.id")
"""The `{{names}}` in steps; `userInfo.plan.name` is a part of the first. A test's canaries have more."""
AGENT_STATE = "agent_state"
"""The probe that needs no step: what the agent itself reports as its state at the end of the conversation."""
MAX_PROBE_CHARACTERS = 50_000
"""Limit of what a probe returns, as JSON: it is kept with the results and shown to the judge."""
SESSION_ID = "session.id"
"""Known once the agent has opened a session, so not in a setup."""

Names = JsonObject
"""The values of the `{{names}}`: `userInfo`, `trial`, `session` and `canary`, each an object."""


def _is_function(text: str) -> str:
    module, colon, attribute = text.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        raise ValueError("is not of the form module:attribute")
    return text


FunctionName = Annotated[str, AfterValidator(_is_function)]
"""`module:attribute`."""


class HttpCall(Model):
    """A request whose answer is JSON or text."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = Field("GET", description="The method.")
    url: NonBlank = Field(description="The address; a path is one on the agent's server, after `baseUrl`.")
    headers: dict[NonBlank, str] = Field(default_factory=dict, description="Headers by name.")
    json_: JsonValue = Field(None, alias="json", description="The body, sent as JSON; null for none.")


class SqlQuery(Model):
    """One statement on a database; its rows are a list of objects."""

    url: NonBlank = Field(
        description="The database as SQLAlchemy writes it: `sqlite:///shop.db`, `postgresql://…`."
    )
    statement: NonBlank = Field(description="One statement, with `:name` for a parameter.")
    parameters: dict[NonBlank, JsonValue] = Field(
        default_factory=dict, description="The parameters' values by name."
    )


class FileRead(Model):
    """A file to read."""

    path: NonBlank = Field(description="The file, in or below the current folder.")
    format: Literal["text", "json"] = Field("text", description="How to read it.")


class Step(Model):
    """One action in the world, of exactly one kind. Texts in it may hold `{{names}}`."""

    http: HttpCall | None = Field(None, description="A request; a status other than 2xx is an error.")
    sql: SqlQuery | None = Field(None, description="A statement on a database.")
    command: Annotated[list[NonBlank], Field(min_length=1)] | None = Field(
        None, description="A program and its arguments. What it prints is read as JSON, else as text."
    )
    python: FunctionName | None = Field(
        None,
        description="`module:attribute`, a function that returns JSON. It is given those of `user_info`, "
        "`trial_id` and `session_id` that it has parameters for.",
    )
    file: FileRead | None = Field(None, description="A file.")
    timeout: float = Field(STEP_SECONDS, gt=0, le=3600, description="Seconds that it may take.")

    @model_validator(mode="after")
    def _has_one_kind(self) -> Self:
        if len(self._kinds) != 1:
            given = " and ".join(self._kinds) or "none"
            raise PydanticCustomError(
                "no_kind",
                "needs exactly one of {known}, found {given}",
                {"known": ", ".join(KINDS), "given": given},
            )
        return self

    @property
    def _kinds(self) -> list[str]:
        return [name for name in KINDS if getattr(self, name) is not None]

    def __str__(self) -> str:
        return self._kinds[0]


class World(Model):
    """The surroundings of a test: steps before and after each conversation, and probes after it."""

    setup: tuple[Step, ...] = ()
    probes: dict[str, Step] = Field(default_factory=dict)
    teardown: tuple[Step, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.setup or self.probes or self.teardown)


def probe_result(value: JsonValue) -> ProbeResult:
    """Return what a probe found, or that it is too long to be kept."""
    length = len(written(value))
    if length <= MAX_PROBE_CHARACTERS:
        return ProbeResult(value=value)
    limit = f"more than the {MAX_PROBE_CHARACTERS:,} that are kept"
    return ProbeResult(error=f"it returned {length:,} characters, {limit}; look up less")
