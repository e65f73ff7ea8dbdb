"""Graphs without a model: `agent` calls tools, `outer` has it inside and asks questions."""

import os
import time
from typing import Annotated, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

AMOUNT = 24 if os.environ.get("WRONG") == "amount" else 42
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


class State(TypedDict):
    """The messages, and what was refunded."""

    messages: Annotated[list[AnyMessage], add_messages]
    refunded: int


@tool
def lookup(order: str) -> dict:
    """Look an order up."""
    return {"order": order, "amount": 42}


@tool
def refund(order: str, amount: int) -> str:
    """Refund an order."""
    if amount > 1000:
        raise ValueError("more than was paid")
    return "ok"


@tool
def to_person() -> str:
    """Hand over to a person."""
    return "ok"


def call(*calls, text=""):
    """A message that calls tools."""
    listed = [{"name": name, "args": args, "id": f"call_{name}"} for name, args in calls]
    return {"messages": [AIMessage(text, tool_calls=listed, usage_metadata=USAGE)]}


def say(text):
    """A message of words."""
    return {"messages": [AIMessage(text, usage_metadata=USAGE)]}


def model(state):
    """What a model would answer."""
    last = state["messages"][-1]
    if last.type == "tool":
        if last.name == "lookup":
            return call(("refund", {"order": "A-1", "amount": AMOUNT}))
        asked = [message.content for message in state["messages"] if message.type == "human"]
        if asked[-1] == "person":
            return say(f"{len(asked)}: person")
        return say("I refunded 42 for order A-1.") | {"refunded": AMOUNT}
    text = last.content
    if text == "fail":
        raise RuntimeError("the model is down")
    if text == "stall":
        time.sleep(10)
    if text == "person":
        return call(("to_person", {}))
    if "much" in text:
        return call(("refund", {"order": "A-1", "amount": 2000}), text="Let me see.")
    if "efund" in text:
        return call(("lookup", {"order": "A-1"}))
    return say(f"{sum(message.type == 'human' for message in state['messages'])}: {text}")


def graph_of(name, node, *, tools=False):
    """A graph of a node, with tools or without."""
    builder = StateGraph(State)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    if tools:
        builder.add_node("tools", ToolNode([lookup, refund, to_person], handle_tool_errors=True))
        builder.add_conditional_edges(
            name, lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
        )
        builder.add_edge("tools", name)
    return builder.compile()


agent = graph_of("model", model, tools=True)


def desk(state):
    """Ask before it refunds, and let the other graph do it, which keeps its calls to itself."""
    if "sure" in state["messages"][-1].content:
        return say(f"You said {interrupt({'question': 'Shall I refund it?'})}.")
    return {"messages": [agent.invoke({"messages": state["messages"]})["messages"][-1]]}


outer = graph_of("desk", desk)
