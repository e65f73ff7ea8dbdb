"""The page: verdict, charts and table of tests as HTML, conversations as data that its script unpacks."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from ci_evals.reports import sanitize
from ci_evals.reports.content_policy import policy_of
from ci_evals.reports.page import embedded_data
from ci_evals.reports.page.embedded_data import TestView
from ci_evals.reports.page.overview import overview
from ci_evals.reports.story import listed_tests
from ci_evals.reports.story.outcome_labels import OUTCOMES
from ci_evals.reports.story.phrases import NO_REASON
from ci_evals.reports.story.story import Story
from ci_evals.support.templates import render as fill
from ci_evals.support.text import visible_for_scripts

_MESSAGE = 700
"""Bytes of a message that is quoted."""
_SCRIPTS = (
    "base.js",
    "text.js",
    "actions.js",
    "copy.js",
    "judged.js",
    "conversation.js",
    "compare.js",
    "measures.js",
    "keys.js",
    "table.js",
    "test-head.js",
    "test-trial.js",
    "test.js",
    "page.js",
)
_STYLES = ("page.css", "overview.css", "table.css", "test.css", "charts.css", "trust.css", "print.css")


def render(story: Story) -> Iterator[str]:
    """The page, in parts: its conversations are as large as the run."""
    tests = embedded_data.tests_of(story)
    style, script = _source(_STYLES), _source(_SCRIPTS)
    text = fill(
        "reports/page/templates/page.html.j2",
        **overview.values_of(story, tests),
        most=listed_tests.MOST_TESTS,
        policy=policy_of(style, script),
        style=style,
        script=script,
        index=_index(tests),
        hidden=visible_for_scripts(),
        line=sanitize.one_line,
        message=_message,
        no_reason=NO_REASON,
    )
    before, after = text.split("<!--conversations-->")
    yield before
    yield from embedded_data.elements(tests)
    yield after


def _message(text: str) -> str:
    """A message of the conversation, as the overview quotes it."""
    return sanitize.cut(text, _MESSAGE, "…").strip() or "(no text)"


@cache
def _source(names: Sequence[str]) -> str:
    folder = files("ci_evals").joinpath("reports/page/assets")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


def _index(tests: Sequence[TestView]) -> str:
    """The tests in short and the words for outcomes, for the script, as JSON that ends no element."""
    known = [
        {
            "suite": view.suite,
            "test": view.name,
            "outcome": view.test.outcome.value,
            "trials": len(view.test.trials),
        }
        for view in tests
    ]
    words = {outcome: label.words for outcome, label in OUTCOMES.items()}
    return json.dumps({"outcomes": words, "tests": known}).replace("<", "\\u003c")
