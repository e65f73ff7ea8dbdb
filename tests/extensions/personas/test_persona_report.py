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
    source = UserSource.AUTO
    turns = tuple(build.turn(n, user=text, user_source=source) for n, text in enumerate(messages, 1))
    outcome = build.finding("passed" if passed else "failed")
    played = build.trial_result(turns=turns, findings=(outcome,))
    guidelines = "You want a refund."
    if traits:
        guidelines += "\n\n" + instructions(traits)
    test = build.test_result(name, trials=(played,), guidelines=guidelines)
    return replace(test, tags=(f"persona:{user}",) if user else (), cluster="S: " + name.partition(" (")[0])


def a_run(*, failing: tuple[str, ...] = (), provider: str = "openai") -> Results:
    tests = []
    for task in ("Refund", "Address"):
        tests.append(a_test(task, passed=True, user=None))
        for user, traits in (("rushed", ("impatient", "terse")), ("rude", ("hostile",))):
            name = f"{task} ({user})"
            tests.append(a_test(name, passed=name not in failing, user=user, traits=traits))
    return run_of(*tests, provider=provider)


def scored(results: Results) -> Results:
    return results.with_studies(*run_studies(results))


def run_of(*tests, provider: str = "openai") -> Results:
    run = build.run_info(config={"provider": provider})
    return scored(build.results(build.suite_result("S", *tests), run=run))


def personas_in(results: Results):
    return next((report for report in study_reports(results) if report.topic == "Personas"), None)


RUDE_FAILED = a_run(failing=("Refund (rude)",))


def test_tests_with_handwritten_persona_tags_get_no_persona_scores():
    quarantine = Quarantine(reason="It is flaky.", until=date(2100, 1, 1))
    for test in (
        replace(build.test_result("Refund"), tags=("persona:vip",)),
        replace(a_test("Refund", passed=True, user=None), tags=("language:python",), cluster=None),
        replace(a_test("Refund (rude)", passed=False, user="rude"), quarantine=quarantine),
        build.test_result(),
    ):
        assert [*run_studies(build.results(build.suite_result("S", test)))] == []
    assert personas_in(build.results()) is None


def test_report_compares_personas_with_tests_as_written_and_warns_of_unshown_traits():
    report = personas_in(RUDE_FAILED)
    assert report.remark == "The agent did not pass with “rude” (1 of 2 tests)."
    assert personas_in(a_run()).remark == "The agent passed with 2 personas."
    (table,) = report.tables
    titles = ("user", "score", "tests passed", "conversations with the trait")
    columns = [table.titles.index(title) for title in titles]
    assert [tuple(row.cells[column] for column in columns) for row in table.rows] == [
        ("no persona", "100.0", "2 of 2", ""),
        ("rushed", "100.0", "2 of 2", "impatient 2 of 2, terse 2 of 2"),
        ("rude", "50.0", "1 of 2", "hostile 0 of 2"),
    ]
    report = personas_in(a_run())
    (warning,) = report.warnings
    assert warning.startswith("The persona “rude” never showed its trait hostile: its tests do not show")
    assert f"! {warning}"[:60] in console.render(story_of(a_run()))
    short = a_test("Refund (rude)", passed=True, user="rude", traits=("changes_mind",), messages=("Hello",))
    report = personas_in(run_of(short))
    assert report.tables[0].rows[0].cells[-1] == "changes_mind not measured"
    assert "never showed its trait changes_mind" in report.warnings[0]


def test_offline_run_scores_only_languages_of_fixed_messages():
    results = a_run(provider="offline")
    report = personas_in(results)
    assert report.remark.startswith("Nobody played the personas of this run")
    assert (report.warnings, report.tables) == ((report.remark,), ())
    as_written, *personas = keys_of(results)["personas"]
    assert (as_written["name"], as_written["score"]) == (None, 100)
    for persona in personas:
        assert (persona["score"], persona["interval"], persona["traits"]) == (None, None, [])
    assert "! Nobody played the personas of this run" in console.render(story_of(results))
    fixed = in_languages(provider="offline", source=UserSource.FIXED, failing="de")
    report = languages_in(without_personas(fixed))
    assert report.remark == "The agent did not pass in “de” (1 of 1 tests)."
    (table,) = personas_in(fixed).tables
    assert table.title == "Languages"
    free = languages_in(without_personas(in_languages(provider="offline")))
    assert free.remark.startswith("The languages of this run have no score")
    assert (free.warnings, free.tables) == ((free.remark,), ())


def keys_of(results: Results) -> dict:
    (suite,) = json.loads(report_texts.results_json_text(results))["studies"]["personas"]["suites"]
    return suite


def test_results_file_has_scores_and_traits_of_each_persona():
    suite = keys_of(RUDE_FAILED)
    as_written, rushed, rude = suite["personas"]
    assert (suite["suite"], suite["languages"], as_written["name"]) == ("S", [], None)
    assert (rushed["name"], rushed["score"], rushed["tests"], rushed["passed"]) == ("rushed", 100, 2, 2)
    assert (rude["name"], rude["score"], rude["passed"], rude["failed"]) == ("rude", 50, 1, 1)
    assert rude["traits"] == [{"trait": "hostile", "conversations": 2, "shown": 0}]
    results = json.loads(report_texts.results_json_text(RUDE_FAILED))
    Draft202012Validator(results_schema(study_kinds())).validate(results)
    assert {test["cluster"] for test in results["suites"][0]["tests"]} == {"S: Refund", "S: Address"}


def test_persona_without_verdicts_has_no_score():
    trial = build.trial_result(findings=(build.finding("undecided", cause=Cause.VOID_ANSWER),))
    rude = build.test_result("Refund (rude)", trials=(trial,))
    rude = replace(rude, tags=("persona:rude",), cluster="S: Refund")
    (persona,) = keys_of(run_of(rude))["personas"]
    assert (persona["score"], persona["passed"], persona["failed"], persona["undecided"]) == (None, 0, 0, 1)


def test_persona_report_needs_no_conversations_and_recounts_saved_scores():
    assert personas_in(without_trials(RUDE_FAILED)) == personas_in(RUDE_FAILED)
    results = a_run(failing=("Refund (rude)", "Address (rude)"))
    (study,) = results.studies
    (suite,) = study.suites
    edited = tuple(replace(user, score=100, passed=2, failed=0) for user in suite.personas)
    claimed = replace(study, suites=(replace(suite, personas=edited),))
    assert personas_in(results.with_studies(claimed)) == personas_in(results)
    assert "“rude” (2 of 2 tests)" in personas_in(results).remark


def test_reports_name_failed_persona_escape_markup_and_fit_the_terminal():
    text = console.render(story_of(RUDE_FAILED), width=60)
    assert "Personas\n" in text
    (row,) = [line for line in text.splitlines() if line.startswith("  rude ")]
    assert row.split()[:2] == ["rude", "50.0"]
    assert "1 of 2" in row
    assert max(map(len, text.splitlines())) <= 60
    assert "Personas" not in console.render(story_of(build.results()))
    tests = [a_test(f"Refund (u{number})", passed=True, user=f"u{number}") for number in range(45)]
    text = console.render(story_of(run_of(*tests)))
    table = text[text.index("Personas\n") :].partition("\n\n")[0].splitlines()
    assert (table[-2:], len(table)) == (["  and 25 more", "  The agent passed with 45 personas."], 25)
    story = story_of(RUDE_FAILED)
    comment_text = comment.render(story, comment.SummaryContext())
    for text in (comment_text, documents.summary(story), "".join(page.render(story))):
        assert "The agent did not pass with “rude” (1 of 2 tests)." in text
    name = "<img src=x>\x1b[31m|`::error::"
    story = story_of(run_of(a_test(f"Refund ({name})", passed=False, user=name)))
    assert "\x1b[31m" not in console.render(story)
    for text in (comment.render(story, comment.SummaryContext()), "".join(page.render(story))):
        assert "<img src=x>" not in text


def test_persona_tests_count_for_no_language_and_only_for_their_own_persona():
    """A persona in the language is a harder user."""
    hans = replace(a_test("Refund (hans)", passed=False, user="hans"), tags=("persona:hans", "language:de"))
    german = replace(a_test("Refund (de)", passed=True, user=None), tags=("language:de",))
    personas, languages = personas_in(run_of(a_test("Refund", passed=True, user=None), hans, german)).tables
    assert [row.cells[:2] for row in personas.rows] == [("no persona", "100.0"), ("hans", "0.0")]
    assert [row.cells[:2] for row in languages.rows] == [("no persona", "100.0"), ("de", "100.0")]
    # An author may put tests into one cluster that have no personas.
    outcomes = {"Refund": True, "Other": False, "Refund (rude)": True, "Refund (rude) twice": False}
    users = {name: "rude" if name.endswith("(rude)") else None for name in outcomes}
    tests = [a_test(name, passed=outcomes[name], user=users[name]) for name in outcomes]
    tests = [replace(test, cluster="orders") for test in tests]
    as_written, rude = keys_of(run_of(*tests))["personas"]
    assert (as_written["score"], as_written["tests"]) == (rude["score"], rude["tests"]) == (100, 1)


def in_languages(*, provider: str = "openai", failing: str = "", source=UserSource.AUTO) -> Results:
    """A run of one task as it is written, with a persona, and in two languages."""
    tests = [a_test("Refund", passed=True, user=None), a_test("Refund (rude)", passed=False, user="rude")]
    for code in ("de", "fr"):
        one = a_test(f"Refund ({code})", passed=code != failing, user=None)
        turns = tuple(turn.copy_with(user_source=source) for turn in one.trials[0].turns)
        trials = (replace(one.trials[0], turns=turns),)
        tests.append(replace(one, tags=(f"language:{code}",), trials=trials))
    return run_of(*tests, provider=provider)


def without_personas(results: Results) -> Results:
    (suite,) = results.suites
    tests = tuple(test for test in suite.tests if test.name != "Refund (rude)")
    return scored(build.results(replace(suite, tests=tests), run=results.run))


def languages_in(results: Results):
    return next((report for report in study_reports(results) if report.topic == "Languages"), None)


def test_language_is_compared_with_tests_as_written():
    report = personas_in(in_languages(failing="fr"))
    _, table = report.tables
    assert [row.cells[:2] for row in table.rows] == [("no persona", "100.0"), ("de", "100.0"), ("fr", "0.0")]
    failed = "The agent did not pass"
    assert report.remark == f"{failed} with “rude” (1 of 1 tests). {failed} in “fr” (1 of 1 tests)."
    report = languages_in(without_personas(in_languages(failing="de")))
    assert [table.title for table in report.tables] == ["Languages"]
    assert report.remark == "The agent did not pass in “de” (1 of 1 tests)."
