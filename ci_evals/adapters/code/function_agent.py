"""An agent that is one function: `reply(message)`, or `reply(message, session)` if it wants to know more."""

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.code.about import About
from ci_evals.adapters.code.foreign_code import Lane
from ci_evals.adapters.code.object_agent import CodeAgent, callable_as
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply


@dataclass
class Conversation:
    """What a function may know of the conversation that it is called in: its second argument, `session`."""

    user_info: dict[str, JsonValue]
    """The test's `userInfo`."""
    system_prompt: str | None
    """The test's `systemPrompt`."""
    agent_id: str | None
    model: str | None
    base_url: str | None
    api_key: str | None = field(repr=False)
    options: Mapping[str, JsonValue]
    """The suite's `adapterOptions`."""
    history: list[dict[str, str]] = field(default_factory=list)
    """What was said before this message: `{"role": "user" or "assistant", "content": text}`, oldest first."""
    state: dict[str, Any] = field(default_factory=dict)
    """The function's own: whatever it wants to find again at the next message of this conversation."""


class FunctionAgent(CodeAgent):
    """A function that is given a message and gives back the reply."""

    def __init__(self, function: Callable[..., Any], name: str, about: About, **how: Any) -> None:
        """Looks at the function's parameters and does not call it.

        Raises:
            UsageError: it cannot be called as it will be.
        """
        super().__init__(name, about, **how)
        self._function = function
        self._wants_session = _wants_session(function)
        callable_as(
            function,
            "reply(message) or reply(message, session)",
            name,
            *(("", None) if self._wants_session else ("",)),
        )

    async def send_message(self, session: Any, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Calls the function, and remembers what was said."""
        reply = await super().send_message(session, text, timeout=timeout)
        said = [{"role": "user", "content": text}, {"role": "assistant", "content": reply.agent}]
        session.inner.said.extend(said)
        return reply

    async def _opened(self, lane: Lane, test: Test) -> Any:
        del lane  # nothing of the function's is called yet
        about = self.about
        return _Told(
            Conversation(
                user_info=test.user_info,
                system_prompt=test.system_prompt,
                agent_id=about.agent_id,
                model=about.model,
                base_url=about.base_url,
                api_key=about.api_key,
                options=deepcopy(dict(about.options)),
            )
        )

    async def _answer(self, session: Any, text: str, timeout: float) -> Any:  # noqa: ASYNC109, ARG002  # as it is called
        told: _Told = session.inner
        if not self._wants_session:
            return await session.lane.call(self._function, text)
        told.conversation.history = [dict(line) for line in told.said]
        return await session.lane.call(self._function, text, told.conversation)

    async def _closed(self, session: Any) -> None:
        """A function holds nothing of a conversation."""


@dataclass
class _Told:
    """A conversation as the function may see and change it, and what was really said."""

    conversation: Conversation
    said: list[dict[str, str]] = field(default_factory=list)


def _wants_session(function: Callable[..., Any]) -> bool:
    """Whether a second argument is asked for: one without a default, or one that is called `session`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 and (
        positional[1].default is positional[1].empty or positional[1].name == "session"
    )
