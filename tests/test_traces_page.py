"""The page on traces: its agent and its suite, as they stand there, and agents that are wrong in one way.

Here spans are written by hand; `make frameworks` does the same with the SDK that the page installs.
"""

import re
from pathlib import Path

import pytest
from commands import ci_evals, read_results
from doc_pages import blocks, page, table
from page_files import free_port

from ci_evals.extension_support.span_reading import arguments
from ci_evals.extensions.spans import traced_agent
from ci_evals.extensions.spans.receiver import DEFAULT_PORT

PAGE = page("traces.md")
LOOKUP = 'amount = call(lookup, order="A-1")\n'
REFUND = 'call(refund, order="A-1", amount=amount)\n'
INDENT = " " * 12
WRONG = {
    "good": (LOOKUP + INDENT + REFUND, ()),
    "amount": (LOOKUP + INDENT + REFUND.replace("amount=amount", "amount=24"), ("Refunds 42, once",)),
    "twice": (LOOKUP + (INDENT + REFUND) * 2, ("Refunds 42, once", "Refunds nothing else")),
    "order": (
        f"{REFUND.replace('amount=amount', 'amount=42')}{INDENT}{LOOKUP}",
        ("Looks the order up, then refunds it",),
    ),
    "claims": (LOOKUP, ("Looks the order up, then refunds it", "Refunds 42, once", "The order is refunded")),
}
"""Actions of an agent in place of the page's, and the criteria that fail."""
BY_HAND = '''
"""As the page's `tracing.py`, without a package."""
import json, os, time, urllib.request
from contextlib import contextmanager

current, ended = [], []

class Span:
    def __init__(self, trace_id, parent_id, name, kind):
        self.fields = {"traceId": trace_id, "spanId": os.urandom(8).hex(), "parentSpanId": parent_id,
                       "name": name, "kind": kind, "startTimeUnixNano": str(time.time_ns()), "attributes": []}

    def set_attribute(self, key, value):
        self.fields["attributes"].append({"key": key, "value": {"stringValue": value}})

@contextmanager
def made(*parts):
    current.append(Span(*parts))
    try:
        yield current[-1]
    finally:
        span = current.pop()
        span.fields["endTimeUnixNano"] = str(time.time_ns())
        ended.append(span.fields)

class tracer:
    def start_as_current_span(name):
        above = current[-1].fields
        return made(above["traceId"], above["spanId"], name, 1)

@contextmanager
def turn(headers):
    _, trace_id, parent_id, _ = headers["traceparent"].split("-")
    with made(trace_id, parent_id, "chat", 2):
        yield
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": ended}]}]}).encode()
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})).close()
'''


def write_pages_files(folder: Path, wrong: str = "good", tracing: str = "") -> str:
    """Write the files of the page, with a free port and a database; return the name of the suite."""
    port = str(free_port())
    lines, agent = blocks("python", PAGE)
    (suite,) = blocks("yaml", PAGE)
    as_it_stands = WRONG["good"][0]
    assert agent.count(as_it_stands) == agent.count("8080") == 1
    agent = agent.replace(as_it_stands, WRONG[wrong][0])
    names = {"8080": port, "shop.db": f"shop{wrong}.db", "agent.py": f"agent{wrong}.py"}
    for old, new in names.items():
        agent, suite = agent.replace(old, new), suite.replace(old, new)
    (folder / "tracing.py").write_text(tracing or lines)
    (folder / f"agent{wrong}.py").write_text(agent)
    (folder / f"refunds{wrong}.yaml").write_text(suite.replace("name: Refunds\n", f"name: '{wrong}'\n", 1))
    return f"refunds{wrong}.yaml"


def failed(folder: Path) -> dict[str, tuple[str, ...]]:
    """The criteria that failed, by the agent; all others must have passed."""
    result = {}
    for suite in read_results(folder)["suites"]:
        findings = suite["tests"][0]["trials"][0]["findings"]
        assert {finding["outcome"] for finding in findings} <= {"passed", "failed"}, findings
        result[suite["name"]] = tuple(each["criterion"] for each in findings if each["outcome"] == "failed")
    return result


@pytest.mark.slow
def test_traces_page_agent_passes_and_wrong_ones_fail_their_criteria(tmp_path):
    suites = [write_pages_files(tmp_path, wrong, BY_HAND) for wrong in WRONG]
    ran = ci_evals("run", *suites, "--provider=offline", "--otlp-port=0", cwd=tmp_path)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert failed(tmp_path) == {wrong: criteria for wrong, (_, criteria) in WRONG.items()}


def test_traces_page_names_port_delays_and_capture_settings_and_quotes_messages():
    (environment,) = re.findall(r"( +export (?s:.+?))```", PAGE)
    assert f"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{DEFAULT_PORT}\n" in environment
    assert "OTEL_BSP_SCHEDULE_DELAY=200" in environment
    assert f"at most {traced_agent.PATIENCE_SECONDS:g} s" in PAGE
    assert f"later turns wait {traced_agent.QUIET_SECONDS:g} s" in PAGE
    source = Path(arguments.__file__).read_text()
    for _, _, capture in table("framework", PAGE):
        switch = re.findall(r"`([^`]+)`", capture)
        assert not switch or switch[-1] in source, switch
    folders = [Path(module.__file__).parent for module in (arguments, traced_agent)]
    files = [file for folder in folders for file in sorted(folder.glob("*.py"))]
    sources = re.sub(r'"\s+f?"', "", "".join(file.read_text() for file in files))
    for message, _ in table("message", PAGE):
        for part in message.split(" … "):
            words = part.removesuffix(f" 127.0.0.1:{DEFAULT_PORT}")
            assert words in sources, words
