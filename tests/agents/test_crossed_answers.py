"""Servers and programs that answer twice: no conversation scores the answer to another question."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from random import Random

import pytest
import world

from ci_evals.adapters.models.openai_llm import OpenAILLM
from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, LLMError
from ci_evals.domain.suite import Test
from ci_evals.extensions.http.agent import HttpAgent
from ci_evals.extensions.http.options import HttpOptions
from ci_evals.ports import Prompt

TEST = Test(
    name="Asks",
    user_info={"name": "Ida"},
    guidelines="You ask.",
    turns=({"user": "Hello"},),
    evaluations=({"criterion": "Helpful"},),
)
PLAIN = {"send": {"body": {"question": "{{message}}"}}, "reply": {"text": "$.answer"}}


def plain(asked):
    return {"answer": f"answer to {asked['question']}"}


def completion(asked):
    text = f"answer to {asked['messages'][-1]['content']}"
    return {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]
    }


@asynccontextmanager
async def double_server(seconds, answer=plain, chance=1.0, seed=1):
    """A server that answers each request, and again a while later, before it reads the next one."""
    dice = Random(seed)
    books = {"answered": 0, "twice": 0, "connections": 0}

    async def serve(reader, writer):
        books["connections"] += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                data = world.http_response(json.dumps(answer(json.loads(await reader.readexactly(length)))))
                writer.write(data)
                books["answered"] += 1
                if dice.random() < chance:
                    await asyncio.sleep(seconds(dice))
                    writer.write(data)
                    books["twice"] += 1
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", books
    finally:
        listening.close()


def agent_at(url, options=PLAIN):
    return HttpAgent(AgentSettings(base_url=url, options=options))


async def conversation(agent, name, messages=3, pause=0.0):
    """Each question with its answer; None if the conversation failed."""
    heard = []
    try:
        session = await agent.open_session(TEST)
        try:
            for number in range(messages):
                question = f"question {number} of {name}"
                reply = await agent.send_message(session, question, timeout=5)
                heard.append((question, reply.agent))
                await asyncio.sleep(pause)
        finally:
            await agent.close(session)
    except AgentError as error:
        assert "more than one answer" in str(error) or "more than one line" in str(error)  # noqa: PT017
        return None
    return heard


def crossed(conversations):
    return [pair for heard in conversations if heard for pair in heard if pair[1] != f"answer to {pair[0]}"]


@pytest.mark.parametrize("parallel", [1, 10])
@pytest.mark.parametrize("pause", [0.0, 0.02])
async def test_no_conversation_keeps_a_foreign_answer(parallel, pause):
    """The server answers twice at random, after 0 to 50 ms; conversations follow each other or overlap."""
    seconds = lambda dice: dice.choice([0.0, dice.uniform(0, 0.05)])  # noqa: E731
    async with double_server(seconds, chance=0.4) as (url, books):
        agent = agent_at(url)
        gate = asyncio.Semaphore(parallel)

        async def play(number):
            async with gate:
                return await conversation(agent, number, pause=pause)

        played = await asyncio.gather(*(play(number) for number in range(40)))
    assert None not in played, "a conversation failed for what it never saw"
    assert crossed(played) == []
    assert books["twice"] > 10
    assert books["connections"] == 120, "one for each message"


async def test_the_next_conversation_is_not_shifted():
    """A late second answer meets a closed connection."""
    async with double_server(lambda _: 0.02) as (url, books):
        agent = agent_at(url)
        played = [await conversation(agent, number, messages=1) for number in range(5)]
    assert crossed(played) == []
    assert books["connections"] == 5


async def test_line_ends_after_an_answer_are_no_answer():
    """Some servers send them."""

    async def serve(reader, writer):
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            await reader.read(1000)
            writer.write(world.http_response('{"answer": "answer to question 0 of 1"}'))
            await asyncio.sleep(0.01)
            writer.write(b"\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        assert crossed([await conversation(agent_at(url), 1, messages=1, pause=0.03)]) == []


async def test_a_model_is_not_misread_either():
    """Each question has a connection of its own too."""
    seconds = lambda dice: dice.uniform(0, 0.05)  # noqa: E731
    async with double_server(seconds, completion, chance=0.4) as (url, books):
        llm = OpenAILLM("m", "key-of-the-model", f"{url}/v1", 5)

        async def ask(number):
            await asyncio.sleep(number / 200)
            try:
                return (await llm.complete(Prompt("", f"question {number}"))).text
            except LLMError as error:
                return str(error)

        await ask(0)  # imports the SDK: else all others would wait for that, and go out at once
        result = await asyncio.gather(*(ask(number) for number in range(60)))
        await llm.aclose()
    assert [text for number, text in enumerate(result) if text != f"answer to question {number}"] == []
    assert books["twice"] > 10


WITH_IDS = {
    "send": {"body": {"question": "{{message}}", "id": "{{messageId}}"}},
    "reply": {"text": "$.answer", "messageId": "$.id"},
}


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (lambda asked: asked["id"], None),
        (lambda _: "another", 'answered another message: the answer has the id ["another"], the message "'),
        (lambda _: None, "answered another message: the answer has the id [null]"),
    ],
)
async def test_an_http_agent_can_name_the_message_that_it_answers(ids, message):
    """Then no second answer, however late, passes for the answer to another message."""

    def answer(asked):
        return {**plain(asked), "id": ids(asked)}

    async with double_server(lambda _: 0, answer, chance=0) as (url, _):
        agent = agent_at(url, WITH_IDS)
        session = await agent.open_session(TEST)
        if message is None:
            assert (await agent.send_message(session, "Hi", timeout=5)).agent == "answer to Hi"
        else:
            with pytest.raises(AgentError) as caught:
                await agent.send_message(session, "Hi", timeout=5)
            assert message in str(caught.value)
        await agent.close(session)


async def test_an_http_agent_that_leaves_the_id_out_is_refused():
    """Its user asked for the check."""
    async with double_server(lambda _: 0, chance=0) as (url, _):
        agent = agent_at(url, WITH_IDS)
        session = await agent.open_session(TEST)
        with pytest.raises(AgentError, match=r"has no message id at \$\.id: .*reply.messageId"):
            await agent.send_message(session, "Hi", timeout=5)
        await agent.close(session)


def test_an_id_that_is_expected_must_be_sent():
    """Else no answer could ever pass."""
    with pytest.raises(ValueError, match=r"reply.messageId is given, but send holds no \{\{messageId\}\}"):
        HttpOptions.model_validate(PLAIN | {"reply": WITH_IDS["reply"]})


LATE = """
import json, sys, time
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        print(json.dumps("answer to " + heard["text"]), flush=True)
        time.sleep(SECONDS)
        print(json.dumps("answer to " + heard["text"]), flush=True)
"""


@pytest.mark.parametrize("seconds", [0, 0.03, 0.3])
async def test_a_program_whose_second_line_comes_late_fails_its_trials(tmp_path, seconds):
    """Also after its last answer: what it writes until it ends is read."""
    file = tmp_path / "program.py"
    file.write_text(LATE.replace("SECONDS", str(seconds)))
    agent = CommandAgent(f"command: {sys.executable} {file}", AgentSettings(), {})
    assert await asyncio.gather(*(conversation(agent, n, messages=n) for n in (1, 2, 3))) == [None] * 3


IDS = """
import json, sys
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        print(json.dumps({"text": "ok", "id": CHOICE}), flush=True)
"""


async def test_a_program_can_name_the_message_that_it_answers(tmp_path):
    """Another id than the message's is refused."""
    file = tmp_path / "program.py"
    agent = CommandAgent(f"command: {sys.executable} {file}", AgentSettings(), {})
    for choice, message in (
        ('heard["id"]', None),
        ('"old"', 'answered another message: the answer has the id "old"'),
    ):
        file.write_text(IDS.replace("CHOICE", choice))
        session = await agent.open_session(TEST)
        if message is None:
            assert (await agent.send_message(session, "Hi", timeout=10)).agent == "ok"
        else:
            with pytest.raises(AgentError, match=message):
                await agent.send_message(session, "Hi", timeout=10)
        await agent.close(session)
