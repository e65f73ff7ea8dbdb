"""The story of a run: computed once, the same for the same results, and all that reports read."""

import ast
import os
import re
import shutil
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from pathlib import Path

import builders as build
import cases
import comment_cases
import golden_cases
import pytest
import report_texts
from junitparser import JUnitXml
from plans import gate_decision, make_plan, scorecard, trial

from ci_evals.domain.results.run import Origin
from ci_evals.domain.suite import PlannedTurn, Quarantine
from ci_evals.domain.transcript import EndState
from ci_evals.reports import console, junit
from ci_evals.reports.annotations import annotations
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.markdown.sections import NO_CONTEXT
from ci_evals.reports.page import page
from ci_evals.reports.story import tables
from ci_evals.reports.story.comparison_runs import ComparisonRun
from ci_evals.reports.story.story import story_of


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


def test_unchanged_test_shows_its_baseline_score_in_every_report():
    story = story_of(comment_cases.good())
    lines = [*console.render(story).split("\n"), *documents.summary(story).split("\n")]
    shown = [line for line in lines if "Two parcels" in line]
    html = "".join(page.render(story))
    shown.append(html[html.index('id="_tests"') :].partition("Two parcels")[2].partition("</tr>")[0])
    assert all(line.count("100.0") >= 2 for line in shown)
    assert len(shown) == 3


def test_errored_test_shows_its_baseline_score_but_no_change():
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


RESULT = '    Column("result", words=True, marked=True, show=lambda row: test_words.test_result(row.test)),\n'
LINE = '    Column("line", show=lambda row: f"L{row.test.line}"),\n'
SHOW = """
import sys; sys.path[:0] = sys.argv[1:]
import builders as build
from ci_evals.reports import console
from ci_evals.reports.markdown import documents
from ci_evals.reports.page import page
from ci_evals.reports.story.story import story_of

story = story_of(build.results(build.suite_result("Refunds", build.test_result("Refund", line=731))))
reports = [console.render(story), documents.summary(story), "".join(page.render(story))]
print("<<next>>".join(reports))
"""


@pytest.mark.slow
def test_table_column_added_in_one_place_appears_in_every_report(tmp_path):
    source = Path(tables.__file__).parents[2]
    shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    changed = tmp_path / source.name / "reports/story/tables.py"
    text = changed.read_text(encoding="utf-8")
    assert text.count(RESULT) == 1
    changed.write_text(text.replace(RESULT, RESULT + LINE), encoding="utf-8")
    paths = [str(tmp_path), *[path for path in sys.path if path and Path(path) != source.parent]]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", SHOW, *paths]
    shown = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True).stdout
    reports = shown.split("<<next>>")
    assert [("line" in report, "L731" in report) for report in reports] == [(True, True)] * 3


QUARANTINE = {"reason": "The sandbox drops orders @all", "until": "2026-12-31", "owner": "Ann"}
SENTENCE = "in quarantine until 2026-12-31, so it decides nothing: The sandbox drops orders"


def test_quarantined_failure_is_named_in_reports_and_skipped_in_junit():
    plan = make_plan({"name": "good"}, {"name": "sick", "quarantine": QUARANTINE})
    played = trial("passed"), trial("failed")
    results = build.results_of_scorecard(scorecard(plan, *played))
    story = story_of(replace(results, gate=gate_decision(plan, *played)))
    text = comment.render(story, NO_CONTEXT)
    assert text.splitlines()[0].startswith("## ✅ Evals passed: 100 / 100")
    assert "1 of 1 test passes, 1 in quarantine" in text
    assert f"“sick” (failed) is {SENTENCE}" in text
    assert "@all" not in text
    assert "failed (in quarantine)" in text
    html = "".join(page.render(story))
    for text in (documents.step_summary(story, 900_000), console.render(story), html):
        assert SENTENCE in text
        assert "in quarantine" in text
    assert annotations(story) == ()
    (suite,) = JUnitXml.fromstring("".join(junit.render(story)).encode())
    good, sick = suite
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (2, 0, 0, 1)
    assert good.result == []
    assert sick.result[0].message.startswith(f"failed; {SENTENCE}")


LINES = (PlannedTurn(user="Hello"), PlannedTurn(user="Give me the password."))


def sample(name, *, status=EndState.ESCALATED, sent=1, may_escalate=True, **fields):
    turns = tuple(build.turn(number) for number in range(1, sent + 1))
    trial = build.trial_result(status=status, turns=turns)
    return build.test_result(name, trials=(trial,), turns=LINES, may_escalate=may_escalate, **fields)


def run_of(*tests):
    return build.results(build.suite_result("S", *tests))


def test_reports_count_unsent_lines_of_handed_over_but_not_quarantined_tests():
    story = story_of(run_of(sample("a"), sample("b"), sample("c", sent=2)))
    sentence = "In 2 of 3 tests the agent handed over to a person before lines that were then never sent"
    texts = (console.render(story), documents.summary(story), "".join(page.render(story)))
    for text in (*texts, comment.render(story, comment.SummaryContext())):
        assert sentence in " ".join(text.split())

    def notes_of(*tests) -> list[str]:
        return [note for note in story_of(run_of(*tests)).notices.notes if "never sent" in note]

    other_ends = ({"status": EndState.STOPPED}, {"status": EndState.AGENT_ERROR})
    for fields in ({"sent": 2}, {"may_escalate": False}, *other_ends):
        assert notes_of(sample("a", **fields)) == []
    quarantine = Quarantine(reason="Flaky", until="2026-12-31")
    (note,) = notes_of(sample("a"), sample("b", quarantine=quarantine))
    assert note.startswith("In 1 of 1 test ")


AT = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
SENTENCES = {
    "replay": "Replayed from a recording of 2026-11-20 09:30 UTC: no agent and no model was called.",
    "rejudge": "Judged again: the conversations are from the run of 2026-11-20 09:30 UTC; "
    "no agent was called.",
}


def reports(results):
    """Every report in words, by its name."""
    files = report_texts.files_of_run(results)
    return {name: text for name, text in files.items() if not name.endswith(".json")} | {
        "comment": comment.render(story_of(results), comment.SummaryContext()),
        "step summary": documents.step_summary(story_of(results), 100_000),
        "compare, Markdown": documents.comparison(story_of(results)),
        "compare, text": console.comparison(story_of(results)),
        "console": console.render(story_of(results)),
    }


def with_origin(results, how):
    origin = Origin(how=how, run="run-0", started_at=AT)
    return replace(results, run=replace(results.run, origin=origin))


@pytest.mark.parametrize("how", SENTENCES)
@pytest.mark.parametrize("case", ["good", "bad", "invalid"])
def test_every_report_names_the_origin_of_its_conversations(case, how):
    results = cases.CASES[case]()
    assert not [name for name, text in reports(results).items() if SENTENCES[how][:20] in text]
    result = reports(with_origin(results, how))
    for name in ("console", "compare, text"):
        text = result.pop(name)
        assert f"\n  {SENTENCES[how]}\n" in text, name
    assert f'<property name="run-origin" value="{SENTENCES[how]}"' in result.pop("junit.xml")
    below_the_verdict = result.pop("report.html").split("</h1>")[1]
    assert f"<li>{SENTENCES[how]}" in below_the_verdict[:1000]
    assert len(result) > 5
    for name, text in result.items():
        lines = [line for line in text.splitlines() if line]
        assert [line for line in lines[1:7] if SENTENCES[how] in line], name


def test_skipped_run_names_the_origin_of_its_conversations():
    results = with_origin(build.results(run=build.run_info(status="skipped")), "replay")
    assert SENTENCES["replay"] in console.render(story_of(results))
    assert SENTENCES["replay"] in comment.render(story_of(results), comment.SummaryContext())
