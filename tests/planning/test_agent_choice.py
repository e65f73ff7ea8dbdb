import json

import pytest
from each_row import each_row

from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.suite import Suite
from ci_evals.planning.agent_choice import AgentChoice, choose
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load

TEST = {"name": "t", "guidelines": "g", "turns": [{"user": "x"}], "evaluations": [{"criterion": "c"}]}


def chosen(suite=None, **choice) -> Suite:
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


def test_base_url_needs_a_scheme_and_demo_agent_neither_address_nor_id_nor_key():
    with pytest.raises(SuiteError, match=r"^s\.json:1:\d+: baseUrl: must begin with http:// or https://$"):
        chosen({"baseUrl": "127.0.0.1:8000"})
    assert chosen({"baseUrl": "127.0.0.1:8000"}, base_url="http://127.0.0.1:8000").base_url
    assert chosen({"baseUrl": "bus://desk", "adapter": "python:desk:agent"}).base_url
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
