"""A run against its baseline. `score=50` of a trial: half of its weight passed."""

from dataclasses import replace

import builders as build
import pytest
from each_row import each_row
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import TEST_A, TEST_B, gate_decision, make_plan, trial
from property_examples import examples

from ci_evals.domain import numbers
from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.comparison import Comparison
from ci_evals.domain.results.run import Git, Results
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.transcript import Turns
from ci_evals.gate.decision import decide, leaves_drop_possible
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.gate.selectors import Selector, SelectorKind, SelectorLimit, read_drops
from ci_evals.job.conclude import to_record
from ci_evals.reports.story.gate import near_threshold
from ci_evals.scoring.comparison.compare import RunComparer


def points(*scores: float | str, **fields) -> tuple:
    """Trials with these scores; a text is an outcome, or how a trial without findings ended."""
    made = []
    for index, score in enumerate(scores, start=1):
        if isinstance(score, str) and score in {"failed", "agent_error", "interrupted"}:
            made.append(trial(status=score, index=index))
        elif isinstance(score, str):
            made.append(trial("passed", score, index=index))
        else:
            parts = [f"passed*{score}"] * (score > 0) + [f"failed*{100 - score}"] * (score < 100)
            made.append(trial(*parts, index=index, **fields))
    return tuple(made)


def run(run_id: str, tests: dict[str, tuple], *, suite: str = "S", info=None, **fields) -> Results:
    """Results of one suite: trials by the name of their test."""
    made = [build.test_result(name, trials=trials) for name, trials in tests.items()]
    result = build.run_info(id=run_id, **(info or {}))
    return build.results(build.suite_result(suite, *made, **fields), run=result)


def comparer(head: Results, base: Results) -> RunComparer:
    return RunComparer(head, base)


def compared(head: dict, base: dict, **fields) -> Comparison:
    return comparer(run("head", head, **fields), run("base", base)).comparison()


def names(listed) -> list[str]:
    return [item.name for item in listed]


def test_tests_are_paired_by_name_where_their_digests_agree():
    """New, removed and changed tests stand apart and are in no number."""
    head = run("head", {"a": points(50), "b": points(100), "c": points(100)})
    (suite,) = head.suites
    changed = replace(suite.tests[1], digest="u" * 64)
    suite = replace(suite, tests=(suite.tests[0], changed, suite.tests[2]))
    base = run("base", {"a": points(75), "b": points(0), "d": points(0)})
    comparison = comparer(replace(head, suites=(suite,)), base).comparison()
    assert (comparison.comparable, comparison.tests, comparison.base, comparison.head, comparison.delta) == (
        True,
        1,
        75,
        50,
        -25,
    )
    assert (names(comparison.new), names(comparison.removed), names(comparison.changed)) == (
        ["c"],
        ["d"],
        ["b"],
    )


def test_the_change_is_a_mean_over_tests():
    """Whatever their numbers of trials: (100 - 50 + 0) / 2 against (100 + 0) / 2."""
    comparison = compared(
        {"a": points(100, 100, 100), "b": points(50)}, {"a": points(100), "b": points(0, 0)}
    )
    assert (comparison.delta, comparison.head, comparison.base) == (25, 75, 50)


def test_the_permutation_is_enumerated_where_it_is_small():
    """Two tests that lost everything in all of three trials: 1 of 20 arrangements each, 1 of 400 in all."""
    lost, held = points(0, 0, 0), points(100, 100, 100)
    comparison = compared({"a": lost, "b": lost}, {"a": held, "b": held})
    assert (comparison.delta, comparison.p, comparison.test) == (-100, 1 / 400, "enumerated")
    assert comparison.smallest_p == 1 / 400


def test_one_trial_each_cannot_prove_anything():
    """Four tests of one trial: sixteen arrangements, so p is 1/16 at best, and how many would do is told."""
    tests = [f"t{i}" for i in range(4)]
    comparison = compared(dict.fromkeys(tests, points(0)), dict.fromkeys(tests, points(100)))
    assert (comparison.p, comparison.smallest_p) == (1 / 16, 1 / 16)
    assert comparison.trials_needed >= 1


def test_the_same_files_give_the_same_numbers():
    """Also where arrangements are drawn."""
    head = run("head", {f"t{i}": points(*[(i * 7 + k * 13) % 100 for k in range(3)]) for i in range(30)})
    base = run("base", {f"t{i}": points(*[(i * 11 + k * 5) % 100 for k in range(3)]) for i in range(30)})
    first, second = comparer(head, base).comparison(), comparer(head, base).comparison()
    assert first.test == "drawn"
    assert first == second


@each_row(
    ("info", "fields", "reason"),
    [
        ({"digests": {"judge_prompt": "x"}}, {}, "the judge's prompt changed"),
        ({"digests": {"user_prompt": "x"}}, {}, "the simulated user's prompt, or its audit"),
        ({"digests": {"scoring": "0"}}, {}, "the rules by which scores are computed changed"),
        ({"digests": {"models": "x"}}, {}, "the models of judge or simulated user changed"),
        (
            {"config": {"provider": "offline"}},
            {},
            "the provider of judge and simulated user changed from openai to offline",
        ),
        ({}, {"judge_model": "gpt-2"}, "the judge changed from none to gpt-2"),
        ({}, {"user_model": "gpt-2"}, "the simulated user changed from none to gpt-2"),
    ],
)
def test_no_number_where_the_yardstick_changed(info, fields, reason):
    """But the reason, and the gate's checks say that they were not applied."""
    if "digests" in info:
        digests = build.run_info().digests
        info = {"digests": replace(digests, **info["digests"])}
    head = run("head", {"a": points(0, 0)}, info=info, **fields)
    pairs = comparer(head, run("base", {"a": points(100, 100)}))
    comparison = pairs.comparison()
    assert (
        comparison.comparable,
        comparison.delta,
        comparison.p,
        comparison.interval,
        comparison.regressed,
    ) == (
        False,
        None,
        None,
        None,
        (),
    )
    assert any(reason in result for result in comparison.reasons)
    assert not comparison.suites[0].comparable
    policy = Policy(min_score=0, max_drop=0, regression=Regression.SIGNIFICANT)
    decision = decide(GateInput(head, pairs), policy, RunEnding())
    drop, regression = (c for c in decision.checks if c.name in {"max-drop", "regression"})
    assert (drop.passed, regression.passed, decision.exit_code) == (None, None, 0)
    assert reason in drop.note
    assert reason in regression.note


@each_row(
    ("here", "there", "reason"),
    [
        ("m", "n", "the embedding model changed from n to m"),
        ("m", None, None),
        (None, "n", None),
        ("m", "no_model", "the embedding model changed from none to m"),
        ("no_model", "n", "the embedding model changed from n to none"),
        ("no_model", "no_model", None),
        ("m", "m", None),
    ],
)
def test_another_embedding_model_is_another_yardstick(here, there, reason):
    """A suite that wanted no meanings compared, as before a test was added to it, is no other yardstick."""

    def side(name, model):
        undecided = [build.finding("undecided", cause="no_model")] if model == "no_model" else []
        trial = build.trial_result(findings=(build.finding(), *undecided))
        return run(name, {"a": (trial,)}, embedding_model=None if model == "no_model" else model)

    comparison = comparer(side("head", here), side("base", there)).comparison()
    assert list(comparison.reasons) == ([reason] if reason else [])


def test_other_loops_agents_and_commits_can_be_compared():
    """They are what one wants to compare."""
    digests = replace(build.run_info().digests, agents="x", loops="y", suites="z")
    info = {"digests": digests, "git": Git(commit="abc")}
    head = run("head", {"a": points(50)}, info=info, agent_id="agent-2")
    assert comparer(head, run("base", {"a": points(100)})).comparison().delta == -50


def test_only_the_suite_with_another_judge_is_left_out():
    """The others can be compared, and the reason is told."""
    here = [
        build.suite_result("S", build.test_result("a", trials=points(0))),
        build.suite_result("T", build.test_result("b", trials=points(50)), judge_model="new"),
    ]
    there = [
        build.suite_result("S", build.test_result("a", trials=points(100))),
        build.suite_result("T", build.test_result("b", trials=points(100)), judge_model="old"),
    ]
    comparison = comparer(build.results(*here), build.results(*there)).comparison()
    assert (comparison.comparable, comparison.tests, comparison.delta) == (True, 1, -100)
    assert comparison.reasons == ("T: the judge changed from old to new",)
    assert [suite.comparable for suite in comparison.suites] == [True, False]


def test_reason_shared_by_all_suites_is_shown_once():
    """As of another judge."""

    def played(judge):
        names = ("S", "T")
        return build.results(
            *(build.suite_result(n, build.test_result("a"), judge_model=judge) for n in names)
        )

    comparison = comparer(played("new"), played("old")).comparison()
    assert comparison.reasons == ("the judge changed from old to new",)


def test_comparison_without_pairs_says_so():
    """A run of other tests altogether."""
    comparison = compared({"a": points(0)}, {"b": points(100)})
    assert (comparison.comparable, comparison.delta) == (False, None)
    assert comparison.reasons == ("no test has the same definition in the baseline",)
    assert (names(comparison.new), names(comparison.removed)) == (["a"], ["b"])


def test_suites_of_one_name_are_paired_in_their_order():
    """They are two files."""
    here = [build.suite_result("S", build.test_result("a", trials=points(score))) for score in (100, 0)]
    there = [build.suite_result("S", build.test_result("a", trials=points(score))) for score in (100, 50)]
    comparison = comparer(build.results(*here), build.results(*there)).comparison()
    assert [suite.delta for suite in comparison.suites] == [0, -50]


def test_newly_failing_and_fixed_tests_show_why():
    """With the criterion, its reason, and the turn that shows it: of the side on which it fails."""
    comparison = compared(
        {"a": points(100, 40), "b": points(100, 100)}, {"a": points(100, 100), "b": points(0, 100)}
    )
    (regressed,), (fixed,) = comparison.regressed, comparison.fixed
    assert (regressed.name, regressed.base, regressed.head) == ("a", 100, 70)
    assert (regressed.evidence.trial, regressed.evidence.turn) == (2, 1)
    assert (regressed.evidence.reason, regressed.evidence.agent) == ("because", "I have started the refund.")
    assert (fixed.name, fixed.evidence.trial) == ("b", 1)


def test_an_undecided_verdict_is_no_pass_for_newly_failing_tests():
    """Else a broken judge would hide what broke; a trial that was cut off says nothing."""
    error = compared(
        {"a": points("judge_error"), "b": points("failed"), "c": points("no_judge")},
        dict.fromkeys("abc", points(100)),
    )
    assert names(error.regressed) == ["a", "c"]
    assert error.regressed[0].evidence.reason.startswith("undecided: ")


def test_suspects_fell_by_fifteen_points():
    """With three trials a side 1 of 20 is no proof where three other tests could have shown as much."""
    others = {f"t{i}": points(0, 100, 100) for i in range(3)}, {f"t{i}": points(0, 0, 100) for i in range(3)}
    comparison = compared({"a": points(0, 0, 0), **others[0]}, {"a": points(100, 100, 100), **others[1]})
    (suspect,) = comparison.suspects
    assert (suspect.name, suspect.delta, suspect.p, suspect.confirmed) == ("a", -100, None, False)


def test_more_trials_confirm_a_suspect():
    """Seven of seven against five: 1 of 792."""
    steady = {f"t{i}": points(100, 60, 80) for i in range(3)}
    comparison = compared({"a": points(*[0] * 7), **steady}, {"a": points(*[100] * 5), **steady})
    (suspect,) = comparison.suspects
    assert suspect.confirmed
    assert suspect.p <= 0.05


def decided(head: dict, base: dict, **policy):
    made = run("head", head)
    case = GateInput(
        made,
        comparer=comparer(made, run("base", base)) if base else None,
    )
    return to_record(decide(case, Policy(**({"min_score": 0} | policy)), RunEnding()))


def check(decision, name):
    (found,) = (item for item in decision.checks if item.name == name)
    return found


@pytest.mark.parametrize(("allowed", "holds"), [(24.9, False), (25, True), (30, True)])
def test_the_score_may_fall_by_max_drop_at_most(allowed, holds):
    """Exactly so much is allowed."""
    decision = decided({"a": points(75)}, {"a": points(100)}, max_drop=allowed)
    found = check(decision, "max-drop")
    assert (found.required, found.seen, found.seen_if_undecided_failed, found.passed) == (
        allowed,
        25,
        25,
        holds,
    )
    assert decision.exit_code == (0 if holds else 1)


def test_a_drop_of_a_tenth_is_a_tenth():
    """Binary numbers have no say: 99.9 against 100 is a drop of 0.1."""
    assert decided({"a": points(99.9)}, {"a": points(100)}, max_drop=0.1).passed


def test_undecided_counts_as_failed_against_the_score_that_the_baseline_showed():
    """The head's undecided verdict costs, the baseline's does not."""
    found = check(
        decided({"a": points("judge_error")}, {"a": points("judge_error")}, max_drop=10, max_errors=5),
        "max-drop",
    )
    assert (found.seen, found.seen_if_undecided_failed, found.passed) == (0, 50, False)


def test_drops_of_parts():
    """Tests by suite, test, tag and difficulty; findings by category and logic."""
    drops = (
        SelectorLimit(Selector(SelectorKind.CATEGORY, "tone"), 10),
        SelectorLimit(Selector(SelectorKind.TEST, "b"), 0),
        SelectorLimit(Selector(SelectorKind.SUITE, "S"), 5),
    )
    head = {"a": points(100, category="facts"), "b": (trial("failed", category="tone"),)}
    base = {"a": points(100, category="facts"), "b": (trial("passed", category="tone"),)}
    decision = decided(head, base, max_drops=drops)
    assert {c.name: (c.seen, c.passed) for c in decision.checks if c.name.startswith("max-drop")} == {
        "max-drop category:tone": (100, False),
        "max-drop test:b": (100, False),
        "max-drop suite:S": (50, False),
    }


def test_any_regression_fails_the_gate():
    """One test that passed and now does not, whatever the score."""
    head, base = {"a": points(99), "b": points(100)}, {"a": points(100), "b": points(0)}
    decision = decided(head, base, regression=Regression.ANY)
    found = check(decision, "regression")
    assert (found.required, found.seen, found.passed, decision.exit_code) == (0, 1, False, 1)
    assert "a" in found.note
    assert decided(base, base, regression=Regression.ANY).passed


def test_a_significant_drop_fails_the_gate():
    """And one that may be noise does not."""
    held, lost = points(100, 100, 100), points(0, 0, 0)
    proven = decided({"a": lost, "b": lost}, {"a": held, "b": held}, regression=Regression.SIGNIFICANT)
    found = check(proven, "regression")
    assert (found.required, found.seen, found.passed, proven.exit_code) == (0.05, 0.0025, False, 1)
    noise = decided({"a": points(0, 100, 100)}, {"a": held}, regression=Regression.SIGNIFICANT)
    assert check(noise, "regression").seen == 0.5
    assert noise.passed
    better = decided({"a": held}, {"a": lost}, regression=Regression.SIGNIFICANT)
    assert better.passed


def test_without_a_baseline_nothing_is_held_against_it():
    """And the checks say so."""
    decision = decided({"a": points(0)}, {}, max_drop=0, regression=Regression.ANY)
    notes = [check(decision, name).note for name in ("max-drop", "regression")]
    assert (decision.passed, notes) == (True, ["there is no baseline"] * 2)
    assert [check(decision, name).passed for name in ("max-drop", "regression")] == [None, None]


def test_lost_trials_that_would_decide_make_the_run_invalid():
    """Between all of them failed and all passed, 50 and 100, lies a floor of 80, and none of 40."""
    lost = {"max_errors": 1}
    assert decided({"a": points(100, "failed")}, {}, min_score=80, **lost).exit_code == 3
    assert decided({"a": points(100, "failed")}, {}, min_score=40, **lost).exit_code == 0
    assert decided({"a": points(0, "failed")}, {}, min_score=80, **lost).exit_code == 1
    invalid = decided({"a": points(100, "failed")}, {"a": points(100, 100)}, max_drop=10, **lost)
    assert invalid.exit_code == 3
    assert "would decide the verdict" in invalid.reasons[0]


def test_a_lost_trial_of_a_critical_test_decides_too():
    """It neither passed nor failed."""
    plan = make_plan(TEST_A | {"critical": True}, TEST_B)
    decision = gate_decision(plan, trial(status="failed"), trial("passed"), max_errors=1, min_score=0)
    assert decision.exit_code == 3


def test_an_error_that_the_test_asks_for_is_not_lost():
    """It ended as it should."""
    error = replace(
        trial("passed", status="agent_error"), findings=(build.finding(strict="escalated_due_to_error"),)
    )
    assert gate_decision(make_plan(TEST_A, TEST_B), error, trial("passed"), min_score=80).exit_code == 0


def test_budgets():
    """Dollars and seconds."""
    slow = replace(trial("passed"), turns=Turns([build.turn(latency_seconds=9)]))
    assert gate_decision(make_plan(TEST_A), slow, max_p95_latency=9).passed
    found = check(gate_decision(make_plan(TEST_A), slow, max_p95_latency=8.9), "max-p95-latency")
    assert (found.required, found.seen, found.passed) == (8.9, 9, False)
    assert gate_decision(make_plan(TEST_A), trial("passed"), max_cost=0).passed


def close(*args, **policy):
    checks = decided(*args, **policy).checks
    return tuple(near_threshold(check) for check in checks if leaves_drop_possible(check))


def test_a_limit_inside_the_interval_is_close():
    """One far above it is not, nor is any floor: it is not about a drop."""
    now = {f"t{i}": points(100, 100 if i % 4 else 40) for i in range(12)}
    before = {f"t{i}": points(100, 100) for i in range(12)}
    (reason,) = close(now, before, max_drop=10, min_score=90)
    assert reason.startswith("max-drop: 10 lies within ")
    assert close(now, before, max_drop=60) == ()


def test_a_suspicious_drop_is_close_however_small_its_p():
    """A p above 0.25 is no suspicion."""
    held, lost = points(100, 100, 100), points(0, 0, 0)
    (result,) = close({"a": lost, "b": lost}, {"a": held, "b": held}, regression=Regression.SIGNIFICANT)
    assert result == "regression: chance alone shows such a drop with p = 0.002"
    assert close({"a": points(0, 100, 100)}, {"a": held}, regression=Regression.SIGNIFICANT) == ()


@each_row("p", [0, 1.57e-05, 0.0024, 0.0499, 0.0504, 0.1875, 0.25])
def test_a_close_p_is_written_as_in_every_report(p):
    """The words stand beside the numbers of the tables."""
    check = build.check(name="regression", required=0.05, seen=p, passed=True)
    assert leaves_drop_possible(check)
    assert near_threshold(check).endswith(f" with {numbers.p_value(p)}")


some_scores = st.sampled_from([0, 25, 60, 100])
tests = st.lists(st.lists(some_scores, min_size=1, max_size=3), min_size=1, max_size=4)


@settings(max_examples=examples(150))
@given(tests, tests, st.sampled_from(Regression), st.integers(0, 100), st.data())
def test_an_undecided_verdict_never_opens_a_gate_that_the_baseline_closed(head, base, rule, drop, data):
    """The law, for what is held against a baseline."""
    here = {f"t{i}": points(*trials) for i, trials in enumerate(head)}
    there = {f"t{i}": points(*trials) for i, trials in enumerate(base)}
    name = data.draw(st.sampled_from(sorted(here)))
    place = data.draw(st.integers(0, len(here[name]) - 1))
    old = here[name][place]
    which = data.draw(st.integers(0, len(old.findings) - 1))
    found = list(old.findings)
    found[which] = replace(found[which], outcome="undecided", cause="judge_error")
    spoilt = list(here[name])
    spoilt[place] = replace(old, findings=tuple(found))
    policy = {"regression": rule, "max_drop": drop, "max_errors": 9}
    before = decided(here, there, **policy)
    after = decided(here | {name: tuple(spoilt)}, there, **policy)
    assert before.passed or not after.passed


def test_the_change_of_nothing():
    """No pair, no number."""
    pairs = comparer(run("head", {"a": points(0)}), run("base", {"b": points(0)}))
    assert pairs.change(pairs.pairs).tests == 0


def test_a_test_that_broke_off_decides_any_regression():
    """It passed in the baseline: had it failed, the gate would not hold."""
    head = {f"t{i}": points(100) for i in range(9)}
    decision = decided(head | {"t0": points("failed")}, head, regression=Regression.ANY, max_errors=1)
    assert decision.exit_code == 3
    assert decided(head, head, regression=Regression.ANY, max_errors=1).exit_code == 0


def test_tests_of_one_name_are_paired_in_their_order():
    """As where a secret was taken out of their names."""
    tests = [build.test_result("Login as ***", trials=points(score)) for score in (100, 50)]
    made = build.results(build.suite_result("S", *tests))
    comparison = comparer(made, made).comparison()
    assert (comparison.tests, comparison.new, comparison.removed) == (2, (), ())


def test_renamed_suite_is_reported():
    """Not that its tests were defined differently."""
    comparison = comparer(
        run("head", {"a": points(0)}, suite="T"), run("base", {"a": points(100)})
    ).comparison()
    assert comparison.reasons == ("the baseline has no suite of this name",)


def test_number_of_compared_tests_is_reported():
    """Where it is not all."""
    decision = decided(
        {"a": points(50), "b": points(0)}, {"a": points(50)}, max_drop=1, regression=Regression.SIGNIFICANT
    )
    assert check(decision, "max-drop").note == "on 1 of 2 tests"
    assert check(decision, "regression").note.endswith("; on 1 of 2 tests")


def test_a_mode_of_the_gate_may_be_given_as_text():
    """A newly failing test fails `any`, in a script as on the command line."""
    failing = decided({"a": points(0, 100, 100)}, {"a": points(100, 100, 100)}, regression="any")
    assert not check(failing, "regression").passed
    with pytest.raises(UsageError, match="`regression=all`: name one of off, any, significant"):
        Policy(regression="all")


@pytest.mark.parametrize("limit", ["max_cost", "max_p95_latency", "min_score", "max_drop"])
def test_a_limit_without_end_is_refused(limit):
    """It would guard nothing."""
    with pytest.raises(UsageError, match="is not a limit"):
        Policy(**{limit: float("inf")})


def test_the_interval_of_a_change_lies_within_what_is_possible():
    """A perfect baseline cannot be surpassed, and from 0 nothing falls; so for suites and parts."""
    perfect, nothing = {"a": points(100, 100), "b": points(100, 100)}, {"a": points(0, 0), "b": points(0, 0)}
    worse = comparer(run("head", {"a": points(100, 60), "b": points(100, 100)}), run("base", perfect))
    better = comparer(run("head", {"a": points(0, 20), "b": points(0, 0)}), run("base", nothing))
    fell, rose = worse.comparison(), better.comparison()
    for found in (fell, *fell.suites):
        assert -100 <= found.interval.low < found.delta < found.interval.high == 0
    for found in (rose, *rose.suites):
        assert 0 == found.interval.low < found.delta < found.interval.high <= 100


def test_a_required_baseline_that_cannot_be_compared_leaves_no_verdict():
    """Whether all of it is another yardstick or only the part that a check is about."""
    passed = {"a": points(100), "b": points(100)}
    policy = {"min_score": 0, "baseline_required": True}
    assert decided(passed, passed, **policy).exit_code == 0
    judged = run("head", passed, judge_model="other")
    case = GateInput(judged, comparer(judged, run("base", passed)))
    decision = to_record(decide(case, Policy(**policy), RunEnding()))
    assert decision.exit_code == 3
    assert (
        "not compared with the required baseline: the judge changed from none to other" in decision.reasons[0]
    )
    drops = read_drops("test:b=5")[1]
    part = decided(passed, {"a": points(100)}, max_drops=drops, **policy)
    assert (part.exit_code, check(part, "max-drop test:b").passed) == (3, None)
    assert part.reasons == (
        "max-drop test:b was not checked: none of its tests can be compared with the baseline",
    )


def test_a_drop_that_so_few_trials_could_not_prove_is_not_checked():
    """It is no pass: nothing could have failed it. A drop stays possible."""
    fell = decided({"a": points(0)}, {"a": points(100)}, regression=Regression.SIGNIFICANT)
    found = check(fell, "regression")
    assert (found.passed, fell.exit_code) == (None, 0)
    assert "the score fell, but there are too few trials to tell a drop from chance" in found.note
    required = decided(
        {"a": points(0, 0)},
        {"a": points(100, 100)},
        regression=Regression.SIGNIFICANT,
        baseline_required=True,
    )
    assert required.exit_code == 3
    assert any(map(leaves_drop_possible, required.checks))


def suites(run_id: str, **trials: tuple) -> Results:
    """Results of several suites of one name, in files of these names, with a test of one name each."""
    made = [
        build.suite_result("S", build.test_result("a", trials=played), file=f"{file}.json")
        for file, played in trials.items()
    ]
    return build.results(*made, run=build.run_info(id=run_id))


@pytest.mark.parametrize(
    ("head", "base", "changes"),
    [
        ({"new": 100, "old": 0}, {"old": 100}, [-100]),
        ({"b": 100, "a": 0}, {"a": 0, "b": 100}, [0, 0]),
        ({"a": 0}, {"new": 0, "a": 100}, [-100]),
        ({"moved/a": 0, "moved/b": 50}, {"a": 100, "b": 50}, [-100, 0]),
        ({"x": 0, "y": 100}, {"z": 100}, []),
    ],
)
def test_suites_of_one_name_are_paired_by_their_files(head, base, changes):
    """Else a new suite stands in for one that got worse. If nobody knows which is which, none is paired."""
    sides = [{file: points(score) for file, score in side.items()} for side in (head, base)]
    found = comparer(suites("head", **sides[0]), suites("base", **sides[1]))
    assert list(found.comparison().deltas) == changes
    assert len(found.newly_failing()) == changes.count(-100)


def test_tests_of_one_name_have_a_p_of_their_own():
    """Of two suites of one name, of which one surely fell and the other perhaps."""
    head = suites("head", a=points(*[0] * 6), b=points(0, 100, 100, 0, 100, 100))
    base = suites("base", a=points(*[100] * 6), b=points(*[100] * 6))
    found = comparer(head, base).comparison()
    for listed in (found.suspects, found.regressed):
        assert [(round(test.delta), test.confirmed) for test in listed] == [(-100, True), (-33, False)]
