"""Knows how long a run has waited for an agent that is code, as it does for one behind a server."""

from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Agent, read_state


class AwaitedAgent:
    """Passes everything on to an agent. Implements the port `Agent`."""

    def __init__(self, agent: Agent, limiter: RateLimiter) -> None:
        """Count the calls under way in the limiter, which limits nothing, since no call is ever refused."""
        self._agent, self._limiter = agent, limiter

    async def open_session(self, test: Test) -> Any:
        """Begin a conversation."""
        return await self._limiter.send(lambda _: self._agent.open_session(test), "open")

    async def send_message(self, session: Any, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message."""
        return await self._limiter.send(
            lambda _: self._agent.send_message(session, text, timeout=timeout), "send"
        )

    async def read_state(self, session: Any) -> JsonValue:
        """Return the agent's state."""
        return await read_state(self._agent, session)

    async def close(self, session: Any) -> None:
        """End the conversation."""
        await self._agent.close(session)
