"""Servers that answer without end, packed a thousandfold, garbled or late, through the real adapters.

Whatever they do, it is soon over, the memory does not grow by more than an answer may have, and no verdict
passes on what was never said.
"""

import asyncio
import os
import sys
from typing import Any

import hostile_server as hostile
import pytest
from agent_cases import server_agent
from processor_time import at_most
from programs import run_captured

from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.conversation.converse import ConversationPlayer
from ci_evals.conversation.scripted_user import ScriptedUser
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Outcome
from ci_evals.extensions.http.options import HttpOptions
from ci_evals.grading.grade import NO_JUDGE, grade
from ci_evals.ports import Agent

SECONDS = 0.4
"""The turn's timeout where the answer comes too late."""
PATIENCE = 300
"""The timeout of the others, which a busy machine may need."""
MOST_MB = 150
"""By which the process may grow over all of these: of an answer of 16 MB there are some copies."""

TEST = Test.model_validate({
    "name": "t", "guidelines": "g", "turns": [{"user": "Hello", "timeout": PATIENCE}],
    "evaluations": [
        {"criterion": "c", "strict": "not_contains", "text": "sorry", "turn": "any"},
        {"criterion": "c", "strict": "not_escalated"},
        {"criterion": "c", "strict": "rule_not_triggered", "rule_code": "R"},
        {"criterion": "c", "strict": "param_not_exists", "param_name": "p"},
        {"criterion": "c", "strict": "not_escalated_due_to_error"},
        {"criterion": "c", "strict": "max_latency", "seconds": 99},
    ],
}, by_name=True)  # fmt: skip
"""Of checks that would pass on nothing at all, were nothing taken for evidence."""
HTTP = HttpOptions.model_validate({"send": {"body": {"text": "{{message}}"}}, "reply": {"text": "$.say"}})

ANSWERS = hostile.TOO_MUCH | hostile.BROKEN | hostile.LATE | hostile.UNREADABLE
ENDLESS = {*hostile.LATE, "an endless size of a chunk"}
"""Only the timeout ends these."""
WORDS = {
    **dict.fromkeys(hostile.TOO_MUCH, "answered with more than 16 MB"),
    **dict.fromkeys(hostile.LATE, f"did not answer within {SECONDS:g} s"),
}
WORST = ("50 MB", "a bomb packed twice", "a byte a moment", "many values")


def agents(url: str, seconds: float = PATIENCE) -> dict[str, Agent]:
    return {
        "http": server_agent("http", AgentSettings(base_url=url, options=HTTP, api_key="agent-key")),
        "openai": server_agent("openai", AgentSettings(model="m", api_key="agent-key", base_url=url)),
        "langgraph": server_agent("langgraph", AgentSettings("a", "agent-key", url)),
        "a2a": server_agent("a2a", AgentSettings(None, "agent-key", url)),
        "rasa": server_agent("rasa", AgentSettings(None, "agent-key", url)),
        "aui": AuiAgent(AgentSettings("a", "agent-key", url), open_timeout=seconds),
    }


async def played(answer: hostile.Answer, adapter: str = "http", seconds: float = PATIENCE) -> Transcript:
    turns = [turn.model_copy(update={"timeout": seconds}) for turn in TEST.planned_turns]
    async with hostile.serving(answer) as url:
        conversation = ConversationPlayer(agents(url, seconds)[adapter], ScriptedUser(), lambda _: None)
        return conversation.transcript(await conversation.play(TEST, turns))


async def is_told(name: str, adapter: str = "http") -> None:
    """The conversation failed, soon and in words, and nothing passes for it."""
    with at_most(loops=1500):  # this server's work among it
        transcript = await played(ANSWERS[name], adapter, SECONDS if name in ENDLESS else PATIENCE)
    assert transcript.status == "failed"
    assert WORDS.get(name, "agent") in transcript.error
    assert len(transcript.error) < 800
    findings = await grade(TEST, TEST.turns, transcript, NO_JUDGE)
    assert {finding.outcome for finding in findings} == {Outcome.UNDECIDED}


@pytest.mark.parametrize("name", ANSWERS)
async def test_malformed_response_fails_turn_and_leaves_checks_undecided(name: str) -> None:
    await is_told(name)


@pytest.mark.parametrize("adapter", ["openai", "aui"])
@pytest.mark.parametrize("name", WORST)
async def test_worst_responses_fail_turn_in_every_http_adapter(name: str, adapter: str) -> None:
    await is_told(name, adapter)


@pytest.mark.parametrize("adapter", ["langgraph", "a2a", "rasa"])
@pytest.mark.parametrize("name", ["a bomb packed twice", "many values"])
async def test_worst_responses_fail_opening_in_framework_adapters(name: str, adapter: str) -> None:
    await is_told(name, adapter)


@pytest.mark.parametrize("name", hostile.READABLE)
async def test_unusual_but_readable_response_is_accepted(name: str) -> None:
    transcript = await played(hostile.READABLE[name])
    assert (transcript.status, transcript.turns[0].agent) == ("completed", "Hi")
    assert Transcript.model_validate_json(transcript.model_dump_json()) == transcript


@pytest.mark.slow
def test_memory_does_not_grow_with_response_size() -> None:
    """All of the above in one process."""
    run = run_captured(
        [sys.executable, __file__], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, timeout=300
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert float(run.stdout) < MOST_MB


async def _play_all(names: Any) -> None:
    for name in names:
        await is_told(name)


def _peak_mb() -> float:
    import resource  # noqa: PLC0415  # there is none on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    asyncio.run(_play_all(["no HTTP"]))  # what the first one imports is no growth
    before = _peak_mb()
    asyncio.run(_play_all([*hostile.TOO_MUCH, *hostile.UNREADABLE]))
    print(_peak_mb() - before)  # what the test reads
