"""The pages on agents of frameworks: what they show is valid, and what they list is there."""

import pytest
from doc_pages import ROOT, blocks, code, table

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.planning.agent_choice import AgentChoice, choose
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load

PAGES = {
    name: (ROOT / f"docs/{name}.md").read_text() for name in ("langgraph", "ag-ui", "a2a", "adk", "rasa")
}


@pytest.mark.parametrize("name", PAGES)
def test_framework_page_lists_every_option(name):
    described = {code(option) for option, _ in table("option", PAGES[name])}
    assert described == {field.alias for field in AGENT_KINDS[name].options_form.model_fields.values()}


@pytest.mark.parametrize("name", PAGES)
def test_framework_page_shows_valid_suite(name):
    (text, *_) = blocks("yaml", PAGES[name])
    suite = choose(load(text, "s.yaml", Reading()), AgentChoice()).suite
    assert suite.adapter == name
    assert any(one.strict == "tool_called" and one.args for test in suite.tests for one in test.evaluations)


def test_responses_page_shows_suite_that_names_the_api():
    (text, *_) = blocks("yaml", (ROOT / "docs/responses.md").read_text())
    loaded = load(text, "s.yaml", Reading({"AGENT_KEY": "k"}))
    assert choose(loaded, AgentChoice()).suite.adapter_options == {"api": "responses"}
