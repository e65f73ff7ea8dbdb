"""Hand-overs by tools: seen in what could be read, and never ruled out by what could not."""

from typing import Any

import endpoints
import framework_chats
import pytest
from endpoints import EndpointRequest, adk_event, ag_ui_call, ag_ui_run, sse

from ci_evals.adapters.hand_over import hand_over
from ci_evals.domain.transcript import Reply

TOOLS = ("to_person",)
UNREADABLE = {"functionCall": {"id": "1"}}
PERSON = {"functionCall": {"id": "2", "name": "to_person", "args": {}}}
NAMELESS = {"type": "TOOL_CALL_START", "toolCallId": "c"}
OF_A_NEWER_VERSION = {"type": "TOOL_CALL_STREAMED", "toolCallId": "c"}


@pytest.mark.parametrize(
    ("names", "all_known", "expected"),
    [
        ([], True, False),
        (["refund"], True, False),
        (["refund", "to_person"], True, True),
        ([], False, None),
        (["refund"], False, None),
        (["to_person"], False, True),
    ],
)
def test_what_calls_say_of_a_hand_over(names: list[str], all_known: bool, expected: bool | None) -> None:
    """One that is seen is evidence; that there was none is known of all calls only."""
    assert hand_over(names, TOOLS, all_known=all_known) is expected
    assert hand_over(names, (), all_known=all_known) is None


async def said_by_adk(*events: Any) -> Reply:
    def answer(asked: EndpointRequest) -> Any:
        return sse(*events) if asked.path.startswith("/run") else {"state": {}}

    with endpoints.serving(answer) as stub:
        (reply,), _ = await framework_chats.converse(
            framework_chats.agent("adk", stub.url, key=stub.key), "Hello"
        )
    return reply


async def said_by_ag_ui(*events: Any, text: str) -> Reply:
    with endpoints.serving(lambda _: ag_ui_run(*events, text=text)) as stub:
        (reply,), _ = await framework_chats.converse(
            framework_chats.agent("ag-ui", stub.url, key=stub.key), "Hello"
        )
    return reply


async def test_a_call_that_adk_leaves_without_a_name_may_hand_over() -> None:
    """A check that the agent did not hand over must not pass on it."""
    assert (await said_by_adk(adk_event({"text": "Done"}))).hand_over is False
    reply = await said_by_adk(adk_event(UNREADABLE), adk_event({"text": "Done"}))
    assert (reply.tool_calls, reply.hand_over) == (None, None)
    reply = await said_by_adk(adk_event(UNREADABLE, PERSON), adk_event({"text": "Done"}))
    assert (reply.tool_calls, reply.hand_over) == (None, True)


async def test_a_run_of_adk_that_fails_might_have_handed_over() -> None:
    """What it would have done is unknown."""
    reply = await said_by_adk(adk_event({"text": "Let me see"}), {"error": "ValueError: broke"})
    assert (reply.error_response, reply.tool_calls_partial, reply.hand_over) == (True, True, None)


@pytest.mark.parametrize("event", [NAMELESS, OF_A_NEWER_VERSION])
async def test_a_call_that_ag_ui_leaves_unreadable_may_hand_over(event: dict[str, Any]) -> None:
    """Likewise."""
    assert (await said_by_ag_ui(text="Done")).hand_over is False
    reply = await said_by_ag_ui(event, text="Done")
    assert (reply.tool_calls_partial, reply.hand_over) == (True, None)
    reply = await said_by_ag_ui(event, *ag_ui_call("to_person", {}), text="Done")
    assert (reply.tool_calls_partial, reply.hand_over) == (True, True)
