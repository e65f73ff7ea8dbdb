"""Paths that find nothing in a whole run: checks of what they should find are undecided."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import endpoints
import pytest
from each_row import each_row

from ci_evals import create_adapter, load_suite, run_suite_sync

pytestmark = pytest.mark.slow

Answer = Callable[[str], Any]


def named_events(text: str) -> Any:
    lines = []
    if "refund" in text:
        lines.append('event: call\ndata: {"type": "tool", "name": "refund", "args": {}}\n\n')
    lines.append(f"event: words\ndata: {json.dumps({'type': 'text', 'delta': text})}\n\n")
    lines.append('event: end\ndata: {"type": "end", "person": false}\n\n')
    return endpoints.Fault(200, "".join(lines), content_type="text/event-stream")


def events(text: str) -> Any:
    calls = [{"type": "tool", "name": "refund", "args": {}}] if "refund" in text else []
    return endpoints.sse(*calls, {"type": "text", "delta": text}, {"type": "end", "person": False})


def parts_list(text: str) -> Any:
    calls = [{"type": "tool", "name": "refund", "args": {}}] if "refund" in text else []
    return {"parts": [*calls, {"type": "text", "text": text}], "calls": calls}


BARE_TEXT = "$[?@.type == 'text'].delta"
WHOLE_TEXT = "$.parts[?@.type == 'text'].text"
TEXTS = {named_events: "$[?@.event == 'words'].data.delta", events: BARE_TEXT, parts_list: WHOLE_TEXT}

CASES = {
    "a name is no type": (named_events, "toolCalls", "$[?@.type == 'tool']", "undecided"),
    "the type of named events": (named_events, "toolCalls", "$[?@.data.type == 'tool'].data", "decided"),
    "the name of named events": (named_events, "toolCalls", "$[?@.event == 'call'].data", "decided"),
    "events without a name": (events, "toolCalls", "$[?@.type == 'tool']", "decided"),
    "a wrong type": (events, "toolCalls", "$[?@.type == 'tool_call']", "undecided"),
    "names of tools": (events, "workflows", "$[?@.type == 'tools'].name", "undecided"),
    "an answer that is not streamed": (parts_list, "toolCalls", "$.parts[?@.type == 'call']", "undecided"),
    "a filter that fits": (parts_list, "toolCalls", "$.parts[?@.type == 'tool']", "decided"),
    "a slice": (parts_list, "toolCalls", "$.parts[7:]", "undecided"),
    "a list": (parts_list, "toolCalls", "$.calls", "decided"),
    "all in a list": (parts_list, "toolCalls", "$.calls[*]", "decided"),
}


CHECKS = [
    {"criterion": "No refund", "strict": "tool_not_used", "toolName": "refund"},
    {"criterion": "Not called", "strict": "tool_called", "toolName": "refund", "times": 0},
    {"criterion": "No call", "strict": "max_tool_calls", "calls": 0},
]


def suite(url: str, reply: dict[str, str], *texts: str, checks: list[Any] = CHECKS) -> dict[str, Any]:
    streamed = {} if reply["text"] == WHOLE_TEXT else {"stream": "sse"}
    options = {"send": {"body": {"text": "{{message}}"}}, "reply": reply, **streamed}
    test = {"critical": True, "guidelines": "x", "evaluations": checks}
    tests = [test | {"name": text, "turns": [{"user": text}]} for text in texts]
    fields = {"name": "Refunds", "adapter": "http", "baseUrl": url, "maxTurns": 1}
    return fields | {"adapterOptions": options, "tests": tests}


class Run:
    def __init__(self, folder: Path, answer: Answer, reply: dict[str, str], *texts: str, **more: Any) -> None:
        parallel = more.pop("parallel", 4)
        with endpoints.serving(lambda asked: answer(asked.body["text"])) as stub:
            (folder / "suite.json").write_text(json.dumps(suite(stub.url, reply, *texts, **more)))
            loaded = load_suite(folder / "suite.json")
            adapter = create_adapter(provider="offline", agent_key=stub.key)
            self.results = run_suite_sync(adapter, loaded, parallel=parallel)

    def outcomes(self, text: str) -> list[str]:
        (test,) = (test for test in self.results.tests if test.name == text)
        return [finding.outcome.value for finding in test.trials[0].findings]


@each_row(("answer", "key", "path", "known"), CASES.values(), ids=CASES)
def test_path_without_match_in_whole_run_leaves_checks_undecided_with_warning(
    answer: Answer, key: str, path: str, known: str, tmp_path: Path
) -> None:
    run = Run(tmp_path, answer, {"text": TEXTS[answer], key: path}, "hello", "refund me", "bye")
    outcomes = [run.outcomes(text) for text in ("hello", "refund me", "bye")]
    if known == "decided":
        assert outcomes == [["passed"] * 3, ["failed"] * 3, ["passed"] * 3]
        return
    assert (outcomes, run.results.gate.exit_code) == ([["undecided"] * 3] * 3, 3)
    (warning,) = run.results.run.warnings
    assert f"{path} (adapterOptions.reply.{key}) found nothing in any turn of the run" in warning


@each_row("parallel", [1, 3])
@each_row("texts", [("hello", "refund me", "bye"), ("refund me", "hello"), ("bye", "refund me")])
def test_path_match_in_any_trial_decides_all_trials(
    texts: tuple[str, ...], parallel: int, tmp_path: Path
) -> None:
    reply = {"text": BARE_TEXT, "toolCalls": "$[?@.type == 'tool']"}
    run = Run(tmp_path, events, reply, *texts, parallel=parallel)
    for text in texts:
        assert run.outcomes(text)[0] == ("failed" if "refund" in text else "passed")
    assert run.results.run.warnings == ()


@each_row(
    ("key", "path", "check", "outcome"),
    [
        ("error", "$[?@.type == 'error'].message", "not_escalated_due_to_error", "undecided"),
        ("error", "$[?@.type == 'end'].error", "not_escalated_due_to_error", "undecided"),
        ("escalated", "$[?@.type == 'handoff']", "not_escalated", "undecided"),
        ("escalated", "$[?@.type == 'end'].person", "not_escalated", "passed"),
        ("escalated", "$[?@.type == 'handoff']", "escalated", "undecided"),
        ("rules", "$[?@.type == 'rule'].code", "rule_not_triggered", "undecided"),
        ("params", "$[?@.type == 'slot']", "param_not_exists", "undecided"),
        ("integrations", "$[?@.type == 'api']", "integration_called", "undecided"),
    ],
)
def test_unmatched_path_of_any_evidence_leaves_check_undecided(
    key: str, path: str, check: str, outcome: str, tmp_path: Path
) -> None:
    named_in = {"ruleCode": "R1", "paramName": "p", "integrationCode": "i"}
    wanted = {"rule": "ruleCode", "para": "paramName", "inte": "integrationCode"}.get(check[:4])
    more = {wanted: named_in[wanted]} if wanted else {}
    checks = [{"criterion": "c", "strict": check, **more}]
    run = Run(tmp_path, events, {"text": BARE_TEXT, key: path}, "hello", checks=checks)
    assert run.outcomes("hello") == [outcome]


def test_python_check_is_undecided_if_path_found_no_calls(tmp_path: Path) -> None:
    called = "any(turn['toolCalls'] for turn in transcript['turns'])"
    (tmp_path / "mine.py").write_text(f"def none(transcript):\n    return not {called}\n")
    checks = [{"criterion": "c", "strict": "python", "function": "mine:none"}]
    wrong = {"text": BARE_TEXT, "toolCalls": "$[?@.type == 'call']"}
    run = Run(tmp_path, events, wrong, "refund me", checks=checks)
    assert run.outcomes("refund me") == ["undecided"]


def test_run_command_prints_warning_of_path_without_match(tmp_path: Path) -> None:
    path = "$[?@.type == 'call']"
    with endpoints.serving(lambda asked: events(asked.body["text"])) as stub:
        written = suite(stub.url, {"text": BARE_TEXT, "toolCalls": path}, "refund me")
        (tmp_path / "suite.json").write_text(json.dumps(written))
        options = ("--provider=offline", f"--agent-key={stub.key}")
        ran = commands.ci_evals("run", "suite.json", *options, cwd=tmp_path)
    assert ran.returncode == 3
    warning = f"{path} (adapterOptions.reply.toolCalls) found nothing in any turn of the run"
    assert warning in ran.stdout + ran.stderr
