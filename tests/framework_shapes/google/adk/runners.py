"""Runs agents, and keeps their sessions in memory."""

from types import SimpleNamespace

USAGE = SimpleNamespace(prompt_token_count=5, candidates_token_count=2, thoughts_token_count=None)


class InMemoryRunner:
    """Runs an agent or an app."""

    def __init__(self, *, agent=None, app=None, app_name=None):
        self.agent, self.app_name = agent or app.root_agent, app_name or app.name
        self.session_service = _Sessions()

    async def run_async(self, *, user_id, session_id, new_message):
        """Yield the events of a run."""
        state = self.session_service.kept[self.app_name, user_id, session_id]
        state["number"] = state.get("number", 0) + 1
        text = new_message.parts[0].text
        calls, output = self.agent.plan(text, state, state["number"])
        for place, (name, args, result, status) in enumerate(calls):
            waits = {f"c{place}"} if status == "waits" else None
            asked = SimpleNamespace(id=f"c{place}", name=name, args=args)
            parts = [*([] if waits else [part(text="One moment.")]), part(function_call=asked)]
            yield event(*parts, final=waits is not None, long_running_tool_ids=waits)
            if not waits:
                returned = SimpleNamespace(id=f"c{place}", name=name, response=result)
                yield event(part(function_response=returned), usage_metadata=None)
        if isinstance(output, tuple):
            yield event(usage_metadata=None, error_code=output[0], error_message=output[1])
        elif output:
            yield event(part(text=output[:3]), partial=True)
            yield event(part(text="I think.", thought=True), part(text=output), final=True)


class _Sessions:
    def __init__(self):
        self.kept = {}

    async def create_session(self, *, app_name, user_id, state):
        """Begin a session."""
        session = SimpleNamespace(id=f"s{len(self.kept)}")
        self.kept[app_name, user_id, session.id] = state
        return session

    async def append_event(self, session, event):
        """Add an event to a session."""
        state = next(state for (_, _, name), state in self.kept.items() if name == session.id)
        if event.author == "user":
            assert event.content.role == "user"
            state["number"] = state.get("number", 0) + 1

    async def get_session(self, *, app_name, user_id, session_id):
        """Return a session."""
        return SimpleNamespace(id=session_id, state=self.kept[app_name, user_id, session_id])

    async def delete_session(self, *, app_name, user_id, session_id):
        """End a session."""
        del self.kept[app_name, user_id, session_id]


def part(**fields):
    """Return a part of an event."""
    return SimpleNamespace(
        **{"text": None, "thought": None, "function_call": None, "function_response": None} | fields
    )


def event(*parts, final=False, **fields):
    """Return an event."""
    common = {
        "author": "desk", "content": SimpleNamespace(parts=list(parts)), "partial": None,
        "long_running_tool_ids": None, "usage_metadata": USAGE, "error_code": None, "error_message": None,
        "is_final_response": lambda: final,
    }  # fmt: skip
    return SimpleNamespace(**common | fields)
