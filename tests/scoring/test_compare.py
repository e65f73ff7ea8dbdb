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

ANY, SIGNIFICANT = Regression.ANY, Regression.SIGNIFICANT


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


PASSED, FAILED = points(100, 100, 100), points(0, 0, 0)


def run(run_id: str, tests: dict[str, tuple], *, suite: str = "S", info=None, **fields) -> Results:
    """Results of one suite: trials by the name of their test."""
    made = [build.test_result(name, trials=trials) for name, trials in tests.items()]
    result = build.run_info(id=run_id, **(info or {}))
    return build.results(build.suite_result(suite, *made, **fields), run=result)


def comparer(head: dict, base: dict, **fields) -> RunComparer:
    return RunComparer(run("head", head, **fields), run("base", base))


def comparison_of(head: dict, base: dict, **fields) -> Comparison:
    return comparer(head, base, **fields).comparison()


def one_test_suite(name: str, score: float, **fields):
    return build.suite_result(name, build.test_result("a", trials=points(score)), **fields)


def names(listed) -> list[str]:
    return [item.name for item in listed]


def test_tests_are_paired_by_name_if_their_digests_agree():
    """New, removed and changed tests are in no number."""
    head = run("head", {"a": points(50), "b": points(100), "c": points(100)})
    (suite,) = head.suites
    changed = replace(suite.tests[1], digest="u" * 64)
    suite = replace(suite, tests=(suite.tests[0], changed, suite.tests[2]))
    base = run("base", {"a": points(75), "b": points(0), "d": points(0)})
    result = RunComparer(replace(head, suites=(suite,)), base).comparison()
    assert (result.comparable, result.tests, result.base, result.head, result.delta) == (True, 1, 75, 50, -25)
    assert (names(result.new), names(result.removed), names(result.changed)) == (["c"], ["d"], ["b"])


def test_score_change_is_averaged_over_the_tests_of_both_runs():
    """(100 - 50 + 0) / 2 against (100 + 0) / 2."""
    result = comparison_of({"a": PASSED, "b": points(50)}, {"a": points(100), "b": points(0, 0)})
    assert (result.delta, result.head, result.base) == (25, 75, 50)


def test_p_of_a_change_is_enumerated_or_drawn_repeatably():
    # Two tests that lost all of three trials: 1 of 20 arrangements each. One trial each proves nothing.
    result = comparison_of(dict.fromkeys("ab", FAILED), dict.fromkeys("ab", PASSED))
    assert (result.delta, result.p, result.test, result.smallest_p) == (-100, 1 / 400, "enumerated", 1 / 400)
    single = comparison_of(dict.fromkeys("abcd", points(0)), dict.fromkeys("abcd", points(100)))
    assert (single.p, single.smallest_p) == (1 / 16, 1 / 16)
    assert single.trials_needed >= 1
    head = {f"t{i}": points(*[(i * 7 + k * 13) % 100 for k in range(3)]) for i in range(30)}
    base = {f"t{i}": points(*[(i * 11 + k * 5) % 100 for k in range(3)]) for i in range(30)}
    first = comparison_of(head, base)
    assert (first.test, first) == ("drawn", comparison_of(head, base))


OFFLINE = "the provider of judge and simulated user changed from openai to offline"


@each_row(("info", "fields", "reason"), [
    ({"digests": {"judge_prompt": "x"}}, {}, "the judge's prompt changed"),
    ({"digests": {"user_prompt": "x"}}, {}, "the simulated user's prompt, or its audit"),
    ({"digests": {"scoring": "0"}}, {}, "the rules by which scores are computed changed"),
    ({"digests": {"models": "x"}}, {}, "the models of judge or simulated user changed"),
    ({"config": {"provider": "offline"}}, {}, OFFLINE),
    ({}, {"judge_model": "gpt-2"}, "the judge changed from none to gpt-2"),
    ({}, {"user_model": "gpt-2"}, "the simulated user changed from none to gpt-2"),
])  # fmt: skip
def test_runs_with_another_judge_or_user_are_not_compared_and_checks_say_why(info, fields, reason):
    """The gate's checks name the reason for which they were not applied."""
    if "digests" in info:
        info = {"digests": replace(build.run_info().digests, **info["digests"])}
    head = run("head", {"a": points(0, 0)}, info=info, **fields)
    pairs = RunComparer(head, run("base", {"a": points(100, 100)}))
    outcome = pairs.comparison()
    assert (outcome.comparable, outcome.delta, outcome.p, outcome.interval) == (False, None, None, None)
    assert (outcome.regressed, outcome.suites[0].comparable) == ((), False)
    assert any(reason in result for result in outcome.reasons)
    policy = Policy(min_score=0, max_drop=0, regression=SIGNIFICANT)
    decision = decide(GateInput(head, pairs), policy, RunEnding())
    checks = [check(decision, name) for name in ("max-drop", "regression")]
    assert ([one.passed for one in checks], decision.exit_code) == ([None, None], 0)
    assert all(reason in one.note for one in checks)


def test_another_embedding_model_prevents_comparison_only_if_both_runs_needed_one():
    """A suite that needed no embeddings, as before a test was added to it, can be compared."""
    for here, there, reason in (
        *[("m", "n", "the embedding model changed from n to m"), ("m", None, None), (None, "n", None)],
        ("m", "no_model", "the embedding model changed from none to m"),
        ("no_model", "n", "the embedding model changed from n to none"),
        *[("no_model", "no_model", None), ("m", "m", None)],
    ):

        def run_with(name, model):
            undecided = [build.finding("undecided", cause="no_model")] if model == "no_model" else []
            trial = build.trial_result(findings=(build.finding(), *undecided))
            return run(name, {"a": (trial,)}, embedding_model=None if model == "no_model" else model)

        result = RunComparer(run_with("head", here), run_with("base", there)).comparison()
        assert list(result.reasons) == ([reason] if reason else [])


def test_only_suites_with_another_judge_are_excluded_with_the_reason_once():
    """Other loops, agents and commits are what one wants to compare."""
    digests = replace(build.run_info().digests, agents="x", loops="y", suites="z")
    info = {"digests": digests, "git": Git(commit="abc")}
    assert comparison_of({"a": points(50)}, {"a": points(100)}, info=info, agent_id="agent-2").delta == -50
    here = build.results(one_test_suite("S", 0), one_test_suite("T", 50, judge_model="new"))
    there = build.results(one_test_suite("S", 100), one_test_suite("T", 100, judge_model="old"))
    result = RunComparer(here, there).comparison()
    assert (result.comparable, result.tests, result.delta) == (True, 1, -100)
    assert result.reasons == ("T: the judge changed from old to new",)
    assert [suite.comparable for suite in result.suites] == [True, False]
    sides = [[one_test_suite(name, 100, judge_model=judge) for name in "ST"] for judge in ("new", "old")]
    judges = RunComparer(*(build.results(*suites) for suites in sides)).comparison()
    assert judges.reasons == ("the judge changed from old to new",)


def test_runs_without_a_common_test_or_suite_are_not_compared_with_the_reason():
    others = comparison_of({"a": points(0)}, {"b": points(100)})
    assert (others.comparable, others.delta) == (False, None)
    assert others.reasons == ("no test has the same definition in the baseline",)
    assert (names(others.new), names(others.removed)) == (["a"], ["b"])
    renamed = comparison_of({"a": points(0)}, {"a": points(100)}, suite="T")
    assert renamed.reasons == ("the baseline has no suite of this name",)
    pairs = comparer({"a": points(0)}, {"b": points(0)})
    assert pairs.change(pairs.pairs).tests == 0


def test_newly_failing_and_fixed_tests_have_evidence_and_undecided_counts_as_failing():
    """An undecided test counts as newly failing, an interrupted one does not."""
    result = comparison_of({"a": points(100, 40), "b": PASSED}, {"a": PASSED, "b": points(0, 100)})
    (regressed,), (fixed,) = result.regressed, result.fixed
    assert (regressed.name, regressed.base, regressed.head) == ("a", 100, 70)
    assert (regressed.evidence.trial, regressed.evidence.turn) == (2, 1)
    assert (regressed.evidence.reason, regressed.evidence.agent) == ("because", "I have started the refund.")
    assert (fixed.name, fixed.evidence.trial) == ("b", 1)
    # Else a broken judge would hide what broke.
    head = {"a": points("judge_error"), "b": points("failed"), "c": points("no_judge")}
    result = comparison_of(head, dict.fromkeys("abc", points(100)))
    assert names(result.regressed) == ["a", "c"]
    assert result.regressed[0].evidence.reason.startswith("undecided: ")


def test_suspect_is_confirmed_only_with_enough_trials_beside_other_tests():
    """Three trials a side, 1 of 20, are no proof if three other tests could have shown as much."""
    noisy = {f"t{i}": points(0, 100, 100) for i in range(3)}, {f"t{i}": points(0, 0, 100) for i in range(3)}
    (suspect,) = comparison_of({"a": FAILED} | noisy[0], {"a": PASSED} | noisy[1]).suspects
    assert (suspect.name, suspect.delta, suspect.p, suspect.confirmed) == ("a", -100, None, False)
    # Seven of seven against five: 1 of 792.
    steady = {f"t{i}": points(100, 60, 80) for i in range(3)}
    (suspect,) = comparison_of({"a": points(*[0] * 7)} | steady, {"a": points(*[100] * 5)} | steady).suspects
    assert suspect.confirmed
    assert suspect.p <= 0.05


def gate_of(head: dict, base: dict, **policy):
    made = run("head", head)
    case = GateInput(made, comparer=RunComparer(made, run("base", base)) if base else None)
    return to_record(decide(case, Policy(**({"min_score": 0} | policy)), RunEnding()))


def check(decision, name):
    (result,) = (item for item in decision.checks if item.name == name)
    return result


def test_drop_equal_to_max_drop_passes_and_undecided_verdicts_are_drops():
    for allowed, passed in [(24.9, False), (25, True), (30, True)]:
        decision = gate_of({"a": points(75)}, {"a": points(100)}, max_drop=allowed)
        result = check(decision, "max-drop")
        assert (result.required, result.seen, result.passed) == (allowed, 25, passed)
        assert (result.seen_if_undecided_failed, decision.exit_code) == (25, 0 if passed else 1)
    # Binary numbers have no say: 99.9 against 100 is a drop of 0.1.
    assert gate_of({"a": points(99.9)}, {"a": points(100)}, max_drop=0.1).passed
    limits = [(SelectorKind.CATEGORY, "tone", 10), (SelectorKind.TEST, "b", 0), (SelectorKind.SUITE, "S", 5)]
    drops = tuple(SelectorLimit(Selector(kind, name), limit) for kind, name, limit in limits)
    head = {"a": points(100, category="facts"), "b": (trial("failed", category="tone"),)}
    base = {"a": points(100, category="facts"), "b": (trial("passed", category="tone"),)}
    decision = gate_of(head, base, max_drops=drops)
    assert {c.name: (c.seen, c.passed) for c in decision.checks if c.name.startswith("max-drop")} == {
        "max-drop category:tone": (100, False),
        "max-drop test:b": (100, False),
        "max-drop suite:S": (50, False),
    }
    # An undecided verdict counts as failed in the run, but not in the baseline.
    undecided = {"a": points("judge_error")}
    result = check(gate_of(undecided, undecided, max_drop=10, max_errors=5), "max-drop")
    assert (result.seen, result.seen_if_undecided_failed, result.passed) == (0, 50, False)


def test_regression_mode_fails_on_any_newly_failing_test_or_only_a_proven_drop():
    """Whatever the score; a script may name the mode as text, as on the command line."""
    for regression in (ANY, "any"):
        head, base = {"a": points(99), "b": points(100)}, {"a": points(100), "b": points(0)}
        decision = gate_of(head, base, regression=regression)
        result = check(decision, "regression")
        assert (result.required, result.seen, result.passed, decision.exit_code) == (0, 1, False, 1)
        assert "a" in result.note
        assert gate_of(base, base, regression=regression).passed
        with pytest.raises(UsageError, match="`regression=all`: name one of off, any, significant"):
            Policy(regression="all")
    proven = gate_of(dict.fromkeys("ab", FAILED), dict.fromkeys("ab", PASSED), regression=SIGNIFICANT)
    result = check(proven, "regression")
    assert (result.required, result.seen, result.passed, proven.exit_code) == (0.05, 0.0025, False, 1)
    noise = gate_of({"a": points(0, 100, 100)}, {"a": PASSED}, regression=SIGNIFICANT)
    assert (check(noise, "regression").seen, noise.passed) == (0.5, True)
    assert gate_of({"a": PASSED}, {"a": FAILED}, regression=SIGNIFICANT).passed


def test_errored_trials_that_could_change_gate_leave_no_verdict_unless_expected():
    """Between all of them failed and all passed, 50 and 100, lies a floor of 80, and none of 40."""
    for score, floor, code in [(100, 80, 3), (100, 40, 0), (0, 80, 1)]:
        assert gate_of({"a": points(score, "failed")}, {}, min_score=floor, max_errors=1).exit_code == code
    invalid = gate_of({"a": points(100, "failed")}, {"a": PASSED}, max_drop=10, max_errors=1)
    assert invalid.exit_code == 3
    assert "would decide the verdict" in invalid.reasons[0]
    critical = make_plan(TEST_A | {"critical": True}, TEST_B)
    played = (trial(status="failed"), trial("passed"))
    assert gate_decision(critical, *played, max_errors=1, min_score=0).exit_code == 3
    # It passed in the baseline: had it failed, the gate would have failed.
    head = {f"t{i}": points(100) for i in range(9)}
    errored = head | {"t0": points("failed")}
    assert gate_of(errored, head, regression=ANY, max_errors=1).exit_code == 3
    assert gate_of(head, head, regression=ANY, max_errors=1).exit_code == 0
    findings = (build.finding(strict="escalated_due_to_error"),)
    error = replace(trial("passed", status="agent_error"), findings=findings)
    assert gate_decision(make_plan(TEST_A, TEST_B), error, trial("passed"), min_score=80).exit_code == 0


def test_value_equal_to_a_limit_passes_and_an_infinite_limit_is_rejected():
    slow = replace(trial("passed"), turns=Turns([build.turn(latency_seconds=9)]))
    assert gate_decision(make_plan(TEST_A), slow, max_p95_latency=9).passed
    result = check(gate_decision(make_plan(TEST_A), slow, max_p95_latency=8.9), "max-p95-latency")
    assert (result.required, result.seen, result.passed) == (8.9, 9, False)
    assert gate_decision(make_plan(TEST_A), trial("passed"), max_cost=0).passed
    for limit in ("max_cost", "max_p95_latency", "min_score", "max_drop"):
        with pytest.raises(UsageError, match="is not a limit"):
            Policy(**{limit: float("inf")})


def near_thresholds(*args, **policy):
    checks = gate_of(*args, **policy).checks
    return tuple(near_threshold(check) for check in checks if leaves_drop_possible(check))


def test_checks_note_a_missing_or_partial_baseline():
    decision = gate_of({"a": points(0)}, {}, max_drop=0, regression=ANY)
    checks = [check(decision, name) for name in ("max-drop", "regression")]
    assert [(one.passed, one.note) for one in checks] == [(None, "there is no baseline")] * 2
    assert decision.passed
    head = {"a": points(50), "b": points(0)}
    decision = gate_of(head, {"a": points(50)}, max_drop=1, regression=SIGNIFICANT)
    assert check(decision, "max-drop").note == "on 1 of 2 tests"
    assert check(decision, "regression").note.endswith("; on 1 of 2 tests")


def test_threshold_near_the_drop_is_noted_with_its_interval_or_chance():
    now = {f"t{i}": points(100, 100 if i % 4 else 40) for i in range(12)}
    before = {f"t{i}": points(100, 100) for i in range(12)}
    (reason,) = near_thresholds(now, before, max_drop=10, min_score=90)
    assert reason.startswith("max-drop: 10 lies within ")
    assert near_thresholds(now, before, max_drop=60) == ()
    sides = (dict.fromkeys("ab", FAILED), dict.fromkeys("ab", PASSED))
    (result,) = near_thresholds(*sides, regression=SIGNIFICANT)
    assert result == "regression: chance alone shows such a drop with p = 0.002"
    assert near_thresholds({"a": points(0, 100, 100)}, {"a": PASSED}, regression=SIGNIFICANT) == ()
    # The words stand beside the numbers of the tables.
    for p in (0, 1.57e-05, 0.0024, 0.0499, 0.0504, 0.1875, 0.25):
        one = build.check(name="regression", required=0.05, seen=p, passed=True)
        assert leaves_drop_possible(one)
        assert near_threshold(one).endswith(f" with {numbers.p_value(p)}")


some_scores = st.sampled_from([0, 25, 60, 100])
tests = st.lists(st.lists(some_scores, min_size=1, max_size=3), min_size=1, max_size=4)


@settings(max_examples=examples(150))
@given(tests, tests, st.sampled_from(Regression), st.integers(0, 100), st.data())
def test_undecided_verdict_never_makes_a_failed_baseline_check_pass(head, base, rule, drop, data):
    here = {f"t{i}": points(*trials) for i, trials in enumerate(head)}
    there = {f"t{i}": points(*trials) for i, trials in enumerate(base)}
    name = data.draw(st.sampled_from(sorted(here)))
    index = data.draw(st.integers(0, len(here[name]) - 1))
    old = here[name][index]
    which = data.draw(st.integers(0, len(old.findings) - 1))
    findings, undecided = list(old.findings), list(here[name])
    findings[which] = replace(findings[which], outcome="undecided", cause="judge_error")
    undecided[index] = replace(old, findings=tuple(findings))
    policy = {"regression": rule, "max_drop": drop, "max_errors": 9}
    before = gate_of(here, there, **policy)
    after = gate_of(here | {name: tuple(undecided)}, there, **policy)
    assert before.passed or not after.passed


def test_interval_of_a_change_stays_within_possible_scores():
    """A perfect baseline cannot be surpassed, and from 0 nothing falls; so for suites and parts."""
    fell = comparison_of({"a": points(100, 60), "b": points(100, 100)}, dict.fromkeys("ab", points(100, 100)))
    rose = comparison_of({"a": points(0, 20), "b": points(0, 0)}, dict.fromkeys("ab", points(0, 0)))
    for result in (fell, *fell.suites):
        assert -100 <= result.interval.low < result.delta < result.interval.high == 0
    for result in (rose, *rose.suites):
        assert 0 == result.interval.low < result.delta < result.interval.high <= 100


def test_required_baseline_that_proves_or_compares_nothing_leaves_no_verdict():
    """Neither in all of it nor only in the part that a check is about."""
    passed = dict.fromkeys("ab", points(100))
    policy = {"min_score": 0, "baseline_required": True}
    assert gate_of(passed, passed, **policy).exit_code == 0
    judged = run("head", passed, judge_model="other")
    case = GateInput(judged, RunComparer(judged, run("base", passed)))
    decision = to_record(decide(case, Policy(**policy), RunEnding()))
    assert decision.exit_code == 3
    reason = "not compared with the required baseline: the judge changed from none to other"
    assert reason in decision.reasons[0]
    part = gate_of(passed, {"a": points(100)}, max_drops=read_drops("test:b=5")[1], **policy)
    assert (part.exit_code, check(part, "max-drop test:b").passed) == (3, None)
    (reason,) = part.reasons
    assert reason == "max-drop test:b was not checked: none of its tests can be compared with the baseline"
    # A drop that too few trials could prove is no pass: nothing could have failed it. It stays possible.
    fell = gate_of({"a": points(0)}, {"a": points(100)}, regression=SIGNIFICANT)
    result = check(fell, "regression")
    assert (result.passed, fell.exit_code) == (None, 0)
    assert "the score fell, but there are too few trials to tell a drop from chance" in result.note
    policy = {"regression": SIGNIFICANT, "baseline_required": True}
    required = gate_of({"a": points(0, 0)}, {"a": points(100, 100)}, **policy)
    assert required.exit_code == 3
    assert any(map(leaves_drop_possible, required.checks))


def suites_of_one_name(run_id: str, **trials: tuple) -> Results:
    """Results of several suites of one name, in files of these names, with a test of one name each."""
    tests = {f"{file}.json": build.test_result("a", trials=played) for file, played in trials.items()}
    suites = (build.suite_result("S", test, file=file) for file, test in tests.items())
    return build.results(*suites, run=build.run_info(id=run_id))


def test_suites_and_tests_of_one_name_are_paired_by_file_and_order():
    """Else a new suite stands in for one that got worse. If nobody knows which is which, none is paired."""
    for head, base, changes in (
        ({"new": 100, "old": 0}, {"old": 100}, [-100]),
        ({"b": 100, "a": 0}, {"a": 0, "b": 100}, [0, 0]),
        ({"a": 0}, {"new": 0, "a": 100}, [-100]),
        ({"moved/a": 0, "moved/b": 50}, {"a": 100, "b": 50}, [-100, 0]),
        ({"x": 0, "y": 100}, {"z": 100}, []),
    ):
        sides = [{file: points(score) for file, score in side.items()} for side in (head, base)]
        result = RunComparer(suites_of_one_name("head", **sides[0]), suites_of_one_name("base", **sides[1]))
        assert list(result.comparison().deltas) == changes
        assert len(result.newly_failing()) == changes.count(-100)
    # In two files of one name each; or tests of whose names a secret was taken.
    here, there = [[one_test_suite("S", score) for score in scores] for scores in ((100, 0), (100, 50))]
    result = RunComparer(build.results(*here), build.results(*there)).comparison()
    assert [suite.delta for suite in result.suites] == [0, -50]
    tests = [build.test_result("Login as ***", trials=points(score)) for score in (100, 50)]
    made = build.results(build.suite_result("S", *tests))
    result = RunComparer(made, made).comparison()
    assert (result.tests, result.new, result.removed) == (2, (), ())
    # Of two suites of one name, of which one surely fell and the other perhaps.
    head = suites_of_one_name("head", a=points(*[0] * 6), b=points(0, 100, 100, 0, 100, 100))
    base = suites_of_one_name("base", a=points(*[100] * 6), b=points(*[100] * 6))
    result = RunComparer(head, base).comparison()
    for listed in (result.suspects, result.regressed):
        assert [(round(test.delta), test.confirmed) for test in listed] == [(-100, True), (-33, False)]
