"""An agent, a workflow or an app of Google ADK."""

from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic import JsonValue

from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.suite import Test
from ci_evals.extensions.python_frameworks.framework import FrameworkAgent, jsonable, waiting
from ci_evals.support.json_text import JsonObject

_USER = "ci-evals"
_REQUEST = "adk_request_"
"""The prefix of calls by which ADK itself asks a person: for a confirmation, a credential, an input."""


@dataclass
class _Session:
    id: str


class AdkAgent(FrameworkAgent):
    """Runs the agent for each message in a session in memory, whose first state is the test's `userInfo`."""

    framework = "Google ADK"
    takes_system_prompt = False
    takes_context = False

    def __init__(self, target: Any, name: str, settings: AgentSettings) -> None:
        super().__init__(target, name, settings)
        self._runner: Any = None

    async def _opened(self, test: Test) -> _Session:
        self._runner = self._runner or self._new_runner()
        session = await self._runner.session_service.create_session(
            app_name=self._runner.app_name, user_id=_USER, state=await self._context(test)
        )
        for message in test.history:
            await self._runner.session_service.append_event(session, self._event(message))
        return _Session(session.id)

    def _event(self, message: JsonObject) -> Any:
        """Return a message before a test as ADK keeps it."""
        types: Any = import_module("google.genai.types")
        said, part = message["role"] == "user", types.Part(text=message["content"])
        author = "user" if said else getattr(self._runner.agent, "name", None) or self._runner.app_name
        content = types.Content(role="user" if said else "model", parts=[part])
        return import_module("google.adk.events").Event(author=author, content=content)

    def _new_runner(self) -> Any:
        bases = {base.__name__ for base in type(self._target).__mro__}
        kind = "app" if "App" in bases else "agent" if "BaseAgent" in bases else "node"
        named = {} if kind == "app" else {"app_name": "ci_evals"}
        return import_module("google.adk.runners").InMemoryRunner(**{kind: self._target}, **named)

    async def send_message(self, session: _Session, text: str) -> dict[str, JsonValue]:
        """Run the agent."""
        types: Any = import_module("google.genai.types")
        said = types.Content(role="user", parts=[types.Part(text=text)])
        running = self._runner.run_async(user_id=_USER, session_id=session.id, new_message=said)
        async with aclosing(running):
            events = [event async for event in running if not event.partial and event.author != "user"]
        has_ended = any(_text(event).strip() for event in events if event.is_final_response())
        asked = list(_asked(events))
        if asked and not has_ended:
            raise waiting(asked, "the run waits for a person or a long process, at the tools")
        error = next((fault for event in reversed(events) if (fault := _fault(event))), None)
        text = "\n\n".join(filter(str.strip, map(_text, events)))
        return self._reply(text, _calls(events), _tokens(events), error=None if has_ended else error)

    async def read_state(self, session: _Session) -> JsonValue:
        """Return the state of the session."""
        kept = await self._runner.session_service.get_session(
            app_name=self._runner.app_name, user_id=_USER, session_id=session.id
        )
        return jsonable(dict(kept.state))

    async def close(self, session: _Session) -> None:
        """Forget the conversation."""
        await self._runner.session_service.delete_session(
            app_name=self._runner.app_name, user_id=_USER, session_id=session.id
        )


def _parts(event: Any) -> list[Any]:
    return list((event.content and event.content.parts) or ())


def _text(event: Any) -> str:
    """Return what an event says to the user."""
    return "".join(part.text for part in _parts(event) if part.text and not part.thought)


def _fault(event: Any) -> str | None:
    said = [str(part) for part in (event.error_code, event.error_message) if part]
    return ": ".join(said) or None


def _asked(events: list[Any]) -> Iterator[str]:
    """Yield the names of tools for which the run waits."""
    for event in events:
        for part in _parts(event):
            if (call := part.function_call) and call.id in (event.long_running_tool_ids or ()):
                original = (call.args or {}).get("originalFunctionCall") or {}
                yield original.get("name") or call.name


def _calls(events: list[Any]) -> Iterator[JsonObject]:
    parts = [(event, part) for event in events for part in _parts(event)]
    by_id: JsonObject = {}
    by_name: dict[str, deque[Any]] = defaultdict(deque)  # those without an id, as of hosted tools
    for _, part in parts:
        if returned := part.function_response or getattr(part, "tool_response", None):
            if returned.id:
                by_id[returned.id] = returned
            else:
                by_name[_name(returned)].append(returned)
    for event, part in parts:
        call = part.function_call or getattr(part, "tool_call", None)  # of the agent, or of its model
        if call and not (name := _name(call)).startswith(_REQUEST):
            left = by_name[name]
            returned = by_id.get(call.id) if call.id else left.popleft() if left else None
            yield {
                "id": call.id,
                "name": name,
                "arguments": call.args or {},
                "result": None if returned is None else returned.response,
                "status": _status(returned),
                "agent": event.author,
            }


def _name(call: Any) -> str:
    """Return the name of the tool of a call or a result; hosted ones have a type instead."""
    hosted = getattr(getattr(call, "tool_type", None), "value", "")
    return str(getattr(call, "name", None) or str(hosted).lower())


def _status(returned: Any) -> str | None:
    """Return "error" if the response says so, as ADK reports what a tool raised; else unknown."""
    response = getattr(returned, "response", None)
    failed = isinstance(response, dict) and (response.get("error") or response.get("status") == "error")
    return "error" if failed else None


def _tokens(events: list[Any]) -> Iterator[tuple[object, object]]:
    """Yield the tokens of each event that a model may have written."""
    for event in events:
        parts = _parts(event)
        if event.usage_metadata is None and (not parts or all(part.function_response for part in parts)):
            continue
        if any(part.function_call and str(part.function_call.name).startswith(_REQUEST) for part in parts):
            continue
        usage = event.usage_metadata
        thoughts = getattr(usage, "thoughts_token_count", None) or 0
        received = getattr(usage, "candidates_token_count", None)
        yield getattr(usage, "prompt_token_count", None), None if received is None else received + thoughts
