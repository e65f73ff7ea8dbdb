"""Servers and programs that answer twice: no conversation gets the answer to another message."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from random import Random

import pytest
import world
from agent_sessions import error_of, replies_of, session_of

from ci_evals.adapters.models.openai_llm import OpenAILLM
from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, LLMError
from ci_evals.extensions.http.agent import HttpAgent
from ci_evals.extensions.http.options import HttpOptions
from ci_evals.ports import Prompt

PLAIN = {"send": {"body": {"question": "{{message}}"}}, "reply": {"text": "$.answer"}}


def answer_plainly(asked):
    return {"answer": f"answer to {asked['question']}"}


def answer_completion(asked):
    text = f"answer to {asked['messages'][-1]['content']}"
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


@asynccontextmanager
async def double_server(seconds, answer=answer_plainly, chance=1.0, seed=1):
    """A server that answers each request, and once more later, before it reads the next one."""
    dice = Random(seed)
    counts = {"answered": 0, "twice": 0, "connections": 0}

    async def serve(reader, writer):
        counts["connections"] += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                data = world.http_response(json.dumps(answer(json.loads(await reader.readexactly(length)))))
                writer.write(data)
                counts["answered"] += 1
                if dice.random() < chance:
                    await asyncio.sleep(seconds(dice))
                    writer.write(data)
                    counts["twice"] += 1
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", counts
    finally:
        listening.close()


def agent_at(url, options=PLAIN):
    return HttpAgent(AgentSettings(base_url=url, options=options))


async def conversation(agent, name, messages=3, pause=0.0):
    """Each question with its answer; None if the conversation failed."""
    pairs = []
    try:
        async with session_of(agent) as session:
            for number in range(messages):
                question = f"question {number} of {name}"
                reply = await agent.send_message(session, question, timeout=5)
                pairs.append((question, reply.agent))
                await asyncio.sleep(pause)
    except AgentError as error:
        assert "more than one answer" in str(error) or "more than one line" in str(error)  # noqa: PT017
        return None
    return pairs


def crossed_answers(conversations):
    return [pair for pairs in conversations if pairs for pair in pairs if pair[1] != f"answer to {pair[0]}"]


@pytest.mark.parametrize("parallel", [1, 10])
@pytest.mark.parametrize("pause", [0.0, 0.02])
async def test_duplicate_server_answers_do_not_reach_other_conversations(parallel, pause):
    """The server answers twice at random, after 0 to 50 ms; conversations follow each other or overlap."""
    seconds = lambda dice: dice.choice([0.0, dice.uniform(0, 0.05)])  # noqa: E731
    async with double_server(seconds, chance=0.4) as (url, counts):
        agent = agent_at(url)
        gate = asyncio.Semaphore(parallel)

        async def play(number):
            async with gate:
                return await conversation(agent, number, pause=pause)

        played = await asyncio.gather(*(play(number) for number in range(40)))
    assert None not in played, "a conversation failed for what it never saw"
    assert crossed_answers(played) == []
    assert counts["twice"] > 10
    assert counts["connections"] == 120, "one for each message"


async def test_late_answer_or_line_end_after_answer_does_not_affect_next_conversation():
    async with double_server(lambda _: 0.02) as (url, counts):
        agent = agent_at(url)
        played = [await conversation(agent, number, messages=1) for number in range(5)]
    assert (crossed_answers(played), counts["connections"]) == ([], 5)

    async def serve(reader, writer):
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            await reader.read(1000)
            writer.write(world.http_response('{"answer": "answer to question 0 of 1"}'))
            await asyncio.sleep(0.01)
            writer.write(b"\r\n")  # some servers send them
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        assert crossed_answers([await conversation(agent_at(url), 1, messages=1, pause=0.03)]) == []


async def test_duplicate_model_responses_do_not_reach_other_prompts():
    seconds = lambda dice: dice.uniform(0, 0.05)  # noqa: E731
    async with double_server(seconds, answer_completion, chance=0.4) as (url, counts):
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
    assert counts["twice"] > 10


WITH_IDS = {
    "send": {"body": {"question": "{{message}}", "id": "{{messageId}}"}},
    "reply": {"text": "$.answer", "messageId": "$.id"},
}


async def test_http_answer_with_other_or_missing_message_id_is_rejected():
    """Then no second answer, however late, passes for the answer to another message."""
    other = 'answered another message: the answer has the id ["another"], the message "'
    for ids, message in (
        (lambda asked: {"id": asked["id"]}, None),
        (lambda _: {"id": "another"}, other),
        (lambda _: {"id": None}, "answered another message: the answer has the id [null]"),
        (lambda _: {}, "has no message id at $.id: "),
    ):
        answer = lambda asked, ids=ids: answer_plainly(asked) | ids(asked)  # noqa: E731
        async with double_server(lambda _: 0, answer, chance=0) as (url, _):
            agent = agent_at(url, WITH_IDS)
            if message:
                assert message in await error_of(agent, "Hi")
            else:
                assert (await replies_of(agent, "Hi"))[0].agent == "answer to Hi"


def test_message_id_can_be_read_only_if_it_is_sent():
    with pytest.raises(ValueError, match=r"reply.messageId is given, but send holds no \{\{messageId\}\}"):
        HttpOptions.model_validate(PLAIN | {"reply": WITH_IDS["reply"]})


LATE_SECOND_ANSWER = """
import json, sys, time
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        print(json.dumps("answer to " + heard["text"]), flush=True)
        time.sleep(SECONDS)
        print(json.dumps("answer to " + heard["text"]), flush=True)
"""


@pytest.mark.parametrize("seconds", [0, 0.03, 0.3])
async def test_late_second_line_of_program_fails_its_trials(tmp_path, seconds):
    """Also after its last answer: what it writes until it ends is read."""
    file = tmp_path / "program.py"
    file.write_text(LATE_SECOND_ANSWER.replace("SECONDS", str(seconds)))
    agent = CommandAgent(f"command: {sys.executable} {file}", AgentSettings(), {})
    assert await asyncio.gather(*(conversation(agent, n, messages=n) for n in (1, 2, 3))) == [None] * 3


ANSWERS_WITH_ID = """
import json, sys
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        print(json.dumps({"text": "ok", "id": CHOICE}), flush=True)
"""


async def test_program_answer_with_other_message_id_is_rejected(tmp_path):
    file = tmp_path / "program.py"
    agent = CommandAgent(f"command: {sys.executable} {file}", AgentSettings(), {})
    for choice, message in (
        ('heard["id"]', None),
        ('"old"', 'answered another message: the answer has the id "old"'),
    ):
        file.write_text(ANSWERS_WITH_ID.replace("CHOICE", choice))
        if message:
            assert message in await error_of(agent, "Hi")
        else:
            assert (await replies_of(agent, "Hi"))[0].agent == "ok"
