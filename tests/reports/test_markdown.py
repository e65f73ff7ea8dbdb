"""What the Markdown reports say, also of the process, in cases that the golden files do not show."""

import json
import re
from dataclasses import replace

import builders as build
import cases
import comment_cases
import hostile_text
import report_texts

from ci_evals.domain.actions import LogicKind, views_of
from ci_evals.domain.results.process import Coverage, ProcessSummary, Reach, Times, TrialProcess
from ci_evals.domain.results.run import Results
from ci_evals.domain.transcript import EndState, Integration, ToolCall
from ci_evals.domain.verdict import Cause
from ci_evals.reports import console, report_files
from ci_evals.reports.markdown import baseline, documents, summary
from ci_evals.reports.markdown.sections import Rank
from ci_evals.reports.names import SUMMARY
from ci_evals.reports.page import page
from ci_evals.reports.story import failures
from ci_evals.reports.story import process as steps
from ci_evals.reports.story.story import story_of


def report_of(*turns, **fields) -> str:
    """The report of a test of one trial with these turns."""
    test = build.test_result(trials=(build.trial_result(turns=turns, **fields),))
    results = build.results(build.suite_result("Refunds", test))
    return "".join(documents.test_report(story_of(results), results.suites[0], test))


def summary_of(*tests, **fields) -> str:
    return documents.summary(story_of(build.results(build.suite_result("Refunds", *tests), **fields)))


FAILED_GATE = build.decision(passed=False, exit_code=1)


def test_turn_lists_agent_actions_and_distinguishes_none_from_a_missing_trace():
    nothing = dict.fromkeys(("workflows", "params", "rules", "integrations"))
    assert "this reply has no trace" in report_of(build.turn(**nothing))
    assert "nothing: no workflow, parameter, rule or integration" in report_of(build.turn())
    text = report_of(
        build.turn(
            workflows=("REFUND", "AUDIT"),
            workflows_derived=True,
            params={"reason": "too_small"},
            named_params=("amount",),
            rules=("R1",),
            integrations=(Integration(code="orders", status=503), Integration(code="faq", type="RAG")),
        ),
    )
    assert "workflows (from the trace): `REFUND`, `AUDIT`" in text
    assert '`reason = "too_small"`, `amount (value not reported)`' in text
    assert "rules: `R1` · integrations: `orders (503)`, `faq (RAG)`" in text


def test_tool_calls_are_listed_in_full_and_escaped():
    call = ToolCall(
        name="refund",
        arguments={"note": "<b>@all</b>"},
        status="error",
        duration_ms=12.5,
        agent="billing*",
        result={"error": "`|`"},
    )
    text = report_of(build.turn(**views_of([call, ToolCall(name="close", not_captured="cut off")])))
    (line,) = [line for line in text.splitlines() if "tool calls: " in line]
    assert set(hostile_text.RenderedMarkdown(line).tags) == {"p", "strong", "code"}
    assert "(error, 0.012 s, by billing" in line
    assert "returned " in line
    assert "`close` (arguments unknown: cut off)" in line


def test_raw_reply_is_shown_in_a_collapsed_block_if_kept():
    text = report_of(build.turn(raw={"text": "```\n</details>"}))
    assert "<summary>Raw reply</summary>\n\n```" in text
    assert hostile_text.RenderedMarkdown(text).tags.count("details") == 2
    assert "Raw reply" not in report_of(build.turn())


def test_attempts_of_a_trial_are_shown_with_their_errors():
    lost = cases.Attempt(status=EndState.FAILED, error="timed out")
    won = cases.Attempt(status=EndState.COMPLETED)
    assert "2 attempts: failed (timed out), then completed." in report_of(build.turn(), attempts=(lost, won))


def test_turn_shared_by_failed_criteria_is_quoted_once_after_them():
    failures = [build.finding("failed", criterion=name, evidence=(1,)) for name in ("One", "Two")]
    text = summary_of(build.test_result(trials=(build.trial_result(findings=failures),)))
    assert text.count("I want my money back") == 1
    assert text.index("*One*") < text.index("*Two*") < text.index("I want my money back")


def test_criteria_are_ordered_by_the_number_of_failed_trials():
    rare, often = (build.finding("failed", criterion=name, evidence=(1,)) for name in ("Rare", "Often"))
    fine = build.finding(criterion="Rare")
    trials = (build.trial_result(1, findings=(rare, often)), build.trial_result(2, findings=(fine, often)))
    text = summary_of(build.test_result(trials=trials))
    assert text.index("*Often* (failed in 2 of 2 trials)") < text.index("*Rare*")


def test_summary_concatenates_sections_and_closes_every_details_tag():
    for make in cases.CASES.values():
        texts = [section.text for section in summary.sections(story_of(make()))]
        assert "\n".join(texts) == documents.summary(story_of(make()))
        assert texts[0].startswith("## ")
        assert all(text.endswith("\n") for text in texts)
        whole = "".join(texts)
        assert whole.count("<details>") == whole.count("</details>")


def section_names(results) -> list[str]:
    """The names of the summary's sections, in order."""
    return [section.name for section in summary.sections(story_of(results))]


def test_summary_sections_are_in_reading_order_and_have_names_without_live_markup():
    assert "; ".join(section_names(cases.proven())) == (
        "the verdict; what to do; the suites' scores; the tests that broke; the tests that were not judged; "
        "the fixed tests; how sure this is; the exact score; the suites' exact scores; the baseline; "
        "the proven drops of tests; the flaky tests; the end of a fold; the details; all tests of Refunds; "
        "all tests of Exchanges; the meaning of a score; the checks; errors and undecided; cost and latency; "
        "more on the suites; the process; the tests not compared; "
        "the numbers of: Tokens and cost by role and model, prices of 2026-11-01; the run's facts; "
        "the end of a fold; the commits"
    )
    text = "@octocat [a](https://evil.example) :shipit: <b>"
    for name in section_names(hostile_text.fill_free_text(cases.bad(), text)):
        assert hostile_text.RenderedMarkdown(name).tags == ["p"]
        assert not hostile_text.RenderedMarkdown(name).live


def test_errored_trial_is_not_undecided_too_and_missing_judge_is_noted_if_offline():
    findings = (
        build.finding("undecided", cause=Cause.NO_EVIDENCE, reason="no reply had a trace"),
        build.finding("undecided", kind="judged", cause=Cause.NO_JUDGE, reason="no judge"),
    )
    trial = build.trial_result(status=EndState.FAILED, error="refused", turns=(), findings=findings)
    suite = build.suite_result("Refunds", build.test_result(trials=(trial,)))
    runs = (build.run_info(config={"provider": provider}) for provider in ("openai", "offline"))
    online, offline = (story_of(build.results(suite, run=run)) for run in runs)
    for text in (documents.summary(online), documents.suite_summary(online, suite, ["x"])):
        assert "**1 trial errored**: refused" in text
        assert "verdict undecided" not in text
        assert "No judge was configured" not in text
    for text in (documents.summary(offline), documents.suite_summary(offline, suite, ["x"])):
        assert "No judge was configured: 1 criterion is left out of the score." in text


def test_summary_shows_run_id_once_as_code():
    run = build.run_info(id="3aceb90018667fc1")
    assert summary_of(run=run).count(" · run `3aceb90018667fc1` · ") == 1


def test_suite_summary_links_to_test_reports_by_encoded_file_names():
    suite = build.suite_result("Refunds", build.test_result("A [test] (1)"))
    text = documents.suite_summary(story_of(build.results(suite)), suite, ["A-test-(1)"])
    page = hostile_text.RenderedMarkdown(text)
    assert page.links == ["A-test-%281%29.md"]
    assert "A [test] (1)" in page.text


def test_broken_test_is_shown_once_with_reasons_and_fails_no_run_without_verdict():
    failed = cases.proven()
    text = documents.summary(story_of(failed))
    heading = "**❌ Refunds › Refund in time** (100 → 0, 0 of 5 trials passed): critical, so this alone"
    assert text.count(f"{heading} fails the run\n") == 1
    assert "### Failed" not in text
    (broken,) = [one.text for one in summary.sections(story_of(failed)) if one.name == "the tests that broke"]
    assert "- *The refund workflow starts* (failed in 5 of 5 trials): REFUND" in broken
    assert "> **User** (turn 1 of trial 1): I want my money back for order 1042." in broken
    without = replace(failed, gate=build.decision(exit_code=3, reasons=("2 trials broke off",)))
    assert "critical, so this alone fails the run" not in documents.summary(story_of(without))
    assert "): critical\n" in documents.summary(story_of(without))


def test_test_failing_in_baseline_too_and_worse_now_is_listed_with_its_reasons():
    names = [f"Test {number}" for number in range(7)]
    tests = ([cases.played(name, drawing) for name in names] for drawing in ("fff", "ppf"))
    head, base = (build.suite_result("Refunds", *played) for played in tests)
    failed = build.results(head, gate=FAILED_GATE)
    text = documents.summary(story_of(cases.against(failed, cases.base_run(base))))
    assert "### Failed in the baseline too, and worse now\n\n**❌ Test 0** (66 → 0" in text
    assert "REFUND\\_REQUEST was never executed" in text
    assert "**Failed in the baseline too**" not in text


def test_equally_named_tests_in_equally_named_suites_keep_their_own_baselines():
    def two(*drawings):
        tests = (cases.played("Gift card", drawing) for drawing in drawings)
        return [build.suite_result("Refunds", test, folder=f"{place}/x") for place, test in enumerate(tests)]

    run = cases.against(build.results(*two("fff", "fff")), cases.base_run(*two("ppp", "fff")))
    names = section_names(replace(run, gate=FAILED_GATE))
    assert "the tests that broke" in names
    assert "what failed before" in names


def test_failing_tests_are_collapsed_after_the_tenth_or_if_the_gate_passed():
    def newly_failing(number: int) -> str:
        tests = ([cases.played(f"Test {place}", letter) for place in range(number)] for letter in "fp")
        head, base = (build.suite_result("Refunds", *played) for played in tests)
        run = cases.against(build.results(head, gate=FAILED_GATE), cases.base_run(base))
        return documents.summary(story_of(run))

    shown, _, rest = newly_failing(50).partition("<summary>40 more tests</summary>")
    assert "### Broke since the baseline" in shown
    assert (shown.count("**❌"), rest.count("**❌")) == (10, 40)
    assert "more tests</summary>" not in newly_failing(4)
    results = build.results(build.suite_result("Refunds", cases.played("Gift card", "ppf")))
    shown, _, folded = documents.summary(story_of(results)).partition("<details>")
    assert "*Gift card* fails." in shown
    assert "**❌ Gift card**" not in shown
    assert "### Failed\n\n**❌ Gift card**" in folded
    broken = documents.summary(story_of(replace(results, gate=FAILED_GATE)))
    assert "### Failed\n\n**❌ Gift card**" in broken.partition("<details>")[0]


def test_p_values_and_intervals_are_collapsed_and_compared_tests_have_a_column():
    for make in (*cases.CASES.values(), *comment_cases.COMMENTS.values()):
        first = comment_cases.unfolded(documents.summary(story_of(make())))
        assert not re.search(r"\bp (=|below|above)|95 %|\d to \d+(?! trials)\b", first)
    text = documents.summary(story_of(cases.proven()))
    assert text.count("Larger than chance explains for a single test: Refund in time (p = 0.004).") == 1
    assert " compared tests |" in text
    assert "66.6\xa0(3\xa0of\xa04)" in text
    assert "compared tests" not in documents.summary(story_of(cases.unproven()))


def test_baseline_is_named_with_its_age_or_the_reason_for_its_absence():
    missing = build.run_info(baseline_note="no baseline yet: no run on @main")
    assert "\n- No baseline yet: no run on @\u200bmain.\n" in summary_of(run=missing)
    assert "aseline" not in summary_of()
    compared = cases.unproven()
    by_commit = "Baseline: commit `3aceb90` of 2026-11-20 07:30 UTC, 1 day before this run.\n"
    assert by_commit in documents.summary(story_of(compared))
    note = "the baseline is commit 3aceb90 of main, the base commit"
    text = documents.summary(story_of(replace(compared, run=replace(compared.run, baseline_note=note))))
    assert "of main, the base commit (2026-11-20 07:30 UTC, 1 day before this run).\n" in text
    assert "Baseline: commit" not in text


def test_summary_of_skipped_run_does_not_name_judge():
    run = comment_cases.skipped()
    suites = [replace(suite, judge_model="gpt-5") for suite in run.suites]
    assert "gpt-5" not in documents.summary(story_of(replace(run, suites=tuple(suites))))


def test_reports_render_results_without_statistics_or_comparison():
    made = report_texts.results_json_text(cases.unsure())
    data = json.loads(made)
    for name in ("comparison", "odds", "latency", "passAtK", "passHatK", "interval"):
        del data[name]
    del data["usage"]["pricesAsOf"], data["usage"]["unpriced"]
    for suite in data["suites"]:
        for name in ("passAtK", "passHatK", "interval"):
            del suite[name]
        for test in suite["tests"]:
            del test["statistics"]
    results = report_files.load(json.dumps(data), "_results.json")
    files = report_texts.files_of_run(results)
    assert "Score 90.0" in files[SUMMARY]
    assert "baseline" not in files[SUMMARY]
    assert "all of" not in files["Refunds/2026-11-21T09-30-00Z/_summary.md"]


def test_imported_failure_shows_its_message_without_the_traceback():
    reason = "AssertionError: assert 1 == 2\n\ndef test_adds():\n>       assert 1 == 2\nE       assert 1 == 2"
    trial = build.trial_result(findings=(build.finding("failed", reason=reason),))
    suite = build.suite_result("tests", build.test_result("adds", trials=(trial,)), adapter="results: junit")
    assert suite.of_other_tool
    gate = build.decision(build.check("min-score", 80, 0, passed=False), passed=False, exit_code=1)
    story = story_of(build.results(suite, gate=gate))
    text = documents.summary(story)
    assert "assert 1 == 2\n" in text
    assert "def test" not in text
    assert "def test" not in console.render(story)
    assert "def test" in console.render(story, verbose=True)


def test_mostly_undecided_run_or_suite_shows_no_score_in_summary():
    undecided = [build.finding("undecided", cause=Cause.JUDGE_ERROR, reason="status 503")] * 9
    trial = build.trial_result(findings=(build.finding("passed"), *undecided))
    gate = build.decision(exit_code=3, reasons=("1 of 1 trial could not be judged",))
    text = summary_of(build.test_result("Lost parcel", trials=(trial,)), gate=gate, decided_share=0.1)
    assert ". Too little was decided for a score (10 % of the criteria's weight)." in text
    assert "Score of what was judged" not in text
    run = comment_cases.bad()
    open_suite = replace(run.suites[0], decided_share=0.17)
    text = documents.summary(story_of(replace(run, suites=(open_suite, *run.suites[1:]))))
    assert "| ❌ 6 failed | Refunds | n/a | 93 | n/a | 2 of 8 |" in text


def test_same_reasons_of_failed_tests_are_explained_once_unless_one_has_a_warning():
    reasons = ("never executed", "never executed", "said nothing")
    tests = []
    for number, reason in enumerate(reasons, start=1):
        finding = build.finding("failed", criterion="The refund starts", reason=reason)
        trial = build.trial_result(findings=(finding,))
        tests.append(build.test_result(f"Refund {number}", trials=(trial,), outcome="failed", score=0))
    story = story_of(build.results(build.suite_result("Refunds", *tests)))
    summary = documents.summary(story)
    assert "- **❌ Refund 2**; same criteria and reasons as *Refund 1*\n" in summary
    assert summary.count("same criteria and reasons") == 1
    assert summary.count("never executed") == 1
    text = console.render(story)
    assert "✗ Refund 2\n    same criteria and reasons as Refund 1\n" in text
    assert text.count("same criteria and reasons") == 1
    assert "same criteria and reasons" not in console.render(story, verbose=True)
    assert "".join(page.render(story)).count("Same criteria and reasons as Refund 1") == 1
    finding = build.finding("failed", criterion="The refund starts", reason="never executed")
    test = build.test_result(trials=(build.trial_result(findings=(finding,)),))
    plain = failures.FailedTest("Refunds", "A", test, warnings={})
    warned = replace(plain, warnings={"The refund starts": "seldom decided alike"})
    assert [first for _, first in failures.by_reasons((plain, warned))] == [None, None]
    assert [first for _, first in failures.by_reasons((plain, plain))] == [None, plain]


WHOLE = ProcessSummary(
    completion_rate=0.9,
    success_rate=0.75,
    traced_trials=19,
    steps_per_trial=3.25,
    redundancy_rate=0.031,
    calls=40,
    failure_rate=0.1,
    backtracks_per_trial=0.05,
    overhead=0.5,
    missed=2,
    first_reply_seconds=1.234,
    times=Times(agent=50, user=30, judge=15, other=5),
    cost_usd_per_trial=0.25,
    cost_adjusted_score=75.0,
)
UNTRACED = ProcessSummary(completion_rate=1.0, success_rate=1.0, first_reply_seconds=0.5)


def reach(name: str, trials: int | None, wanted: bool = True, **compared: float) -> Reach:
    return Reach(kind=LogicKind.RULE, name=name, trials=trials, tests=trials, wanted=wanted, **compared)


LOGIC = Coverage(
    traced_trials=19,
    logic=(
        reach("fires", 3), reach("never", 0), reach("gone", 0, compared_trials=0, base_trials=4),
        reach("gone too", 2, wanted=False, compared_trials=0, base_trials=2),
        reach("gone once", 0, wanted=False, compared_trials=0, base_trials=1, by_chance=0.5),
        reach("new", 7, wanted=False, compared_trials=7, base_trials=0), reach("untold", None),
    ),
)  # fmt: skip


def run(**fields) -> Results:
    one, other = build.suite_result("One", process=WHOLE), build.suite_result("Two", process=UNTRACED)
    results = build.results(one, other, **{"process": WHOLE, "coverage": LOGIC} | fields)
    return replace(results, counts=replace(results.counts, trials=20))


def test_process_table_has_a_row_per_measure_and_a_column_per_suite():
    section = summary.process_measures(story_of(run()))
    assert section.rank is Rank.DETAILS
    head, *rows = [line for line in section.text.split("\n") if line.startswith("|") and "---" not in line]
    assert head == "| measure | this run | One | Two |"
    completed = "trials whose conversation ended by itself, or with the error that the test expects"
    assert rows[0] == f"| Completion rate ({completed}) | 90 % | 90 % | 100 % |"
    measures = ["Completion rate", "Success rate", "Steps per trial", "Repeated steps", "Failed calls"]
    measures += ["Backtracks per trial", "Overhead", "Missed steps", "First reply"]
    assert [row.partition(" (")[0] for row in rows[:9]] == [f"| {measure}" for measure in measures]
    assert "| Agent time (waiting for its replies, added up over all trials) | 50 s (50 %)" in section.text
    assert "Steps come from traces, which 19 of 20 trials have." in section.text
    assert "Coverage of the agent's logic: 3 rules used (1 of 4 that criteria need)." in section.text
    assert "**Used in the baseline, no longer in the same tests**" in section.text
    assert "**Used now, not in the same tests of the baseline**" in section.text


def test_process_table_has_no_columns_of_suites_for_one_or_many_suites():
    one = build.results(build.suite_result("One", process=UNTRACED), process=WHOLE)
    many = replace(one, suites=one.suites * 6)
    for results in (one, many, replace(one, suites=())):
        assert "| measure | this run |\n" in summary.process_measures(story_of(results)).text


def test_summary_has_no_process_table_without_traced_steps():
    suite = build.suite_result("One", process=UNTRACED)
    story = story_of(build.results(suite, process=UNTRACED, coverage=Coverage()))
    assert summary.process_measures(story) is None
    assert [row.cells[0] for row in story.process.measures.rows][:2] == ["Completion rate", "Success rate"]
    assert summary.process_measures(story_of(build.results(process=ProcessSummary()))) is None


def test_lost_logic_is_shown_prominently_unless_loss_may_be_chance():
    section = baseline.lost(story_of(run()))
    assert section.rank > Rank.REST
    assert section.text == (
        "Look here first: these parts of the agent's logic were used in the baseline and no longer in the "
        "same tests: rule gone; rule gone too.\n"
    )
    assert section in summary.sections(story_of(run()))
    kept = Coverage(traced_trials=1, logic=(reach("a", 3, compared_trials=3, base_trials=3),))
    assert baseline.lost(story_of(run(coverage=kept))) is None


def test_trial_shows_its_known_steps_and_times():
    counts = {"steps": 6, "tools": 4, "repeated": 1, "calls": 3, "failed_calls": 2}
    result = TrialProcess(begun=("A", "B_@here", "A"), backtracks=1, missed=1, overhead=0.5, **counts)
    trial = build.trial_result(process=result, times=Times(agent=2, user=61, judge=0.5, other=0.04))
    assert dict(steps.of_trial(trial)) == {
        "steps": "6", "workflows and tools": "A → B_@here → A", "distinct tools": "4", "repeated steps": "1",
        "calls": "3", "failed calls": "2", "backtracks": "1", "overhead over optimalTools": "+50 %",
        "missed steps of optimalTools": "1",
    }  # fmt: skip
    assert dict(steps.time_of_trial(trial))["waiting for the simulated user"] == "1 m 1 s"
    assert dict(steps.of_trial(build.trial_result())) == {}


def test_reports_of_suite_and_test_show_their_own_process():
    results = build.with_process(build.results())
    (suite,) = results.suites
    assert "Measures of the process" in documents.suite_summary(story_of(results), suite, ["a"])
    assert "\nsteps 0 · " in "".join(documents.test_report(story_of(results), suite, suite.tests[0]))
