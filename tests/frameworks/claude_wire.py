"""Answers of Anthropic's streaming wire, and the real program `claude` that reads them."""

import json
import os

from environments import environment
from werkzeug import Response

VERSION = "2.1.330"
KEY = "sk-ant-test-123456"


def environ(url, folder, key=KEY):
    """A machine on which the real program is there, and logged in by a key."""
    modules = environment([f"@anthropic-ai/claude-code@{VERSION}"], node=True) / "node_modules/.bin"
    path = f"{modules}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key}


def streamed(body, block, delta, stop):
    """A message of one block, as events; as a whole if no stream is wanted."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    message |= {"stop_reason": None, "usage": {"input_tokens": 7, "output_tokens": 1}}
    if not body.get("stream"):
        content = [{"type": "text", "text": delta.get("text", "")}]
        whole = json.dumps(message | {"content": content, "stop_reason": stop})
        return Response(whole, content_type="application/json")
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Response(lines, content_type="text/event-stream")
