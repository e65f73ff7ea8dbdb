"""The contract of every agent, as tests that authors of adapters can run on their own.

from ci_evals.contract import AgentContract

class TestMine(AgentContract):
    def agent(self):
        return MyAgent(url_of_my_stub)

pytest finds the tests in the subclass, which may have fixtures of its own. They need no plug-in of pytest's.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from unittest import SkipTest

from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import Agent
from ci_evals.support.documentation import see

HELLO, PERSON, FAIL, STALL = "Hello", "person", "fail", "stall"
"""Messages to the agents of the contract. `person`, `fail` and `stall` have a meaning."""

STALLED_SECONDS = 0.3
"""The timeout of a message that is not answered."""


Say = Callable[[str], Coroutine[Any, Any, Reply]]
"""Sends a message in a session, and returns the reply."""


_Work = Callable[[Any, Agent], Coroutine[Any, Any, None]]


def _contract(
    make: str = "agent", *, needs: str | None = None
) -> Callable[[_Work], Callable[["AgentContract"], None]]:
    """Make a test of a coroutine that is given what the method `make` returns; skipped unless `needs`."""

    def decorate(work: _Work) -> Callable[["AgentContract"], None]:
        def test(self: "AgentContract") -> None:
            if needs and not getattr(self, needs):
                raise SkipTest(f"{needs} is False")
            self._play(partial(work, self), getattr(self, make))

        test.__name__, test.__doc__ = work.__name__, work.__doc__
        return test

    return decorate


class AgentContract:
    """Tests of an agent, to be inherited. Define `agent`; tests of other methods are skipped if missing."""

    forwards = True
    """True if the agent reports that it hands over to a person, when it gets `person`."""
    stalls = False
    """True if the agent does not answer `stall` for at least ten seconds."""
    patience = 5.0
    """Seconds that an answer may take, and that a timeout may come late."""
    played_test = Test.model_validate(
        {
            "name": "Deposit",
            "userInfo": {"name": "Ida Berg"},
            "guidelines": "You want your deposit back.",
            "turns": [{"user": HELLO}],
            "evaluations": [{"criterion": "Helpful"}],
        }
    )
    """The test that sessions are opened for."""

    def agent(self) -> Any:
        """Return an agent that answers `N: TEXT`, N being the number of the message, and fails on `fail`.

        It is anything that a factory or a suite may give: an object with the methods, or a function.
        """
        raise NotImplementedError(f"give an agent that echoes: {see('writing-an-adapter')}")

    def unreachable(self) -> Any:
        """Return an agent that cannot be reached, such as one at a port where nobody listens."""
        raise SkipTest("unreachable() is not given")

    def locked(self) -> Any:
        """Return an agent that refuses its key."""
        raise SkipTest("locked() is not given")

    def played(self, agent: Any) -> Agent:
        """Return the agent as a run plays with it."""
        return agent_of(agent, type(agent).__name__, AgentSettings())

    @_contract()
    async def test_it_answers_in_turn(self, agent: Agent) -> None:
        """Each message gets its own reply."""
        async with self._session(agent) as say:
            replies = [(await say(text)).agent for text in (HELLO, "again")]
        _expect(replies == ["1: Hello", "2: again"], f"'1: Hello' and '2: again' were due; it said {replies}")

    @_contract()
    async def test_it_tells_what_it_can_and_no_more(self, agent: Agent) -> None:
        """Evidence is a tuple, or None if the agent gives none; the latency is a number."""
        async with self._session(agent) as say:
            reply = await say(HELLO)
        _expect(isinstance(reply, Reply), f"the reply is a {type(reply).__name__}")
        seconds = reply.latency_seconds
        _expect(math.isfinite(seconds) and 0 <= seconds <= self.patience, f"it took {seconds} s")
        evidence = {
            "workflows": reply.workflows,
            "rules": reply.rules,
            "integrations": reply.integrations,
        }
        for name, value in evidence.items():
            _expect(value is None or isinstance(value, tuple), f"{name} is {value!r}")
        _expect(not reply.escalated, "it hands over to a person where nobody asked for one")
        _expect(not reply.error_response, "it calls an ordinary reply an error")

    @_contract(needs="forwards")
    async def test_it_tells_that_it_hands_over(self, agent: Agent) -> None:
        """The conversation ends there, so it has to be seen."""
        async with self._session(agent) as say:
            reply = await say(PERSON)
        _expect(reply.escalated, f"{PERSON!r} was answered without handing over: {reply!r}")

    @_contract()
    async def test_sessions_know_nothing_of_each_other(self, agent: Agent) -> None:
        """A new one starts afresh, also while another one is open."""
        async with self._session(agent) as say:
            await say("a")
            async with self._session(agent) as say_elsewhere:
                reply = await say_elsewhere("b")
            again = await say("c")
        replies = [reply.agent, again.agent]
        _expect(replies == ["1: b", "2: c"], f"'1: b' and '2: c' were due; it said {replies}")

    @_contract()
    async def test_many_sessions_at_a_time(self, agent: Agent) -> None:
        """One object serves many conversations at once, as the option `parallel` wants them."""

        async def converse(name: str) -> list[str]:
            async with self._session(agent) as say:
                return [(await say(name)).agent for _ in range(3)]

        replies = await asyncio.gather(*map(converse, "abcdefgh"))
        expected = [[f"{number}: {name}" for number in (1, 2, 3)] for name in "abcdefgh"]
        _expect(replies == expected, f"conversations got into each other: {replies}")

    @_contract()
    async def test_a_failure_is_an_agent_error(self, agent: Agent) -> None:
        """It is raised, or a reply says so. The session can be closed after it, and the agent continues."""
        async with self._session(agent) as say:
            try:
                reply = await say(FAIL)
            except AgentError:
                pass
            else:
                _expect(bool(reply.error_response), f"an error was due; there was {reply!r}")
        await self._check_recovered(agent)

    @_contract("unreachable")
    async def test_one_that_cannot_be_reached(self, agent: Agent) -> None:
        """Opening a session tells, or the first message, and not as a refused key."""
        error = await _fails(self._first(agent))
        _expect(not isinstance(error, AgentAccessError), f"it is taken for a refused key: {error}")

    @_contract("locked")
    async def test_one_that_refuses_the_key(self, agent: Agent) -> None:
        """It has an error of its own, since no other trial can do better."""
        error = await _fails(self._first(agent))
        _expect(isinstance(error, AgentAccessError), f"it is not distinguished from other failures: {error}")

    @_contract(needs="stalls")
    async def test_a_timeout_is_kept(self, agent: Agent) -> None:
        """It is an `AgentError`, and comes when it should."""
        async with self._session(agent, seconds=STALLED_SECONDS) as say:
            started = asyncio.get_running_loop().time()
            await _fails(say(STALL))
            late = asyncio.get_running_loop().time() - started - STALLED_SECONDS
        _expect(-0.1 <= late <= self.patience, f"a timeout of {STALLED_SECONDS} s came {late:.1f} s late")

    @_contract(needs="stalls")
    async def test_one_that_is_cut_off_can_be_used_again(self, agent: Agent) -> None:
        """A run that is interrupted cancels what is under way, and closes the session."""
        session = await agent.open_session(self.played_test)
        message = asyncio.ensure_future(agent.send_message(session, STALL, timeout=60))
        await asyncio.sleep(STALLED_SECONDS)
        message.cancel()
        done, _ = await asyncio.wait([message], timeout=self.patience)
        _expect(bool(done) and message.cancelled(), "it did not let itself be cancelled")
        await asyncio.wait_for(agent.close(session), self.patience + 5)
        await self._check_recovered(agent)

    @_contract()
    async def test_closing_never_raises(self, agent: Agent) -> None:
        """Not even the second time."""
        for text in (None, HELLO):
            session = await agent.open_session(self.played_test)
            if text:
                await agent.send_message(session, text, timeout=self.patience)
            await agent.close(session)
            await agent.close(session)

    def _play(self, work: Callable[[Agent], Awaitable[None]], make: Callable[[], Any]) -> None:
        async def play() -> None:
            await work(self.played(make()))

        asyncio.run(play())

    @asynccontextmanager
    async def _session(self, agent: Agent, seconds: float | None = None) -> AsyncIterator[Say]:
        session = await agent.open_session(self.played_test)
        try:
            yield partial(agent.send_message, session, timeout=seconds or self.patience)
        finally:
            await agent.close(session)

    async def _first(self, agent: Agent) -> Reply:
        async with self._session(agent) as say:
            return await say(HELLO)

    async def _check_recovered(self, agent: Agent) -> None:
        _expect((await self._first(agent)).agent == "1: Hello", "it did not recover")


async def _fails(work: Awaitable[Any]) -> AgentError:
    try:
        result = await work
    except AgentError as error:
        return error
    raise AssertionError(f"an AgentError was due; there was {result!r}")


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
