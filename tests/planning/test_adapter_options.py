"""How agents are to be spoken to, as suites and users say it."""

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
def test_adapters_built_in_or_of_code_or_installed_are_accepted(adapter):
    """Built in, code, or installed."""
    options = HTTP if adapter == "http" else None
    suite = loaded({"adapter": adapter, "adapterOptions": options}, plugins=frozenset({"acme"})).suite
    assert suite.adapter == adapter


@each_row(
    ("adapter", "message"),
    [
        ("opnai", "'opnai' is not an adapter; did you mean 'openai'?"),
        ("Http", "'Http' is not an adapter; did you mean 'http'?"),
        (
            "zzz",
            "'zzz' is not an adapter; available: aui, demo, openai, http, langgraph, ag-ui, a2a, adk, rasa",
        ),
        ("python:refunds", "'python:refunds' is not of the form python:module:attribute"),
        ("python:my module:reply", "is not of the form python:module:attribute"),
        ("command: ", "'command: ' names no program"),
        ("", "'' must not be empty"),
    ],
)
def test_unknown_adapter_name_is_refused_with_the_known_ones(adapter, message):
    """At its place, with the nearest there is."""
    found = problems({"adapter": adapter}, plugins=frozenset({"acme"}))
    assert any(line.startswith(f"adapter: {message}") or message in line for line in found), found


def test_unfit_options_are_reported_at_their_path():
    """With line and column, as any other fault of a suite."""
    options = {"send": {"method": "SEND", "path": "chat"}, "replies": {}}
    with pytest.raises(SuiteError) as refused:
        loaded({"adapter": "http", "adapterOptions": options})
    found = {problem.path: problem for problem in refused.value.problems}
    assert found.keys() >= {
        "adapterOptions.send.method",
        "adapterOptions.send.path",
        "adapterOptions.replies",
        "adapterOptions.reply",
    }
    assert found["adapterOptions.replies"].message == "unknown key; did you mean 'reply'?"
    assert found["adapterOptions.send.method"].message.startswith("'SEND' is not one of GET, POST")
    assert found["adapterOptions.send.method"].line > 1


def test_an_option_has_one_spelling():
    """As in the rest of a suite: `escalation_tools` is not passed over, nor taken."""
    suite = {"adapter": "openai", "model": "m", "adapterOptions": {"escalation_tools": ["x"]}}
    assert problems(suite) == [
        "adapterOptions.escalation_tools: unknown key; did you mean 'escalationTools'?"
    ]


@pytest.mark.parametrize("adapter", ["demo"])
def test_options_for_an_adapter_that_takes_none(adapter):
    """They would be passed over in silence."""
    assert problems({"adapter": adapter, "adapterOptions": {"x": 1}}) == [
        f"adapterOptions: the adapter {adapter!r} takes no options"
    ]


def test_code_and_plugins_take_any_options():
    """Their meaning is their own."""
    suite = loaded({"adapter": "python:a:b", "adapterOptions": {"deep": [1]}}).suite
    assert suite.adapter_options == {"deep": [1]}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("keyHeader", "x key"),
        ("keyHeader", "x:\n"),
        ("agentIdIn", "both of them"),
        ("taskOriginType", ""),
        ("keyHeaders", "x"),
    ],
)
def test_options_of_an_aui_agent_are_checked_at_their_place(key, value):
    """A name that is no header would only fail once the key is sent."""
    (problem,) = problems({"adapterOptions": {key: value}})
    assert problem.startswith(f"adapterOptions.{key}: ")


@pytest.mark.parametrize("seconds", [0, -1, 3601, 1e300])
def test_the_time_that_an_agent_has_to_start_is_bounded(seconds):
    """A second to an hour."""
    (problem,) = problems({"startTimeout": seconds})
    assert problem.startswith("startTimeout: ")


def test_in_events_of_strangers_a_suite_names_no_program_and_no_request():
    """The same as for an endpoint: what it names meets the job's keys."""
    where = "in the event workflow_run"
    for adapter in ("python:evil:run", "command: curl evil.example"):
        (problem,) = problems({"adapter": adapter}, distrusted=where)
        assert problem == f"adapter: a suite may not name a program to run {where}; use `adapter=`"
    (problem,) = problems({"adapter": "acme"}, distrusted=where, plugins=frozenset({"acme"}))
    assert problem == f"adapter: a suite may not name a program to run {where}; use `adapter=`"
    (problem,) = problems({"adapterOptions": {"keyHeader": "X-Forwarded-For"}}, distrusted=where)
    assert (
        problem
        == f"adapterOptions: a suite may not set what an agent is sent {where}; use `adapter_options=`"
    )
    (problem,) = problems({"adapter": "http", "adapterOptions": HTTP}, distrusted=where)
    assert (
        problem
        == f"adapterOptions: a suite may not set what an agent is sent {where}; use `adapter_options=`"
    )
    assert loaded({"adapter": "openai", "model": "m"}, distrusted=where).suite.adapter == "openai"


@each_row(
    ("suite", "missing"),
    [
        ({"adapter": "openai", "baseUrl": "http://h"}, {"model"}),
        ({"adapter": "openai", "model": "m"}, {"apiKey"}),
        ({"adapter": "openai", "model": "m", "baseUrl": "http://h"}, set()),
        ({"adapter": "openai", "agentId": "m", "baseUrl": "http://h"}, set()),
        ({"adapter": "http"}, {"baseUrl", "adapterOptions"}),
        ({"adapter": "http", "baseUrl": "http://h", "adapterOptions": HTTP}, set()),
        ({"adapter": "http", "baseUrl": "http://h", "adapterOptions": HTTP, "apiKey": " "}, {"apiKey"}),
        ({"adapter": "python:a:b"}, set()),
        ({"adapter": "command: x"}, set()),
    ],
)
def test_each_adapter_requires_its_options(suite, missing):
    """A blank key is one that should have come from a secret."""
    if not missing:
        assert choose(loaded(suite), AgentChoice()).suite
        return
    with pytest.raises(SuiteError) as refused:
        choose(loaded(suite), AgentChoice())
    assert {problem.path for problem in refused.value.problems} == missing


def test_a_blank_key_is_a_missing_one():
    """So that a pull request of a fork is skipped, not refused."""
    assert not has_key(loaded({"adapter": "http", "apiKey": ""}).suite)
    assert has_key(loaded({"adapter": "http"}).suite)
    assert has_key(loaded({"adapter": "demo", "apiKey": ""}).suite)
    suite = {"adapter": "openai", "model": "m", "baseUrl": "http://h", "apiKey": ""}
    with pytest.raises(
        SuiteError, match=r"apiKey: is empty; set the variable .*; if the agent needs no key, delete the line"
    ):
        choose(loaded(suite), AgentChoice())


def test_options_from_a_file_go_before_the_suites():
    """And those of a suite are dropped where another adapter is named."""
    file = read_options("send: {body: '{{message}}'}\nreply: {text: $.answer}\n", "agent.yaml", {})
    suite = loaded({"adapter": "http", "adapterOptions": HTTP, "baseUrl": "http://h"})
    assert choose(suite, AgentChoice(options=file)).suite.adapter_options == file.value
    assert choose(suite, AgentChoice(adapter="python:a:b")).suite.adapter_options is None
    assert choose(suite, AgentChoice()).suite.adapter_options == HTTP


def test_a_files_faults_have_its_places_and_its_secrets_are_secrets():
    """It is read as a suite is."""
    with pytest.raises(SuiteError, match=r"agent\.yaml:1:1: must be an object"):
        read_options("- 1\n", "agent.yaml", {})
    with pytest.raises(SuiteError, match=r"agent\.yaml:2:.*TOKEN"):
        read_options("headers:\n  x: ${TOKEN}\n", "agent.yaml", {})
    faulty = read_options("send: {body: '{{message}}'}\nreply: {txt: $.a}\n", "agent.yaml", {})
    with pytest.raises(SuiteError, match=r"agent\.yaml:2:9: reply\.txt: unknown key; did you mean 'text'"):
        choose(loaded({"adapter": "http", "baseUrl": "http://h"}), AgentChoice(options=faulty))
    secret = read_options(
        "headers: {x: '${TOKEN}'}\nsend: {body: '{{message}}'}\nreply: {text: $.a}\n",
        "agent.yaml",
        {"TOKEN": "tok-12345678"},
    )
    chosen = choose(loaded({"adapter": "http", "baseUrl": "http://h"}), AgentChoice(options=secret))
    assert "tok-12345678" in chosen.secrets


def test_faults_of_a_file_never_show_a_secret():
    """A message that quotes a value may quote one that came from the environment."""
    environ = {"TOKEN": "tok-12345678", "PATH_OF": "no/path-12345678"}
    text = "headers: {x: '{{${TOKEN}}}'}\nsend: {body: '{{message}}'}\nreply: {text: '${PATH_OF}'}\n"
    with pytest.raises(SuiteError) as refused:
        choose(
            loaded({"adapter": "http", "baseUrl": "http://h"}),
            AgentChoice(options=read_options(text, "agent.yaml", environ)),
        )
    assert "{{***}}" in str(refused.value)
    assert "'***' is not a JSONPath" in str(refused.value)
    assert "12345678" not in str(refused.value)


def test_a_user_names_an_adapter_that_is_none():
    """The option is at fault, not the suite."""
    with pytest.raises(UsageError, match="`adapter=`: 'htp' is not an adapter; did you mean 'http'"):
        choose(loaded({"adapter": "demo"}), AgentChoice(adapter="htp"))


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"adapter": "python:shop"}, "`adapter=`: 'python:shop' is not of the form python:module:attribute"),
        ({"adapter": "python:a/b.py:c"}, "the module of a file agents/shop.py is agents.shop"),
        ({"adapter": "command: "}, "`adapter=`: 'command: ' names no program: command: node agent.js"),
        ({"agent_id": " "}, "`agent_id=`: ' ' must not be empty"),
        ({"base_url": " "}, "`base_url=`: ' ' must not be empty"),
    ],
)
def test_what_a_user_says_of_the_agent_may_be_wrong(choice, text):
    """His mistake, told as such."""
    with pytest.raises(UsageError) as refused:
        choose(loaded({"adapter": "aui"}), AgentChoice(**choice))
    assert text in str(refused.value)


def test_what_the_user_names_himself_is_not_read_from_the_suite():
    """A variable that is not set is no fault where an option stands in its place."""
    suite = {"agentId": "${ID}", "apiKey": "${KEY}", "baseUrl": "${URL}"}
    choice = AgentChoice(agent_id="a", agent_key="key-123456", base_url="http://h")
    assert choice.replaces == {"agentId", "apiKey", "baseUrl"}
    chosen = choose(loaded(suite, replaced=choice.replaces), choice).suite
    assert (chosen.agent_id, chosen.base_url) == ("a", "http://h")
    (problem,) = problems(suite, replaced=frozenset({"agentId", "baseUrl"}))
    assert problem == "apiKey: ${KEY}: the environment variable KEY is not set; set it"
    assert loaded(suite, replaced=choice.replaces, distrusted="in the event x").suite.base_url is None
