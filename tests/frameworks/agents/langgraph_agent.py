"""A graph of LangGraph, traced by OpenInference's instrumentation of LangChain."""

import os
from itertools import count

import serving
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from openinference.instrumentation import TraceConfig
from openinference.instrumentation.langchain import LangChainInstrumentor

HIDDEN = os.environ.get("CAPTURE") == "off"
LangChainInstrumentor().instrument(
    tracer_provider=serving.provider(), config=TraceConfig(hide_inputs=HIDDEN, hide_outputs=HIDDEN)
)
ids = count(1)


@tool
def lookup(order: str) -> str:
    """Look an order up."""
    return "paid 42"


@tool
def refund(order: str, amount: int) -> str:
    """Refund an order."""
    return "ok"


def model(state):
    done = sum(message.type == "tool" for message in state["messages"])
    answer = AIMessage("Done")
    if done < len(serving.calls()):
        name, args = serving.calls()[done]
        answer = AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{next(ids)}"}])
    return {"messages": [GenericFakeChatModel(messages=iter([answer])).invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("model", model)
graph.add_node("tools", ToolNode([lookup, refund]))
graph.add_edge(START, "model")
graph.add_conditional_edges(
    "model", lambda state: "tools" if state["messages"][-1].tool_calls else "__end__", ["tools", "__end__"]
)
graph.add_edge("tools", "model")
compiled = graph.compile()
serving.serve(lambda message: compiled.invoke({"messages": [("user", message)]}))
