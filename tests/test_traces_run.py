"""Runs whose agents send spans: their tool calls in results, recordings, journals and judgments."""

import json
import socket
from pathlib import Path

import commands
import pytest
from canary import Canaries

AGENT = """
import json, os, pathlib, urllib.request

def span(header, name, attributes, parent=None):
    _, trace_id, turn_id, _ = header.split("-")
    return {
        "traceId": trace_id,
        "spanId": os.urandom(8).hex(),
        "parentSpanId": parent or turn_id,
        "name": name,
        "kind": 1 if parent else 2,
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }

def reply(message, session):
    header, secret = session.trace_headers["traceparent"], pathlib.Path("secret.txt").read_text()
    root = span(header, "POST " + secret, {})
    tool = {
        "gen_ai.tool.name": "refund",
        "gen_ai.tool.call.arguments": json.dumps({"amount": 42, "note": secret}),
        "gen_ai.tool.call.result": json.dumps(secret),
        secret: secret,
        "long": "x" * 3990 + secret,
    }
    stranger = span("00-" + "d" * 32 + "-" + "e" * 16 + "-01", "x", tool)
    spans = [root, span(header, "execute_tool", tool, root["spanId"]), stranger]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": secret}, "spans": spans}]}]})
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request).close()
    return "I refunded 42."
"""
SUITE = {
    "name": "Refunds",
    "adapter": "python:mine:reply",
    "trace": "otlp",
    "tests": [
        {
            "name": "Refund",
            "guidelines": "You want a refund.",
            "turns": [{"user": "Refund A-1"}, {"user": "Again"}],
            "evaluations": [
                {
                    "criterion": "Refunds 42 each time",
                    "strict": "tool_called",
                    "toolName": "refund",
                    "args": {"amount": 42},
                    "times": 2,
                },
                {"criterion": "No more", "strict": "max_tool_calls", "calls": 2},
            ],
        }
    ],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(AGENT)
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    (tmp_path / "secret.txt").write_text("nothing secret")
    return tmp_path


def run(folder, *options, command="run", suite=("suite.json",), **environ):
    return commands.ci_evals(command, *suite, "--provider=offline", *options, cwd=folder, env=environ)


def trials(folder, name="results"):
    return json.loads((folder / name / "_results.json").read_text())["suites"][0]["tests"][0]["trials"]


def calls_of(trial):
    return [[(call["name"], call["arguments"]) for call in turn["toolCalls"]] for turn in trial["turns"]]


def test_tool_calls_of_spans_are_part_of_a_run(folder):
    """They decide its checks, are kept in its results, and replayed and judged again without a receiver."""
    done = run(folder, "--otlp-port=0", "--record=rec")
    (trial,) = trials(folder)
    expected = [[("refund", {"amount": 42, "note": "nothing secret"})]] * 2
    assert calls_of(trial) == expected, done.stderr
    assert [finding["outcome"] for finding in trial["findings"]] == ["passed", "passed"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run(folder, "--replay=rec", "--output-dir=replayed", f"--otlp-port={port}")
        assert calls_of(trials(folder, "replayed")[0]) == expected, done.stderr
        done = run(
            folder, "--output-dir=again", command="rejudge", suite=("results/_results.json", "suite.json")
        )
    assert trials(folder, "replayed")[0]["findings"] == trial["findings"]


def test_a_resumed_run_keeps_tool_calls_in_its_journal(folder):
    """Trials that were played are not rerun."""
    run(folder, "--otlp-port=0", "--loops=2")
    journal = next(Path(folder / "results").glob("*journal*"))
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-2]))  # the last trial and the end are lost
    (folder / "mine.py").write_text(AGENT.replace('"amount": 42', '"amount": 43'))
    run(folder, "--otlp-port=0", "--loops=2", "--resume=results")
    amounts = {calls[0][1]["amount"] for trial in trials(folder) for calls in calls_of(trial)}
    assert amounts == {42, 43}


def test_a_taken_port_ends_the_run_with_one_message(folder):
    """Before anything is played."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run(folder, f"--otlp-port={port}")
    assert done.returncode == 2
    assert f"spans cannot be received on 127.0.0.1:{port}" in done.stderr
    assert "--otlp-port" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results/_results.json").exists()


def test_secrets_in_spans_are_in_no_output(folder):
    """In names, keys, arguments, results, texts that are cut, and notes about strangers."""
    canaries = Canaries()
    secret = canaries.plant("CI_EVALS_AGENT_KEY")
    (folder / "secret.txt").write_text(secret)
    done = run(folder, "--otlp-port=0", "--record=rec", CI_EVALS_AGENT_KEY=secret)
    (trial,) = trials(folder)
    assert [call[0][1]["amount"] for call in calls_of(trial)] == [42, 42]
    assert "belong to no conversation" in done.stdout + done.stderr
    outputs = commands.files_in(folder / "results") | commands.files_in(folder / "rec")
    outputs["console"] = (done.stdout + done.stderr).encode()
    for name, text in outputs.items():
        assert not canaries.told(text.decode(errors="replace"), "CI_EVALS_AGENT_KEY"), name
