"""An agent without a model behind the A2A protocol, by a2a-sdk: `a2a_server.py PORT 1.0|0.3 [streaming]`.

With `misnamed` it speaks 1.0 alone and its card says 0.3; with `grpc` the card offers nothing else.
"""

import asyncio
import os
import sys

import uvicorn
from a2a.helpers import new_data_part, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette

PORT, SPEAKS, *MORE = sys.argv[1:]
AMOUNT = 24 if os.environ.get("WRONG") == "amount" else 42
LOOKUP = {"name": "lookup", "arguments": {"order": "A-1"}, "result": {"order": "A-1", "amount": 42}}
REFUND = {"name": "refund", "arguments": {"order": "A-1", "amount": AMOUNT}, "result": "ok"}
HAND_OVER = {"name": "to_person", "arguments": {}, "result": "ok"}
turns: dict[str, int] = {}


class Executor(AgentExecutor):
    """Answers plain words by a message, and refunds by a task."""

    async def execute(self, context, event_queue):
        """Answer one message."""
        text, conversation = context.get_user_input(), context.context_id
        number = turns[conversation] = turns.get(conversation, 0) + 1
        updater = TaskUpdater(event_queue, context.task_id, conversation)
        if text == "fail":
            raise RuntimeError("the model is down")
        if text == "stall":
            await asyncio.sleep(10)
        if not context.current_task and "efund" not in text:
            calls = [HAND_OVER] if text == "person" else []
            await event_queue.enqueue_event(
                Message(
                    message_id=f"m-{conversation}-{number}",
                    context_id=conversation,
                    role=Role.ROLE_AGENT,
                    parts=[new_text_part(f"{number}: {text}")],
                    metadata={"toolCalls": calls},
                )
            )
            return
        if not context.current_task:
            submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(
                Task(id=context.task_id, context_id=conversation, status=submitted, history=[context.message])
            )
            await updater.start_work()
        if "broken" in text:
            await updater.failed(updater.new_agent_message([new_text_part("The bank is closed.")]))
        elif "key" in text:
            await updater.requires_auth(updater.new_agent_message([new_text_part("Sign in first.")]))
        elif "some" in text:
            asked = updater.new_agent_message([new_text_part("Which order?")], metadata={"toolCalls": []})
            await updater.requires_input(asked)
        else:
            words = ["I refunded 42 ", "for order A-1."]
            calls = {"toolCalls": [LOOKUP, REFUND]}
            for place, part in enumerate(words):
                await updater.add_artifact(
                    [new_text_part(part)],
                    artifact_id=f"a-{context.task_id}",
                    name="answer",
                    append=place > 0,
                    last_chunk=place == len(words) - 1,
                    metadata=calls if place == 0 else None,
                )
            if "data" in text:
                await updater.add_artifact(
                    [new_data_part({"refunded": AMOUNT})], artifact_id=f"d-{context.task_id}"
                )
            await updater.complete()

    async def cancel(self, context, event_queue):
        """Cancel a task."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


url = f"http://127.0.0.1:{PORT}/"
interfaces = {
    "1.0": [AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")],
    "0.3": [AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="0.3")],
    "grpc": [AgentInterface(url=url, protocol_binding="GRPC", protocol_version="1.0")],
    "misnamed": [AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="0.3")],
    "rest": [AgentInterface(url=f"{url}rest", protocol_binding="HTTP+JSON", protocol_version="1.0")],
}
card = AgentCard(
    name="Refunds", description="Refunds orders.", version="1.0.0", supported_interfaces=interfaces[SPEAKS],
    capabilities=AgentCapabilities(streaming="streaming" in MORE), default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="refund", name="Refund", description="Refunds an order.", tags=["refund"])],
)  # fmt: skip
handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card)
routes = [
    *create_agent_card_routes(card),
    *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=SPEAKS == "0.3"),
    *create_rest_routes(handler, path_prefix="/rest"),
]
uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=int(PORT), log_level="warning")
