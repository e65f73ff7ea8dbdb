"""An agent of Microsoft's Agent Framework behind the Responses API, as its documents host one."""

import asyncio
import json
import os
import sys
from typing import Annotated, Any

import uvicorn
from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message
from agent_framework_hosting import AgentState
from agent_framework_hosting_responses import (
    create_response_id,
    responses_from_run,
    responses_session_id,
    responses_to_run,
)
from fastapi import Body, FastAPI

AMOUNT = 24 if os.environ.get("WRONG") == "amount" else 42
CALLS = [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": AMOUNT})]
TOKENS = {
    "input_token_count": 10, "cache_read_input_token_count": 0, "cache_creation_input_token_count": 0,
    "output_token_count": 5, "reasoning_output_token_count": 0,
}  # fmt: skip
"""Usage without details is left out of its answers."""


class Planned(FunctionInvocationLayer, BaseChatClient):
    """Calls tools by plan."""

    async def _inner_get_response(self, *, messages, stream, options, **_):
        asked = [place for place, message in enumerate(messages) if message.role == "user"]
        text = messages[asked[-1]].text
        done = sum(message.role == "tool" for message in messages[asked[-1] :])
        calls = CALLS if "Refund" in text else [("to_person", {})] if text == "person" else []
        if text == "fail":
            raise RuntimeError("the model is down")
        if text == "stall":
            await asyncio.sleep(15)
        if done < len(calls):
            name, arguments = calls[done]
            content = Content.from_function_call(f"call_{name}", name, arguments=json.dumps(arguments))
        else:
            content = Content.from_text("I refunded 42." if calls else f"{len(asked)}: {text}")
        return ChatResponse(messages=[Message("assistant", [content])], usage_details=TOKENS)


def lookup(order: str) -> dict[str, Any]:
    """Look up an order."""
    return {"order": order, "paid": 42}


def refund(order: str, amount: int) -> str:
    """Refund an order."""
    return "ok"


def to_person() -> str:
    """Hand over to a person."""
    return "ok"


agent = Agent(Planned(), "Refund orders.", name="refunds", tools=[lookup, refund, to_person])
app, state = FastAPI(), AgentState(agent)


@app.get("/ok")
async def ok():
    """Tell that it is up."""
    return "ok"


@app.post("/responses")
async def responses(body: Annotated[dict, Body()]):
    """Answer one message."""
    run = responses_to_run(body)
    session_id, is_conversation_id = responses_session_id(body)
    response_id = create_response_id()
    session = await state.get_or_create_session(session_id or response_id)
    result = await (await state.get_target()).run(run["messages"], session=session)
    await state.set_session(session_id if is_conversation_id else response_id, session)
    return responses_from_run(result, response_id=response_id)


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
