"""Adds the last words of a program that was started for a run to the errors of the agent that it serves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic import JsonValue

from ci_evals.agents.started.program import AgentProgram
from ci_evals.domain.errors import AgentError, LostAgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Agent, read_state


class StartedAgent:
    """Passes everything on to an agent. Implements the port `Agent`."""

    def __init__(self, agent: Agent, program: AgentProgram) -> None:
        """Look at the program only when a connection to the agent is lost."""
        self._agent, self._program = agent, program

    async def check(self) -> None:
        """Check the agent's key, if that is possible."""
        if check := getattr(self._agent, "check", None):
            await check()

    async def open_session(self, test: Test) -> Any:
        """Begin a conversation."""
        async with self._last_words():
            return await self._agent.open_session(test)

    async def send_message(self, session: Any, text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send a message."""
        async with self._last_words():
            return await self._agent.send_message(session, text, timeout=timeout)

    async def read_state(self, session: Any) -> JsonValue:
        """Return the agent's state."""
        async with self._last_words():
            return await read_state(self._agent, session)

    async def close(self, session: Any) -> None:
        """End the conversation."""
        await self._agent.close(session)

    @asynccontextmanager
    async def _last_words(self) -> AsyncIterator[None]:
        try:
            yield
        except LostAgentError as error:
            if words := await self._program.lost():
                raise AgentError(f"{error}; {words}") from error
            raise
