"""Every matcher decides alike, whatever kind of agent is played."""

import json
import sys

import endpoints
import pytest
from commands import ci_evals, read_results, write_suite
from every_evaluation import MATCHERS

pytestmark = pytest.mark.slow

ARGUMENTS = {
    "number": 42,
    "text": "a",
    "null": None,
    "list": [1, {"min": 2}],
    "empty object": {},
    "object": {"street": "Main", "tags": ["x"]},
    "equals": 1,
    "equals null": None,
    "equals what looks like a condition": {"min": 3},
    "equals what looks like a misspelled condition": {"one_of": [1], "gte": 2},
    "equals an object with equals": {"equals": {"oneOf": 1}},
    "contains": {"id": 1, "more": 2},
    "contains null": [None],
    "regex": "A-12",
    "min and max": 2,
    "oneOf": 2,
    "oneOf and regex": "a",
    "exists": 0,
    "answer": "42",
    "answer, with a tolerance": 44,
    "answer, alike": "a",
}
"""What meets each matcher; one that wants nothing is met by no argument."""
CALL = {
    "name": "f",
    "arguments": {name.replace(" ", "_"): value for name, value in ARGUMENTS.items()}
    | {"odd": {"odd": True}},
}
"""`odd` meets only the matcher of what exists."""
PYTHON = "import json\n\ndef reply(message):\n    return json.load(open('reply.json'))\n"
PROGRAM = """
import json, sys
for line in sys.stdin:
    if json.loads(line)["type"] == "message":
        print(json.dumps(json.load(open("reply.json"))), flush=True)
"""


def code(folder, _serve):
    (folder / "shop.py").write_text(PYTHON)
    return {"adapter": "python:shop:reply"}


def program(folder, _serve):
    (folder / "program.py").write_text(PROGRAM)
    return {"adapter": f"command: {sys.executable} -I program.py"}


def chat(_folder, serve):
    calls = endpoints.tool_calls((CALL["name"], CALL["arguments"]))
    url = serve(lambda _: endpoints.completion("Done.", tool_calls=calls))
    return {"adapter": "openai", "model": "m", "baseUrl": url, "apiKey": endpoints.KEY}


def http(_folder, serve):
    url = serve(lambda _: {"reply": "Done.", "calls": [CALL]})
    options = {
        "send": {"body": {"text": "{{message}}"}},
        "reply": {"text": "$.reply", "toolCalls": "$.calls"},
    }
    return {"adapter": "http", "adapterOptions": options, "baseUrl": url, "apiKey": endpoints.KEY}


KINDS = [code, program, chat, http]


def evaluations():
    """Two checks of each matcher: of the argument that meets it, and of one that does not."""
    for name, written in MATCHERS.items():
        args = {name.replace(" ", "_"): written}
        yield {"criterion": name, "strict": "tool_called", "toolName": "f", "args": args}
        yield {
            "criterion": f"not {name}",
            "strict": "tool_called",
            "toolName": "f",
            "args": {"missing" if name == "exists" else "odd": written},
            "times": 0,
        }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_matcher_on_every_kind_of_agent(tmp_path, kind):
    """Arguments that meet a matcher pass, others fail; and so they do in a replay."""
    (tmp_path / "reply.json").write_text(json.dumps({"text": "Done.", "toolCalls": [CALL]}))
    servers = []

    def serve(answer):
        servers.append(endpoints.serving(answer))
        return servers[-1].__enter__().url

    test = {"name": "t", "turns": [{"user": "Hi"}], "maxTurns": 1, "evaluations": [*evaluations()]}
    fields = {"apiKey": None, "agentId": None} | kind(tmp_path, serve)
    path = write_suite(tmp_path, test, **fields)
    try:
        for option in ("--record=kept", "--replay=kept"):
            ran = ci_evals("run", path, "--provider=offline", option, cwd=tmp_path, env={"PYTHONPATH": "."})
            assert ran.returncode == 0, ran.stdout + ran.stderr
            (trial,) = read_results(tmp_path)["suites"][0]["tests"][0]["trials"]
            others = {
                one["criterion"]: one["reason"] for one in trial["findings"] if one["outcome"] != "passed"
            }
            assert (others, len(trial["findings"])) == ({}, 2 * len(MATCHERS))
    finally:
        for server in servers:
            server.__exit__(None, None, None)
