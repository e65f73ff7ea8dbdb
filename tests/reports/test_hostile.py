"""Reports of a run in which every text is hostile: agent, user, judge, suite, names, errors, warnings."""

from urllib.parse import quote
from xml.etree import ElementTree as ET

import builders as build
import cases
import comment_cases
import hostile
import junitparser
import pytest
from hypothesis import given, settings

from ci_evals.redaction import Redactor
from ci_evals.reports import comment, console, layout, markdown, sanitize

OURS = {
    *(
        "p",
        "br",
        "h1",
        "h2",
        "h3",
        "h4",
        "strong",
        "sub",
        "ul",
        "ol",
        "li",
        "details",
        "summary",
        "blockquote",
    ),
    *("pre", "code", "a", "table", "thead", "tbody", "tr", "th", "td"),
}
"""The tags that our own templates make."""


def runs(text: str, *, clean: bool = True):
    """Every case with `text` in place of all text in it, raw replies and traces included."""
    for name, make in (cases.CASES | {"skipped": comment_cases.skipped}).items():
        if name != "unproven":  # it has no text that `proven` and `confirmed` lack
            yield hostile.poisoned(make(), text, clean=clean)
    raw = build.exchange(
        raw={"a": "x", "b": ["x", 1]}, named_params=("x",), error_detail="x", error_response=True
    )
    trial = build.trial_result(exchanges=(raw,), error="x", closing_remark="x")
    run = build.results(build.suite_result("x", build.test_result(trials=(trial,))))
    yield hostile.poisoned(run, text, clean=clean)


def check_markdown(text: str, files: set[str]) -> None:
    page = hostile.Page(text)
    assert set(page.tags) <= OURS
    assert not page.comments
    assert not page.live
    assert page.tags.count("details") == text.count("<details>\n") == text.count("\n</details>\n")
    assert set(page.links) <= files


def check_structure(text: str, harmless: str) -> None:
    """Headings, tables, cells, lists, links and folds are those of the same report with harmless text."""
    passing = {"p", "br", "code"}
    shown, expected = hostile.Page(text).tags, hostile.Page(harmless).tags
    assert [tag for tag in shown if tag not in passing] == [tag for tag in expected if tag not in passing]


def check_run(results) -> None:
    files = layout.files(results)
    harmless = hostile.poisoned(results, "x")
    if sanitize.one_line(results.tool.name):
        for text, expected in zip(files.values(), layout.files(harmless).values(), strict=True):
            if not text.startswith(("{", "<")):
                check_structure(text, expected)
    for path, text in files.items():
        if path.endswith(".md"):
            stems = {other.rsplit("/", 1)[-1] for other in files}
            check_markdown(text, stems | {quote(stem) for stem in stems})
        assert "\r" not in text
        assert "\x1b" not in text
    ET.fromstring(files[layout.JUNIT])
    parsed = list(junitparser.JUnitXml.fromstring(files[layout.JUNIT].encode()))
    assert sum(len(list(suite)) for suite in parsed) == sum(len(suite.tests) for suite in results.suites)
    for shown, expected in zip(console_texts(results), console_texts(harmless), strict=True):
        assert not hostile.commands(shown)
        assert "::" not in shown
        assert shown.count("\n") <= expected.count("\n")
    check_comment(results, harmless)
    if results.comparison:
        told, expected = markdown.comparison(results), markdown.comparison(harmless)
        check_markdown(told, set())
        if sanitize.one_line(results.tool.name):
            check_structure(told, expected)


def check_comment(results, harmless) -> None:
    """No link but ours; cut anywhere it is as whole as the same comment of harmless text."""
    place = comment.Place(run_url="https://github.com/acme/shop/actions/runs/1", foreign=True)
    whole = comment.render(results, place)
    check_markdown(whole, {place.run_url})
    if sanitize.one_line(results.tool.name):
        check_structure(whole, comment.render(harmless, place))
    for budget in (len(whole.encode()) - 1, 4_000, 1_500):
        check_markdown(comment.render(results, place, budget), {place.run_url})


def console_texts(results) -> list[str]:
    """All that the console may show of a run."""
    return [
        console.render(results),
        console.render(results, verbose=True),
        *([console.comparison(results)] if results.comparison else []),
        *([console.odds(results.odds, results.gate.checks)] if results.odds else []),
    ]


@pytest.mark.parametrize("text", hostile.CORPUS)
def test_planted_markup_is_inert_in_every_report(text):
    """No tag, link, mention, reference, table cell, fence or command comes out of what somebody said."""
    for results in runs(text):
        check_run(results)


@settings(deadline=None, max_examples=8)
@given(hostile.texts)
def test_no_text_at_all_breaks_a_report(text):
    """Whatever the text is, every report can be made, read and shown."""
    for results in runs(text):
        check_run(results)


def test_planted_keys_appear_in_no_report():
    """A key that the agent echoes everywhere is nowhere once the results were redacted."""
    key = 'sk-proj-"quoted"-1234567890'
    for results in runs(f"the key is {key}, again {key}", clean=False):
        clean = Redactor(keys=[key]).model(results)
        texts = [*layout.files(clean).values(), console.render(clean, verbose=True)]
        assert not [text for text in texts if "1234567890" in text or "sk-proj" in text]
