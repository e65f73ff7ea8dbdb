"""Agents of the OpenAI Agents SDK, with a model that follows a plan."""

import json
import os
from itertools import count

from agents import Agent, RunContextWrapper, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

AMOUNT = int(os.environ.get("AMOUNT", "42"))
set_tracing_disabled(True)
ids = count(1)


def say(text):
    content = [ResponseOutputText(text=text, type="output_text", annotations=[])]
    return ResponseOutputMessage(
        id=f"m{next(ids)}", content=content, role="assistant", status="completed", type="message"
    )


def call(name, **arguments):
    return ResponseFunctionToolCall(
        name=name, arguments=json.dumps(arguments), call_id=f"c{next(ids)}", type="function_call"
    )


class Planned(Model):
    def __init__(self, plan):
        self.plan = plan

    async def get_response(self, *args, **options):
        usage = Usage(requests=1, input_tokens=5, output_tokens=2, total_tokens=7)
        return ModelResponse(output=[self.plan(options["input"])], usage=usage, response_id=None)

    def stream_response(self, *args, **options):
        raise NotImplementedError


def respond(items):
    if items[-2].get("name") == "refund":
        return say(f"{AMOUNT} dollars are on their way.")
    texts = [item["content"] for item in items if item.get("role") == "user"]
    if "refund" in texts[-1]:
        return call("refund", order="A-1", amount=AMOUNT)
    return say(f"This was message {len(texts)}.")


def fail(items):
    raise ConnectionError("no model at http://key-123456@host")


@function_tool
def refund(ctx: RunContextWrapper, order: str, amount: int) -> dict:
    """Refund an order."""
    return {"refunded": amount, "to": ctx.context["name"]}


@function_tool(needs_approval=True)
def delete(order: str) -> str:
    """Delete an order."""
    return "deleted"


billing = Agent(name="billing", tools=[refund], model=Planned(respond))
agent = Agent(name="desk", handoffs=[billing], model=Planned(lambda items: call("transfer_to_billing")))
waiting = Agent(name="waiting", tools=[delete], model=Planned(lambda items: call("delete", order="A-1")))
failing = Agent(name="failing", model=Planned(fail))
silent = Agent(name="silent", model=Planned(lambda items: say("")))
