"""The findings as files: for people, for programs, and the checks to add to a suite."""

import re
from collections.abc import Mapping, Sequence

import yaml

from ci_evals.extensions.mutate.next_steps import next_steps
from ci_evals.extensions.mutate.report import (
    criterion_table,
    fault_table,
    headline,
    judge_questions,
    null_agents,
    test_table,
)
from ci_evals.extensions.mutate.result import Mutations, Suggestion
from ci_evals.reports import columns, sanitize
from ci_evals.reports.markdown.sections import table_text
from ci_evals.reports.story.table import Table
from ci_evals.support import dataclass_json
from ci_evals.support.templates import render

DATA = "_mutations.json"
PAGE = "mutations.md"
SUGGESTIONS = "suggestions.yaml"
_BUG = 1
"""The column of the faults' table that a terminal has no room for."""


def files_of(found: Mutations, results: str) -> Mapping[str, str]:
    """Return the texts of all files by their names. `results` names the run as the user did."""
    return {
        DATA: dataclass_json.to_json(found, indent=2) + "\n",
        PAGE: _page(found, results),
        SUGGESTIONS: _as_yaml(found.suggestions),
    }


def summary(found: Mutations, results: str, width: int | None, *, applied: str | None = None) -> str:
    """Return the findings for a terminal.

    Args:
        found: The findings.
        results: The run as the user named it.
        width: The columns of the terminal, if there is one.
        applied: The suite that the suggestions have just been added to.
    """
    faults = fault_table(found)
    titles = [*faults.titles[:_BUG], *faults.titles[_BUG + 1 :]]
    cells = [[*row.cells[:_BUG], *row.cells[_BUG + 1 :]] for row in faults.rows]
    lines = [headline(found), null_agents(found), *filter(None, [judge_questions(found)])]
    steps = [f"{number}. {step}" for number, step in enumerate(next_steps(found, results), start=1)]
    if applied:
        lines.append(f"Next: run {applied} again, then mutate, to see what it notices now.")
    elif steps:
        lines += ["", "What to do next:", *steps]
    text = columns.table(titles, cells, width, right=range(1, len(titles)))
    return "\n\n".join([text, "\n".join(map(sanitize.log_line, lines))])


def short_page(found: Mutations) -> str:
    """Return the findings for people in a few lines."""
    return f"# What would turn this gate red\n\n{headline(found)} {null_agents(found)}\n"


def _page(found: Mutations, results: str) -> str:
    return render(
        "extensions/mutate/mutations.md.j2",
        headline=headline(found),
        null_agents=null_agents(found),
        judge=judge_questions(found),
        faults=table_text(fault_table(found)),
        steps=[_step(step) for step in next_steps(found, results)],
        suggestions=sanitize.code_block(_as_yaml(found.suggestions)) if found.suggestions else "",
        tests=_text(test_table(found)),
        criteria=_text(criterion_table(found)),
    )


def _step(step: str) -> str:
    """Return a step as Markdown: its commands are code, and the rest reads as it is written."""
    parts = []
    for part in re.split("(`[^`]*`)", step):
        if part.startswith("`"):
            parts.append(sanitize.code(part.strip("`")))
        elif part:
            before, after = part.startswith(" ") * " ", part.endswith(" ") * " "
            parts.append(f"{before}{sanitize.sentence(part)}{after}")
    return "".join(parts)


def _text(table: Table) -> str:
    return table_text(table) if table.rows else ""


def _as_yaml(suggestions: Sequence[Suggestion]) -> str:
    """Return the suggestions as YAML: each with its suite, its test and the evaluation to add."""
    items = [dataclass_json.to_value(suggestion) for suggestion in suggestions]
    return yaml.safe_dump(items, sort_keys=False, allow_unicode=True, width=100)
