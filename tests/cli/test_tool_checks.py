"""Checks of tool calls and arguments, schema files and Python checks, on the command line."""

import json
import sys
from itertools import product

import endpoints
import pytest
from commands import ci_evals, read_results, write_suite

pytestmark = pytest.mark.slow

IN_PROCESS = ("--provider=offline", "--agent-in-process")

LOOK_UP = {"name": "look_up", "arguments": {"order": "HL-1"}, "result": {"paid": 42}, "status": "ok"}
REFUND = {"name": "refund", "arguments": {"order": "HL-1", "amount": 42}, "status": "ok", "durationMs": 12.5}
SECOND = REFUND | {"arguments": {"order": "HL-1", "amount": 42.0}}
PROGRAM = """
import json, sys
script = json.load(open("script.json"))
for line in sys.stdin:
    if json.loads(line)["type"] == "message":
        print(json.dumps(script.pop(0)), flush=True)
"""
PYTHON = """
import json

def reply(message, session):
    number = session.state["number"] = session.state.get("number", 0) + 1
    return json.load(open("script.json"))[number - 1]
"""
REFUND_ONCE = {"strict": "tool_called", "toolName": "refund", "args": {"amount": 42}, "times": 1}
CHECKS = [
    {"criterion": "Refunds 42 once", **REFUND_ONCE},
    {"criterion": "Looks first", "strict": "tool_sequence", "tools": ["look_up", {"name": "refund"}]},
    {"criterion": "No more", "strict": "max_tool_calls", "calls": 2},
]
TURNS = [{"user": "I want my money back."}, {"user": "Thanks."}]
SCRIPTED_CALLS = {
    "the wrong amount": ([[LOOK_UP], [REFUND | {"arguments": {"amount": 24}}]], "failed passed passed"),
    "called twice": ([[LOOK_UP], [REFUND, SECOND]], "failed passed failed"),
    "the wrong order": ([[REFUND], [LOOK_UP]], "passed failed passed"),
    "only claimed": ([[LOOK_UP], []], "failed failed passed"),
    "the trace of a turn lost": ([None, [REFUND]], "undecided undecided undecided"),
    "arguments not captured": ([[LOOK_UP], [{"name": "refund"}]], "undecided passed passed"),
    "right": ([[LOOK_UP], [REFUND]], "passed passed passed"),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "shop.py").write_text(PYTHON)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def run(folder, evaluations, adapter=f"command: {sys.executable} -I program.py", *options, **fields):
    test = {"name": "refund", "turns": TURNS, "maxTurns": 2, "evaluations": evaluations}
    suite = write_suite(folder, test, adapter=adapter, **{"apiKey": "a-key", "agentId": None} | fields)
    ran = ci_evals("run", suite, *IN_PROCESS, *options, cwd=folder, env={"PYTHONPATH": "."})
    assert ran.returncode != 2, ran.stderr
    return ran, read_results(folder)["suites"][0]["tests"][0]["trials"][0]


def script(folder, *calls, key="toolCalls", text="Done."):
    """Write the answers of the agent, with these calls in each turn; None omits them."""
    replies = [{"text": text} | ({} if each is None else {key: each}) for each in calls]
    (folder / "script.json").write_text(json.dumps(replies))


def outcomes(trial):
    return " ".join(finding["outcome"] for finding in trial["findings"])


def test_tool_checks_fail_for_wrong_calls_and_are_undecided_without_evidence(folder):
    for case, (calls, expected) in SCRIPTED_CALLS.items():
        script(folder, *calls)
        _, trial = run(folder, CHECKS)
        assert outcomes(trial) == expected, (case, [finding["reason"] for finding in trial["findings"]])


def test_tool_calls_give_workflows_and_params_or_are_derived_from_workflows(folder):
    script(folder, [LOOK_UP, REFUND], [])
    _, trial = run(folder, [{"criterion": "x", "strict": "tool_used", "toolName": "refund"}])
    first, second = trial["turns"]
    kept = [{key: value for key, value in call.items() if value is not None} for call in first["toolCalls"]]
    assert kept == [LOOK_UP, REFUND]
    assert (first["workflows"], first["params"]) == (["look_up", "refund"], {"order": "HL-1", "amount": 42})
    assert (second["toolCalls"], second["workflows"], second["params"]) == ([], [], {})
    assert outcomes(trial) == "passed"
    reply = {"text": "Done.", "workflows": ["REFUND"], "integrations": [{"code": "pay", "status": 503}]}
    (folder / "script.json").write_text(json.dumps([reply] * 2))
    _, trial = run(
        folder, [{"criterion": "x", "strict": "tool_called", "toolName": "pay", "status": "error"}]
    )
    turn = trial["turns"][0]
    calls = [(call["name"], call["status"]) for call in turn["toolCalls"]]
    assert calls == [("REFUND", "unknown"), ("pay", "error")]
    assert (turn["toolCallsDerived"], turn["workflows"], outcomes(trial)) == (True, ["REFUND"], "passed")


def test_openai_tool_calls_are_read_from_python_endpoint_and_http_agents(folder):
    function = {"name": "refund", "arguments": json.dumps(REFUND["arguments"])}
    call = [{"id": "c1", "type": "function", "function": function}]
    script(folder, call, [], key="tool_calls")
    check = CHECKS[:1]
    assert outcomes(run(folder, check, "python:shop:reply")[1]) == "passed"
    twice = [{**check[0], "times": 2}]
    with endpoints.serving(lambda asked: endpoints.completion("Done.", tool_calls=call)) as stub:
        _, trial = run(folder, twice, "openai", baseUrl=stub.url, model="m", apiKey=endpoints.KEY)
    assert outcomes(trial) == "passed"
    with endpoints.serving(lambda asked: {"reply": "Done.", "steps": {"calls": call}}) as stub:
        paths = {"text": "$.reply", "toolCalls": "$.steps.calls"}
        options = {"send": {"body": {"text": "{{message}}"}}, "reply": paths}
        fields = {"baseUrl": stub.url, "apiKey": endpoints.KEY, "adapterOptions": options}
        assert outcomes(run(folder, twice, "http", **fields)[1]) == "passed"


FUNCTIONS = """
import os, sys, time

def refunded(transcript, trace, probes):
    calls = [call for turn in transcript["turns"] for call in turn["toolCalls"] or []]
    assert probes == {} and trace[0] == {"turn": 1, "trace": None}
    return any(call["name"] == "refund" for call in calls), f"{len(calls)} calls"

async def half(transcript):
    print("not the answer")
    return 0.5

def raises(transcript):
    raise LookupError("no order a-secret-value-123")

def ends():
    os._exit(3)

def most(transcript): return 0.75, None
def nothing(): pass
def text(): return "yes"
def too_much(): return 1.5
def no_json(): return object()
"""


def python_check(name):
    return {"criterion": name, "strict": "python", "function": f"checks:{name}"}


def test_python_checks_decide_by_boolean_or_grade_and_else_are_undecided(folder):
    (folder / "checks.py").write_text(FUNCTIONS)
    script(folder, [LOOK_UP], [REFUND])
    _, trial = run(folder, [*map(python_check, ("refunded", "half", "most"))])
    refunded, half, most = trial["findings"]
    assert (refunded["outcome"], refunded["reason"]) == ("passed", "2 calls")
    assert (half["outcome"], half["grade"]["score"]) == ("failed", 0.5)
    assert half["reason"] == "checks:half returned 0.5"
    assert (most["outcome"], most["grade"]["score"]) == ("passed", 0.75)
    assert trial["score"] == pytest.approx(75)
    ran, trial = run(folder, [*map(python_check, INVALID_RESULTS)])
    assert ran.returncode == 3
    for finding, reason in zip(trial["findings"], INVALID_RESULTS.values(), strict=True):
        assert (finding["outcome"], reason in finding["reason"]) == ("undecided", True), finding


INVALID_RESULTS = {
    "raises": "checks:raises raised LookupError: no order",
    "ends": "checks:ends ended its process",
    "nothing": "checks:nothing returned nothing, not true, false, a share",
    "text": "returned a text, not",
    "too_much": "returned 1.5, not",
    "no_json": "returned what JSON cannot hold",
    "missing": "has no attribute 'missing'",
}


SCHEMA = {"type": "object", "required": ["refund"], "properties": {"refund": {"const": 42}}}
JSON_CHECK = {"criterion": "JSON", "strict": "json_schema", "schema": "schemas/refund.json"}


def test_schema_file_decides_and_is_part_of_test_digest(folder):
    (folder / "schemas").mkdir()
    file = folder / "schemas" / "refund.json"
    digests = set()
    for schema, outcome in ((SCHEMA, "passed"), (SCHEMA | {"required": ["iban"]}, "failed")):
        file.write_text(json.dumps(schema))
        script(folder, [], [], text='{"refund": 42}')
        _, trial = run(folder, [JSON_CHECK])
        assert outcomes(trial) == outcome
        digests.add(read_results(folder)["suites"][0]["tests"][0]["digest"])
    assert len(digests) == 2


def validation_errors(folder, *checks):
    """The errors of a suite with one check per line, from line 8 on."""
    lines = [f"      - {{ criterion: c{number}, {check} }}" for number, check in enumerate(checks)]
    text = "name: S\nadapter: demo\ntests:\n  - name: T\n    guidelines: You say hi.\n"
    text += "    turns: [{ user: Hi }]\n    evaluations:\n"
    (folder / "suite.yaml").write_text(text + "\n".join(lines))
    ran = ci_evals("validate", "suite.yaml", cwd=folder)
    assert (ran.returncode, "Traceback" in ran.stderr) == (2, False)
    return ran.stderr


NO_SCHEMA, REFERENCE = "is not a JSON Schema", "the reference 'other.json'"
SCHEMA_FILES = {
    "missing.json": (None, "cannot be read: No such file or directory"),
    "half.json": ("{", "cannot be read: not JSON: "),
    "list.json": ("[]", f"{NO_SCHEMA}: it is not an object"),
    "objct.json": ('{"type": "objct"}', f"{NO_SCHEMA}: $.type: 'objct' is not valid"),
    "refers.json": ('{"$ref": "other.json"}', f"{NO_SCHEMA}: {REFERENCE} leads to another document"),
    "large.json": ("{}" + " " * 1_000_000, "cannot be read: it is larger than 1 MB"),
    "latin.json": (b'"\xe9"', "cannot be read: it is not UTF-8"),
}


def test_invalid_or_outside_schema_file_is_reported_at_its_line_in_suite(folder, tmp_path_factory):
    for name, (content, _) in SCHEMA_FILES.items():
        if content is not None:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    reported = validation_errors(folder, *(f"strict: json_schema, schema: {name}" for name in SCHEMA_FILES))
    for index, (name, (_, message)) in enumerate(SCHEMA_FILES.items()):
        path = f"tests[0].evaluations[{index}].schema"
        assert f"suite.yaml:{8 + index}:55: {path}: '{name}' {message}" in reported
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "schema.json"
    elsewhere.write_text("{}")
    (folder / "link.json").symlink_to(elsewhere)
    names = (str(elsewhere), "link.json", f"../{elsewhere.parent.name}/schema.json")
    message = validation_errors(folder, *(f"strict: json_schema, schema: {name}" for name in names))
    assert message.count("is outside of the suite's folder and the current folder") == 3


INVALID_CHECKS = {
    "strict: tool_called, toolName: f, args: { a: { minn: 1, min: 2 } }": (".args.a.minn", "unknown key"),
    "strict: tool_called, toolName: f, args: { a: { minimum: 1 } }": (".args.a", "looks like 'min'"),
    "strict: tool_called, toolName: f, args: { a: { regex: '(' } }": (".args.a.regex", "'('"),
    "strict: tool_called, toolName: f, args: { a: { min: 2, max: 1 } }": (".args.a", "met by no number"),
    "strict: tool_called, toolName: f, args: { a: { oneOf: [] } }": (".args.a.oneOf", "at least one item"),
    "strict: tool_called, toolName: f, times: { min: 0 }": (".times", "needs a 'min' of at least 1"),
    "strict: tool_called, toolName: f, times: -1": (".times", "-1"),
    "strict: tool_sequence, tools: [a, { nme: b }]": (".tools[1].nme", "unknown key"),
    "strict: tool_sequence, tools: [{ name: b, args: { a: { answer: { expected: x, match: semantic } }} }]": (
        ".tools[0].args.a.answer",
        "cannot be 'semantic' here",
    ),
    "strict: state, probe: p, path: 'x', equals: 1": (".path", "must begin with '$'"),
    "strict: state, probe: p": ("", "needs a condition"),
    "strict: json_schema, schema: { type: objct }": (".schema", "is not a JSON Schema"),
    "strict: python, function: checks": (".function", "module:attribute"),
    "strict: param_equals, paramName: p, paramValue: { exists: false, min: 1 }": (".paramValue", "no value"),
}


def test_invalid_checks_are_reported_with_line_and_path(folder):
    reported = validation_errors(folder, *INVALID_CHECKS)
    for index, (check, (path, message)) in enumerate(INVALID_CHECKS.items()):
        lines = [line for line in reported.splitlines() if f"suite.yaml:{8 + index}:" in line]
        key = f"tests[0].evaluations[{index}]{path}: "
        assert any(key in line and message in line for line in lines), f"{check}: {lines}"


def test_tool_called_with_name_prefix_causes_warning_for_each_check_kind(folder):
    """Checks that forbid `refund` pass, which may be a slip of their author."""
    checks = [
        {"criterion": "No refund", "strict": "tool_not_used", "toolName": "refund"},
        {"criterion": "No refund", "strict": "tool_called", "toolName": "refund", "times": 0},
        {"criterion": "No refund", "strict": "max_tool_calls", "toolName": "refund", "calls": 0},
        {"criterion": "No refund", "strict": "tool_sequence", "tools": ["refund"], "mode": "subset"},
    ]
    for called, check in (*product(["functions.refund"], checks), ("mcp__shop__refund", checks[0])):
        script(folder, [REFUND | {"name": called}], [])
        run(folder, [check])
        text = f"Checks name the tool refund, the agent called {called}: these are different names"
        assert [text in warning for warning in read_results(folder)["run"]["warnings"]].count(True) == 1
