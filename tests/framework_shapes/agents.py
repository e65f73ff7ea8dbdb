"""Objects of the shape of the OpenAI Agents SDK 0.24: an agent, its runner, and the items of its runs."""

import json
from types import SimpleNamespace


class Agent:
    """An agent that follows a plan; `successor` is the agent to which it hands every conversation."""

    def __init__(self, plan, name="desk", successor=None):
        self.plan, self.name, self.successor = plan, name, successor


class RunConfig:
    """What a run is given beside its input."""

    def __init__(self, model):
        self.model = model


class Runner:
    """Runs agents."""

    given: list = []  # noqa: RUF012  # of all runs

    @staticmethod
    async def run(agent, items, *, context, run_config=None):
        """Return the result of a run."""
        Runner.given.append((agent.name, items[0], run_config and run_config.model))
        number = sum(item.get("role") == "user" for item in items)
        new, last = [], agent
        if agent.successor:
            raw = {"type": "function_call", "call_id": "h1", "name": "transfer", "arguments": "{}"}
            new.append(_item("handoff_call_item", agent, raw))
            moved = {"type": "function_call_output", "call_id": "h1", "output": "{}"}
            new.append(_item("handoff_output_item", agent, moved))
            last = agent.successor
        calls, output = last.plan(items[-1]["content"], context, number)
        for place, (name, args, result, _) in enumerate(calls):
            new.append(_message(last, "One moment."))
            if name.endswith("_call"):
                new.append(_item("tool_call_item", last, {"type": name, "id": f"w{place}", **args}))
                continue
            raw = {"type": "function_call", "call_id": f"c{place}", "name": name}
            new.append(_item("tool_call_item", last, raw | {"arguments": json.dumps(args)}))
            returned = {"type": "function_call_output", "call_id": f"c{place}", "output": str(result)}
            new.append(_item("tool_call_output_item", last, returned, output=result))
        if isinstance(output, str):
            new.append(_message(last, output))
        waits = [_item("tool_approval_item", last, {"name": "delete"})] if output is None else []
        usage = SimpleNamespace(input_tokens=5, output_tokens=2)
        return SimpleNamespace(
            final_output=output, new_items=new, interruptions=waits, last_agent=last,
            raw_responses=[SimpleNamespace(usage=usage)] * (len(calls) + 1),
            to_input_list=lambda: [*items, {"role": "assistant", "content": str(output)}],
        )  # fmt: skip


def _message(agent, text):
    content = [{"type": "output_text", "text": text}]
    return _item("message_output_item", agent, {"type": "message", "content": content})


def _item(kind, agent, raw, **fields):
    return SimpleNamespace(type=kind, agent=agent, raw_item=raw, **fields)
