"""An agent whose spans come late, twice, without a conversation, or contradict what it reports."""

AGENT = r'''
import gzip, json, os, pathlib, sys, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENDPOINT = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
TOOL, AGENT = {"gen_ai.operation.name": "execute_tool"}, {"gen_ai.operation.name": "invoke_agent"}
REFUND = TOOL | {"gen_ai.tool.name": "refund", "gen_ai.tool.call.arguments": '{"amount": 42}'}
LOOKUP = TOOL | {"gen_ai.tool.name": "lookup", "gen_ai.tool.call.arguments": '{"amount": 42}'}
ASKS = json.dumps([{"parts": [{"type": "tool_call", "id": "c1", "name": "refund", "arguments": {}}]}])
SAYS = json.dumps([{"parts": [{"type": "text", "content": "We open at nine."}]}])
CHAT = {"gen_ai.operation.name": "chat"}
held = []
"""What is sent with the next request: by then the trial has ended."""


def span(trace, parent, attributes, name="x", **fields):
    now = time.time_ns()
    return {"traceId": trace, "spanId": os.urandom(8).hex(), "parentSpanId": parent, "name": name, "kind": 1,
            "startTimeUnixNano": str(now), "endTimeUnixNano": str(now + 1000),
            "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()], **fields}


def export(*spans, body=None, **headers):
    exported = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "agent"}, "spans": [*spans]}]}]}
    headers = {"Content-Type": "application/json"} | headers
    request = urllib.request.Request(ENDPOINT, body or json.dumps(exported).encode(), headers)
    try:
        urllib.request.urlopen(request).close()
    except urllib.error.HTTPError:
        pass


def after_journal(*spans):
    """Export once the trial is in the journal, and so has been graded."""
    def wait():
        while not any(b'"result"' in path.read_bytes() for path in pathlib.Path("results").glob("journal*")):
            time.sleep(0.01)
        export(*spans)
    threading.Thread(target=wait).start()


class Agent(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        mode = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"].removesuffix(".")
        while held:
            export(*held.pop())
        _, trace, turn, _ = self.headers["traceparent"].split("-")
        server, root = span(trace, turn, {}, kind=2), span(trace, turn, AGENT)
        root["parentSpanId"] = server["spanId"]
        under = lambda attributes, **fields: span(trace, root["spanId"], attributes, **fields)
        calls, other = [], os.urandom(16).hex()
        match mode:
            case "late in the journal":
                export(server, root)
                after_journal(under(REFUND))
            case "late":
                export(server, root)
                held.append([under(REFUND)])
            case "late, below the turn itself":
                export(server, root)
                held.append([span(trace, turn, REFUND)])
            case "a late model that asks for a tool":
                export(server, root)
                held.append([under(CHAT | {"gen_ai.output.messages": ASKS})])
            case "a late model that hides its answer":
                export(server, root)
                held.append([under(CHAT)])
            case "a late model that answers":
                export(server, root)
                held.append([under(CHAT | {"gen_ai.output.messages": SAYS})])
            case "a late tool without a name":
                export(server, root)
                held.append([under(TOOL)])
            case "late work in a database":
                export(server, root)
                held.append([under({"db.system": "sqlite"})])
            case "sent again":
                tool = under(LOOKUP)
                export(server, root, tool)
                export(tool)
                held.append([tool])
            case "one id twice":
                tool = under(LOOKUP)
                export(under(REFUND) | {"spanId": tool["spanId"]}, server, root, tool)
            case "one id twice, the second late":
                tool = under(LOOKUP)
                export(server, root, tool)
                held.append([under(REFUND) | {"spanId": tool["spanId"]}])
            case "only the span's name":
                export(server, root, under(TOOL, name="execute_tool refund"))
            case "a trace of its own with our baggage":
                export(span(other, "", REFUND | {"ci_evals.trial": trace}), server, root)
            case "another trace":
                export(span(other, "", REFUND), server, root)
            case "a guessed conversation":
                export(span(other, "", REFUND | {"gen_ai.conversation.id": "1"}), server, root)
            case "ids of a wrong form":
                export(span("zz", "", REFUND), server, root)
            case "a broken export":
                export(server, root)
                export(body=gzip.compress(b"{}")[:-9], **{"Content-Encoding": "gzip"})
            case "reports what its spans show":
                calls = [{"name": "lookup", "arguments": {"amount": 42}}]
                export(server, root, under(LOOKUP))
            case "reports nothing":
                export(server, root, under(LOOKUP))
            case "reports nothing, and its spans are late":
                export(server, root)
                held.append([under(LOOKUP)])
            case "reports nothing, and all of its spans are late":
                held.extend([[server, root], [under(LOOKUP)]])
            case "reports what its spans show, and all of them are late":
                calls = [{"name": "lookup", "arguments": {"amount": 42}}]
                held.extend([[server, root], [under(LOOKUP)]])
            case "reports nothing, and some of its spans are missing":
                held.append([under(LOOKUP)])
            case "reports nothing, and has a tool without a name":
                export(server, root, under(TOOL))
            case "reports one of two":
                calls = [{"name": "lookup", "arguments": {"amount": 42}}]
                export(server, root, under(LOOKUP))
                held.append([under(LOOKUP)])
            case "reports other arguments":
                calls = [{"name": "lookup", "arguments": {"amount": 24}}]
                export(server, root, under(LOOKUP))
            case _:
                export(server, root)
        answer = json.dumps({"text": "We open at nine.", "calls": calls, "id": "1"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
'''
NO_REFUND_CHECK = {"criterion": "Refunds nothing", "strict": "tool_not_used", "toolName": "refund"}


def suite(port, *modes, evaluations=(NO_REFUND_CHECK,), **reply):
    """A suite with a test for each mode, of which the last one is quiet."""
    return {
        "name": "Late spans", "adapter": "http", "baseUrl": f"http://127.0.0.1:{port}",
        "start": f"python3 agent.py {port}", "trace": "otlp", "maxTurns": 1,
        "adapterOptions": {
            "open": {"path": "/", "body": {"text": "open"}, "session": "$.id"},
            "send": {"path": "/", "body": {"text": "{{message}}"}}, "reply": {"text": "$.text", **reply},
        },
        "tests": [
            {
                "name": mode, "guidelines": "You ask for the opening hours.", "turns": [{"user": f"{mode}."}],
                "evaluations": [*evaluations],
            }
            for mode in (*modes, "quiet")
        ],
    }  # fmt: skip
