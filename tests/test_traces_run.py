"""Runs whose agents send spans: their tool calls in results, recordings, journals and judgments."""

import json
import socket
from pathlib import Path

import commands
import late_spans
import pytest
from canary import Canaries
from page_files import free_port

pytestmark = pytest.mark.slow

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
    spans = [root, span(header, "execute_tool", tool, root["spanId"])]
    if pathlib.Path("stranger").exists():
        spans.append(span("00-" + "d" * 32 + "-" + "e" * 16 + "-01", "x", tool))
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": secret}, "spans": spans}]}]})
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request).close()
    return "I refunded 42."
"""
SUITE = {
    "name": "Refunds", "adapter": "python:mine:reply", "trace": "otlp",
    "tests": [{
        "name": "Refund", "guidelines": "You want a refund.",
        "turns": [{"user": "Refund A-1"}, {"user": "Again"}],
        "evaluations": [
            {
                "criterion": "Refunds 42 each time", "strict": "tool_called", "toolName": "refund",
                "args": {"amount": 42}, "times": 2,
            },
            {"criterion": "No more", "strict": "max_tool_calls", "calls": 2},
        ],
    }],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(AGENT)
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    (tmp_path / "secret.txt").write_text("nothing secret")
    return tmp_path


def run_command(folder, *options, **environ):
    return commands.ci_evals("run", "suite.json", "--provider=offline", *options, cwd=folder, env=environ)


def trials(folder, name="results"):
    return json.loads((folder / name / "_results.json").read_text())["suites"][0]["tests"][0]["trials"]


def calls_of(trial):
    return [[(call["name"], call["arguments"]) for call in turn["toolCalls"]] for turn in trial["turns"]]


def test_tool_calls_from_spans_are_decided_recorded_and_replayed(folder):
    done = run_command(folder, "--otlp-port=0", "--record=rec")
    (trial,) = trials(folder)
    expected = [[("refund", {"amount": 42, "note": "nothing secret"})]] * 2
    assert calls_of(trial) == expected, done.stderr
    assert [finding["outcome"] for finding in trial["findings"]] == ["passed", "passed"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_command(folder, "--replay=rec", "--output-dir=replayed", f"--otlp-port={port}")
        assert calls_of(trials(folder, "replayed")[0]) == expected, done.stderr
    assert trials(folder, "replayed")[0]["findings"] == trial["findings"]


SETTLED = """
    journal = pathlib.Path("results/journal.jsonl")
    while b'"result"' in journal.read_bytes() and time.time() < journal.stat().st_mtime + 2.5:
        time.sleep(0.05)
"""
"""Lets the second trial last until no more spans of the first one can be expected."""


@pytest.mark.parametrize(("settled", "expected"), [(True, {42, 43}), (False, {43})])
def test_resumed_run_keeps_journaled_tool_calls(folder, settled, expected):
    """A trial is rerun if spans of it may have been under way at the end."""
    agent = AGENT.replace("import json, os", "import time, json, os")
    if settled:
        agent = agent.replace("    header, secret = session", f"{SETTLED}    header, secret = session")
    (folder / "mine.py").write_text(agent)
    run_command(folder, "--otlp-port=0", "--loops=2", "--parallel=1")
    journal = next(Path(folder / "results").glob("*journal*"))
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[: -1 if settled else -2]))  # the end is lost, or a trial too
    (folder / "mine.py").write_text(AGENT.replace('"amount": 42', '"amount": 43'))
    run_command(folder, "--otlp-port=0", "--loops=2", "--resume=results")
    amounts = {calls[0][1]["amount"] for trial in trials(folder) for calls in calls_of(trial)}
    assert amounts == expected


def run_late_spans(folder, *modes, options=(), **reply):
    """Play a test for each mode of the agent whose spans come late; return the command and the outcomes."""
    (folder / "agent.py").write_text(late_spans.AGENT)
    (folder / "suite.json").write_text(json.dumps(late_spans.suite(free_port(), *modes, **reply)))
    done = run_command(folder, "--otlp-port=0", "--parallel=1", *options)
    return done, outcomes(folder)


def outcomes(folder, name="results"):
    tests = json.loads((folder / name / "_results.json").read_text())["suites"][0]["tests"]
    return {test["name"]: test["trials"][0]["findings"][0] for test in tests}


LATE = {
    "late": "undecided", "late, below the turn itself": "undecided",
    "a late model that asks for a tool": "undecided", "a late model that hides its answer": "undecided",
    "a late model that answers": "passed", "a late tool without a name": "undecided",
    "late work in a database": "passed", "sent again": "passed", "one id twice": "failed",
    "one id twice, the second late": "undecided", "only the span's name": "failed",
    "a trace of its own with our baggage": "failed",
}  # fmt: skip


def test_late_span_marks_turn_incomplete_in_all_outputs(folder):
    done, result = run_late_spans(folder, *LATE, options=("--record=rec",))
    decided = {name: finding["outcome"] for name, finding in result.items()}
    assert decided == LATE | {"quiet": "passed"}, done.stderr
    assert result["late"]["cause"] == "no_trace"
    assert "came after the turn was read" in result["late"]["reason"]
    junit = (folder / "results" / "junit.xml").read_text()
    assert junit.count("came after the turn was read") >= 6
    replayed = run_command(folder, "--replay=rec", "--output-dir=replayed", "--otlp-port=0")
    assert outcomes(folder, "replayed") == result, replayed.stderr
    journal = (folder / "results" / "journal.jsonl").read_text().splitlines()
    records = [record for record in map(json.loads, journal) if "result" in record]
    kept = {record["test"]: record["result"]["findings"][0]["outcome"] for record in records}
    assert [*kept.values()] == [*LATE.values(), "passed"]
    assert any('"late_evidence"' in line for line in journal)


def test_run_waits_for_spans_that_arrive_after_last_trial(folder):
    done, result = run_late_spans(folder, options=())
    assert (done.returncode, result["quiet"]["outcome"]) == (0, "passed"), done.stderr
    suite = json.loads((folder / "suite.json").read_text())
    suite["tests"][0]["turns"] = [{"user": "late in the journal."}]
    (folder / "suite.json").write_text(json.dumps(suite))
    done = run_command(folder, "--otlp-port=0", "--output-dir=results")
    assert (done.returncode, outcomes(folder)["quiet"]["outcome"]) != (0, "passed"), done.stderr


REPORTS = {
    "reports what its spans show": "passed", "reports nothing": "undecided",
    "reports nothing, and its spans are late": "undecided",
    "reports nothing, and all of its spans are late": "undecided",
    "reports what its spans show, and all of them are late": "passed",
    "reports nothing, and some of its spans are missing": "undecided",
    "reports nothing, and has a tool without a name": "undecided", "reports one of two": "undecided",
    "reports other arguments": "undecided", "late work in a database": "passed",
}  # fmt: skip


def test_agent_report_that_contradicts_spans_is_undecided(folder):
    done, result = run_late_spans(folder, *REPORTS, toolCalls="$.calls")
    decided = {name: finding["outcome"] for name, finding in result.items()}
    assert decided == REPORTS | {"quiet": "passed"}, done.stderr
    assert "show a call of 'lookup' that its own report does not have" in result["reports nothing"]["reason"]


@pytest.mark.parametrize(
    "mode", ["another trace", "a guessed conversation", "ids of a wrong form", "a broken export"]
)
def test_unassigned_span_leaves_all_earlier_turns_undecided(folder, mode):
    done, result = run_late_spans(folder, "early", mode)
    decided = {name: finding["outcome"] for name, finding in result.items()}
    assert decided == {"early": "undecided", mode: "undecided", "quiet": "passed"}, done.stderr
    assert done.returncode == 3


def test_occupied_otlp_port_exits_2_before_run(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_command(folder, f"--otlp-port={port}")
    assert done.returncode == 2
    assert f"spans cannot be received on 127.0.0.1:{port}" in done.stderr
    assert "--otlp-port" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "results/_results.json").exists()


def test_secrets_in_spans_appear_in_no_output(folder):
    canaries = Canaries()
    secret = canaries.plant("CI_EVALS_AGENT_KEY")
    (folder / "secret.txt").write_text(secret)
    (folder / "stranger").touch()
    done = run_command(folder, "--otlp-port=0", "--record=rec", CI_EVALS_AGENT_KEY=secret)
    (trial,) = trials(folder)
    assert [call[0][1]["amount"] for call in calls_of(trial)] == [42, 42]
    assert "belong to no conversation" in done.stdout + done.stderr
    outputs = commands.read_files(folder / "results") | commands.read_files(folder / "rec")
    outputs["console"] = (done.stdout + done.stderr).encode()
    for name, text in outputs.items():
        assert not canaries.leaks(text.decode(errors="replace"), "CI_EVALS_AGENT_KEY"), name
