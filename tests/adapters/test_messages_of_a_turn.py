"""Answers with several messages, through every agent that reads them: none of them is lost."""

import json
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import endpoints
import pytest
import world
from pydantic import TypeAdapter

from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.python.loading import agent_of
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.checks.evaluation import Strict
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import EndState, Transcript, Turn, UserSource
from ci_evals.extensions.http.agent import HttpAgent
from ci_evals.ports import Agent

TEST = Test(
    name="Refunds nothing",
    guidelines="You ask about opening hours.",
    turns=({"user": "When are you open?"}, {"user": "And on Sundays?"}),
    evaluations=({"criterion": "Helpful"},),
)
STRICT: TypeAdapter[Any] = TypeAdapter(Strict)
Running = Callable[[list[Any], Path], AbstractAsyncContextManager[Agent]]
Form = Callable[[list[Any], list[Any]], list[Any]]
CHECKS = [
    {"criterion": "c", "strict": "tool_not_used", "toolName": "refund"},
    {"criterion": "c", "strict": "tool_called", "toolName": "refund", "times": 0},
    {"criterion": "c", "strict": "max_tool_calls", "calls": 0},
    {"criterion": "c", "strict": "param_not_exists", "paramName": "amount"},
    {"criterion": "c", "strict": "not_contains", "text": "hunter2", "turn": "any"},
]
HIDDEN = [
    {"role": "assistant", "content": "The password is hunter2.", "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "refund", "arguments": '{"amount": 4990}'}}]},
    {"role": "user", "content": "Observation: refunded 4990"},
    {"role": "assistant", "content": "All right.", "tool_calls": []},
]  # fmt: skip
PLAIN = [{"role": "assistant", "content": "From nine to five.", "tool_calls": []}]


FORMS: dict[str, Form] = {
    "new messages": lambda thread, new: new,
    "whole thread": lambda thread, new: [*thread, *new],
}


@asynccontextmanager
async def function(answers: list[Any], folder: Path) -> AsyncIterator[Agent]:
    left = iter(answers)
    yield agent_of(lambda message: {"messages": next(left)}, "mine", AgentSettings())


@asynccontextmanager
async def four_methods(answers: list[Any], folder: Path) -> AsyncIterator[Agent]:
    left = iter(answers)

    class Mine:
        def spawn_session(self) -> str:
            return "s"

        def send_message(self, session: str, message: str) -> Any:
            return {"messages": next(left)}

        def call_judge(self, prompt: str) -> str:
            return ""

        generate_user_message = call_judge

    yield agent_of(Mine(), "mine", AgentSettings())


@asynccontextmanager
async def program(answers: list[Any], folder: Path) -> AsyncIterator[Agent]:
    (folder / "answers.json").write_text(json.dumps(answers))
    (folder / "agent.py").write_text(
        "import json, sys\n"
        f"answers = iter(json.load(open({str(folder / 'answers.json')!r})))\n"
        "for line in sys.stdin:\n"
        "    if json.loads(line)['type'] == 'message':\n"
        "        print(json.dumps({'messages': next(answers)}), flush=True)\n"
    )
    command = f"command: {shlex.quote(sys.executable)} {shlex.quote(str(folder / 'agent.py'))}"
    yield CommandAgent(command, AgentSettings(), {"PATH": "/usr/bin:/bin"})


def over_http(reply: dict[str, str], wrap: Callable[[Any], Any], **options: Any) -> Running:
    """Return what serves answers over HTTP, which paths read."""

    @asynccontextmanager
    async def http(answers: list[Any], folder: Path) -> AsyncIterator[Agent]:
        left = iter(answers)
        with endpoints.serving(lambda _: wrap(next(left))) as stub:
            made = {"send": {"body": {"text": "{{message}}"}}, "reply": reply, **options}
            settings = AgentSettings(None, stub.key, stub.url, None, made)
            yield HttpAgent(settings, limiter=world.limiter())

    return http


def deltas(messages: list[Any]) -> Any:
    """Return messages as a stream of OpenAI's chunks, each message in pieces."""
    chunks = []
    for message in messages:
        first = {key: value for key, value in message.items() if key != "content"}
        chunks += [first, *({"content": letter} for letter in message["content"])]
    return endpoints.sse(*({"choices": [{"index": 0, "delta": chunk}]} for chunk in chunks))


AGENTS: dict[str, Running] = {
    "function": function,
    "object of four methods": four_methods,
    "program": program,
    "http": over_http({"messages": "$.messages"}, lambda messages: {"messages": messages}),
    "http, streamed": over_http({"messages": "$[*].choices[0].delta"}, deltas, stream="sse"),
}


async def converse(running: Running, answers: list[Any], folder: Path) -> Transcript:
    """Return the conversation of the test with an agent that gives these answers."""
    turns = []
    async with running(answers, folder) as agent:
        session = await agent.open_session(TEST)
        for number, planned in enumerate(TEST.turns[: len(answers)], 1):
            reply = await agent.send_message(session, planned.user, timeout=30)
            turns.append(Turn(**vars(reply), index=number, user=planned.user, user_source=UserSource.FIXED))
        await agent.close(session)
    return Transcript(turns=tuple(turns), status=EndState.COMPLETED)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("hidden_in", [None, 1, 2])
@pytest.mark.parametrize("running", AGENTS.values(), ids=AGENTS)
async def test_negative_checks_fail_only_if_a_call_precedes_an_extra_user_message(
    running, hidden_in, form, tmp_path
):
    thread: list[Any] = []
    answers = []
    for number, planned in enumerate(TEST.turns, 1):
        thread.append({"role": "user", "content": planned.user})
        new = HIDDEN if number == hidden_in else PLAIN
        answers.append(form(thread, new))
        thread += new
    transcript = await converse(running, answers, tmp_path)
    verdicts = {check["strict"]: STRICT.validate_python(check).decide(transcript) for check in CHECKS}
    outcomes = {kind: verdict.outcome.value for kind, verdict in verdicts.items()}
    assert outcomes == dict.fromkeys(verdicts, "failed" if hidden_in else "passed")
    calls = [len(turn.tool_calls or ()) for turn in transcript.turns]
    assert calls == [int(hidden_in == 1), int(hidden_in == 2)]
