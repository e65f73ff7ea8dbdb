"""Which agent a suite and its options choose, and how it is to be spoken to."""

import json

import pytest
from each_row import each_row

from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.planning.adapter_options import read_options
from ci_evals.planning.agent_choice import AgentChoice, choose, has_key
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load

TEST = {"name": "t", "guidelines": "g", "turns": [{"user": "x"}], "evaluations": [{"criterion": "c"}]}
HTTP = {"send": {"body": {"text": "{{message}}"}}, "reply": {"text": "$.reply"}}


def loaded(suite, **reading):
    text = json.dumps({"name": "S", "tests": [TEST], **suite}, indent=1)
    return load(text, "s.json", Reading(**reading))


def problems(suite, **reading):
    with pytest.raises(SuiteError) as refused:
        loaded(suite, **reading)
    return [f"{problem.path}: {problem.message}" for problem in refused.value.problems]


@each_row(
    "adapter",
    ["aui", "demo", "openai", "http", "python:agents.refunds:Agent.reply", "command: node agent.js", "acme"],
)
def test_built_in_code_and_installed_adapters_are_accepted(adapter):
    options = HTTP if adapter == "http" else None
    suite = loaded({"adapter": adapter, "adapterOptions": options}, plugins=frozenset({"acme"})).suite
    assert suite.adapter == adapter


@each_row(("adapter", "message"), [
    ("opnai", "'opnai' is not an adapter; did you mean 'openai'?"),
    ("Http", "'Http' is not an adapter; did you mean 'http'?"),
    ("zzz", "'zzz' is not an adapter; available: aui, demo, openai, http, langgraph, ag-ui, a2a, adk, rasa"),
    ("python:refunds", "'python:refunds' is not of the form python:module:attribute"),
    ("python:my module:reply", "is not of the form python:module:attribute"),
    ("command: ", "'command: ' names no program"),
    ("", "'' must not be empty"),
])  # fmt: skip
def test_unknown_adapter_is_refused_with_a_suggestion(adapter, message):
    result = problems({"adapter": adapter}, plugins=frozenset({"acme"}))
    assert any(line.startswith(f"adapter: {message}") or message in line for line in result), result


def test_invalid_adapter_options_are_refused_at_their_path():
    options = {"send": {"method": "SEND", "path": "chat"}, "replies": {}}
    with pytest.raises(SuiteError) as refused:
        loaded({"adapter": "http", "adapterOptions": options})
    result = {problem.path.removeprefix("adapterOptions."): problem for problem in refused.value.problems}
    assert result.keys() >= {"send.method", "send.path", "replies", "reply"}
    assert result["replies"].message == "unknown key; did you mean 'reply'?"
    assert result["send.method"].message.startswith("'SEND' is not one of GET, POST")
    assert result["send.method"].line > 1


@each_row(("suite", "problem"), [
    ({"adapter": "openai", "model": "m", "adapterOptions": {"escalation_tools": ["x"]}},
     "adapterOptions.escalation_tools: unknown key; did you mean 'escalationTools'?"),
    ({"adapter": "demo", "adapterOptions": {"x": 1}}, "adapterOptions: the adapter 'demo' takes no options"),
    ({"adapterOptions": {"keyHeader": "x key"}}, "adapterOptions.keyHeader: "),
    ({"adapterOptions": {"keyHeader": "x:\n"}}, "adapterOptions.keyHeader: "),
    ({"adapterOptions": {"agentIdIn": "both of them"}}, "adapterOptions.agentIdIn: "),
    ({"adapterOptions": {"taskOriginType": ""}}, "adapterOptions.taskOriginType: "),
    ({"adapterOptions": {"keyHeaders": "x"}}, "adapterOptions.keyHeaders: "),
    *(({"startTimeout": seconds}, "startTimeout: ") for seconds in (0, -1, 3601, 1e300)),
])  # fmt: skip
def test_invalid_adapter_option_causes_exactly_one_problem(suite, problem):
    (result,) = problems(suite)
    assert result.startswith(problem)


def test_untrusted_suite_with_a_program_or_request_options_is_refused():
    event = "in the event workflow_run"
    program = f"adapter: a suite may not name a program to run {event}; use `adapter=`"
    request = f"adapterOptions: a suite may not set what an agent is sent {event}; use `adapter_options=`"
    for suite, problem in (
        ({"adapter": "python:evil:run"}, program),
        ({"adapter": "command: curl evil.example"}, program),
        ({"adapter": "acme"}, program),
        ({"adapterOptions": {"keyHeader": "X-Forwarded-For"}}, request),
        ({"adapter": "http", "adapterOptions": HTTP}, request),
    ):
        assert problems(suite, distrusted=event, plugins=frozenset({"acme"})) == [problem]
    assert loaded({"adapter": "openai", "model": "m"}, distrusted=event).suite.adapter == "openai"


@each_row(("suite", "missing"), [
    ({"adapter": "openai", "baseUrl": "http://h"}, {"model"}),
    ({"adapter": "openai", "model": "m"}, {"apiKey"}),
    ({"adapter": "openai", "model": "m", "baseUrl": "http://h"}, set()),
    ({"adapter": "openai", "agentId": "m", "baseUrl": "http://h"}, set()),
    ({"adapter": "http"}, {"baseUrl", "adapterOptions"}),
    ({"adapter": "http", "baseUrl": "http://h", "adapterOptions": HTTP}, set()),
    ({"adapter": "http", "baseUrl": "http://h", "adapterOptions": HTTP, "apiKey": " "}, {"apiKey"}),
    ({"adapter": "python:a:b"}, set()),
    ({"adapter": "command: x"}, set()),
])  # fmt: skip
def test_missing_settings_of_an_adapter_are_refused(suite, missing):
    """A blank key is one that should have come from a secret."""
    if not missing:
        assert choose(loaded(suite), AgentChoice()).suite
        return
    with pytest.raises(SuiteError) as refused:
        choose(loaded(suite), AgentChoice())
    assert {problem.path for problem in refused.value.problems} == missing


def test_field_replaced_by_an_option_may_refer_to_an_unset_variable():
    suite = {"agentId": "${ID}", "apiKey": "${KEY}", "baseUrl": "${URL}"}
    choice = AgentChoice(agent_id="a", agent_key="key-123456", base_url="http://h")
    assert choice.replaces == {"agentId", "apiKey", "baseUrl"}
    chosen = choose(loaded(suite, replaced=choice.replaces), choice).suite
    assert (chosen.agent_id, chosen.base_url) == ("a", "http://h")
    (problem,) = problems(suite, replaced=frozenset({"agentId", "baseUrl"}))
    assert problem == "apiKey: ${KEY}: the environment variable KEY is not set; set it"
    assert loaded(suite, replaced=choice.replaces, distrusted="in the event x").suite.base_url is None


def test_blank_agent_key_counts_as_missing():
    """So that a pull request of a fork, whose key is blank, is skipped, not refused."""
    assert not has_key(loaded({"adapter": "http", "apiKey": ""}).suite)
    assert has_key(loaded({"adapter": "http"}).suite)
    assert has_key(loaded({"adapter": "demo", "apiKey": ""}).suite)
    suite = {"adapter": "openai", "model": "m", "baseUrl": "http://h", "apiKey": ""}
    with pytest.raises(
        SuiteError, match=r"apiKey: is empty; set the variable .*; if the agent needs no key, delete the line"
    ):
        choose(loaded(suite), AgentChoice())


def test_python_adapter_takes_options_of_any_name():
    suite = loaded({"adapter": "python:a:b", "adapterOptions": {"deep": [1]}}).suite
    assert suite.adapter_options == {"deep": [1]}


def test_options_of_a_file_replace_the_options_of_the_suite():
    file = read_options("send: {body: '{{message}}'}\nreply: {text: $.answer}\n", "agent.yaml", {})
    suite = loaded({"adapter": "http", "adapterOptions": HTTP, "baseUrl": "http://h"})
    assert choose(suite, AgentChoice(options=file)).suite.adapter_options == file.value
    assert choose(suite, AgentChoice(adapter="python:a:b")).suite.adapter_options is None
    assert choose(suite, AgentChoice()).suite.adapter_options == HTTP


def chosen_with(text: str, environ: dict | None = None):
    """An HTTP agent with the options of a file."""
    choice = AgentChoice(options=read_options(text, "agent.yaml", environ or {}))
    return choose(loaded({"adapter": "http", "baseUrl": "http://h"}), choice)


def test_options_file_errors_have_file_positions_and_no_secrets():
    for text, place in (
        ("- 1\n", r"agent\.yaml:1:1: must be an object"),
        ("headers:\n  x: ${TOKEN}\n", r"agent\.yaml:2:.*TOKEN"),
        (
            "send: {body: '{{message}}'}\nreply: {txt: $.a}\n",
            r"agent\.yaml:2:9: reply\.txt: unknown key; did you mean 'text'",
        ),
    ):
        with pytest.raises(SuiteError, match=place):
            chosen_with(text)
    text = "headers: {x: '${TOKEN}'}\nsend: {body: '{{message}}'}\nreply: {text: $.a}\n"
    assert "tok-12345678" in chosen_with(text, {"TOKEN": "tok-12345678"}).secrets
    environ = {"TOKEN": "tok-12345678", "PATH_OF": "no/path-12345678"}
    text = "headers: {x: '{{${TOKEN}}}'}\nsend: {body: '{{message}}'}\nreply: {text: '${PATH_OF}'}\n"
    with pytest.raises(SuiteError) as refused:
        chosen_with(text, environ)
    assert "{{***}}" in str(refused.value)
    assert "'***' is not a JSONPath" in str(refused.value)
    assert "12345678" not in str(refused.value)


@each_row(("choice", "text"), [
    ({"adapter": "htp"}, "`adapter=`: 'htp' is not an adapter; did you mean 'http'"),
    ({"adapter": "python:shop"}, "`adapter=`: 'python:shop' is not of the form python:module:attribute"),
    ({"adapter": "python:a/b.py:c"}, "the module of a file agents/shop.py is agents.shop"),
    ({"adapter": "command: "}, "`adapter=`: 'command: ' names no program: command: node agent.js"),
    ({"agent_id": " "}, "`agent_id=`: ' ' must not be empty"),
    ({"base_url": " "}, "`base_url=`: ' ' must not be empty"),
])  # fmt: skip
def test_invalid_agent_option_is_a_usage_error(choice, text):
    with pytest.raises(UsageError) as refused:
        choose(loaded({"adapter": "aui"}), AgentChoice(**choice))
    assert text in str(refused.value)


def chosen(suite=None, **choice):
    suite = {"name": "S", "agentId": "a", "apiKey": "key-123456", "tests": [TEST]} | (suite or {})
    return choose(load(json.dumps(suite), "s.json", Reading()), AgentChoice(**choice)).suite


def test_aui_agent_needs_id_and_key_which_options_override():
    for missing, option in (("agentId", "`agent_id=`"), ("apiKey", "CI_EVALS_AGENT_KEY")):
        with pytest.raises(SuiteError, match=rf"s\.json:1:\d+: {missing}: is missing.*{option}"):
            chosen({missing: None})
        named = chosen({missing: None}, agent_id="b", agent_key="other-key")
        assert (named.agent_id, named.api_key.get_secret_value()) == ("b", "other-key")
    with pytest.raises(SuiteError, match=r"apiKey: is empty.*CI_EVALS_AGENT_KEY"):
        chosen({"apiKey": ""})
    options = {"agent_id": "b", "agent_key": "k-654321", "base_url": "https://b.example"}
    suite = chosen({"baseUrl": "https://a.example"}, **options)
    assert (suite.agent_id, suite.base_url) == ("b", "https://b.example")
    assert suite.api_key.get_secret_value() == "k-654321"


def test_problems_of_an_agent_are_located_in_the_suite():
    text = f"# mine\nname: S\nagentId: a\napiKey: ${{AGENT_KEY:-}}\ntests: [{json.dumps(TEST)}]\n"
    with pytest.raises(SuiteError, match=r"^s\.yaml:4:9: apiKey: is empty"):
        choose(load(text, "s.yaml", Reading()), AgentChoice())
    test = TEST | {"turns": [{"assistant": "Which one?"}, {"user": "x"}]}
    text = json.dumps({"name": "S", "adapter": "rasa", "tests": [TEST, test]}, indent=1)
    line = text.splitlines().index('   "turns": [', 13) + 1
    with pytest.raises(SuiteError, match=rf"^s\.json:{line}:\d+: tests\[1\]\.turns: start with"):
        choose(load(text.replace('"t"', '"u"', 1), "s.json", Reading()), AgentChoice())


def test_base_url_must_be_http_except_for_python_agents():
    with pytest.raises(SuiteError, match=r"^s\.json:1:\d+: baseUrl: must begin with http:// or https://$"):
        chosen({"baseUrl": "127.0.0.1:8000"})
    assert chosen({"baseUrl": "127.0.0.1:8000"}, base_url="http://127.0.0.1:8000").base_url
    assert chosen({"baseUrl": "bus://desk", "adapter": "python:desk:agent"}).base_url


def test_demo_agent_needs_no_id_or_key_and_rejects_an_address():
    assert chosen({"adapter": "demo", "agentId": None, "apiKey": None}).adapter == "demo"
    with pytest.raises(UsageError, match="`adapter=demo`"):
        chosen(adapter="demo", base_url="https://agents.example")


@each_row(("choice", "adapter"), [
    ({}, "demo"),
    ({"agent_key": "real-key"}, "demo"),
    ({"agent_id": "b"}, "aui"),
    ({"base_url": "https://agents.example"}, "aui"),
    ({"agent_id": "demo-retail", "adapter": "demo"}, "demo"),
    ({"adapter": "aui"}, "aui"),
])  # fmt: skip
def test_agent_id_or_base_url_switches_demo_suite_to_aui_adapter(choice, adapter):
    """A key alone may be meant for the other suites of the job."""
    assert chosen({"adapter": "demo"}, **choice).adapter == adapter
