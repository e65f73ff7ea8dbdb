"""The kinds of agents: what is registered exists, and the docs list what is registered."""

from importlib import import_module
from pathlib import Path

import pytest
from doc_pages import ROOT, code, page, table

import ci_evals.agents
from ci_evals.agent_registry import AGENT_KINDS, PROGRAM_KINDS, AgentKind
from ci_evals.domain.base import Model
from ci_evals.domain.suite import Suite

KINDS = {**AGENT_KINDS, **PROGRAM_KINDS}
each_kind = pytest.mark.parametrize(("name", "kind"), KINDS.items(), ids=KINDS.keys())


def test_every_agent_folder_is_a_kind_and_adapters_have_a_fixed_order():
    (root,) = ci_evals.agents.__path__
    folders = {file.parent.name for file in Path(root).glob("*/starter.yaml.j2")}
    assert folders <= {kind.starter.removeprefix("agents/").split("/")[0] for kind in KINDS.values()}
    names = ["aui", "demo", "openai", "http", "langgraph", "ag-ui", "a2a", "adk", "rasa"]
    assert [*AGENT_KINDS] == names


@each_kind
def test_classes_fields_and_pages_of_every_agent_kind_exist(name: str, kind: AgentKind):
    for path in filter(None, [kind.agent, *kind.apis.values()]):
        module, _, attribute = path.partition(":")
        agent = getattr(import_module(module), attribute)
        assert all(hasattr(agent, method) for method in ("open_session", "send_message", "close"))
        assert hasattr(agent, "read_state") == kind.reports_state
    assert (Path(ci_evals.__file__).parent / kind.starter).is_file()
    assert callable(kind.build) if kind.builder else kind.agent
    suite_keys = {field.alias for field in Suite.model_fields.values()}
    assert {*kind.needs} <= suite_keys
    assert (ROOT / "docs" / kind.page.partition("#")[0]).is_file()
    if kind.options_form:
        assert issubclass(kind.options_form, Model)
        keys = {field.alias for field in kind.options_form.model_fields.values()}
        named = {*(kind.filled_options or ()), *filter(None, [kind.evidence_paths])}
        if kind.hand_over:
            named.add(kind.hand_over.split(".")[1])
        assert named <= keys


@pytest.mark.parametrize("text", [(ROOT / "README.md").read_text(), page("adapters.md")])
def test_adapter_tables_list_every_kind_with_link_to_its_page(text: str):
    head = "your agent is" if "| your agent is |" in text else "`adapter`"
    rows = [row if head == "`adapter`" else [row[1], row[0], row[2]] for row in table(head, text)]
    for name, kind in KINDS.items():
        mine = [row for row in rows if code(row[0].split(":")[0].removesuffix(" (default)")) == name]
        if name == "demo" and head != "`adapter`":
            continue
        (own, *_) = [row for row in mine if kind.page.split("#")[-1] in row[2]]
        if head == "`adapter`" and name in AGENT_KINDS:
            assert own[1].startswith(kind.about)


def test_history_table_lists_adapters_that_reject_history_and_error_table_all():
    *_, (names, effect) = table("agent", page("writing-a-suite.md"))
    assert "refused" in effect
    without_history = {name for name, kind in AGENT_KINDS.items() if not kind.takes_history}
    assert {code(name) for name in names.split(", ")} == without_history
    rows = [row[0] for row in table("adapter", page("adapters.md"))]
    assert {code(cell) for row in rows for cell in row.split(", ")} >= {*KINDS} - {"demo"}
