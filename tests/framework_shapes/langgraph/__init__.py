"""Objects of the shape of LangGraph 1.2: a compiled graph, and the messages of its state."""

from itertools import count
from types import SimpleNamespace

_ids = count(1)


class StateGraph:
    """A graph that is not compiled."""


class Pregel:
    """A compiled graph that follows a plan; a call with a plan as its result is one of another graph."""

    context_schema = None

    def __init__(self, plan, channels=("messages", "__start__"), checkpointer=None, stops_before=()):
        self.plan, self.channels, self.checkpointer = plan, channels, checkpointer
        self.stops_before = stops_before

    def copy(self, update):
        """Return the graph with other values."""
        return Pregel(self.plan, self.channels, stops_before=self.stops_before, **update)

    async def astream(self, state, config, *, stream_mode, subgraphs, context=None):
        """Yield the state after each step."""
        assert (stream_mode, subgraphs) == (["values"], True)
        thread = self.checkpointer.threads.setdefault(config["configurable"]["thread_id"], [])
        thread += state["messages"]
        yield (), "values", {"messages": [*thread]}
        if self.stops_before:
            return
        number = sum(one.type == "human" for one in thread)
        calls, output = self.plan(state["messages"][-1].content, context, number)
        if output is None:
            yield (), "values", {"messages": [*thread], "__interrupt__": [SimpleNamespace(value="Sure?")]}
            return
        for place, (name, args, result, status) in enumerate(calls):
            asked = message("ai", "One moment.", tool_calls=[{"name": name, "args": args, "id": f"c{place}"}])
            thread.append(asked)
            yield (), "values", {"messages": [*thread]}
            if name == "delegate":
                inner = [message("human", "do"), message("ai", "", tool_calls=[result])]
                yield ("tools:1",), "values", {"messages": inner[:1]}
                yield ("tools:1",), "values", {"messages": inner}
            thread.append(message("tool", str(result), tool_call_id=f"c{place}", status=status))
            yield (), "values", {"messages": [*thread]}
        thread.append(message("ai", output))
        yield (), "values", {"messages": [*thread]}

    async def aget_state(self, config):
        """Return where the graph stopped."""
        thread = self.checkpointer.threads[config["configurable"]["thread_id"]]
        values = {"messages": thread, "steps": len(thread)}
        return SimpleNamespace(next=self.stops_before, values=values)


def message(kind, text, **fields):
    """Return a message."""
    usage = {"input_tokens": 5, "output_tokens": 2} if kind == "ai" else None
    own = {"tool_calls": [], "invalid_tool_calls": []} if kind == "ai" else {}
    name = f"m{next(_ids)}"
    return SimpleNamespace(
        type=kind, id=name, name=None, content=text, text=text, usage_metadata=usage, **own | fields
    )
