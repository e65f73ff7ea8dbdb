"""The common part of all agents of frameworks."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import deepcopy
from importlib import import_module
from inspect import isawaitable
from typing import Any, ClassVar

from pydantic import Field, JsonValue, ValidationError
from pydantic_core import to_jsonable_python

from ci_evals.agents.code.plain_reply import NoAnswerError
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.base import Model, NonBlank, token_count
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.support.documentation import see

PAGE = see("python-frameworks")
_OWN_FUNCTION = f"put a function reply(message, session) around the agent ({PAGE})"


class FrameworkOptions(Model):
    """The `adapterOptions` of an agent of a framework."""

    escalation_tools: tuple[NonBlank, ...] = Field((), description="Tools that hand over to a person.")
    context: NonBlank | None = Field(
        None, description="MODULE:FUNCTION that makes the deps or the context of a run from the `userInfo`."
    )


class FrameworkAgent(ABC):
    """An agent of a framework, with the methods of an adapter: its answers are plain objects."""

    framework: ClassVar[str]
    takes_model: ClassVar[bool] = False
    """True if a run of the agent can be given another model by name."""
    takes_system_prompt: ClassVar[bool] = True
    takes_history: ClassVar[bool] = True
    takes_context: ClassVar[bool] = True
    """True if a run of the agent can be given an object of the user's own."""

    def __init__(self, target: Any, name: str, settings: AgentSettings) -> None:
        """Call nothing of the agent yet; raise `UsageError` if settings do not fit the framework."""
        self._target, self._name, self._model = target, name, settings.model
        try:
            self._options = FrameworkOptions.model_validate_json(
                json.dumps(dict(settings.options)), strict=True, by_alias=True, by_name=False
            )
        except ValidationError as error:
            known = ", ".join(info.alias or key for key, info in FrameworkOptions.model_fields.items())
            fault = error.errors(include_url=False)[0]
            where = ".".join(("adapterOptions", *map(str, fault["loc"])))
            raise UsageError(
                f"{name}: {where}: {fault['msg'].lower()}; an agent of {self.framework} takes {known}"
            ) from None
        if settings.model and not self.takes_model:
            raise UsageError(
                f"{name}: an agent of {self.framework} brings its own model; leave out the suite's 'model', "
                f"or {_OWN_FUNCTION}"
            )
        self._makes_context = self._function(self._options.context) if self._options.context else None

    def _function(self, place: str) -> Callable[..., Any]:
        """Return the function of that name, `MODULE:FUNCTION`."""
        where = f"{self._name}: adapterOptions.context: {place!r}"
        if not self.takes_context:
            raise UsageError(f"{where}: an agent of {self.framework} takes no context")
        module, _, attribute = place.partition(":")
        try:
            function = getattr(import_module(module), attribute)
        except Exception as error:
            raise UsageError(
                f"{where} cannot be imported as MODULE:FUNCTION: {type(error).__name__}"
            ) from error
        if not callable(function):
            raise UsageError(f"{where} is not a function but of the type {type(function).__name__}")
        found: Callable[..., Any] = function
        return found

    async def _context(self, test: Test) -> Any:
        """Return what a conversation's runs share: the test's `userInfo`, or what is made from it."""
        user = deepcopy(dict(test.user_info))
        if not self._makes_context:
            return user
        context = self._makes_context(user)
        return await context if isawaitable(context) else context

    async def open_session(self, test: Test) -> Any:
        """Begin a conversation; raise `AgentError` if the test asks for what the framework cannot."""
        if test.system_prompt and not self.takes_system_prompt:
            raise AgentError(
                f"{self._name}: an agent of {self.framework} takes no 'systemPrompt' from a test; leave it "
                f"out, or {_OWN_FUNCTION}"
            )
        return await self._opened(test)

    @abstractmethod
    async def _opened(self, test: Test) -> Any:
        """Begin a conversation."""

    @abstractmethod
    async def send_message(self, session: Any, text: str) -> dict[str, JsonValue]:
        """Run the agent for one message, and return the keys of its reply."""

    def _reply(
        self,
        text: str,
        calls: Iterable[dict[str, object]],
        tokens: Iterable[tuple[object, object]],
        *,
        error: str | None = None,
    ) -> dict[str, JsonValue]:
        """Return a reply with these calls, in their order, and the tokens of each answer of a model."""
        made: list[dict[str, JsonValue]] = [
            {key: jsonable(value) for key, value in call.items() if value is not None} for call in calls
        ]
        reply: dict[str, JsonValue] = {"text": text, "toolCalls": [*made]}
        if self._options.escalation_tools:
            reply["escalated"] = any(call["name"] in self._options.escalation_tools for call in made)
        if not text.strip() and not error and not reply.get("escalated"):
            raise NoAnswerError("has no text: the agent's last message is empty")
        if error:
            reply["error"] = error
        return reply | _tokens(tokens)


def _tokens(counts: Iterable[tuple[object, object]]) -> dict[str, JsonValue]:
    """Return the sums; none if one is unknown, since a part would look like the whole.

    Unknown are None, and 0 tokens sent: frameworks count so for models that report none.
    """
    read = [(token_count(sent), token_count(received)) for sent, received in counts]
    if not read or not all(sent and received is not None for sent, received in read):
        return {}
    return {
        "inputTokens": sum(sent or 0 for sent, _ in read),
        "outputTokens": sum(received or 0 for _, received in read),
    }


def jsonable(value: Any) -> JsonValue:
    """Return a value as JSON; what JSON has no form for is its text, or null if it cannot be had."""
    try:
        plain: JsonValue = to_jsonable_python(value, by_alias=True, fallback=str)
    except Exception:  # noqa: BLE001  # an object of foreign code may raise anything
        return None
    return plain


def text_of_output(output: Any) -> str:
    """Return an agent's output as a text: JSON unless it is one; raise `NoAnswerError` if it is None."""
    if output is None:
        raise NoAnswerError("has no text: the agent's output is None")
    return output if isinstance(output, str) else json.dumps(jsonable(output), ensure_ascii=False)


def all_words(before: Iterable[str], output: Any) -> str:
    """Return what an agent said before its output, such as words beside tool calls, and the output as a text.

    An output that is no text stands alone: it is data for a program.
    """
    last = text_of_output(output)
    if not isinstance(output, str):
        return last
    said = [text for text in before if text.strip()]
    return "\n\n".join(said if said[-1:] == [last] else [*said, last])


def waiting(tools: Iterable[object], what: str) -> NoAnswerError:
    """Return the error of a run that stopped for a person; `what` is a clause to go before the tools."""
    names = ", ".join(sorted({repr(str(tool)) for tool in tools}))
    if names:
        what += f" {names}"
    return NoAnswerError(
        f"is no text: {what}. ci-evals answers no such request; {_OWN_FUNCTION} that answers it"
    )
