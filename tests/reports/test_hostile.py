"""Reports of a run in which every text is hostile: agent, user, judge, suite, names, errors, warnings."""

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from urllib.parse import quote
from xml.etree import ElementTree as ET

import builders as build
import cases
import comment_cases
import hostile_text
import junitparser
import pytest
import report_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.transcript import Integration, ProbeResult
from ci_evals.extensions.odds.odds import odds_text
from ci_evals.reports import console, sanitize
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.names import JUNIT
from ci_evals.reports.story.story import story_of
from ci_evals.support.redaction import Redactor

CONTEXT = comment.SummaryContext(run_url="https://github.com/acme/shop/actions/runs/1", foreign=True)
SOURCE = "https://github.com/acme/shop/blob/main"
OUR_TAGS = {
    *{"p", "br", "h1", "h2", "h3", "h4", "strong", "sub", "ul", "ol", "li", "details", "summary"},
    *{"blockquote", "em", "pre", "code", "a", "table", "thead", "tbody", "tr", "th", "td"},
}
RAW_TURN = build.turn(
    raw={"a": "x", "b": ["x", 1]}, named_params=("x",), error_detail="x", error_response=True
)
PROBES = {"x": ProbeResult(value={"x": ["x"]}), "y": ProbeResult(error="x")}
RAW_TRIAL = build.trial_result(turns=(RAW_TURN,), error="x", closing_remark="x", probes=PROBES)
ACTIONS_TURN = build.turn(
    workflows=("x",), params={"x": "x"}, rules=("x",), integrations=(Integration(code="x", status=200),)
)


def diverged():
    """A test whose conversation diverges from the baseline's in all that an agent can do."""
    here = build.test_result(trials=(build.trial_result(findings=(build.finding("failed"),)),))
    there = build.test_result(trials=(build.trial_result(turns=(ACTIONS_TURN,)),))
    runs = (build.results(build.suite_result("x", test)) for test in (here, there))
    return cases.against(*runs)


def of_two_agents():
    """A run of two named agents, in which tests broke and were fixed."""
    results = comment_cases.flaky()
    result = tuple(build.arm(name, results, gated=name == "x") for name in ("x", "y"))
    comparison = replace(results.comparison, method="both-sides")
    return replace(results, arms=result, comparison=comparison)


CASES = {
    "diverged": diverged(),
    "since": comment_cases.flaky(),
    "agents": of_two_agents(),
    **{name: cases.made(name) for name in cases.CASES if name != "unproven"},  # no text that `proven` lacks
    "skipped": comment_cases.skipped(),
    "raw": build.results(build.suite_result("x", build.test_result(trials=(RAW_TRIAL,)))),
}


@dataclass(frozen=True)
class Reports:
    """All that is shown of a run."""

    files: dict[str, str]
    console: list[str]
    comment: str
    comparison: str


def reports(results) -> Reports:
    return Reports(
        report_texts.files_of_run(results),
        console_texts(results),
        comment.render(story_of(results), CONTEXT),
        documents.comparison(story_of(results)) if results.comparison else "",
    )


@cache
def harmless(name: str) -> Reports:
    """Those of a case in which every text is an x."""
    return reports(hostile_text.fill_free_text(CASES[name], "x"))


page = lru_cache(maxsize=500)(hostile_text.RenderedMarkdown)


def check_markdown(text: str, files: set[str]) -> None:
    shown = page(text)
    assert set(shown.tags) <= OUR_TAGS
    assert not shown.comments
    assert not shown.live
    assert shown.tags.count("details") == text.count("<details>\n") == text.count("\n</details>\n")
    assert {link for link in shown.links if not link.startswith(f"{SOURCE}/")} <= files


def check_structure(text: str, harmless: str) -> None:
    """Headings, tables, cells, lists, links and folds are those of the same report with harmless text."""
    passing = {"p", "br", "code"}
    shown, expected = page(text).tags, page(harmless).tags
    assert [tag for tag in shown if tag not in passing] == [tag for tag in expected if tag not in passing]


def check_case(name: str, text: str) -> None:
    """The case with `text` in place of all text in it."""
    results = hostile_text.fill_free_text(CASES[name], text)
    shown, expected = reports(results), harmless(name)
    if sanitize.one_line(results.tool.name):
        check_structure(shown.comment, expected.comment)
        check_structure(shown.comparison, expected.comparison)
        for result, other in zip(shown.files.values(), expected.files.values(), strict=True):
            if not result.startswith(("{", "<")):
                check_structure(result, other)
    stems = {path.rsplit("/", 1)[-1] for path in shown.files}
    for path, result in shown.files.items():
        if path.endswith(".md"):
            check_markdown(result, stems | {quote(stem) for stem in stems})
        assert "\r" not in result
        assert "\x1b" not in result
    ET.fromstring(shown.files[JUNIT])
    parsed = junitparser.JUnitXml.fromstring(shown.files[JUNIT].encode())
    of_run = "ci-evals"  # the class of the one case that is about the run as a whole
    of_tests = [case for suite in parsed for case in suite if case.classname != of_run]
    assert len(of_tests) == sum(len(suite.tests) for suite in results.suites)
    for result, other in zip(shown.console, expected.console, strict=True):
        assert not hostile_text.log_commands(result)
        assert "::" not in result
        assert result.count("\n") <= other.count("\n")
    check_markdown(shown.comparison, set())
    check_comment(results, shown.comment)


def check_comment(results, whole: str) -> None:
    """No link but ours; cut anywhere it is as whole as the same comment of harmless text."""
    ours = {CONTEXT.run_url, f"{CONTEXT.run_url}#artifacts"}
    check_markdown(whole, ours)
    for budget in (len(whole.encode()) - 1, 1_500, comment.BUDGET):
        check_markdown(comment.render(story_of(results), replace(CONTEXT, source_url=SOURCE), budget), ours)


def console_texts(results) -> list[str]:
    """All that the console may show of a run."""
    return [
        console.render(story_of(results)),
        console.render(story_of(results), verbose=True),
        *([console.comparison(story_of(results))] if results.comparison else []),
        *([odds_text(results.odds, results.gate.checks)] if results.odds else []),
    ]


@pytest.mark.parametrize("name", CASES)
def test_markup_commands_and_links_are_inert_in_every_report(name):
    check_case(name, "::error::owned | <b>@octocat</b> [x](https://evil.example) ``` # --> ##[error]x")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(hostile_text.CORPUS)))
def test_hostile_texts_are_inert_in_sampled_report_cases(number):
    """Each text is planted in every ninth case, and each case meets three of them; simulations meet all."""
    for name in list(CASES)[number % 9 :: 9]:
        check_case(name, hostile_text.CORPUS[number])


@pytest.mark.simulate
@pytest.mark.parametrize("number", range(len(hostile_text.CORPUS)))
def test_every_hostile_text_is_inert_in_every_report_case(number):
    for name in CASES:
        check_case(name, hostile_text.CORPUS[number])


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(st.sampled_from([*CASES]), hostile_text.any_text)
def test_reports_of_any_text_are_valid(name, text):
    check_case(name, text)


def test_redacted_keys_appear_in_no_report():
    key = 'sk-proj-"quoted"-1234567890'
    for results in CASES.values():
        result = hostile_text.fill_free_text(results, f"the key is {key}, again {key}", clean=False)
        clean = Redactor(keys=[key]).model(result)
        texts = [*report_texts.files_of_run(clean).values(), console.render(story_of(clean), verbose=True)]
        assert not [text for text in texts if "1234567890" in text or "sk-proj" in text]
