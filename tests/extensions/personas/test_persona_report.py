"""Scores by persona in every report: the reader sees which user the agent failed."""

import json
from dataclasses import replace

import builders as build
import report_texts

from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import UserSource
from ci_evals.extension_registry import study_reports
from ci_evals.extensions.personas.traits import instructions
from ci_evals.reports.markdown import comment, documents
from ci_evals.reports.page import page
from ci_evals.reports.story.story import story_of


def a_test(name: str, *, passed: bool, user: str | None, traits=(), messages=("Hurry!", "How long?")):
    turns = tuple(
        build.turn(number, user=text, user_source=UserSource.AUTO) for number, text in enumerate(messages, 1)
    )
    outcome = build.finding("passed" if passed else "failed")
    played = build.trial_result(turns=turns, findings=(outcome,))
    guidelines = "You want a refund."
    if traits:
        guidelines += "\n\n" + instructions(traits)
    test = build.test_result(name, trials=(played,), guidelines=guidelines)
    return replace(test, tags=(f"persona:{user}",) if user else (), cluster="S: " + name.partition(" (")[0])


def a_run(*, failing: tuple[str, ...] = (), offline: bool = False) -> Results:
    tests = []
    for task in ("Refund", "Address"):
        tests.append(a_test(task, passed=True, user=None))
        for user, traits in (("rushed", ("impatient", "terse")), ("rude", ("hostile",))):
            name = f"{task} ({user})"
            tests.append(a_test(name, passed=name not in failing, user=user, traits=traits))
    return build.results(
        build.suite_result("S", *tests),
        run=build.run_info(config={"provider": "offline" if offline else "openai"}),
    )


def personas_in(results: Results):
    return next((report for report in study_reports(results) if report.topic == "Personas"), None)


def test_runs_without_personas_have_no_such_part():
    assert personas_in(build.results()) is None


def test_remark_names_the_users_whom_the_agent_failed():
    report = personas_in(a_run(failing=("Refund (rude)",)))
    assert report.remark == "The agent did not pass with “rude” (1 of 2 tests)."
    assert personas_in(a_run()).remark == "The agent passed with 2 personas."


def test_table_compares_each_user_with_the_tests_as_written():
    (table,) = personas_in(a_run(failing=("Refund (rude)",))).tables
    rows = [dict(zip(table.titles, row.cells, strict=True)) for row in table.rows]
    assert [(row["user"], row["score"], row["passed"]) for row in rows] == [
        ("as written", "100.0", "2 of 2"),
        ("rushed", "100.0", "2 of 2"),
        ("rude", "50.0", "1 of 2"),
    ]


def test_table_says_how_often_the_users_showed_their_traits():
    (table,) = personas_in(a_run()).tables
    place = table.titles.index("conversations with the trait")
    assert [row.cells[place] for row in table.rows] == [
        "",
        "impatient 2 of 2, terse 2 of 2",
        "hostile 0 of 2",
    ]


def test_offline_run_says_that_nobody_played_its_personas():
    assert personas_in(a_run(offline=True)).remark.startswith("Nobody played these users")


def test_comment_summary_and_page_say_which_user_the_agent_failed():
    results = a_run(failing=("Refund (rude)",))
    story = story_of(results)
    for text in (
        comment.render(story, comment.SummaryContext()),
        documents.summary(story),
        "".join(page.render(story)),
    ):
        assert "The agent did not pass with “rude” (1 of 2 tests)." in text
    suite = json.loads(report_texts.dump(results))["suites"][0]
    assert {test["cluster"] for test in suite["tests"]} == {"S: Refund", "S: Address"}


def test_languages_have_scores_too():
    german = replace(a_test("Refund (hans)", passed=False, user="hans"), tags=("persona:hans", "language:de"))
    results = build.results(build.suite_result("S", a_test("Refund", passed=True, user=None), german))
    _, table = personas_in(results).tables
    assert [row.cells[:2] for row in table.rows] == [("as written", "100.0"), ("de", "0.0")]
