"""Agents of Google ADK, with a model that follows a plan."""

import os
from collections.abc import Callable

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

AMOUNT = int(os.environ.get("AMOUNT", "42"))


def say(text):
    return types.Part(text=text)


def call(name, **arguments):
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


class Planned(BaseLlm):
    plan: Callable

    async def generate_content_async(self, llm_request, stream=False):
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=5, candidates_token_count=2)
        planned = self.plan(llm_request.contents)
        content = types.Content(role="model", parts=planned if isinstance(planned, list) else [planned])
        yield LlmResponse(content=content, usage_metadata=usage)


def respond(contents):
    last = contents[-1].parts[-1]
    if last.function_response:
        return say(f"{AMOUNT} dollars are on their way.")
    if "refund" in last.text:
        return call("refund", order="A-1", amount=AMOUNT)
    asked = sum(content.role == "user" and bool(content.parts[0].text) for content in contents)
    return say(f"This was message {asked}.")


def fail(contents):
    raise ConnectionError("no model at http://key-123456@host")


def search(contents):
    of = {"id": "1", "tool_type": types.ToolType.GOOGLE_SEARCH_WEB}
    return [
        types.Part(tool_call=types.ToolCall(**of, args={"query": "refunds"})),
        types.Part(tool_response=types.ToolResponse(**of, response={"pages": 3})),
        say("It says so on three pages."),
    ]


def refund(order: str, amount: int, tool_context: ToolContext) -> dict:
    """Refund an order."""
    return {"refunded": amount, "to": tool_context.state["name"]}


def delete(order: str) -> str:
    """Delete an order."""
    return "deleted"


agent = LlmAgent(name="refunds", model=Planned(model="plan", plan=respond), tools=[refund])
waiting = LlmAgent(
    name="waiting",
    model=Planned(model="plan", plan=lambda contents: call("delete", order="A-1")),
    tools=[FunctionTool(delete, require_confirmation=True)],
)
hosted = LlmAgent(name="hosted", model=Planned(model="plan", plan=search))
failing = LlmAgent(name="failing", model=Planned(model="plan", plan=fail))
silent = LlmAgent(name="silent", model=Planned(model="plan", plan=lambda contents: say("")))
