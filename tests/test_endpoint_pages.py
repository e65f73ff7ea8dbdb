"""The pages on agents behind endpoints, followed step by step."""

import json
import re
import shlex
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import endpoints
import pytest
import yaml
from commands import CLEAN_ENV, ci_evals, read_results, write_suite
from doc_pages import ROOT, blocks, code, table, without_times
from endpoints import completion, tool_calls
from page_files import free_port, message_pattern, write_files
from world import Fault

from ci_evals.agents.options import OF_A_TEST
from ci_evals.extensions.http.options import OF_A_REQUEST, OF_A_TURN, TEXTS, HttpOptions, HttpReply
from ci_evals.extensions.http.wire import Reader
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.support.redaction import Redactor

pytestmark = pytest.mark.slow

PAGES = {name: (ROOT / f"docs/{name}-agent.md").read_text() for name in ("openai", "http")}
FORMS = {"openai": ChatOptions, "http": HttpOptions}


@contextmanager
def serving_page_agent(page, folder):
    """The page's agent under way, at a port that is free; the command that plays against it."""
    port = free_port()
    write_files(page, folder, port)
    lines = [shlex.split(line) for block in blocks("sh", page) for line in block.splitlines()]
    (serve,) = [words for words in lines if words[0] == "python3"]
    run, *_ = [words for words in lines if words[:2] == ["ci-evals", "run"] and "evals/" in words[2]]
    with subprocess.Popen(
        [sys.executable, *serve[1:]], cwd=folder, env=CLEAN_ENV, stderr=subprocess.DEVNULL
    ) as agent:
        try:
            until_it_listens(port)
            yield run[1:]
        finally:
            agent.terminate()


def until_it_listens(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the page's agent did not start")


RUNS = PAGES | {"streams": (ROOT / "docs/http-streams.md").read_text()}


@pytest.mark.parametrize("page", RUNS.values(), ids=RUNS)
def test_page_commands_give_shown_output_and_fail_for_worse_agent(page, tmp_path):
    with serving_page_agent(page, tmp_path) as command:
        ran = ci_evals(*command, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    printed = [without_times(line) for line in ran.stdout.splitlines()]
    (shown,) = blocks("text", page)
    for line in shown.splitlines():
        assert without_times(line) in printed, ran.stdout
    worse = page.replace('"name": "refund_order"', '"name": "close_account"')
    with serving_page_agent(worse, tmp_path) as command:
        assert ci_evals(*command, cwd=tmp_path).returncode == 1


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_start_option_of_endpoint_page_starts_its_agent(page, tmp_path):
    write_files(page, tmp_path, free_port())
    lines = [shlex.split(line) for block in blocks("sh", page) for line in block.splitlines()]
    (command,) = [words for words in lines if any(word.startswith("--start=") for word in words)]
    ran = ci_evals(*command[1:], cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr + ran.stdout


def names_in(heading, page):
    return [code(part) for cell, _ in table(heading, page) for part in cell.split(", ")]


def test_endpoint_pages_list_every_option_placeholder_reply_key_and_evidence():
    for name, page in PAGES.items():
        for example in blocks("yaml", page):
            if example.startswith("adapterOptions:"):
                FORMS[name].model_validate(yaml.safe_load(example)["adapterOptions"])
        fields = {field.alias for field in FORMS[name].model_fields.values()}
        assert {*names_in("option", page)} == fields, name
    placeholders = [*TEXTS, *OF_A_TEST, *OF_A_TURN, *OF_A_REQUEST, "session", "key"]
    assert sorted(names_in("name", PAGES["http"])) == sorted(placeholders)
    assert names_in("key", PAGES["http"]) == [field.alias for field in HttpReply.model_fields.values()]
    reader = Reader(HttpReply(text="$.reply", workflows="$.tools[*].name"))
    for answer, _, decided in table("answer", PAGES["http"]):
        body = {"reply": "Hi", **json.loads(code(answer))}
        result = reader.reply(body, 0.1, Redactor()).workflows
        assert (result is not None) == (decided == "decided"), answer


ADDRESS = "http://127.0.0.1:1"
REPLY = {"text": "$.reply"}
SEND = {"body": "{{message}}"}
WRONG_SUITES = {
    "openai": [
        {"baseUrl": ADDRESS}, {"model": "m"},
        {"model": "m", "baseUrl": ADDRESS, "adapterOptions": {"request": {"stream": True}}},
    ],
    "http": [
        {"adapterOptions": {"send": SEND, "reply": REPLY}}, {"baseUrl": ADDRESS},
        {"baseUrl": ADDRESS, "adapterOptions": {"send": {"body": "{{massage}}"}, "reply": REPLY}},
        {"baseUrl": ADDRESS, "adapterOptions": {"send": {"body": "Hi"}, "reply": REPLY}},
        {
            "baseUrl": ADDRESS,
            "adapterOptions": {"send": {"body": ["{{message}}", "{{userInfo.nmae}}"]}, "reply": REPLY},
        },
        {"baseUrl": ADDRESS, "adapterOptions": {"send": SEND, "reply": {"text": "reply"}}},
    ],
}  # fmt: skip
CALLED = completion(None, tool_calls=tool_calls(("refund", {})))
WRONG_ANSWERS = {
    "openai": {
        "lost": Fault(404, '{"detail": "Not Found"}'),
        "odd": Fault(400, '{"error": {"message": "Unknown parameter"}}'),
        "page": Fault(200, "<html><title>Welcome</title></html>"), "other": {"reply": "Hi"},
        "moved": Fault(308, headers={"Location": "https://elsewhere.example/"}),
        "waits": completion(None, tool_calls=tool_calls(("lookup", {}))), "circles": CALLED,
        "empty": completion(""), "error": {"error": {"message": "overloaded"}},
    },
    "http": {
        "wordless": {"answer": "Hi"}, "page": Fault(200, "<html><title>Welcome</title></html>"),
        "large": {"reply": "Hi", "tools": [{}] * 60_000}, "lost": Fault(404, '{"detail": "Not Found"}'),
        "moved": Fault(308, headers={"Location": "https://elsewhere.example/"}),
    },
}  # fmt: skip
PLAIN = {"openai": completion("Hi"), "http": {"reply": "Hi"}}
HTTP_OPTIONS = {"send": {"body": "{{message}}"}, "reply": {**REPLY, "workflows": "$.tools[*].name"}}


def error_messages(name, folder):
    checks = [{"criterion": "Nothing runs", "strict": "tool_not_used", "toolName": "x"}]
    timeouts = dict.fromkeys(["late", "plain", *WRONG_ANSWERS[name]], 30) | {"late": 0.2}
    late, plain_test, *others = (
        {"name": word, "turns": [{"user": word, "timeout": seconds}], "evaluations": checks}
        for word, seconds in timeouts.items()
    )

    def answer(asked):
        word = asked.body if isinstance(asked.body, str) else asked.texts[-1]
        if word == "late":
            time.sleep(1)
        return WRONG_ANSWERS[name].get(word) or PLAIN[name]

    options = HTTP_OPTIONS if name == "http" else {"toolResults": {"refund": "ok"}}
    fields = {"adapter": name, "model": "m", "apiKey": None, "adapterOptions": options}
    with endpoints.serving(answer) as stub:
        suite = write_suite(folder, late, plain_test, *others, **fields, baseUrl=stub.url)
        during = errors_of(folder, suite, endpoints.KEY)
        suite = write_suite(folder, plain_test, **fields, baseUrl=stub.url)
        during += errors_of(folder, suite, "wrong-key-1")
    during += errors_of(folder, write_suite(folder, plain_test, **fields, baseUrl=ADDRESS), endpoints.KEY)
    if name == "http":
        fields["adapterOptions"] = {**HTTP_OPTIONS, "open": {"session": "$.id"}}
        with endpoints.serving(lambda asked: {"name": "c1"}) as stub:
            suite = write_suite(folder, plain_test, **fields, baseUrl=stub.url)
            during += errors_of(folder, suite, endpoints.KEY)
    return messages_of_rejected(folder, name, WRONG_SUITES[name]), during


def messages_of_rejected(folder, name, suites):
    plain_suite = {"adapter": name, "agentId": None, "apiKey": None}
    files = [f"wrong{number}.json" for number in range(len(suites))]
    for file, wrong in zip(files, suites, strict=True):
        (folder / write_suite(folder, **(plain_suite | wrong))).rename(folder / file)
    ran = ci_evals("plan", *files, cwd=folder)
    assert ran.returncode == 2, ran.stdout
    lines = ran.stderr.splitlines()
    return ["\n".join(line for line in lines if file in line) for file in files]


def errors_of(folder, suite, key):
    ran = ci_evals("run", suite, "--retries=0", f"--agent-key={key}", cwd=folder)
    assert ran.returncode == 3, ran.stdout + ran.stderr
    trials = [trial for test in read_results(folder)["suites"][0]["tests"] for trial in test["trials"]]
    return [ran.stdout, *(trial["error"] for trial in trials if trial["error"])]


@pytest.mark.parametrize("name", PAGES)
def test_endpoint_page_lists_exactly_the_error_messages_of_its_adapter(name, tmp_path):
    before, during = error_messages(name, tmp_path)
    rows = [code(message) for message, _ in table("message", PAGES[name])]
    for number, row in enumerate(rows):
        texts = before if number < len(before) else during
        assert any(re.search(message_pattern(row), without_times(text)) for text in texts), (row, texts)
    for text in [*before, *during]:
        assert any(re.search(message_pattern(row), without_times(text)) for row in rows), text


def test_versions_on_adapters_page_are_tested():
    """By the environments of `make frameworks`."""
    page = (ROOT / "docs/adapters.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| `([\w-]+)` ([\w.]+) \|", page, re.MULTILINE)
    tested = "".join(file.read_text() for file in (ROOT / "tests/frameworks").glob("test_*.py"))
    assert len(rows) == 10
    for name, version in rows:
        assert re.search(rf'"{name}(\[[\w-]+\])?=={re.escape(version)}"', tested), name
