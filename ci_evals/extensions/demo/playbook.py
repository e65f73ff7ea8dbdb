"""Playbooks: all that the demo agent knows about one domain, read from a file in `domains/`.

A playbook is data. `catalog` reads it, `engine` plays it; a further domain is a further file and no Python.
Tests check that the names in it are known and that its workflows end with a reply.
"""

import re
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

PLACEHOLDER = re.compile(r"\{([\w-]+)\}")
"""A name in a text of the playbook, to be replaced by its value."""

Scalar = bool | int | float | str
Table = Literal["orders", "bookings", "balances"]


def _phrase(pattern: Any) -> Any:
    """Compile a pattern that matches anywhere in a message, but only whole words, without case."""
    if not isinstance(pattern, str):
        return pattern
    try:
        re.compile(pattern)  # by itself, so that "a)|(b" does not slip through
        return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


Phrase = Annotated[re.Pattern[str], BeforeValidator(_phrase)]
Phrases = tuple[Phrase, ...]


class _PlaybookEntry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def copy_with(self, **changes: Any) -> Self:
        """Return a copy with other values of these fields, which mypy checks (`mypy_plugin.py`)."""
        return self.model_copy(update=changes)


class ValueCheck(_PlaybookEntry):
    """A check of a value. Limits may be `{names}`; an unknown one is never exceeded."""

    over: Scalar | None = None
    under: Scalar | None = None
    at_least: Scalar | None = None
    at_most: Scalar | None = None
    none_of: tuple[Scalar, ...] | None = None
    given: bool | None = None


Expected = ValueCheck | tuple[Scalar, ...] | Scalar
Condition = dict[str, Expected]
"""Names and what they must be: a value, one of several, or a comparison. All must hold."""


class Parameter(_PlaybookEntry):
    """A value that the agent extracts from messages."""

    ask: str = Field(description="The question for it.")
    patterns: Phrases = Field((), description="The first group, or else the whole match, is the value.")
    values: dict[Scalar, Phrases] = Field({}, description="A value, and phrases that stand for it.")
    when_asked: Phrases = Field((), description="Patterns that count only as an answer to the question.")
    type: Literal["text", "upper", "number"] = "text"
    variable: str | None = Field(None, description="The agent variable that holds it where nobody said it.")
    keep: bool = Field(default=False, description="Whether it outlives its workflow.")


class RestIntegration(_PlaybookEntry):
    """An outside system behind an HTTP interface."""

    type: Literal["REST"]
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: str
    category: str
    failures: tuple["IntegrationFailure", ...] = Field(
        (), description="The first that applies; else the status is 200."
    )


class RagIntegration(_PlaybookEntry):
    """A searchable collection of documents. It has no HTTP status."""

    type: Literal["RAG"]
    question: str
    resources: tuple[str, ...] = ()


class McpIntegration(_PlaybookEntry):
    """A tool server. It has no HTTP status."""

    type: Literal["MCP"]
    tool: str
    completion: str


class Booking(_PlaybookEntry):
    """A change of a row in the agent's world. Texts may hold `{names}`; one alone keeps its type."""

    table: Table
    row: str
    values: dict[str, str]


class IntegrationFailure(_PlaybookEntry):
    """A status other than 200, and when it comes."""

    status: int = Field(ge=400, le=599)
    when: Condition
    message: str


Integration = Annotated[RestIntegration | RagIntegration | McpIntegration, Field(discriminator="type")]


class _BaseStep(_PlaybookEntry):
    when: Condition = Field({}, description="The step is passed over where this does not hold.")


class AskStep(_BaseStep):
    """Asks for what is missing, one thing at a time."""

    ask: tuple[str, ...] = Field(min_length=1)


class CallStep(_BaseStep):
    """Calls an integration; its status is known afterwards under its code. From 500 on, the agent errs."""

    call: str
    books: Booking | None = Field(None, description="What a call that succeeds changes in the world.")


class ComputeStep(_BaseStep):
    """Makes a new value of two known ones."""

    compute: str = Field(description="The new value's name.")
    of: tuple[str, Literal["plus", "minus", "times"], str]


class ConfirmStep(_BaseStep):
    """Asks for a yes before what cannot be undone."""

    confirm: str
    declined: str = Field(description="What the agent says to a no; the workflow then ends.")
    rule: str | None = Field(None, description="The code of the rule that asks for the confirmation.")


class RuleStep(_BaseStep):
    """A rule of the business. It fires where its condition holds, and has at most one effect."""

    rule: str
    type: Literal["constraint", "required_param", "missing_info", "success", "fail"] = "constraint"
    reason: str
    answer: str | None = Field(None, description="The reply, with which the workflow ends.")
    block: str | None = Field(None, description="A refusal, with which the workflow ends.")
    escalate: str | None = Field(None, description="What is said on handing over to a person.")
    note: str | None = Field(None, description="A sentence that goes before the next reply.")
    ask: str | None = Field(None, description="A parameter that is now needed.")
    forget: tuple[str, ...] = Field((), description="Parameters that turned out to be of no use.")

    @property
    def action(self) -> str | None:
        """The action in the words of a trace; None for a rule without an effect."""
        actions = {
            "TEXT": self.answer or self.note,
            "BLOCK": self.block,
            "ACTIVATE_ANOTHER_TOOL": self.escalate,
            "ADD_REQUIRED_PARAM": self.ask,
        }
        return next((action for action, effect in actions.items() if effect), None)


class AnswerStep(_BaseStep):
    """The reply, with which the workflow ends."""

    answer: str


class EscalateStep(_BaseStep):
    """Hands over to a person."""

    escalate: str


_STEPS = ("confirm", "rule", "call", "ask", "compute", "answer", "escalate")


def _kind(value: Any) -> str | None:
    """Return the kind of a step by its key. A rule may have the others' keys, so the order counts."""
    return next((kind for kind in _STEPS if kind in value), None) if isinstance(value, dict) else None


Step = Annotated[
    Annotated[ConfirmStep, Tag("confirm")]
    | Annotated[RuleStep, Tag("rule")]
    | Annotated[CallStep, Tag("call")]
    | Annotated[AskStep, Tag("ask")]
    | Annotated[ComputeStep, Tag("compute")]
    | Annotated[AnswerStep, Tag("answer")]
    | Annotated[EscalateStep, Tag("escalate")],
    Discriminator(_kind),
]


class Workflow(_PlaybookEntry):
    """One task of the agent: how users ask for it, and its steps in order."""

    code: str = Field(pattern=r"^[A-Z][A-Z0-9_]*$")
    title: str
    intents: Phrases = Field(min_length=1)
    urgent: bool = Field(
        default=False, description="Whether it begins whatever else is going on, as an emergency does."
    )
    parameters: tuple[str, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1)
    suggestions: tuple[str, ...] = ()


class Refusal(_PlaybookEntry):
    """A topic that guardrails refuse at any time."""

    patterns: Phrases
    reason: str
    text: str


class SmallTalk(_PlaybookEntry):
    """A reply without a workflow."""

    patterns: Phrases
    text: str


class Language(_PlaybookEntry):
    """Phrases that mean the same in every domain."""

    agree: Phrases
    decline: Phrases
    person: Phrases = Field(description="Asks for a human being.")
    anger: Phrases


class Texts(_PlaybookEntry):
    """Texts of the agent outside of workflows."""

    welcome: str
    follow_up: str = Field(description="Goes after every answer.")
    again: str = Field(description="Goes before a question that was not answered.")
    fallback: str
    lost: str = Field(description="On handing over after too many messages that made no sense.")
    person: str = Field(description="On handing over because the user asked for it.")
    forwarded: str = Field(description="To whatever is said after handing over.")
    sympathy: str = Field(description="Goes before the reply to an angry message.")
    repeated: str = Field(description="Goes before an answer that is the same as the last.")
    angry: str = Field(description="On handing over an angry user.")
    error: str = Field(description="When an integration has failed.")


class Misconduct(_PlaybookEntry):
    """Texts of an agent that misbehaves."""

    leak: str = Field(description="What nobody should be told.")
    rude: str = Field(description="An insult.")


class Playbook(_PlaybookEntry):
    """One domain."""

    variables: dict[str, Scalar] = Field(
        description="Every agent variable that the domain reads, with what holds where none was sent."
    )
    suggestions: tuple[str, ...] = ()
    patience: int = Field(2, ge=1, description="Lost or angry messages before a person takes over.")
    language: Language
    texts: Texts
    misbehavior: Misconduct
    guardrails: tuple[Refusal, ...] = Field(description="Refusals that are the same in every domain.")
    refusals: tuple[Refusal, ...]
    small_talk: tuple[SmallTalk, ...]
    parameters: dict[str, Parameter]
    integrations: dict[str, Integration]
    workflows: tuple[Workflow, ...] = Field(
        min_length=1, description="Where several fit, the first is taken."
    )

    def workflow(self, code: str) -> Workflow:
        """Return the workflow of that code, which must exist."""
        return next(workflow for workflow in self.workflows if workflow.code == code)
