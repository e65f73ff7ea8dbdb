"""Graphs of LangGraph, with a chat model that follows a plan."""

import os
from itertools import count

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt

AMOUNT = int(os.environ.get("AMOUNT", "42"))
USAGE = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
ids = count(1)


def ledger_model(state):
    if state["messages"][-1].type == "tool":
        return {"messages": [AIMessage("posted", usage_metadata=USAGE)]}
    call = {"name": "post", "args": {"amount": AMOUNT}, "id": f"p{next(ids)}"}
    return {"messages": [AIMessage("", tool_calls=[call], usage_metadata=USAGE)]}


@tool
def post(amount: int) -> str:
    """Post an amount to the ledger."""
    return "ok"


@tool
def refund(order: str, amount: int) -> str:
    """Refund an order, by an agent of the ledger."""
    return ledger.invoke({"messages": [("user", "post")]})["messages"][-1].text


def respond(state):
    last = state["messages"][-1]
    answer = AIMessage(f"This was message {sum(m.type == 'human' for m in state['messages'])}.")
    if last.type == "tool":
        answer = AIMessage(f"{AMOUNT} dollars are on their way.")
    elif "refund" in last.content:
        args = {"order": "A-1", "amount": AMOUNT}
        answer = AIMessage("One moment.", tool_calls=[{"name": "refund", "args": args, "id": "c1"}])
    answer.usage_metadata = USAGE
    return {"messages": [GenericFakeChatModel(messages=iter([answer])).invoke(state["messages"])]}


def with_tools(model, tools):
    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges(
        "model", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    graph.add_edge("tools", "model")
    return graph


def one_node(node, **how):
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile(**how)


def fail(state):
    raise ConnectionError("no model at http://key-123456@host")


def ask(state):
    return {"messages": [AIMessage(str(interrupt("May I delete A-1?")))]}


ledger = with_tools(ledger_model, [post]).compile()
agent = with_tools(respond, [refund]).compile()
waiting = one_node(ask)
failing = one_node(fail)
silent = one_node(lambda state: {"messages": []})
uncompiled = with_tools(respond, [refund])
