"""Agents behind chat completions and JSON endpoints, by the command line alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import endpoints
import pytest
from commands import ci_evals, read_files, read_results, write_suite
from endpoints import Endpoint, EndpointRequest, completion, tool_calls

pytestmark = pytest.mark.slow

OFFLINE = "--provider=offline"
CHECKS = [
    {"criterion": "Refunds", "strict": "tool_used", "toolName": "refund"},
    {"criterion": "Deletes nothing", "strict": "tool_not_used", "toolName": "delete_account"},
    {"criterion": "Three days", "strict": "param_equals", "paramName": "days", "paramValue": "3"},
    {"criterion": "No handing over", "strict": "not_escalated"},
    {"criterion": "Says so", "strict": "contains", "text": "refunded"},
]
HTTP = {
    "headers": {"X-Key": "{{key}}"},
    "open": {"path": "/chats", "body": {"customer": "{{userInfo.name}}"}, "session": "$.id"},
    "send": {"path": "/chats/{{session}}", "body": {"text": "{{message}}"}},
    "reply": {
        "text": "$.messages[*].text",
        "workflows": "$.tools[*].name",
        "params": "$.slots",
        "escalated": "$.handover",
        "error": "$.error",
    },
}
SENDS = {"send": {"body": {"text": "{{message}}"}}, "reply": {"text": "$.text"}}


def chat(asked: EndpointRequest) -> Any:
    return completion("It is refunded.", tool_calls=tool_calls(("refund", {"days": 3})))


def http(asked: EndpointRequest) -> Any:
    if asked.path == "/chats":
        return {"id": "c/1"}
    return {
        "messages": [{"text": "It is refunded."}],
        "tools": [{"name": "refund"}],
        "slots": [{"name": "days", "value": 3}],
        "handover": False,
    }


@pytest.fixture
def openai_endpoint() -> Iterator[Endpoint]:
    with endpoints.serving(chat) as stub:
        yield stub


@pytest.fixture
def json_endpoint() -> Iterator[Endpoint]:
    with endpoints.serving(http) as stub:
        yield stub


def suite_for(folder: Any, adapter: str, **fields: Any) -> str:
    one = {"evaluations": CHECKS, "userInfo": {"name": "Ida Berg"}, "systemPrompt": "Be brief."}
    return write_suite(folder, one, **{"adapter": adapter, "agentId": None, "apiKey": None, **fields})


@pytest.mark.end_to_end
def test_an_agent_behind_chat_completions(tmp_path, openai_endpoint):
    """Its calls of tools are what strict checks look at."""
    options = {"escalationTools": ["to_person"]}
    suite = suite_for(tmp_path, "openai", model="refund-agent", adapterOptions=options)
    where = f"--base-url={openai_endpoint.url}"
    ran = ci_evals(
        "run", suite, OFFLINE, where, f"--agent-key={endpoints.KEY}", "--agent-headers=X-Team: quality",
        "--debug", cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (asked,) = openai_endpoint.asked
    assert asked.body["model"] == "refund-agent"
    assert asked.body["messages"][0]["content"].startswith("Be brief.")
    assert asked.headers["x-team"] == "quality"
    results = read_results(tmp_path)
    assert results["score"] == 100
    (turn,) = results["suites"][0]["tests"][0]["trials"][0]["turns"]
    assert turn["workflows"] == ["refund"]
    assert turn["raw"]["model"] == "refund-agent"


@pytest.mark.end_to_end
def test_an_agent_behind_a_json_endpoint(tmp_path, json_endpoint):
    """Asked and read as the suite says, and its options may stand in a file of their own."""
    (tmp_path / "agent.yaml").write_text(json.dumps(HTTP))
    inside = suite_for(tmp_path, "http", adapterOptions=HTTP, baseUrl=json_endpoint.url)
    apart = suite_for(tmp_path, "http", name="apart.json")
    options = ("--adapter-options=agent.yaml", f"--base-url={json_endpoint.url}")
    for args in ([inside], [apart, *options]):
        ran = ci_evals("run", *args, OFFLINE, f"--agent-key={endpoints.KEY}", cwd=tmp_path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert read_results(tmp_path)["score"] == 100
    assert [asked.path for asked in json_endpoint.asked] == ["/chats", "/chats/c/1"] * 2
    assert json_endpoint.asked[0].body == {"customer": "Ida Berg"}


@pytest.mark.parametrize("adapter", ["openai", "http"])
def test_no_secret_in_any_file_or_stream(tmp_path, adapter):
    """Though the agent echoes the key, and another one that stands in the suite's own headers."""
    literal = "literal-9c1e77aa"

    def echo(asked: EndpointRequest) -> Any:
        text = f"refunded {json.dumps(asked.headers)}"
        return completion(text, tool_calls=tool_calls(("refund", {"days": 3, "all": text}))) | {"reply": text}

    headers = {"X-Key": "{{key}}", "X-Secret-Thing": literal}
    http_options = {"send": {"body": "{{message}}"}, "reply": {"text": "$.reply", "trace": "$"}}
    options = {"headers": headers, **(http_options if adapter == "http" else {})}
    with endpoints.serving(echo) as stub:
        suite = suite_for(tmp_path, adapter, adapterOptions=options, model="m", baseUrl=stub.url)
        args = (
            "--agent-headers=x-extra: extra-4b7d10f3",
            f"--agent-key={endpoints.KEY}",
            "--debug",
            "--no-gate",
        )
        ran = ci_evals("run", suite, OFFLINE, *args, cwd=tmp_path)
        assert ran.returncode in {0, 3}, ran.stdout + ran.stderr  # 3: a check has no evidence
        assert literal in stub.asked[-1].headers.values()
    written = b"".join(read_files(tmp_path / "results").values()).decode() + ran.stdout + ran.stderr
    assert "refunded" in written
    for secret in (literal, endpoints.KEY, "extra-4b7d10f3"):
        assert secret not in written


@pytest.mark.parametrize(
    ("adapter", "fields", "text"),
    [
        ("openai", {"model": "m"}, "apiKey: is missing"),
        ("openai", {"baseUrl": "http://127.0.0.1:1"}, "model: is missing"),
        ("openai", {"model": "m", "adapterOptions": {"request": {"stream": True}}}, "may not hold 'stream'"),
        ("http", {"adapterOptions": HTTP}, "baseUrl: is missing"),
        ("http", {"baseUrl": "http://127.0.0.1:1"}, "adapterOptions: is missing"),
        ("http", {"baseUrl": "http://127.0.0.1:1", "adapterOptions": HTTP}, "apiKey: is missing"),
        (
            "http",
            {"baseUrl": "nowhere", "apiKey": "key-12345678", "adapterOptions": HTTP},
            "baseUrl: must begin with http:// or https://",
        ),
        (
            "http",
            {"adapterOptions": {"send": {"body": "{{userInfo.nmae}} {{message}}"}, "reply": {"text": "$.a"}}},
            "{{userInfo.nmae}}, which no test has in its userInfo",
        ),
        (
            "http",
            {"adapterOptions": {"send": {"body": "{{agentId}} {{message}}"}, "reply": {"text": "$.a"}}},
            "agentId: is missing, and adapterOptions hold {{agentId}}",
        ),
        (
            "http",
            {"adapterOptions": {"send": {"body": "{{massage}}"}, "reply": {"text": "$.a["}}},
            "adapterOptions.reply.text: '$.a[' is not a JSONPath",
        ),
    ],
)
def test_mistakes_are_reported_before_anything_runs(tmp_path, adapter, fields, text):
    """With exit code 2."""
    ran = ci_evals("run", suite_for(tmp_path, adapter, **fields), OFFLINE, cwd=tmp_path)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert text in ran.stderr
    assert not (tmp_path / "results").exists()


def test_a_wrong_key_ends_the_run(tmp_path, openai_endpoint):
    """No other trial could do better."""
    suite = suite_for(tmp_path, "openai", model="m", baseUrl=openai_endpoint.url)
    ran = ci_evals("run", suite, OFFLINE, "--agent-key=wrong-key-1", "--loops=5", cwd=tmp_path)
    assert ran.returncode == 3
    assert len(openai_endpoint.asked) == 1
    assert "refused the key (401)" in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("fields", "options", "env"),
    [
        pytest.param({"apiKey": "${AGENT_KEY}"}, ["--agent-key="], {}, id="an input that is empty"),
        pytest.param({"apiKey": "${AGENT_KEY}"}, [], {"AGENT_KEY": ""}, id="a variable that is empty"),
        pytest.param(
            {"adapterOptions": SENDS | {"headers": {"X-Api-Key": "${AGENT_KEY}"}}},
            [],
            {"AGENT_KEY": ""},
            id="header",
        ),
        pytest.param({}, ["--agent-headers=Authorization: Bearer "], {}, id="a header of the user's"),
    ],
)
def test_a_forks_pull_request_is_skipped_wherever_the_agents_key_should_stand(tmp_path, fields, options, env):
    """Elsewhere the same is a mistake, or the agent's to refuse."""
    event = json.loads((Path(__file__).parents[1] / "events/pull_request_fork.json").read_text())
    (tmp_path / "event.json").write_text(json.dumps(event))
    write_suite(
        tmp_path,
        **{"adapter": "http", "baseUrl": "http://127.0.0.1:9", "adapterOptions": HTTP, "apiKey": None}
        | fields,
    )
    fork = {
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_REPOSITORY": event["repository"]["full_name"],
    }
    ran = ci_evals("run", "suite.json", OFFLINE, *options, cwd=tmp_path, env=env | fork)
    assert ran.returncode == 0, ran.stderr
    assert read_results(tmp_path)["run"]["status"] == "skipped"
    assert "(agent-key is missing)" in ran.stderr + ran.stdout
    assert (
        ci_evals("run", "suite.json", OFFLINE, "--retries=0", *options, cwd=tmp_path, env=env).returncode != 0
    )
