"""The story of a run: computed once, the same for the same results, and all that reports read."""

import ast
import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import builders as build
import cases
import comment_cases
import golden_cases
import pytest

from ci_evals.domain.suite import PlannedTurn
from ci_evals.domain.transcript import EndState
from ci_evals.reports import console, junit
from ci_evals.reports.annotations import annotations
from ci_evals.reports.markdown import documents
from ci_evals.reports.page import page
from ci_evals.reports.story.comparison_runs import ComparisonRun
from ci_evals.reports.story.story import story_of


@pytest.mark.parametrize("make", [comment_cases.bad, comment_cases.passed_example, cases.invalid])
def test_a_story_depends_on_the_results_alone(make):
    results = make()
    assert story_of(results) == story_of(results)


def test_a_story_does_not_change():
    story = story_of(cases.good())
    with pytest.raises(FrozenInstanceError):
        story.certainty.sentence = "sure"  # type: ignore[misc]


def test_every_report_says_why_a_conversation_ended_early_before_what_failed():
    """In console, Markdown, page, JUnit and annotations alike."""
    lines = tuple(PlannedTurn(user=text) for text in ("One", "Two", "Three"))
    wrong = build.finding("failed", criterion="The amount is named", reason="No amount.", evidence=(1,))
    cut_off = build.trial_result(turns=(build.turn(1),), findings=(wrong,), status=EndState.ESCALATED)
    test = build.test_result("Refund", trials=(cut_off,), turns=lines)
    gate = build.decision(passed=False, exit_code=1)
    story = story_of(build.results(build.suite_result("Refunds", test), gate=gate))
    early = "nded after turn 1 of 3: the agent handed over to a person; 2 lines were never sent"
    (*_, failed) = annotations(story)
    for text in (
        console.render(story),
        documents.summary(story),
        "".join(page.render(story)),
        "".join(junit.render(story)).partition(">Trial 1")[2],
        failed.message,
    ):
        assert text.index(early) < text.index("No amount.")


def test_unchanged_tests_show_their_baseline():
    """In console, comment and page alike, by the results alone."""
    story = story_of(comment_cases.good())
    lines = [*console.render(story).split("\n"), *documents.summary(story).split("\n")]
    shown = [line for line in lines if "Two parcels" in line]
    html = "".join(page.render(story))
    shown.append(html[html.index('id="_tests"') :].partition("Two parcels")[2].partition("</tr>")[0])
    assert all(line.count("100.0") >= 2 for line in shown)
    assert len(shown) == 3


def test_a_test_that_errored_has_no_change():
    """Its score is not shown, so a change of it would say nothing."""
    rows = [row for suite in story_of(comment_cases.invalid()).suites for row in suite.tests]
    errored = [row for row in rows if row.test.outcome == "error"]
    assert {row.delta for row in errored} == {None}
    assert 100.0 in {row.base for row in errored}


@pytest.mark.parametrize("logic", [True, False])
def test_words_of_an_agents_logic_stand_where_it_reports_some(logic):
    """An agent of which only steps are known has no workflows, rules or integrations to speak of."""
    done = {"workflows": ("ORDER_LOOKUP",), "rules": ("window",) if logic else None}
    turn = build.turn(params=None, integrations=None, **done)
    test = build.test_result(trials=(build.trial_result(turns=(turn,)),))
    story = story_of(build.with_process(build.results(build.suite_result("Refunds", test))))
    shown = documents.summary(story).lower(), "".join(page.render(story)).partition("<script")[0].lower()
    assert ["workflow" in text for text in shown] == [logic, logic]
    assert ("rule" in shown[1].partition("_coverage")[2]) is logic
    assert "integration" not in shown[0]


_OF_RESULTS = {"report_files.py", "results_json.py", "unfinished.py"}
"""Modules that read and write results themselves."""


def test_reports_read_the_story_alone():
    """No other module of the reports imports the results of a run, or reaches for them."""
    folder = Path(console.__file__).parent
    touching = []
    for path in sorted(folder.rglob("*.py")):
        if path.parent.name == "story" or path.name in _OF_RESULTS:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = isinstance(node, ast.ImportFrom) and any(one.name == "Results" for one in node.names)
            reached = isinstance(node, ast.Attribute) and node.attr == "results"
            if imported or reached:
                touching.append(f"{path.relative_to(folder)}:{node.lineno}")
    templates = [path for path in folder.rglob("*.j2") if re.search(r"\bresults\.", path.read_text("utf-8"))]
    assert touching == []
    assert templates == []


def test_a_trial_costs_what_the_tested_agent_costs_where_several_agents_were_played():
    """The run's cost is that of all agents; that of a trial is compared with the baseline's."""
    results = golden_cases.arms()
    own = next(arm for arm in results.arms if arm.gated)
    each = own.usage.cost_usd / own.counts.played_trials
    assert results.comparison.head_efficiency.cost_usd_per_trial == pytest.approx(each)
    assert ComparisonRun.of(results, "this").cost_usd == pytest.approx(each)
    assert story_of(results).run.effort.startswith(
        "153 trials (51 of “candidate”), 5 m 12 s, $0.73 ($0.31 of "
    )
