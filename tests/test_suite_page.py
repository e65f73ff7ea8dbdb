"""docs/writing-a-suite.md says what is so: its examples are run, its tables held against the code."""

import json
import shlex

import pytest
import typer
from papers import ROOT, blocks, code, table

from ci_evals.adapters.importers import READERS
from ci_evals.adapters.importers.imported import suite_text
from ci_evals.adapters.importers.table import COLUMNS, USER_INFO
from ci_evals.cli.app import app
from ci_evals.planning.parse import Reading, load
from ci_evals.planning.quality import weaknesses

PAGE = (ROOT / "docs/writing-a-suite.md").read_text()
VALUES = {"latency": {"threshold": 1000}, "similar": {"value": "a"}, "is-refusal": {}}


@pytest.mark.parametrize("example", blocks("yaml", PAGE))
def test_its_suites_are_good_ones(example):
    """No error, and nothing that `validate --strict` would say."""
    assert [str(problem) for problem in weaknesses(load(example, "page.yaml", Reading()))] == []


@pytest.mark.parametrize("line", [line for block in blocks("sh", PAGE) for line in block.splitlines()])
def test_its_commands_can_be_typed(line):
    """With options that exist."""
    _, name, *rest = shlex.split(line)
    typer.main.get_command(app).commands[name].make_context(name, rest)


def test_its_table_is_imported():
    """As the text above it says."""
    (example,) = blocks("csv", PAGE)
    suite = load(
        suite_text(READERS["csv"](example, "t.csv"), "csv", "t.csv", "s.yaml"), "s.yaml", Reading()
    ).suite
    assert [test.name for test in suite.tests] == ["Opening hours", "Closed on Sundays"]
    assert [len(test.evaluations) for test in suite.tests] == [2, 1]


def test_every_column_is_described():
    """And no other."""
    named = {name for cell, _ in table("column", PAGE) for name in code(cell).split("`, `")}
    assert named == {*COLUMNS, f"{USER_INFO}NAME"}


ASSERTIONS = [(name, code(to)) for cell, to in table("assertion", PAGE) for name in code(cell).split("`, `")]


@pytest.mark.parametrize(("assertion", "evaluation"), ASSERTIONS)
def test_assertions_become_what_the_page_says(assertion, evaluation):
    """Each alone."""
    given = {"type": assertion, "value": "a"} | VALUES.get(assertion.removeprefix("not-"), {})
    config = json.dumps({"tests": [{"vars": {"question": "Hi"}, "assert": [given]}]})
    (test,) = READERS["promptfoo"](config, "c.json").tests
    assert [item.get("strict", "judged") for item in test["evaluations"]] == [evaluation]
