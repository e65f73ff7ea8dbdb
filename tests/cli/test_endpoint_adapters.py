"""Agents behind chat completions and JSON endpoints, on the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import endpoints
import pytest
from commands import ci_evals, read_files, read_results, write_suite
from each_row import each_row
from endpoints import Endpoint, EndpointRequest, completion, tool_calls
from exits import exits, refusal

pytestmark = pytest.mark.slow
OFFLINE = "--provider=offline"
CHECKS = [
    {"criterion": "Refunds", "strict": "tool_used", "toolName": "refund"},
    {"criterion": "Deletes nothing", "strict": "tool_not_used", "toolName": "delete_account"},
    {"criterion": "Three days", "strict": "param_equals", "paramName": "days", "paramValue": "3"},
    {"criterion": "No handing over", "strict": "not_escalated"},
    {"criterion": "Says so", "strict": "contains", "text": "refunded"},
]
PATHS = {"text": "$.messages[*].text", "workflows": "$.tools[*].name", "params": "$.slots"}
HTTP = {
    "headers": {"X-Key": "{{key}}"},
    "open": {"path": "/chats", "body": {"customer": "{{userInfo.name}}"}, "session": "$.id"},
    "send": {"path": "/chats/{{session}}", "body": {"text": "{{message}}"}},
    "reply": PATHS | {"escalated": "$.handover", "error": "$.error"},
}
MESSAGE_ONLY = {"send": {"body": {"text": "{{message}}"}}, "reply": {"text": "$.text"}}


def chat(asked: EndpointRequest) -> Any:
    return completion("It is refunded.", tool_calls=tool_calls(("refund", {"days": 3})))


def http(asked: EndpointRequest) -> Any:
    if asked.path == "/chats":
        return {"id": "c/1"}
    reply = {"messages": [{"text": "It is refunded."}], "tools": [{"name": "refund"}], "handover": False}
    return reply | {"slots": [{"name": "days", "value": 3}]}


@pytest.fixture
def openai_endpoint() -> Iterator[Endpoint]:
    with endpoints.serving(chat) as stub:
        yield stub


@pytest.fixture
def json_endpoint() -> Iterator[Endpoint]:
    with endpoints.serving(http) as stub:
        yield stub


def write_endpoint_suite(folder: Any, adapter: str, **fields: Any) -> str:
    one = {"evaluations": CHECKS, "userInfo": {"name": "Ida Berg"}, "systemPrompt": "Be brief."}
    return write_suite(folder, one, **{"adapter": adapter, "agentId": None, "apiKey": None, **fields})


@pytest.mark.end_to_end
def test_chat_completions_agent_reports_tool_calls_and_refused_key_stops_run(tmp_path, openai_endpoint):
    options = {"escalationTools": ["to_person"]}
    suite = write_endpoint_suite(tmp_path, "openai", model="refund-agent", adapterOptions=options)
    given = (f"--base-url={openai_endpoint.url}", f"--agent-key={endpoints.KEY}", "--debug")
    ran = exits(0, "run", suite, OFFLINE, *given, "--agent-headers=X-Team: quality", cwd=tmp_path)
    (asked,) = openai_endpoint.asked
    assert (asked.body["model"], asked.headers["x-team"]) == ("refund-agent", "quality")
    assert asked.body["messages"][0]["content"].startswith("Be brief.")
    results = read_results(tmp_path)
    (turn,) = results["suites"][0]["tests"][0]["trials"][0]["turns"]
    assert (results["score"], turn["workflows"], turn["raw"]["model"]) == (100, ["refund"], "refund-agent")
    wrong = (given[0], "--agent-key=wrong-key-1", "--loops=5")
    ran = ci_evals("run", suite, OFFLINE, *wrong, cwd=tmp_path)
    assert (ran.returncode, len(openai_endpoint.asked)) == (3, 2)
    assert "refused the key (401)" in ran.stdout + ran.stderr


@pytest.mark.end_to_end
def test_json_endpoint_agent_runs_with_options_in_suite_or_file(tmp_path, json_endpoint):
    (tmp_path / "agent.yaml").write_text(json.dumps(HTTP))
    inside = write_endpoint_suite(tmp_path, "http", adapterOptions=HTTP, baseUrl=json_endpoint.url)
    apart = write_endpoint_suite(tmp_path, "http", name="apart.json")
    options = ("--adapter-options=agent.yaml", f"--base-url={json_endpoint.url}")
    for args in ([inside], [apart, *options]):
        exits(0, "run", *args, OFFLINE, f"--agent-key={endpoints.KEY}", cwd=tmp_path)
        assert read_results(tmp_path)["score"] == 100
    assert [asked.path for asked in json_endpoint.asked] == ["/chats", "/chats/c/1"] * 2
    assert json_endpoint.asked[0].body == {"customer": "Ida Berg"}


@pytest.mark.parametrize("adapter", ["openai", "http"])
def test_echoed_secrets_are_redacted_in_every_file_and_stream(tmp_path, adapter):
    """Although the agent echoes the key, and another one in the suite's own headers."""
    literal = "literal-9c1e77aa"

    def echo(asked: EndpointRequest) -> Any:
        text = f"refunded {json.dumps(asked.headers)}"
        return completion(text, tool_calls=tool_calls(("refund", {"days": 3, "all": text}))) | {"reply": text}

    headers = {"X-Key": "{{key}}", "X-Secret-Thing": literal}
    http_options = {"send": {"body": "{{message}}"}, "reply": {"text": "$.reply", "trace": "$"}}
    options = {"headers": headers, **(http_options if adapter == "http" else {})}
    with endpoints.serving(echo) as stub:
        suite = write_endpoint_suite(tmp_path, adapter, adapterOptions=options, model="m", baseUrl=stub.url)
        keys = ("--agent-headers=x-extra: extra-4b7d10f3", f"--agent-key={endpoints.KEY}")
        ran = ci_evals("run", suite, OFFLINE, *keys, "--debug", "--no-gate", cwd=tmp_path)
        assert ran.returncode in {0, 3}, ran.stdout + ran.stderr  # 3: a check has no evidence
        assert literal in stub.asked[-1].headers.values()
    written = b"".join(read_files(tmp_path / "results").values()).decode() + ran.stdout + ran.stderr
    assert "refunded" in written
    for secret in (literal, endpoints.KEY, "extra-4b7d10f3"):
        assert secret not in written


LOOPBACK = {"baseUrl": "http://127.0.0.1:1"}
KEYED = {"apiKey": "key-12345678", "adapterOptions": HTTP}


def sending(body: str, text: str = "$.a") -> dict[str, Any]:
    return {"adapterOptions": {"send": {"body": body}, "reply": {"text": text}}}


@each_row(
    ("adapter", "fields", "text"),
    [
        ("openai", {"model": "m"}, "apiKey: is missing"),
        ("openai", LOOPBACK, "model: is missing"),
        ("openai", {"model": "m", "adapterOptions": {"request": {"stream": True}}}, "may not hold 'stream'"),
        ("http", {"adapterOptions": HTTP}, "baseUrl: is missing"),
        ("http", LOOPBACK, "adapterOptions: is missing"),
        ("http", LOOPBACK | {"adapterOptions": HTTP}, "apiKey: is missing"),
        ("http", KEYED | {"baseUrl": "x"}, "baseUrl: must begin with http:// or https://"),
        (
            "http",
            sending("{{userInfo.nmae}} {{message}}"),
            "{{userInfo.nmae}}, which no test has in its userInfo",
        ),
        (
            "http",
            sending("{{agentId}} {{message}}"),
            "agentId: is missing, and adapterOptions hold {{agentId}}",
        ),
        ("http", sending("{{massage}}", "$.a["), "adapterOptions.reply.text: '$.a[' is not a JSONPath"),
    ],
)
def test_invalid_endpoint_settings_are_rejected_with_reason_before_run(
    tmp_path, adapter, fields, text, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert text in refusal("run", write_endpoint_suite(tmp_path, adapter, **fields), OFFLINE)
    assert not (tmp_path / "results").exists()


def test_run_without_agent_key_is_skipped_only_in_pull_request_of_fork(tmp_path):
    """Elsewhere the same is a mistake, or the agent's to refuse."""
    event = json.loads((Path(__file__).parents[1] / "events/pull_request_fork.json").read_text())
    (tmp_path / "event.json").write_text(json.dumps(event))
    fork = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    fork |= {"GITHUB_REPOSITORY": event["repository"]["full_name"]}
    suite = {"adapter": "http", "baseUrl": "http://127.0.0.1:9", "adapterOptions": HTTP, "apiKey": None}
    header = {"adapterOptions": MESSAGE_ONLY | {"headers": {"X-Api-Key": "${AGENT_KEY}"}}}
    for fields, options, env in (
        ({"apiKey": "${AGENT_KEY}"}, ["--agent-key="], {}),
        ({"apiKey": "${AGENT_KEY}"}, [], {"AGENT_KEY": ""}),
        (header, [], {"AGENT_KEY": ""}),
        ({}, ["--agent-headers=Authorization: Bearer "], {}),
    ):
        write_suite(tmp_path, **suite | fields)
        ran = exits(0, "run", "suite.json", OFFLINE, *options, cwd=tmp_path, env=env | fork)
        assert read_results(tmp_path)["run"]["status"] == "skipped"
        assert "(agent-key is missing)" in ran.stderr + ran.stdout
        ran = ci_evals("run", "suite.json", OFFLINE, "--retries=0", *options, cwd=tmp_path, env=env)
        assert ran.returncode != 0
