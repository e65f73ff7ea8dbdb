"""An `Agent` of the OpenAI Agents SDK."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.domain.suite import Test
from ci_evals.extensions.python_frameworks.framework import (
    FrameworkAgent,
    all_words,
    jsonable,
    waiting,
)
from ci_evals.support import payload
from ci_evals.support.json_text import JsonObject

_OF_ITSELF = {"id", "type", "status", "results", "outputs", "output", "call_id"}
"""Keys of a hosted tool's call that are not its arguments."""


@dataclass
class _Session:
    agent: Any
    context: Any
    items: list[Any]
    id: str = field(default_factory=lambda: f"ci-evals-{uuid4()}")


class OpenAiAgentsAgent(FrameworkAgent):
    """Runs the agent for each message, with all items before it; after a handoff the one that took over."""

    framework = "the OpenAI Agents SDK"
    takes_model = True

    async def _opened(self, test: Test) -> _Session:
        items = [{"role": "system", "content": test.system_prompt}] if test.system_prompt else []
        return _Session(self._target, await self._context(test), [*items, *test.history])

    async def send_message(self, session: _Session, text: str) -> dict[str, JsonValue]:
        """Run the agent."""
        sdk: Any = import_module("agents")
        given = {"run_config": sdk.RunConfig(model=self._model)} if self._model else {}
        said = [*session.items, {"role": "user", "content": text}]
        result = await sdk.Runner.run(session.agent, said, context=session.context, **given)
        session.items, session.agent = result.to_input_list(), result.last_agent
        if asked := getattr(result, "interruptions", None):
            raise waiting(
                (_raw(item).get("name") for item in asked), "the run waits for approval of the tools"
            )
        tokens = [
            (getattr(response.usage, "input_tokens", None), getattr(response.usage, "output_tokens", None))
            for response in result.raw_responses
        ]
        text = all_words(_texts(result.new_items), result.final_output)
        return self._reply(text, _calls(result.new_items), tokens)


def _texts(items: list[Any]) -> Iterator[str]:
    """Yield the words of each message."""
    for item in items:
        if item.type == "message_output_item":
            yield payload.joined(_raw(item).get("content"), "text", "refusal")


def _calls(items: list[Any]) -> Iterator[JsonObject]:
    results: dict[object, object] = {}
    for item in items:
        if item.type == "tool_call_output_item":
            results[_raw(item).get("call_id")] = item.output
        elif item.type == "handoff_output_item":
            results[_raw(item).get("call_id")] = _raw(item).get("output")
    for item in items:
        if item.type in ("tool_call_item", "handoff_call_item"):
            call = _call(_raw(item))
            agent = getattr(item, "agent", None)
            yield call | {
                "result": results.get(call["id"], call["result"]),
                "agent": getattr(agent, "name", None),
            }


def _call(raw: JsonObject) -> JsonObject:
    """Return the call in a Responses item: of a function, or of a tool that the API runs itself."""
    arguments = next((raw[key] for key in ("arguments", "input") if raw.get(key) is not None), None)
    name = raw.get("name")
    if name is None:
        name = str(raw.get("type", "")).removesuffix("_call")
        arguments = {key: value for key, value in raw.items() if key not in _OF_ITSELF and value is not None}
    return {
        "id": raw.get("call_id") or raw.get("id"),
        "name": name or "unknown",
        "arguments": arguments,
        "result": raw.get("output"),
        "status": "error" if raw.get("error") else None,
    }


def _raw(item: Any) -> JsonObject:
    plain = jsonable(item.raw_item)
    return plain if isinstance(plain, dict) else {}
