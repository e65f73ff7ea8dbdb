"""Agents of pydantic-ai, with models that follow a plan."""

import os
from dataclasses import dataclass

from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

AMOUNT = int(os.environ.get("AMOUNT", "42"))


@dataclass
class Deps:
    name: str


def respond(messages, info):
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        return ModelResponse(parts=[TextPart(f"{last.content['refunded']} dollars are on their way.")])
    if "refund" in last.content:
        return ModelResponse(parts=[ToolCallPart("refund", {"order": "A-1", "amount": AMOUNT})])
    asked = sum(part.part_kind == "user-prompt" for message in messages for part in message.parts)
    return ModelResponse(parts=[TextPart(f"This was message {asked}.")])


def fail(messages, info):
    raise ConnectionError("no model at http://key-123456@host")


agent = Agent(FunctionModel(respond), name="refunds", deps_type=Deps)


@agent.tool
def refund(ctx: RunContext[Deps], order: str, amount: int) -> dict:
    """Refund an order."""
    return {"refunded": amount, "to": ctx.deps.name}


def call(messages, info):
    return ModelResponse(parts=[ToolCallPart("delete", {"order": "A-1"})])


waiting = Agent(FunctionModel(call), output_type=[str, DeferredToolRequests])


@waiting.tool_plain(requires_approval=True)
def delete(order: str) -> str:
    """Delete an order."""
    return "deleted"


failing = Agent(FunctionModel(fail))
silent = Agent(FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("")])), retries=0)
