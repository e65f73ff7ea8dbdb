"""What Markdown tells of the process: in short, folded, and open only where logic is no longer used."""

from dataclasses import replace

import builders as build

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.process import Coverage, ProcessSummary, Reach, Times, TrialProcess
from ci_evals.domain.results.run import Results
from ci_evals.reports.markdown import documents, process
from ci_evals.reports.markdown import summary as run_summary
from ci_evals.reports.markdown.sections import Rank
from ci_evals.reports.story.story import story_of

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
UNTOLD = ProcessSummary(completion_rate=1.0, success_rate=1.0, first_reply_seconds=0.5)


def reach(name: str, trials: int | None, wanted: bool = True, **compared: float) -> Reach:
    return Reach(kind=LogicKind.RULE, name=name, trials=trials, tests=trials, wanted=wanted, **compared)


LOGIC = Coverage(
    traced_trials=19,
    logic=(
        reach("fires", 3),
        reach("never", 0),
        reach("gone", 0, compared_trials=0, base_trials=4),
        reach("gone too", 2, wanted=False, compared_trials=0, base_trials=2),
        reach("gone once", 0, wanted=False, compared_trials=0, base_trials=1, by_chance=0.5),
        reach("new", 7, wanted=False, compared_trials=7, base_trials=0),
        reach("untold", None),
    ),
)


def run(**fields) -> Results:
    one, other = build.suite_result("One", process=WHOLE), build.suite_result("Two", process=UNTOLD)
    results = build.results(one, other, **{"process": WHOLE, "coverage": LOGIC} | fields)
    return replace(results, counts=replace(results.counts, trials=20))


def test_the_measures_of_a_run():
    """A row of all, one of each suite; then traces, workflows that were missed, time, coverage."""
    section = process.measures(run())
    assert section.rank is Rank.DETAILS
    assert section.text == (
        "<details>\n"
        "<summary>Agent steps: 3.2 steps per trial, 4 % repeated, 10 % of calls failed"
        "</summary>\n"
        "\n"
        "| | completed | passed | steps | repeated | failed calls | backtracks | overhead | first reply |\n"
        "|:---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        "| all | 90 % | 75 % | 3.2 | 4 % | 10 % | below 0.1 | +50 % | 1.23 s |\n"
        "| One | 90 % | 75 % | 3.2 | 4 % | 10 % | below 0.1 | +50 % | 1.23 s |\n"
        "| Two | 100 % | 100 % | n/a | n/a | n/a | n/a | n/a | 0.50 s |\n"
        "\n"
        "Steps: workflows started and tools called, on average; repeated: steps taken before with the same "
        "parameters, of all steps; backtracks: returns to a workflow that had been left for another one; "
        "overhead: workflows started beyond the shortest path (optimalTools).\n"
        "\n"
        "Steps come from traces, which 19 of 20 trials have.\n"
        "\n"
        "Of what tests name as `optimalTools`, 2 steps did not run, or not in that order.\n"
        "\n"
        "Of the time of all trials, 1 m 40 s: agent 50 %, simulated user 30 %, judge 15 %, the rest 5 %.\n"
        "\n"
        "The tests used 1 of 3 named parts of the agent's logic; never: rule `never`, rule `gone`.\n"
        "\n"
        "No longer used in the same tests: rule `gone` (in 4 trials of the baseline), "
        "rule `gone too` (in 2 trials of the baseline), rule `gone once` (in 1 trial of the baseline).\n"
        "\n"
        "Used now, but not in the same tests of the baseline: rule `new` (in 7 trials).\n"
        "\n"
        "</details>\n"
    )


def test_a_run_of_one_suite_and_one_of_none():
    """Has one row; a file that somebody else wrote may hold no suite."""
    one = build.results(build.suite_result("One", process=UNTOLD), process=WHOLE)
    assert "| One | 90 % |" in process.measures(one).text
    assert "| all | 90 % |" in process.measures(replace(one, suites=())).text


def test_without_a_trace():
    """Nothing is known of the agent's steps, and nothing is shown."""
    suite = build.suite_result("One", process=UNTOLD)
    assert process.measures(build.results(suite, process=UNTOLD, coverage=Coverage())) is None


def test_logic_that_stopped_firing_is_shown_unfolded():
    """With how often it did, and after all that fails; not what chance may well have lost."""
    section = process.lost(run())
    assert section.rank > Rank.REST
    assert section.text == (
        "**2 parts of the agent's logic are no longer used** in the compared tests: rule `gone` (in 4 trials "
        "of the baseline), rule `gone too` (in 2 trials of the baseline). The tests used 1 of 3 named parts "
        "of the agent's logic; also never: rule `never`.\n"
    )
    assert section in run_summary.sections(story_of(run()))


def test_without_a_loss_nothing_is_open():
    """Nor of a run that played nothing."""
    kept = Coverage(traced_trials=1, logic=(reach("a", 3, compared_trials=3, base_trials=3),))
    assert process.lost(run(coverage=kept)) is None
    assert process.measures(run(process=ProcessSummary())) is None
    assert process.of_suite(run(coverage=kept), build.suite_result("One")) is None


def test_a_trial_on_one_line():
    """What is nothing is not told, but for the steps; names are the agent's, and shown as such."""
    found = TrialProcess(
        steps=6,
        tools=4,
        begun=("A", "B_@here", "A"),
        repeated=1,
        calls=3,
        failed_calls=2,
        backtracks=1,
        missed=1,
        overhead=0.5,
    )
    trial = build.trial_result(process=found, times=Times(agent=2, user=61, judge=0.5, other=0.04))
    assert process.of_trial(trial) == (
        "6 steps · workflows `A` → B\\_@\u200bhere → `A` · 1 repeated · 2 of 3 calls failed · 1 backtrack · "
        "overhead +50 %, 1 missed · "
        "time: agent 2.0 s, simulated user 1 m 1 s, judge 0.5 s, the rest 0.0 s"
    )
    assert process.of_trial(build.trial_result(process=TrialProcess(steps=0))) == "0 steps"
    assert process.of_trial(build.trial_result()) is None
    many = TrialProcess(steps=14, begun=tuple("ABCDEFGHIJKLMN"))
    assert process.of_trial(build.trial_result(process=many)).endswith("→ `L` and 2 more")


def test_a_suite_and_a_test_tell_their_own():
    """Open, in the suite's summary and in the story of the test."""
    results = build.completed(build.results())
    (suite,) = results.suites
    assert "### Agent steps" in documents.suite_summary(story_of(results), suite, ["a"])
    assert "\n0 steps\n" in "".join(documents.test_report(story_of(results), suite, suite.tests[0]))
