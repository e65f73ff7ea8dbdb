from dataclasses import replace

import builders as build
import pytest
from plans import TEST_A, TEST_B, gate_decision, make_plan, trial

from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.results.gate import CheckKind, Decision
from ci_evals.domain.run_ending import RunEnding
from ci_evals.gate.checks import checks_of
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.gate.rules import RULES
from ci_evals.gate.selectors import Selector, SelectorKind, SelectorLimit, check_names, read_thresholds
from ci_evals.reports.story.gate import failure


def check_values(decision: Decision) -> dict[str, tuple]:
    return {c.name: (c.required, c.seen, c.seen_if_undecided_failed, c.passed) for c in decision.checks}


def test_exact_minimum_passes_and_a_score_below_it_is_not_rounded_up():
    assert gate_decision(make_plan(TEST_A), trial("passed*4", "failed")).exit_code == 0
    below = gate_decision(make_plan(TEST_A), trial("passed*3.9", "failed*1.1"))
    assert (below.exit_code, below.passed) == (1, False)
    assert check_values(below)["min-score"] == (80, 78, 78, False)
    exact = trial("passed*0.1", "passed*0.2", "failed*0.7")
    assert gate_decision(make_plan(TEST_A), exact, min_score=30).exit_code == 0
    (check, _) = gate_decision(make_plan(TEST_A), trial("passed*1e6", "failed*1e-300"), min_score=100).checks
    assert check.seen < 100
    assert (check.passed, numbers.score(check.seen)) == (False, "99.9")


def test_min_score_takes_undecided_verdicts_as_failed_and_unreached_are_no_errors():
    """The score shown and the one that decides stand side by side."""
    decision = gate_decision(make_plan(TEST_A), trial("passed", "judge_error"), max_errors=9)
    assert (check_values(decision)["min-score"], decision.exit_code) == ((80, 100, 50, False), 1)
    # As any undecided verdict, but not against max-errors: the floor alone decides.
    trials = (trial("passed"), trial("not_reached", status="escalated"))
    for floor, code in [(80, 1), (51, 1), (50, 0)]:
        decision = gate_decision(make_plan(TEST_A, TEST_B), *trials, min_score=floor)
        assert check_values(decision)["min-score"] == (floor, 100, 50, code == 0)
        assert decision.exit_code == code


def test_errored_trials_above_the_limit_or_a_run_without_a_score_leave_no_verdict():
    decision = gate_decision(make_plan(TEST_A, TEST_B), trial("passed"), trial(status="failed"))
    assert (decision.exit_code, decision.passed) == (3, False)
    assert check_values(decision)["max-errors"] == (0, 1, None, False)
    assert decision.reasons[0] == "1 of 2 trials errored"
    played, limits = (trial("passed"), trial(status="failed")), {"max_errors": 1, "min_score": 50}
    assert gate_decision(make_plan(TEST_A, TEST_B), *played, **limits).exit_code == 0
    # That nothing was scored follows, and is not said.
    assert gate_decision(make_plan(TEST_A), trial(status="agent_error")).reasons == ("1 of 1 trial errored",)
    # Without a score even with errors allowed and no floor, or if no turn was reached.
    for one in (trial("not_reached", status="escalated"), trial(status="agent_error")):
        decision = gate_decision(make_plan(TEST_A), one, max_errors=5, min_score=0)
        assert (decision.exit_code, decision.reasons) == (3, ("nothing could be scored",))


def test_critical_test_must_pass_every_trial_and_reach_every_turn():
    """Unreached turns are the agent's doing: the run failed, and has a verdict."""
    for trials, options, code, errors in (
        ([trial("not_reached", status="escalated")], {}, 1, 0),
        ([trial("passed*9", "not_reached", status="escalated")], {}, 1, 0),
        ([trial("passed", "not_reached", status="escalated")], {"min_score": 0}, 1, 0),
        ([trial("passed", "failed", "not_reached", status="escalated")], {}, 1, 0),
        ([trial("not_reached", status="agent_error")], {}, 1, 1),
        ([trial("passed", "not_reached", status="agent_error")], {}, 1, 1),
        # What else is missing leaves no verdict all the same.
        ([trial("no_evidence", "not_reached", status="escalated")], {}, 3, 1),
        ([trial("judge_error", "not_reached", status="agent_error")], {}, 3, 1),
    ):
        plan = make_plan(TEST_A | {"critical": True})
        decision = gate_decision(plan, *trials, **options)
        assert (decision.exit_code, decision.passed) == (code, False)
        assert check_values(decision)["critical:a"][3] is False
        assert check_values(decision)["max-errors"][1] == errors
    # One failing trial of three is too many, whatever the score; so is none at all, as a file may have.
    plan = make_plan(TEST_A | {"critical": True}, TEST_B, loops=3)
    trials = [trial("passed*9", "failed" if i == 2 else "passed", index=i) for i in (1, 2, 3)]
    decision = gate_decision(plan, *trials, *(trial("passed", index=i) for i in (1, 2, 3)))
    required, seen, _, passed = check_values(decision)["critical:a"]
    assert (decision.exit_code, required, round(seen, 1), passed) == (1, 100, 66.7, False)
    results = build.results(build.suite_result("S", build.test_result("a", critical=True, trials=())))
    (check,) = (c for c in checks_of(GateInput(results), Policy()) if c.name == "critical:a")
    assert (check.seen, check.passed) == (None, False)


def test_offline_run_leaves_out_verdicts_that_need_a_model_also_of_critical_tests():
    """The same thresholds serve the wiring run and the real one; the check says so."""
    for outcomes, offline, code in [
        *((("passed", "no_judge"), True, 0), (("passed", "no_user"), True, 0)),
        *((("passed", "no_user"), False, 3), (("no_user",), True, 3), (("passed", "no_evidence"), True, 3)),
    ]:
        assert gate_decision(make_plan(TEST_A), trial(*outcomes), offline=offline).exit_code == code
    plan = make_plan(TEST_A | {"evaluations": [{"criterion": "c", "category": "tone"}]}, TEST_B)
    threshold = SelectorLimit(Selector(SelectorKind.CATEGORY, "tone"), 100)
    trials = (trial("no_judge", category="tone"), trial("passed"))
    check = gate_decision(plan, *trials, offline=True, thresholds=(threshold,)).checks[1]
    assert (check.passed, check.seen) == (None, None)
    assert "provider offline" in check.note
    online = gate_decision(plan, *trials, thresholds=(threshold,), max_errors=9).checks[1]
    assert (online.passed, online.seen, online.seen_if_undecided_failed) == (False, None, 0)
    # A critical check is not applied if nothing was decided; what else is missing counts against it.
    plan, other = make_plan({"name": "a", "critical": True}, TEST_B), trial("passed")
    judged = gate_decision(plan, trial("no_judge"), other, offline=True)
    check = judged.checks[1]
    assert (check.passed, judged.exit_code) == (None, 0)
    assert check.note.startswith("all of its criteria need a model")
    for outcome, code in (("passed", 0), ("failed", 1), ("no_evidence", 1)):
        first = trial(outcome, "no_judge")
        decision = gate_decision(plan, first, other, offline=True, max_errors=1, min_score=0)
        assert (decision.checks[1].passed, decision.exit_code) == (code == 0, code)
    errored = gate_decision(plan, trial("no_judge", status="failed"), other, offline=True, max_errors=1)
    online = gate_decision(plan, trial("no_judge"), other, max_errors=1, min_score=0)
    assert (errored.checks[1].passed, online.checks[1].passed) == (False, False)


def test_minimum_scores_and_thresholds_are_separate_checks():
    """Categories and logic ids are those of the evaluations in the suite."""
    plan = make_plan(TEST_A | {"minScore": 60}, TEST_B, minScore=70)
    decision = gate_decision(plan, trial("passed", "failed"), trial("passed"), min_score=0)
    assert check_values(decision)["suite:S"][1:] == (75, 75, True)
    assert (check_values(decision)["test:a"], decision.exit_code) == ((60, 50, 50, False), 1)
    criterion = {"criterion": "c", "category": "tone", "aui_logic": ["R1"]}
    plan = make_plan(TEST_A | {"tags": ["x"], "difficulty": "easy", "evaluations": [criterion]}, TEST_B)
    text = "suite:S=70,test:b=100\ncategory:tone=50, tag:x=50\nlogic:R1=51\ndifficulty:easy=0"
    first = trial("passed", "failed", category="tone", aui_logic=("R1",))
    decision = gate_decision(plan, first, trial("passed"), min_score=0, thresholds=read_thresholds(text))
    passed = ("min-score", "suite:S", "test:b", "category:tone", "tag:x", "difficulty:easy", "max-errors")
    expected = dict.fromkeys(passed, True) | {"logic:R1": False}
    assert {name: check[3] for name, check in check_values(decision).items()} == expected


def test_thresholds_may_have_commas_in_names_and_are_rejected_if_malformed():
    """Commas and equals signs in names do no harm."""
    for text, expected in (
        *((None, []), (" \n ", []), ("test:a=1", [("test", "a", 1)])),
        ("test:a, b and c=80,category:x=5.5", [("test", "a, b and c", 80), ("category", "x", 5.5)]),
        ("test:is 2=2?=90", [("test", "is 2=2?", 90)]),
        ("test:a: b=9\nsuite: S = 100 ", [("test", "a: b", 9), ("suite", "S", 100)]),
    ):
        assert [(t.selector.kind, t.selector.name, t.limit) for t in read_thresholds(text)] == expected
    for text in ("80", "test=80", "tst:a=80", "test:a", "test:a=", "test:a=101", "test:a=-1"):
        with pytest.raises(UsageError, match="KIND:NAME=SCORE"):
            read_thresholds(text)


def test_threshold_of_unselected_test_is_not_checked_and_of_unknown_test_rejected():
    """A filtered run is not measured by the tests that it left out; an unknown one would guard nothing."""
    threshold = SelectorLimit(Selector(SelectorKind.TEST, "left out"), 100)
    check = gate_decision(make_plan(TEST_A), trial("passed"), thresholds=(threshold,)).checks[1]
    assert (check.passed, check.note) == (None, "none of its tests was selected for this run")
    suites = [make_plan(TEST_A).suites[0].suite]
    with pytest.raises(UsageError, match="there is no test 'aa'; did you mean 'a'"):
        check_names("thresholds", [SelectorLimit(Selector(SelectorKind.TEST, "aa"), 5)], suites)
    with pytest.raises(UsageError, match="there is no tag 'x'; available: none"):
        check_names("thresholds", [SelectorLimit(Selector(SelectorKind.TAG, "x"), 5)], suites)


def test_exit_code_is_decided_by_interruption_then_validity_then_failure():
    """`--no-gate` forgives only the last."""
    for trials, ending, enforced, code in (
        (["failed"], RunEnding(), True, 1),
        (["failed"], RunEnding(), False, 0),
        (["judge_error"], RunEnding(), False, 3),
        (["passed"], RunEnding(interrupted=True), False, 130),
        (["judge_error"], RunEnding(interrupted=True), True, 130),
        (["passed"], RunEnding(stopped_because="a bug", bug=True, interrupted=True), False, 70),
        (["passed"], RunEnding(stopped_because="the key was refused"), True, 3),
    ):
        decision = gate_decision(make_plan(TEST_A), trial(*trials), ending=ending, enforced=enforced)
        assert decision.exit_code == code


def test_fail_fast_is_the_first_failed_check_and_unstarted_tests_fail_none():
    """Nothing is known of critical tests that did not start."""
    critical = (TEST_B | {"critical": True, "minScore": 90}, {"name": "c", "critical": True})
    plan = make_plan(TEST_A, *critical, loops=2)
    ending = RunEnding(stopped_because="a trial failed 'c' (fail-fast)", failed_fast=True)
    trials = [trial("passed"), trial("failed", index=2), trial("passed"), None, None, None]
    decision = gate_decision(plan, *trials, ending=ending, min_score=50)
    assert decision.exit_code == 1
    passed = [(name, True) for name in ("min-score", "test:b", "critical:b", "max-errors")]
    assert [(check.name, check.passed) for check in decision.checks] == [("fail-fast", False), *passed]


def two_suites(*trials, names=("Shop", "Desk"), test=None, **policy) -> Decision:
    """The gate over two suites with a test of one name each, a trial for each."""
    both = [make_plan({"name": "Refund"} | (test or {}), name=name).suites[0] for name in names]
    both = [replace(suite, file=f"{place}.json") for place, suite in enumerate(both)]
    return gate_decision(Plan(suites=tuple(both), loops=1), *trials, **policy)


def test_checks_of_equally_named_critical_tests_name_their_suites():
    """Each says whose it is, in its name and for programs; so do two suites of one name."""
    both = {"test": {"critical": True}, "min_score": 0}
    decision = two_suites(trial("passed"), trial("failed"), **both)
    one, other = [check for check in decision.checks if check.kind is CheckKind.CRITICAL]
    assert (one.name, one.suite, one.suite_number, one.passed) == ("critical:Shop › Refund", "Shop", 1, True)
    assert (other.name, other.suite, other.suite_number) == ("critical:Desk › Refund", "Desk", 2)
    assert (other.passed, one.test, one.test_number, other.test_number) == (False, "Refund", 1, 1)
    assert one.key != other.key
    alike = two_suites(trial("passed"), trial("failed"), names=("Shop", "Shop"), **both)
    named = [check.name for check in alike.checks if check.kind is CheckKind.CRITICAL]
    assert named == ["critical:Shop (0.json) › Refund", "critical:Shop (1.json) › Refund"]


def test_check_of_test_named_like_an_option_has_its_own_kind_and_wording():
    plan = make_plan({"name": "max-drop suite:X", "minScore": 90, "critical": True})
    floor, critical = gate_decision(plan, trial("failed"), min_score=0).checks[1:3]
    assert (floor.kind, floor.test, critical.kind) == ("min-score", "max-drop suite:X", "critical")
    sentence = "the score of the test “max-drop suite:X” of the suite “S” is 0, at least 90"
    assert sentence in failure(floor, build.results())


def test_threshold_is_checked_for_each_test_or_suite_of_that_name():
    """A good one does not make up for a bad one: their mean of 80 would."""
    for text, names, shown in (
        ("test:Refund=80", ("Shop", "Desk"), ["test:Shop › Refund", "test:Desk › Refund"]),
        ("suite:Shop=80", ("Shop", "Shop"), ["suite:Shop (0.json)", "suite:Shop (1.json)"]),
    ):
        trials, floors = (trial("passed"), trial("passed*6", "failed*4")), read_thresholds(text)
        decision = two_suites(*trials, names=names, min_score=0, thresholds=floors)
        result = [check for check in decision.checks if check.kind is CheckKind.THRESHOLD]
        assert [(check.name, check.passed) for check in result] == [(shown[0], True), (shown[1], False)]
        assert {check.selector for check in result} == {text.partition("=")[0]}
        assert decision.exit_code == 1


def test_missing_required_baseline_leaves_no_verdict():
    """Even if no check needs it; without the requirement the run passes, and says what was not checked."""
    result = gate_decision(make_plan(TEST_A), trial("passed"), max_drop=5)
    assert (result.exit_code, result.passed) == (0, True)
    assert (result.checks[1].name, result.checks[1].passed) == ("max-drop", None)
    required = gate_decision(make_plan(TEST_A), trial("passed"), baseline_required=True)
    assert (required.exit_code, required.passed) == (3, False)
    assert required.reasons == ("not compared with the required baseline: there is no baseline",)


def test_policy_with_unknown_limit_is_rejected():
    """A limit that no rule has would guard nothing."""
    changed = replace(Policy(max_cost=2, max_errors=3), max_cost=1)
    assert changed == Policy(max_cost=1, max_errors=3)
    for wrong in (lambda: Policy(min_scor=95), lambda: replace(changed, min_scor=95)):
        with pytest.raises(TypeError, match="min_scor"):
            wrong()


def test_each_kind_of_check_has_one_rule_and_each_option_belongs_to_one():
    """Whoever words a check, draws it or estimates its noise asks its rule."""
    assert sorted(rule.kind for rule in RULES) == sorted(CheckKind)
    options = [option for rule in RULES for option in rule.options]
    assert len({option.name for option in options}) == len(options)
    for option in options:
        assert option.names or option.kind is not str, option
        assert option.accepts(None) is False, option
