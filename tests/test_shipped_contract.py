"""The contract notices agents that break it."""

import asyncio
from unittest import SkipTest

from each_row import each_row

from ci_evals.contract import AgentContract
from ci_evals.domain.errors import AgentAccessError, AgentError
from ci_evals.domain.transcript import Reply


class Good:
    """Keeps all promises; each of the others breaks one."""

    async def open_session(self, test):
        return []

    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
        session.append(text)
        if text == "fail":
            raise AgentError("it fell over")
        if text == "stall":
            try:
                async with asyncio.timeout(timeout):
                    await self.stall()
            except TimeoutError:
                raise AgentError("too late") from None
        return self.reply(len(session), text)

    async def stall(self):
        await asyncio.sleep(10)

    def reply(self, number, text):
        return Reply(agent=f"{number}: {text}", latency_seconds=0.1, handed_over=text == "person")

    async def close(self, session):
        pass


class Forgetful(Good):
    messages: list = []  # noqa: RUF012  # its fault

    async def open_session(self, test):
        return self.messages


def replying(**fields):
    """An agent whose replies all have these fields."""

    def reply(self, number, text):
        return Reply(**{"agent": f"{number}: {text}", "latency_seconds": 0.1} | fields)

    return type("Replying", (Good,), {"reply": reply})


class Apologetic(Good):
    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
        if text != "fail":
            return await super().send_message(session, text, timeout=timeout)
        return Reply(agent="", latency_seconds=0.1, error_response=True, error_detail="the model is down")


class Fearless(Good):
    async def send_message(self, session, text, *, timeout):  # noqa: ASYNC109
        session.append(text)
        return self.reply(len(session), text)


class Deaf(Good):
    async def stall(self):
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(0.6)


class Fragile(Good):
    async def close(self, session):
        if "closed" in session:
            raise OSError
        session.append("closed")


def contract(kind, **given):
    def methods(value):
        return lambda self: value if not callable(value) else value()

    members = {name: methods(value) for name, value in given.items()}
    members |= {"played": lambda self, made: made, "agent": lambda self: kind()}
    members |= {"stalls": True, "patience": 0.5}
    return type("Mine", (AgentContract,), members)()


def broken(mine) -> set[str]:
    names = [name for name in dir(mine) if name.startswith("test_")]
    assert len(names) > 10
    failed = set()
    for name in names:
        try:
            getattr(mine, name)()
        except SkipTest:
            continue
        except (AssertionError, OSError):
            failed.add(name)
    return failed


@each_row(
    ("kind", "noticed"),
    [
        (Good, set()),
        (Apologetic, set()),
        (Forgetful, {"test_sessions_know_nothing_of_each_other", "test_many_sessions_at_a_time"}),
        (replying(agent=""), {"test_it_answers_in_turn", "test_it_tells_that_it_hands_over"}),
        (replying(latency_seconds=900), {"test_it_tells_what_it_can_and_no_more"}),
        (replying(handed_over=True), {"test_it_tells_what_it_can_and_no_more"}),
        (Fearless, {"test_a_failure_is_an_agent_error", "test_a_timeout_is_kept"}),
        (Deaf, {"test_one_that_is_cut_off_can_be_used_again"}),
        (Fragile, {"test_closing_never_raises"}),
    ],
)
def test_shipped_contract_passes_good_agents_and_fails_faulty_ones(kind, noticed):
    """At least in the tests that are about it."""
    failed = broken(contract(kind))
    assert noticed <= failed if noticed else failed == set()


def test_contract_distinguishes_rejected_key_from_unreachable_agent():
    class Gone(Good):
        error = AgentError("not there")

        async def open_session(self, test):
            raise self.error

    class Locked(Gone):
        error = AgentAccessError("refused")

    both = {"test_one_that_cannot_be_reached", "test_one_that_refuses_the_key"}
    assert broken(contract(Good, unreachable=Gone, locked=Locked)) & both == set()
    assert broken(contract(Good, unreachable=Locked, locked=Gone)) & both == both
    assert broken(contract(Good, unreachable=Good, locked=Good)) & both == both
