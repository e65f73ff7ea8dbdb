"""Scores by persona in every report: the reader sees which user the agent failed."""

import json
from dataclasses import replace
from datetime import date

import builders as build
import report_texts
from jsonschema import Draft202012Validator

from ci_evals.cli.files.saved_run import without_trials
from ci_evals.domain.results.run import Results, results_schema
from ci_evals.domain.suite import Quarantine
from ci_evals.domain.transcript import UserSource
from ci_evals.domain.verdict import Cause
from ci_evals.extension_registry import run_studies, study_kinds, study_reports
from ci_evals.extensions.personas.traits import instructions
from ci_evals.reports import console
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
    return scored(
        build.results(
            build.suite_result("S", *tests),
            run=build.run_info(config={"provider": "offline" if offline else "openai"}),
        )
    )


def scored(results: Results) -> Results:
    """With what a run has as soon as it is scored."""
    return results.with_studies(*run_studies(results))


def personas_in(results: Results):
    return next((report for report in study_reports(results) if report.topic == "Personas"), None)


def test_runs_without_personas_have_no_such_part():
    assert [*run_studies(build.results())] == []
    assert personas_in(build.results()) is None


def test_remark_names_the_users_whom_the_agent_failed():
    report = personas_in(a_run(failing=("Refund (rude)",)))
    assert report.remark == "The agent did not pass with “rude” (1 of 2 tests)."
    assert personas_in(a_run()).remark == "The agent passed with 2 personas."


def test_table_compares_each_user_with_the_tests_as_written():
    (table,) = personas_in(a_run(failing=("Refund (rude)",))).tables
    rows = [dict(zip(table.titles, row.cells, strict=True)) for row in table.rows]
    assert [(row["user"], row["score"], row["tests passed"]) for row in rows] == [
        ("no persona", "100.0", "2 of 2"),
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


def test_persona_that_never_showed_a_trait_is_warned_of():
    """Its tests passed with a user of another kind."""
    report = personas_in(a_run())
    (warning,) = report.warnings
    assert warning.startswith("The persona “rude” never showed its trait hostile: its tests do not show")
    assert f"! {warning}"[:60] in console.render(story_of(a_run()))


def test_trait_that_no_conversation_could_show_was_not_measured():
    short = a_test("Refund (rude)", passed=True, user="rude", traits=("changes_mind",), messages=("Hello",))
    report = personas_in(scored(build.results(build.suite_result("S", short))))
    (table,) = report.tables
    assert table.rows[0].cells[-1] == "changes_mind not measured"
    assert "never showed its trait changes_mind" in report.warnings[0]


def test_offline_run_warns_that_nobody_played_its_personas():
    """A score of theirs would be that of the scripted user."""
    results = a_run(offline=True)
    report = personas_in(results)
    assert report.remark.startswith("Nobody played the personas of this run")
    assert report.warnings == (report.remark,)
    assert report.tables == ()
    as_written, *personas = keys_of(results)["personas"]
    assert (as_written["name"], as_written["score"]) == (None, 100)
    for persona in personas:
        assert (persona["score"], persona["interval"], persona["traits"]) == (None, None, [])
    assert "! Nobody played the personas of this run" in console.render(story_of(results))


def keys_of(results: Results) -> dict:
    (suite,) = json.loads(report_texts.results_json_text(results))["studies"]["personas"]["suites"]
    return suite


def test_results_file_has_a_score_for_each_persona():
    suite = keys_of(a_run(failing=("Refund (rude)",)))
    as_written, rushed, rude = suite["personas"]
    assert (suite["suite"], suite["languages"], as_written["name"]) == ("S", [], None)
    assert (rushed["name"], rushed["score"], rushed["tests"], rushed["passed"]) == ("rushed", 100, 2, 2)
    assert (rude["name"], rude["score"], rude["passed"], rude["failed"]) == ("rude", 50, 1, 1)
    assert rude["traits"] == [{"trait": "hostile", "conversations": 2, "shown": 0}]
    Draft202012Validator(results_schema(study_kinds())).validate(
        json.loads(report_texts.results_json_text(a_run(failing=("Refund (rude)",))))
    )


def test_persona_that_nobody_could_judge_has_no_score():
    undecided = build.finding("undecided", cause=Cause.VOID_ANSWER)
    trial = build.trial_result(findings=(undecided,))
    rude = build.test_result("Refund (rude)", trials=(trial,))
    rude = replace(rude, tags=("persona:rude",), cluster="S: Refund")
    (persona,) = keys_of(scored(build.results(build.suite_result("S", rude))))["personas"]
    assert (persona["score"], persona["passed"], persona["failed"], persona["undecided"]) == (None, 0, 0, 1)


def test_tag_of_an_author_is_no_persona():
    """Only tests that a persona made belong to a cluster by themselves."""
    own = replace(build.test_result("Refund"), tags=("persona:vip",))
    assert [*run_studies(build.results(build.suite_result("S", own)))] == []


def test_reports_count_the_tests_and_not_what_a_file_says_of_them():
    """Somebody may have edited it."""
    results = a_run(failing=("Refund (rude)", "Address (rude)"))
    (study,) = results.studies
    (suite,) = study.suites
    edited = tuple(replace(user, score=100, passed=2, failed=0) for user in suite.personas)
    claimed = replace(study, suites=(replace(suite, personas=edited),))
    assert personas_in(results.with_studies(claimed)) == personas_in(results)
    assert "“rude” (2 of 2 tests)" in personas_in(results).remark


def test_run_without_its_conversations_has_the_scores_that_were_kept():
    results = a_run(failing=("Refund (rude)",))
    assert personas_in(without_trials(results)) == personas_in(results)


def test_personas_in_quarantine_have_no_score():
    quarantine = Quarantine(reason="It is flaky.", until=date(2100, 1, 1))
    rude = replace(a_test("Refund (rude)", passed=False, user="rude"), quarantine=quarantine)
    assert [*run_studies(build.results(build.suite_result("S", rude)))] == []


def test_console_shows_the_scores_in_the_width_of_the_terminal():
    text = console.render(story_of(a_run(failing=("Refund (rude)",))), width=60)
    assert "Personas\n" in text
    (row,) = [line for line in text.splitlines() if line.startswith("  rude ")]
    assert row.split()[:2] == ["rude", "50.0"]
    assert "1 of 2" in row
    assert max(map(len, text.splitlines())) <= 60
    assert "Personas" not in console.render(story_of(build.results()))


def test_console_shows_the_first_of_many_personas():
    tests = [a_test(f"Refund (u{number})", passed=True, user=f"u{number}") for number in range(45)]
    text = console.render(story_of(scored(build.results(build.suite_result("S", *tests)))))
    table = text[text.index("Personas\n") :].partition("\n\n")[0].splitlines()
    assert table[-2:] == ["  and 25 more", "  The agent passed with 45 personas."]
    assert len(table) == 25


def test_names_with_markup_stay_text():
    name = "<img src=x>\x1b[31m|`::error::"
    tests = [a_test(f"Refund ({name})", passed=False, user=name)]
    results = scored(build.results(build.suite_result("S", *tests)))
    story = story_of(results)
    assert "\x1b[31m" not in console.render(story)
    for text in (comment.render(story, comment.SummaryContext()), "".join(page.render(story))):
        assert "<img src=x>" not in text


def test_comment_summary_and_page_say_which_user_the_agent_failed():
    results = a_run(failing=("Refund (rude)",))
    story = story_of(results)
    for text in (
        comment.render(story, comment.SummaryContext()),
        documents.summary(story),
        "".join(page.render(story)),
    ):
        assert "The agent did not pass with “rude” (1 of 2 tests)." in text
    suite = json.loads(report_texts.results_json_text(results))["suites"][0]
    assert {test["cluster"] for test in suite["tests"]} == {"S: Refund", "S: Address"}


def test_languages_have_scores_too():
    """Without tests of a persona in the language, who is a harder user."""
    hans = replace(a_test("Refund (hans)", passed=False, user="hans"), tags=("persona:hans", "language:de"))
    german = replace(a_test("Refund (de)", passed=True, user=None), tags=("language:de",))
    suite = build.suite_result("S", a_test("Refund", passed=True, user=None), hans, german)
    personas, languages = personas_in(scored(build.results(suite))).tables
    assert [row.cells[:2] for row in personas.rows] == [("no persona", "100.0"), ("hans", "0.0")]
    assert [row.cells[:2] for row in languages.rows] == [("no persona", "100.0"), ("de", "100.0")]


def test_users_are_compared_with_their_own_tests_alone():
    """An author may put tests into one cluster that have no personas."""
    tests = [a_test("Refund", passed=True, user=None), a_test("Other", passed=False, user=None)]
    tests += [
        a_test("Refund (rude)", passed=True, user="rude"),
        a_test("Refund (rude) twice", passed=False, user=None),
    ]
    tests = [replace(test, cluster="orders") for test in tests]
    as_written, rude = keys_of(scored(build.results(build.suite_result("S", *tests))))["personas"]
    assert (as_written["score"], as_written["tests"]) == (100, 1)
    assert (rude["score"], rude["tests"]) == (100, 1)


def in_languages(*, offline: bool = False, failing: str = "", source=UserSource.AUTO) -> Results:
    """A run of one task as it is written, with a persona, and in two languages."""
    tests = [a_test("Refund", passed=True, user=None), a_test("Refund (rude)", passed=False, user="rude")]
    for code in ("de", "fr"):
        one = a_test(f"Refund ({code})", passed=code != failing, user=None)
        turns = tuple(turn.copy_with(user_source=source) for turn in one.trials[0].turns)
        trials = (replace(one.trials[0], turns=turns),)
        tests.append(replace(one, tags=(f"language:{code}",), trials=trials))
    return scored(
        build.results(
            build.suite_result("S", *tests),
            run=build.run_info(config={"provider": "offline" if offline else "openai"}),
        )
    )


def without_personas(results: Results) -> Results:
    (suite,) = results.suites
    tests = tuple(test for test in suite.tests if test.name != "Refund (rude)")
    return scored(build.results(replace(suite, tests=tests), run=results.run))


def languages_in(results: Results):
    return next((report for report in study_reports(results) if report.topic == "Languages"), None)


def test_each_language_is_compared_with_the_tests_as_written():
    """Tests with a persona are neither."""
    report = personas_in(in_languages(failing="fr"))
    _, table = report.tables
    assert [row.cells[:2] for row in table.rows] == [("no persona", "100.0"), ("de", "100.0"), ("fr", "0.0")]
    assert report.remark == (
        "The agent did not pass with “rude” (1 of 1 tests). The agent did not pass in “fr” (1 of 1 tests)."
    )


def test_languages_without_personas_have_a_part_of_their_own():
    report = languages_in(without_personas(in_languages(failing="de")))
    assert [table.title for table in report.tables] == ["Languages"]
    assert report.remark == "The agent did not pass in “de” (1 of 1 tests)."


def test_offline_run_scores_languages_of_fixed_lines_alone():
    """Its scripted user would write in the wrong language."""
    fixed = in_languages(offline=True, source=UserSource.FIXED, failing="de")
    report = languages_in(without_personas(fixed))
    assert report.remark == "The agent did not pass in “de” (1 of 1 tests)."
    (table,) = personas_in(fixed).tables
    assert table.title == "Languages"
    free = languages_in(without_personas(in_languages(offline=True)))
    assert free.warnings == (free.remark,)
    assert free.remark.startswith("The languages of this run have no score")
    assert free.tables == ()


def test_tag_of_a_user_s_own_is_no_language():
    test = replace(a_test("Refund", passed=True, user=None), tags=("language:python",), cluster=None)
    assert [*run_studies(build.results(build.suite_result("S", test)))] == []
