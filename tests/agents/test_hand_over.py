"""Hand-overs by escalation tools: unknown if not all calls could be read."""

from typing import Any

import endpoints
import framework_chats
from each_row import each_row
from endpoints import EndpointRequest, adk_event, ag_ui_call, ag_ui_run, sse

from ci_evals.adapters.hand_over import hand_over
from ci_evals.domain.transcript import Reply

TOOLS = ("to_person",)
UNREADABLE = {"functionCall": {"id": "1"}}
PERSON = {"functionCall": {"id": "2", "name": "to_person", "args": {}}}
NAMELESS = {"type": "TOOL_CALL_START", "toolCallId": "c"}
UNKNOWN_EVENT = {"type": "TOOL_CALL_STREAMED", "toolCallId": "c"}


@each_row(("names", "all_known", "expected"), [
    ([], True, False),
    (["refund"], True, False),
    (["refund", "to_person"], True, True),
    ([], False, None),
    (["refund"], False, None),
    (["to_person"], False, True),
])  # fmt: skip
def test_hand_over_is_known_from_escalation_tool_or_its_absence_in_all_calls(names, all_known, expected):
    """One that is seen is evidence; that there was none is known only of all calls."""
    assert hand_over(names, TOOLS, all_known=all_known) is expected
    assert hand_over(names, (), all_known=all_known) is None


async def adk_reply(*events: Any) -> Reply:
    def answer(asked: EndpointRequest) -> Any:
        return sse(*events) if asked.path.startswith("/run") else {"state": {}}

    with endpoints.serving(answer) as stub:
        agent = framework_chats.agent("adk", stub.url, key=stub.key)
        (reply,), _ = await framework_chats.converse(agent, "Hello")
    return reply


async def ag_ui_reply(*events: Any, text: str) -> Reply:
    with endpoints.serving(lambda _: ag_ui_run(*events, text=text)) as stub:
        agent = framework_chats.agent("ag-ui", stub.url, key=stub.key)
        (reply,), _ = await framework_chats.converse(agent, "Hello")
    return reply


async def test_hand_over_is_unknown_if_adk_call_is_unreadable_or_run_failed() -> None:
    """A check that the agent did not hand over must not pass on it."""
    done = adk_event({"text": "Done"})
    assert (await adk_reply(done)).hand_over is False
    reply = await adk_reply(adk_event(UNREADABLE), done)
    assert (reply.tool_calls, reply.hand_over) == (None, None)
    reply = await adk_reply(adk_event(UNREADABLE, PERSON), done)
    assert (reply.tool_calls, reply.hand_over) == (None, True)
    reply = await adk_reply(adk_event({"text": "Let me see"}), {"error": "ValueError: broke"})
    assert (reply.error_response, reply.tool_calls_partial, reply.hand_over) == (True, True, None)


async def test_hand_over_is_unknown_if_ag_ui_call_is_unreadable() -> None:
    assert (await ag_ui_reply(text="Done")).hand_over is False
    for event in (NAMELESS, UNKNOWN_EVENT):
        reply = await ag_ui_reply(event, text="Done")
        assert (reply.tool_calls_partial, reply.hand_over) == (True, None)
        reply = await ag_ui_reply(event, *ag_ui_call("to_person", {}), text="Done")
        assert (reply.tool_calls_partial, reply.hand_over) == (True, True)
