import fakes
import pytest
from each_row import each_row
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


def make_test(*lines: str, **fields) -> Test:
    turns = [PlannedTurn(user=line) for line in lines]
    return Test(name="t", guidelines="g", turns=turns, evaluations=[{"criterion": "c"}], **fields)


async def play(lines, script=("ok",), user=None, played=None) -> tuple[Transcript, fakes.ScriptedAgent]:
    test, agent = make_test(*lines, user_info={"plan": "Pro"}), fakes.ScriptedAgent(script)
    conversation = ConversationPlayer(agent, user or ListUser(), ([] if played is None else played).append)
    return conversation.transcript(await conversation.play(test, test.turns)), agent


async def test_fixed_turns_are_sent_unchanged_in_one_session():
    played = []
    transcript, agent = await play(["one", "  two "], ["A", "B"], played=played)
    assert transcript.status == "completed"
    assert [(turn.index, turn.user, turn.user_source, turn.agent) for turn in transcript.turns] == [
        (1, "one", UserSource.FIXED, "A"),
        (2, "  two ", UserSource.FIXED, "B"),
    ]
    (session,) = agent.sessions
    assert (session.heard, session.closed, played) == (["one", "  two "], True, [1, 2])


async def test_auto_turns_are_written_by_the_simulated_user():
    user = ListUser("more please")
    transcript, _ = await play(["hi", "auto"], ["Hello", "Sure"], user)
    assert [e.user_source for e in transcript.turns] == ["fixed", "auto"]
    assert [e.agent for e in user.seen[0]] == ["Hello"]


async def test_stop_marker_ends_the_conversation_unsent_except_in_a_fixed_turn():
    bye = ("Thanks, bye! ###STOP###", "Thanks, bye!")
    for line, remark in (("###STOP###", None), bye, ("###STOP###\nok", "ok")):
        transcript, agent = await play(["hi", "auto", "auto"], user=ListUser(line))
        assert (transcript.status, transcript.closing_remark) == ("stopped", remark)
        assert agent.sessions[0].heard == ["hi"]
    # In a fixed turn it is sent.
    transcript, agent = await play(["what does ###STOP### mean?"])
    assert (transcript.status, agent.sessions[0].heard) == ("completed", ["what does ###STOP### mean?"])


@each_row(("workflows", "status"), [
    (["CONVERSATION_FORWARDING"], "escalated"),
    (["A", "CONVERSATION_FORWARDING_BILLING"], "escalated"),
    (["conversation_forwarding"], "completed"),
    (["X_CONVERSATION_FORWARDING"], "completed"),
])  # fmt: skip
async def test_escalation_workflow_ends_the_conversation(workflows, status):
    transcript, _ = await play(["a", "b"], [fakes.reply("bye", workflows=workflows), "never"])
    assert transcript.status == status
    assert len(transcript.turns) == (1 if status == "escalated" else 2)


async def test_error_response_ends_the_conversation():
    broken = fakes.reply("sorry", error_response=True, workflows=["CONVERSATION_FORWARDING"])
    transcript, _ = await play(["a", "b"], [broken])
    assert (transcript.status, len(transcript.turns), transcript.error) == ("agent_error", 1, None)


async def test_failure_of_agent_or_user_keeps_the_turns_and_closes_the_session():
    for script, user, cause in (
        (["ok", AgentError("it broke")], ListUser("more"), "it broke"),
        (["ok"], ListUser(LLMError("no model")), "no model"),
    ):
        transcript, agent = await play(["a", "auto", "auto"], script, user)
        assert (transcript.status, transcript.error, len(transcript.turns)) == ("failed", cause, 1)
        assert agent.sessions[0].closed
    # Without a session there are no turns; and what is no failure of theirs is raised.
    test, agent = make_test("x"), fakes.ScriptedAgent(opening=AgentError("refused"))
    conversation = ConversationPlayer(agent, ListUser(), lambda _: None)
    failed = Transcript(status="failed", error="refused", cause="agent_failed")
    assert conversation.transcript(await conversation.play(test, test.turns)) == failed
    with pytest.raises(ZeroDivisionError):
        await play(["a"], [ZeroDivisionError()])


async def test_overlong_reply_or_evidence_fails_the_trial_and_a_trace_is_dropped():
    long = "x" * 1_000_001
    evidence = "what the agent says it did for one reply is longer"
    for reply, reason in (
        (fakes.reply(long), "the agent's reply is longer than 1,000,000 characters"),
        (fakes.reply("x", params={"a": long}), evidence),
        (fakes.reply("x", integrations=[{"code": long}]), evidence),
    ):
        transcript, _ = await play(["hi"], [reply])
        assert (transcript.status, transcript.error[: len(reason)]) == ("failed", reason)
    longest = fakes.reply("x" * 1_000_000, workflows=("A",), trace={"a": "x" * 1_000_000}, raw={"text": "x"})
    transcript, _ = await play(["hi"], [longest])
    (turn,) = transcript.turns
    assert (len(turn.agent), turn.workflows, turn.raw) == (1_000_000, ("A",), {"text": "x"})
    assert turn.trace == "(not kept: longer than 1,000,000 characters)"


async def test_reply_built_without_validation_is_validated():
    """An agent in Python may return such a copy: no report should fail of it."""
    listed = fakes.reply("x").model_copy(update={"workflows": ["A"]})
    transcript, _ = await play(["hi"], [listed])
    assert transcript.turns[0].workflows == ("A",)
    with pytest.raises(ValidationError, match="latency_seconds"):
        await play(["hi"], [fakes.reply("x").model_copy(update={"latency_seconds": -1.0})])


def test_missing_turns_are_added_up_to_max_turns():
    def turns(count: int, **fields) -> int:
        test = make_test(*["x"] * count, **fields)
        return len(Suite(name="s", tests=[test], max_turns=4).turns_of(test))

    assert (turns(1), turns(6), turns(1, max_turns=2)) == (4, 6, 2)
