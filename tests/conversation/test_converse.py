import fakes
import pytest
from pydantic import ValidationError

from ci_evals.conversation.converse import ConversationPlayer
from ci_evals.domain.errors import AgentError, LLMError
from ci_evals.domain.suite import PlannedTurn, Suite, Test
from ci_evals.domain.transcript import Transcript, UserSource


class ListUser:
    """Says its lines, or raises."""

    def __init__(self, *lines: str | Exception) -> None:
        self.lines = list(lines)
        self.seen = []

    async def next_message(self, test, turns) -> str:
        self.seen.append(tuple(turns))
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            raise line
        return line


async def play(
    turns: list[str], script=("ok",), user=None, heard=None
) -> tuple[Transcript, fakes.ScriptedAgent]:
    test = Test(
        name="t",
        guidelines="g",
        turns=[PlannedTurn(user=text) for text in turns],
        evaluations=[{"criterion": "c"}],
        user_info={"plan": "Pro"},
    )
    agent = fakes.ScriptedAgent(script)
    conversation = ConversationPlayer(agent, user or ListUser(), (heard if heard is not None else []).append)
    ended = await conversation.play(test, test.turns)
    return conversation.transcript(ended), agent


async def test_fixed_turns_are_sent_as_they_are():
    """In order, in one session that is closed, each turn told to the listener."""
    heard = []
    transcript, agent = await play(["one", "  two "], ["A", "B"], heard=heard)
    assert transcript.status == "completed"
    assert [(e.index, e.user, e.user_source, e.agent) for e in transcript.turns] == [
        (1, "one", UserSource.FIXED, "A"),
        (2, "  two ", UserSource.FIXED, "B"),
    ]
    (session,) = agent.sessions
    assert (session.heard, session.closed, heard) == (["one", "  two "], True, [1, 2])


async def test_auto_turns_are_written_by_the_simulated_user():
    """Who is shown the conversation so far."""
    user = ListUser("more please")
    transcript, _ = await play(["hi", "auto"], ["Hello", "Sure"], user)
    assert [e.user_source for e in transcript.turns] == ["fixed", "auto"]
    assert [e.agent for e in user.seen[0]] == ["Hello"]


@pytest.mark.parametrize(
    ("line", "remark"),
    [("###STOP###", None), ("Thanks, bye! ###STOP###", "Thanks, bye!"), ("###STOP###\nok", "ok")],
)
async def test_the_stop_marker_ends_the_conversation_unsent(line, remark):
    """Words beside it are kept as the closing remark."""
    transcript, agent = await play(["hi", "auto", "auto"], user=ListUser(line))
    assert (transcript.status, transcript.closing_remark) == ("stopped", remark)
    assert agent.sessions[0].heard == ["hi"]


async def test_a_fixed_turn_may_hold_the_marker():
    """Only the simulated user can stop."""
    transcript, agent = await play(["what does ###STOP### mean?"])
    assert transcript.status == "completed"
    assert agent.sessions[0].heard == ["what does ###STOP### mean?"]


@pytest.mark.parametrize(
    ("workflows", "status"),
    [
        (["CONVERSATION_FORWARDING"], "escalated"),
        (["A", "CONVERSATION_FORWARDING_BILLING"], "escalated"),
        (["conversation_forwarding"], "completed"),
        (["X_CONVERSATION_FORWARDING"], "completed"),
    ],
)
async def test_escalation_ends_the_conversation(workflows, status):
    """By the workflow's name or its prefix, case counting."""
    transcript, _ = await play(["a", "b"], [fakes.reply("bye", workflows=workflows), "never"])
    assert transcript.status == status
    assert len(transcript.turns) == (1 if status == "escalated" else 2)


async def test_an_error_response_ends_the_conversation():
    """Even one that forwards at the same time."""
    broken = fakes.reply("sorry", error_response=True, workflows=["CONVERSATION_FORWARDING"])
    transcript, _ = await play(["a", "b"], [broken])
    assert (transcript.status, len(transcript.turns), transcript.error) == ("agent_error", 1, None)


@pytest.mark.parametrize(
    ("script", "user", "cause"),
    [
        (["ok", AgentError("it broke")], ListUser("more"), "it broke"),
        (["ok"], ListUser(LLMError("no model")), "no model"),
    ],
)
async def test_failures_keep_what_was_said(script, user, cause):
    """Of the agent or of the simulated user: the cause is told, the session closed."""
    transcript, agent = await play(["a", "auto", "auto"], script, user)
    assert (transcript.status, transcript.error) == ("failed", cause)
    assert len(transcript.turns) == 1
    assert agent.sessions[0].closed


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (fakes.reply("x" * 1_000_001), "the agent's reply is longer than 1,000,000 characters"),
        (
            fakes.reply("x", params={"a": "x" * 1_000_001}),
            "what the agent says it did for one reply is longer",
        ),
        (
            fakes.reply("x", integrations=[{"code": "x" * 1_000_001}]),
            "what the agent says it did for one reply",
        ),
    ],
)
async def test_a_reply_has_an_end(reply, why):
    """A megabyte of words can neither be judged nor read: the trial fails, and nobody works through it."""
    transcript, _ = await play(["hi"], [reply])
    assert transcript.status == "failed"
    assert transcript.error.startswith(why)


async def test_a_trace_is_kept_up_to_a_length():
    """What was read out of it counts all the same; a reply may be as long as one may be."""
    most = fakes.reply("x" * 1_000_000, workflows=("A",), trace={"a": "x" * 1_000_000}, raw={"text": "x"})
    transcript, _ = await play(["hi"], [most])
    (turn,) = transcript.turns
    assert (len(turn.agent), turn.workflows, turn.raw) == (1_000_000, ("A",), {"text": "x"})
    assert turn.trace == "(not kept: longer than 1,000,000 characters)"


async def test_unchecked_reply_is_checked():
    """A copy is not checked by itself, and an agent in Python may make one: no report should fail of it."""
    listed = fakes.reply("x").model_copy(update={"workflows": ["A"]})
    transcript, _ = await play(["hi"], [listed])
    assert transcript.turns[0].workflows == ("A",)
    with pytest.raises(ValidationError, match="latency_seconds"):
        await play(["hi"], [fakes.reply("x").model_copy(update={"latency_seconds": -1.0})])


async def test_a_session_that_does_not_open():
    """Is a failure without turns."""
    agent = fakes.ScriptedAgent(opening=AgentError("refused"))
    conversation = ConversationPlayer(agent, ListUser(), lambda _: None)
    test = Test(name="t", guidelines="g", turns=[PlannedTurn(user="x")], evaluations=[{"criterion": "c"}])
    ended = await conversation.play(test, test.turns)
    assert conversation.transcript(ended) == Transcript(
        status="failed", error="refused", cause="agent_failed"
    )


async def test_a_bug_is_not_swallowed():
    """Only our own errors are part of a trial."""
    with pytest.raises(ZeroDivisionError):
        await play(["a"], [ZeroDivisionError()])


def test_turns_are_filled_up_to_max_turns():
    """Fewer are padded with `auto`, more are all played; the test's own maximum comes first."""

    def turns(count: int, **fields) -> int:
        test = Test(
            name="t",
            guidelines="g",
            turns=[PlannedTurn(user="x")] * count,
            evaluations=[{"criterion": "c"}],
            **fields,
        )
        return len(Suite(name="s", tests=[test], max_turns=4).turns_of(test))

    assert (turns(1), turns(6), turns(1, max_turns=2)) == (4, 6, 2)
