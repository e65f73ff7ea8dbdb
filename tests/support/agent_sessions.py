"""Conversations with an agent of a test: a session that is closed at its end, its replies, or the error."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentError
from ci_evals.domain.suite import Test

TEST = AgentContract.played_test


@asynccontextmanager
async def session_of(agent: Any, test: Test = TEST) -> AsyncIterator[Any]:
    session = await agent.open_session(test)
    try:
        yield session
    finally:
        await agent.close(session)


async def replies_of(agent: Any, *texts: str, test: Test = TEST, timeout: float = 60) -> list[Any]:  # noqa: ASYNC109
    """Return the replies to messages of one conversation."""
    async with session_of(agent, test) as session:
        return [await agent.send_message(session, text, timeout=timeout) for text in texts]


async def error_of(agent: Any, *texts: str, **how: Any) -> str:
    """Return the error that such a conversation ends with."""
    with pytest.raises(AgentError) as caught:
        await replies_of(agent, *(texts or ("Hello",)), **how)
    return str(caught.value)
