"""An agent of Google's ADK, with a model that calls tools by plan."""

import asyncio
import os

from google.adk.agents import Agent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool, ToolContext
from google.genai import types

AMOUNT = 24 if os.environ.get("WRONG") == "amount" else 42
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=10, candidates_token_count=5, thoughts_token_count=2, total_token_count=17
)


def called(text):
    """Return the tools to call for a message, with their arguments."""
    if "Refund" in text:
        return [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": AMOUNT})]
    if "Close" in text:
        return [("close_account", {"reason": "asked for"})]
    return [("to_person", {})] if text == "person" else []


def answer(*parts, **more):
    """What a model answers."""
    return LlmResponse(content=types.Content(role="model", parts=[*parts]), usage_metadata=USAGE, **more)


class Planned(BaseLlm):
    """Calls the next tool, or answers."""

    async def generate_content_async(self, llm_request, stream=False):
        """Yield the answer, in parts if it is streamed."""
        parts = [part for content in llm_request.contents for part in content.parts]
        own = {
            id(part) for content in llm_request.contents if content.role == "user" for part in content.parts
        }
        asked = [index for index, part in enumerate(parts) if part.text and id(part) in own]
        text, since = parts[asked[-1]].text, parts[asked[-1] :]
        done = {part.function_response.name for part in since if part.function_response}
        if text == "fail":
            raise RuntimeError("the model is down")
        if text == "stall":
            await asyncio.sleep(15)
        calls = called(text)
        left = [call for call in calls if call[0] not in done]
        if left:
            name, arguments = left[0]
            texts = [] if done else [types.Part(text="Let me see.")]
            yield answer(*texts, types.Part(function_call=types.FunctionCall(name=name, args=arguments)))
            return
        words = "I refunded 42." if calls else f"{len(asked)}: {text}"
        for part in (words[:4], words[4:]) if stream else ():
            yield answer(types.Part(text=part), partial=True)
        yield answer(types.Part(text=words))


def lookup(order: str) -> dict:
    """Look up an order."""
    return {"order": order, "paid": 42}


def refund(order: str, amount: int, tool_context: ToolContext) -> dict:
    """Refund an order."""
    tool_context.state["refunded"] = amount
    return {"result": "ok"}


def close_account(reason: str) -> dict:
    """Close the account, if somebody confirms it."""
    return {"result": "closed"}


def to_person() -> dict:
    """Hand over to a person."""
    return {"result": "on their way"}


tools = [lookup, refund, to_person, FunctionTool(close_account, require_confirmation=True)]
root_agent = Agent(model=Planned(model="planned"), name="refunds", tools=tools)
