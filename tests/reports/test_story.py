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
from ci_evals.reports.story import tables
from ci_evals.reports.story.comparison_runs import ComparisonRun
from ci_evals.reports.story.story import story_of
from ci_evals.reports.story.table import Column


def test_report_story_is_deterministic_and_immutable():
    for make in (comment_cases.bad, comment_cases.passed_example, cases.invalid):
        assert story_of(make()) == story_of(make())
    story = story_of(cases.good())
    with pytest.raises(FrozenInstanceError):
        story.certainty.sentence = "sure"  # type: ignore[misc]


def test_reports_state_an_early_end_before_the_failures():
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


def test_unchanged_test_shows_its_baseline_score_and_errored_test_no_change():
    story = story_of(comment_cases.good())
    lines = [*console.render(story).split("\n"), *documents.summary(story).split("\n")]
    shown = [line for line in lines if "Two parcels" in line]
    html = "".join(page.render(story))
    shown.append(html[html.index('id="_tests"') :].partition("Two parcels")[2].partition("</tr>")[0])
    assert all(line.count("100.0") >= 2 for line in shown)
    assert len(shown) == 3
    rows = [row for suite in story_of(comment_cases.invalid()).suites for row in suite.tests]
    errored = [row for row in rows if row.test.outcome == "error"]
    assert {row.delta for row in errored} == {None}
    assert 100.0 in {row.base for row in errored}


@pytest.mark.parametrize("logic", [True, False])
def test_workflows_and_rules_are_mentioned_only_if_the_agent_reports_them(logic):
    actions = {"workflows": ("ORDER_LOOKUP",), "rules": ("window",) if logic else None}
    turn = build.turn(params=None, integrations=None, **actions)
    test = build.test_result(trials=(build.trial_result(turns=(turn,)),))
    story = story_of(build.with_process(build.results(build.suite_result("Refunds", test))))
    markdown = documents.summary(story).lower()
    html = "".join(page.render(story)).partition("<script")[0].lower()
    assert ("workflow" in markdown, "workflow" in html) == (logic, logic)
    assert ("rule" in html.partition("_coverage")[2]) is logic
    assert "integration" not in markdown


_OF_RESULTS = {"report_files.py", "results_json.py", "unfinished.py"}
"""Modules that read and write results themselves."""


def test_report_modules_do_not_read_results_directly():
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


def test_cost_per_trial_counts_only_gated_agent_among_several():
    results = golden_cases.arms()
    own = next(arm for arm in results.arms if arm.gated)
    each = own.usage.cost_usd / own.counts.played_trials
    assert results.comparison.head_efficiency.cost_usd_per_trial == pytest.approx(each)
    assert ComparisonRun.of(results, "this").cost_usd == pytest.approx(each)
    assert story_of(results).run.effort.startswith(
        "153 trials (51 of “candidate”), 5 m 12 s, $0.73 ($0.31 of "
    )


def test_table_column_added_in_one_place_appears_in_every_report(monkeypatch):
    column = Column("line", show=lambda row: f"L{row.test.line}")
    name, result, *others = tables.TEST_COLUMNS
    monkeypatch.setattr(tables, "TEST_COLUMNS", (name, result, column, *others))
    story = story_of(build.results(build.suite_result("Refunds", build.test_result("Refund", line=731))))
    for report in (console.render(story), documents.summary(story), "".join(page.render(story))):
        assert "line" in report
        assert "L731" in report
