"""An agent of pydantic-ai behind AG-UI, with a model that calls tools by plan."""

import asyncio
import json
import os
import sys

import uvicorn
from ag_ui.core import StateDeltaEvent, StateSnapshotEvent
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolReturn
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.ui import StateDeps
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

AMOUNT = 24 if os.environ.get("WRONG") == "amount" else 42


class State(BaseModel):
    """What agent and client share."""

    refunded: int = 0
    plan: str = ""


def called(text):
    """Return the tools to call for a message, with their arguments."""
    if "Refund" in text:
        return [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": AMOUNT})]
    if "Close" in text:
        return [("close_account", {"reason": "asked for"})]
    return [("to_person", {})] if text == "person" else []


async def respond(messages, info):
    """Call the next tool, or answer."""
    texts = [part for message in messages for part in message.parts]
    asked = [part.content for part in texts if part.part_kind == "user-prompt"]
    start = max(index for index, part in enumerate(texts) if part.part_kind == "user-prompt")
    done = sum(part.part_kind == "tool-return" for part in texts[start:])
    text, calls = asked[-1], called(asked[-1])
    if text == "fail":
        raise RuntimeError("the model is down")
    if text == "stall":
        await asyncio.sleep(15)
    if done < len(calls):
        name, arguments = calls[done]
        written = json.dumps(arguments)
        if not done:
            yield "Let me see. "
        yield {1: DeltaToolCall(name, written[:9], tool_call_id=f"{len(asked)}-{name}")}
        yield {1: DeltaToolCall(json_args=written[9:])}
        return
    for part in ("I refunded ", "42.") if calls else (f"{len(asked)}: ", text):
        yield part


agent = Agent(
    FunctionModel(stream_function=respond),
    deps_type=StateDeps[State],
    output_type=[str, DeferredToolRequests],
)


@agent.tool_plain
def lookup(order: str) -> dict:
    """Look up an order."""
    return {"order": order, "paid": 42}


@agent.tool
def refund(ctx: RunContext[StateDeps[State]], order: str, amount: int) -> ToolReturn:
    """Refund an order."""
    before, ctx.deps.state.refunded = ctx.deps.state.model_dump(), amount
    change = StateDeltaEvent(delta=[{"op": "replace", "path": "/refunded", "value": amount}])
    return ToolReturn("ok", metadata=[StateSnapshotEvent(snapshot=before), change])


@agent.tool_plain(requires_approval=True)
def close_account(reason: str) -> str:
    """Close the account, if somebody approves."""
    return "closed"


@agent.tool_plain
def to_person() -> str:
    """Hand over to a person."""
    return "on their way"


async def run(request):
    """Answer a run."""
    deps = StateDeps(State())
    return await AGUIAdapter.dispatch_request(request, agent=agent, deps=deps, include_usage=True)


async def ok(_):
    """Tell that the server is up."""
    return PlainTextResponse("ok")


routes = [Route("/", run, methods=["POST"]), Route("/ok", ok)]
uvicorn.run(Starlette(routes=routes), port=int(sys.argv[1]), log_level="warning")
