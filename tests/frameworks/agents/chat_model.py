"""A model behind chat completions that calls tools by plan."""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AMOUNT = 24 if os.environ.get("WRONG") == "amount" else 42
CALLS = [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": AMOUNT})]


def answer(messages):
    """Return the next message: a call of a tool, or words."""
    asked = [index for index, message in enumerate(messages) if message["role"] == "user"]
    text = messages[asked[-1]]["content"]
    text = text if isinstance(text, str) else "".join(part["text"] for part in text)
    done = sum(message["role"] == "tool" for message in messages[asked[-1] :])
    calls = CALLS if "Refund" in text else [("to_person", {})] if text == "person" else []
    if text == "stall":
        time.sleep(15)
    if done < len(calls):
        name, arguments = calls[done]
        call = {
            "id": f"call_{name}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"role": "assistant", "content": "I refunded 42." if calls else f"{len(asked)}: {text}"}


class Model(BaseHTTPRequestHandler):
    """Answers every request."""

    def do_POST(self):
        """Answer a completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = answer(body["messages"])
        failed = message["content"] == "1: fail"
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        whole = {
            "id": "c1", "object": "chat.completion", "created": 1795300000, "model": "planned",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage,
        }  # fmt: skip
        text = json.dumps({"error": {"message": "the model is down"}} if failed else whole).encode()
        self.send_response(500 if failed else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        """Tell that it is up."""
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()
