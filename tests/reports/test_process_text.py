"""What Markdown tells of the process: in short, folded, and open only where logic is no longer used."""

from dataclasses import replace

import builders as build

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.process import Coverage, ProcessSummary, Reach, Times, TrialProcess
from ci_evals.domain.results.run import Results
from ci_evals.reports.markdown import baseline, documents
from ci_evals.reports.markdown import summary as run_summary
from ci_evals.reports.markdown.sections import Rank
from ci_evals.reports.story import process as steps
from ci_evals.reports.story.story import story_of

WHOLE = ProcessSummary(
    completion_rate=0.9, success_rate=0.75, traced_trials=19, steps_per_trial=3.25, redundancy_rate=0.031,
    calls=40, failure_rate=0.1, backtracks_per_trial=0.05, overhead=0.5, missed=2, first_reply_seconds=1.234,
    times=Times(agent=50, user=30, judge=15, other=5), cost_usd_per_trial=0.25, cost_adjusted_score=75.0,
)  # fmt: skip
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
    section = run_summary.process_measures(story_of(run()))
    assert section.rank is Rank.DETAILS
    head, *rows = [line for line in section.text.split("\n") if line.startswith("|") and "---" not in line]
    assert head == "| measure | this run | One | Two |"
    assert rows[0] == (
        "| Completion rate (trials whose conversation ended by itself, or with the error that the test "
        "expects) | 90 % | 90 % | 100 % |"
    )
    measures = ["Completion rate", "Success rate", "Steps per trial", "Repeated steps", "Failed calls"]
    measures += ["Backtracks per trial", "Overhead", "Missed steps", "First reply"]
    assert [row.partition(" (")[0] for row in rows[:9]] == [f"| {measure}" for measure in measures]
    assert "| Agent time (waiting for its replies, added up over all trials) | 50 s (50 %)" in section.text
    assert "Steps come from traces, which 19 of 20 trials have." in section.text
    assert "Coverage of the agent's logic: 3 rules used (1 of 4 that criteria need)." in section.text
    assert "**Used in the baseline, no longer in the same tests**" in section.text
    assert "**Used now, not in the same tests of the baseline**" in section.text


def test_process_table_shows_the_run_only_of_one_or_many_suites_and_nothing_untraced():
    one = build.results(build.suite_result("One", process=UNTRACED), process=WHOLE)
    many = replace(one, suites=one.suites * 6)
    for results in (one, many, replace(one, suites=())):
        assert "| measure | this run |\n" in run_summary.process_measures(story_of(results)).text
    story = story_of(
        build.results(build.suite_result("One", process=UNTRACED), process=UNTRACED, coverage=Coverage())
    )
    assert run_summary.process_measures(story) is None
    assert [row.cells[0] for row in story.process.measures.rows][:2] == ["Completion rate", "Success rate"]
    assert run_summary.process_measures(story_of(build.results(process=ProcessSummary()))) is None


def test_lost_logic_is_shown_prominently_unless_loss_may_be_chance():
    section = baseline.lost(story_of(run()))
    assert section.rank > Rank.REST
    assert section.text == (
        "Look here first: these parts of the agent's logic were used in the baseline and no longer in the "
        "same tests: rule gone; rule gone too.\n"
    )
    assert section in run_summary.sections(story_of(run()))
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
