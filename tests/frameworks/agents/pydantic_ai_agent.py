"""An agent of pydantic-ai, with a model that calls tools by plan."""

import os

import serving
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings


def respond(messages, info):
    done = sum(part.part_kind == "tool-return" for message in messages for part in message.parts)
    if done == len(serving.calls()):
        return ModelResponse(parts=[TextPart("Done")])
    return ModelResponse(parts=[ToolCallPart(*serving.calls()[done])])


Agent.instrument_all(InstrumentationSettings(
    tracer_provider=serving.provider(), include_content=os.environ.get("CAPTURE") != "off",
))  # fmt: skip
agent = Agent(FunctionModel(respond), name="refunds")


@agent.tool_plain
def lookup(order: str) -> dict:
    return {"order": order, "paid": 42}


@agent.tool_plain
def refund(order: str, amount: int) -> str:
    return "ok"


serving.serve(agent.run_sync)
