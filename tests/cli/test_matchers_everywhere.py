"""Every argument matcher decides equally for every kind of agent."""

import json
import sys
from contextlib import ExitStack

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
"""An argument that meets each matcher; one that wants nothing is met by no argument."""
GIVEN = {name.replace(" ", "_"): value for name, value in ARGUMENTS.items()}
CALL = {"name": "f", "arguments": GIVEN | {"odd": {"odd": True}}}
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
    paths = {"text": "$.reply", "toolCalls": "$.calls"}
    options = {"send": {"body": {"text": "{{message}}"}}, "reply": paths}
    return {"adapter": "http", "adapterOptions": options, "baseUrl": url, "apiKey": endpoints.KEY}


KINDS = [code, program, chat, http]


def evaluations():
    """Two checks of each matcher: with an argument that meets it, and with one that does not."""
    for name, written in MATCHERS.items():
        check = {"strict": "tool_called", "toolName": "f"}
        yield check | {"criterion": name, "args": {name.replace(" ", "_"): written}}
        other = "missing" if name == "exists" else "odd"
        yield check | {"criterion": f"not {name}", "args": {other: written}, "times": 0}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_matcher_decides_equally_for_every_kind_of_agent_and_in_replay(tmp_path, kind):
    (tmp_path / "reply.json").write_text(json.dumps({"text": "Done.", "toolCalls": [CALL]}))
    test = {"name": "t", "turns": [{"user": "Hi"}], "maxTurns": 1, "evaluations": [*evaluations()]}
    with ExitStack() as servers:
        serve = lambda answer: servers.enter_context(endpoints.serving(answer)).url  # noqa: E731
        path = write_suite(tmp_path, test, **{"apiKey": None, "agentId": None} | kind(tmp_path, serve))
        for option in ("--record=kept", "--replay=kept"):
            ran = ci_evals("run", path, "--provider=offline", option, cwd=tmp_path, env={"PYTHONPATH": "."})
            assert ran.returncode == 0, ran.stdout + ran.stderr
            (trial,) = read_results(tmp_path)["suites"][0]["tests"][0]["trials"]
            failed = [finding for finding in trial["findings"] if finding["outcome"] != "passed"]
            assert (failed, len(trial["findings"])) == ([], 2 * len(MATCHERS))
