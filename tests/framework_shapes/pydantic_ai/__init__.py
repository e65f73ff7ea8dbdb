"""Objects of the shape of pydantic-ai 2.68: an agent, and the messages of its runs."""

from types import SimpleNamespace


class AbstractAgent:
    """An agent that follows a plan: from a message, the deps and its number to calls and the output."""

    def __init__(self, plan, deps_type=object):
        self.plan, self.deps_type, self.given = plan, deps_type, []

    async def run(self, user_prompt, *, message_history=None, deps=None, **given):
        """Return the result of a run."""
        self.given.append(given)
        history = message_history or []
        number = 1 + sum(message.kind == "request" and message.asks for message in history)
        calls, output = self.plan(user_prompt, deps, number)
        new = [SimpleNamespace(kind="request", asks=True, parts=[_part("user-prompt", content=user_prompt)])]
        for place, (name, args, result, outcome) in enumerate(calls):
            called = {"tool_name": name, "tool_call_id": f"c{place}"}
            text = _part("text", content="One moment.")
            new.append(_response(text, _part("tool-call", args=args, **called)))
            returned = _part("tool-return", content=result, outcome=outcome, **called)
            new.append(SimpleNamespace(kind="request", asks=False, parts=[returned]))
        new.append(_response(_part("text", content=output)))
        return SimpleNamespace(
            output=output, _output_tool_name="final_result", all_messages=lambda: [*history, *new],
            new_messages=lambda: new,
        )  # fmt: skip


class Agent(AbstractAgent):
    """As its users name it."""


class DeferredToolRequests:
    """The output of a run that waits for a person."""

    def __init__(self, *approvals):
        self.approvals = [SimpleNamespace(tool_name=name) for name in approvals]
        self.calls = []


def _part(kind, **fields):
    return SimpleNamespace(part_kind=kind, **fields)


def _response(*parts):
    usage = SimpleNamespace(input_tokens=5, output_tokens=2)
    return SimpleNamespace(kind="response", parts=[*parts], usage=usage)
