"""What every agent and every model promises, held to the fakes and to the real ones over HTTP alike."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import world
from fakes import ScriptedAgent, ScriptedLLM

from ci_evals.adapters.anthropic_llm import AnthropicLLM
from ci_evals.adapters.aui_agent import AuiAgent, AuiConfig
from ci_evals.adapters.openai_llm import OpenAILLM
from ci_evals.domain.errors import AgentAccessError, AgentError, LLMAccessError, LLMAnswerError, LLMError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.ports import LLM, Agent, Prompt

TEST = Test(
    name="Deposit",
    user_info={"name": "Ida Berg"},
    guidelines="You want your deposit back.",
    turns=({"user": "Hello"},),
    evaluations=({"criterion": "Helpful"},),
)


@dataclass
class AgentCase:
    """An agent that echoes, forwards when asked for a person, and fails on `fail`."""

    agent: Agent
    unreachable: Agent
    locked: Agent


def scripted_case() -> AgentCase:
    def answer(test: Test, texts: Any) -> Any:
        number, text = len(texts), texts[-1]
        if text == "fail":
            return AgentError("the agent answered with status 500")
        workflows = ("CONVERSATION_FORWARDING",) if text == "person" else ()
        return Reply(agent=f"{number}: {text}", latency_seconds=0.1, workflows=workflows)

    return AgentCase(
        ScriptedAgent(answer),
        ScriptedAgent(opening=AgentError("the agent could not be reached")),
        ScriptedAgent(opening=AgentAccessError("the agent refused the key")),
    )


def heard_by_stub(heard: world.Heard) -> Any:
    if heard.text == "fail":
        return world.SERVER_ERROR
    workflows = ["CONVERSATION_FORWARDING"] if heard.text == "person" else []
    return world.message(f"{heard.number}: {heard.text}", workflows=workflows)


def aui_case(url: str) -> AgentCase:
    async def no_sleep(seconds: float) -> None:
        await asyncio.sleep(0)

    def agent(key: str, where: str) -> AuiAgent:
        return AuiAgent(AuiConfig("a1", key, where), sleep=no_sleep)

    return AgentCase(
        agent(world.AGENT_KEY, url), agent(world.AGENT_KEY, "http://127.0.0.1:1"), agent("wrong", url)
    )


@pytest.fixture(params=["scripted", "aui"])
def case(request: pytest.FixtureRequest) -> Iterator[AgentCase]:
    if request.param == "scripted":
        yield scripted_case()
    else:
        with world.agent(heard_by_stub) as stub:
            yield aui_case(stub.url)


@asynccontextmanager
async def session_of(agent: Agent) -> AsyncIterator[Any]:
    session = await agent.open_session(TEST)
    try:
        yield session
    finally:
        await agent.close(session)


async def test_an_agent_answers_in_turn(case: AgentCase) -> None:
    """Each message gets its reply, with the time that it took."""
    async with session_of(case.agent) as session:
        first = await case.agent.send_message(session, "Hello", timeout=5)
        second = await case.agent.send_message(session, "person", timeout=5)
    assert (first.agent, second.agent) == ("1: Hello", "2: person")
    assert (first.escalated, second.escalated) == (False, True)
    assert first.latency_seconds > 0


async def test_sessions_know_nothing_of_each_other(case: AgentCase) -> None:
    """A new session starts afresh, also while another one is open."""
    async with session_of(case.agent) as one:
        await case.agent.send_message(one, "a", timeout=5)
        async with session_of(case.agent) as other:
            reply = await case.agent.send_message(other, "b", timeout=5)
        again = await case.agent.send_message(one, "c", timeout=5)
    assert (reply.agent, again.agent) == ("1: b", "2: c")


async def test_many_sessions_at_a_time(case: AgentCase) -> None:
    """One object serves many conversations at once."""

    async def converse(name: str) -> list[str]:
        async with session_of(case.agent) as session:
            return [(await case.agent.send_message(session, name, timeout=5)).agent for _ in range(3)]

    said = await asyncio.gather(*(converse(name) for name in "abcdef"))
    assert said == [[f"{number}: {name}" for number in (1, 2, 3)] for name in "abcdef"]


async def test_a_failing_agent_raises_its_error(case: AgentCase) -> None:
    """A failure is an `AgentError`, and the session can be closed after it."""
    async with session_of(case.agent) as session:
        with pytest.raises(AgentError):
            await case.agent.send_message(session, "fail", timeout=5)


async def test_an_agent_that_cannot_be_reached(case: AgentCase) -> None:
    """Opening a session tells, and not as a refused key."""
    with pytest.raises(AgentError) as caught:
        await case.unreachable.open_session(TEST)
    assert not isinstance(caught.value, AgentAccessError)


async def test_an_agent_that_refuses_the_key(case: AgentCase) -> None:
    """It has an error of its own, since no other trial can do better."""
    with pytest.raises(AgentAccessError):
        await case.locked.open_session(TEST)


async def test_closing_never_raises(case: AgentCase) -> None:
    """Not even the second time."""
    session = await case.agent.open_session(TEST)
    await case.agent.close(session)
    await case.agent.close(session)


@dataclass
class LLMCase:
    """A model that says the prompt back, or a verdict where a schema is given; others that are of no use."""

    llm: LLM
    mute: LLM
    failing: LLM
    locked: LLM


SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.fixture(params=["scripted", "openai", "anthropic"])
async def llm_case(request: pytest.FixtureRequest) -> AsyncIterator[LLMCase]:
    if request.param == "scripted":
        yield LLMCase(
            ScriptedLLM(lambda prompt: "{}" if prompt.schema else f"{prompt.system}: {prompt.text}"),
            ScriptedLLM([LLMAnswerError("the model gave an empty answer")]),
            ScriptedLLM([LLMError("the model is not there")]),
            ScriptedLLM([LLMAccessError("the model's provider refused the key")]),
        )
        return
    said = {"mute": ""}
    with world.llm(lambda a: said.get(a.model, "{}" if a.wants_json else f"{a.system}: {a.text}")) as models:
        kind = {"openai": OpenAILLM, "anthropic": AnthropicLLM}[request.param]
        url = models.openai_url if kind is OpenAILLM else models.url
        llms = [
            kind("m", models.key, url),
            kind("mute", models.key, url),
            kind("m", models.key, "http://127.0.0.1:1", max_retries=0),
            kind("m", "wrong", url),
        ]
        yield LLMCase(*llms)
        for llm in llms:
            await llm.aclose()


async def test_a_model_answers(llm_case: LLMCase) -> None:
    """It has a name, sees system and text, and counts its tokens."""
    answer = await llm_case.llm.complete(Prompt("You are Ida", "Hello"))
    assert answer.text == "You are Ida: Hello"
    assert answer.input_tokens > 0
    assert answer.output_tokens > 0
    assert llm_case.llm.model


async def test_a_model_takes_a_schema(llm_case: LLMCase) -> None:
    """Where a schema is given the answer is JSON."""
    assert (await llm_case.llm.complete(Prompt("", "Judge", schema=SCHEMA))).text == "{}"


async def test_a_model_answers_many_at_a_time(llm_case: LLMCase) -> None:
    """Answers belong to their questions."""
    prompts = [Prompt("s", str(number)) for number in range(12)]
    answers = await asyncio.gather(*(llm_case.llm.complete(prompt) for prompt in prompts))
    assert [answer.text for answer in answers] == [f"s: {number}" for number in range(12)]


async def test_a_failing_model_raises_its_error(llm_case: LLMCase) -> None:
    """A failure is an `LLMError`, and not one of the key."""
    with pytest.raises(LLMError) as caught:
        await llm_case.failing.complete(Prompt("", "Hello"))
    assert not isinstance(caught.value, LLMAccessError | LLMAnswerError)


async def test_a_model_without_an_answer(llm_case: LLMCase) -> None:
    """An answer that cannot be used has an error of its own, since asking again may help."""
    with pytest.raises(LLMAnswerError):
        await llm_case.mute.complete(Prompt("", "Hello"))


async def test_a_model_that_refuses_the_key(llm_case: LLMCase) -> None:
    """It has an error of its own."""
    with pytest.raises(LLMAccessError):
        await llm_case.locked.complete(Prompt("", "Hello"))
