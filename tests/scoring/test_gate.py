from dataclasses import replace

import builders as build
import pytest
from each_row import each_row
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
from ci_evals.gate.selectors import (
    Selector,
    SelectorKind,
    SelectorLimit,
    check_names,
    read_thresholds,
)
from ci_evals.reports.story.gate import failure


def checks(decision: Decision) -> dict[str, tuple]:
    return {c.name: (c.required, c.seen, c.seen_if_undecided_failed, c.passed) for c in decision.checks}


def test_the_run_score_must_reach_the_floor():
    """Exactly reaching it is enough."""
    assert gate_decision(make_plan(TEST_A), trial("passed*4", "failed")).exit_code == 0
    below = gate_decision(make_plan(TEST_A), trial("passed*3.9", "failed*1.1"))
    assert (below.exit_code, below.passed) == (1, False)
    assert checks(below)["min-score"] == (80, 78, 78, False)


def test_decimal_weights_add_up_exactly():
    """0.1 + 0.2 of 0.3 + 0.7 is thirty points, not a hair less."""
    assert (
        gate_decision(
            make_plan(TEST_A), trial("passed*0.1", "passed*0.2", "failed*0.7"), min_score=30
        ).exit_code
        == 0
    )


def test_undecided_counts_as_failed_for_floors():
    """The score shown and the one that decides stand side by side."""
    decision = gate_decision(make_plan(TEST_A), trial("passed", "judge_error"), max_errors=9)
    assert checks(decision)["min-score"] == (80, 100, 50, False)
    assert decision.exit_code == 1


def test_unsound_trials_make_the_run_invalid_whatever_its_score():
    """More than are allowed: exit 3, with the reason."""
    decision = gate_decision(make_plan(TEST_A, TEST_B), trial("passed"), trial(status="failed"))
    assert (decision.exit_code, decision.passed) == (3, False)
    assert checks(decision)["max-errors"] == (0, 1, None, False)
    assert decision.reasons[0] == "1 of 2 trials errored"
    allowed = gate_decision(
        make_plan(TEST_A, TEST_B), trial("passed"), trial(status="failed"), max_errors=1, min_score=50
    )
    assert allowed.exit_code == 0


def test_that_every_trial_errored_is_reason_enough():
    """That nothing was scored follows."""
    decision = gate_decision(make_plan(TEST_A), trial(status="agent_error"))
    assert decision.reasons == ("1 of 1 trial errored",)


@each_row(
    ("trials", "options", "code", "errors"),
    [
        ([trial("not_reached", status="escalated")], {}, 1, 0),
        ([trial("passed*9", "not_reached", status="escalated")], {}, 1, 0),
        ([trial("passed", "not_reached", status="escalated")], {"min_score": 0}, 1, 0),
        ([trial("passed", "failed", "not_reached", status="escalated")], {}, 1, 0),
        ([trial("not_reached", status="agent_error")], {}, 1, 1),
        ([trial("passed", "not_reached", status="agent_error")], {}, 1, 1),
        # What else is missing leaves no verdict all the same.
        ([trial("no_evidence", "not_reached", status="escalated")], {}, 3, 1),
        ([trial("judge_error", "not_reached", status="agent_error")], {}, 3, 1),
    ],
)
def test_lines_that_the_agent_kept_from_being_sent_fail_a_critical_test(trials, options, code, errors):
    """It is the agent's doing: the run failed, and has a verdict."""
    plan = make_plan(TEST_A | {"critical": True})
    decision = gate_decision(plan, *trials, **options)
    assert (decision.exit_code, decision.passed) == (code, False)
    assert checks(decision)["critical:a"][3] is False
    assert checks(decision)["max-errors"][1] == errors


@pytest.mark.parametrize(("floor", "code"), [(80, 1), (51, 1), (50, 0)])
def test_not_reached_counts_as_failed_for_floors(floor, code):
    """As any undecided verdict, but not against max-errors: the floor alone decides."""
    decision = gate_decision(
        make_plan(TEST_A, TEST_B), trial("passed"), trial("not_reached", status="escalated"), min_score=floor
    )
    assert checks(decision)["min-score"] == (floor, 100, 50, code == 0)
    assert decision.exit_code == code


def test_a_run_in_which_no_line_was_reached_has_no_verdict_if_no_check_fails():
    """With a floor that nothing is below, nothing was shown."""
    decision = gate_decision(make_plan(TEST_A), trial("not_reached", status="escalated"), min_score=0)
    assert (decision.exit_code, decision.reasons) == (3, ("nothing could be scored",))


def test_nothing_scored_never_passes():
    """Even with errors allowed and no floor."""
    decision = gate_decision(make_plan(TEST_A), trial(status="agent_error"), max_errors=5, min_score=0)
    assert (decision.exit_code, decision.reasons) == (3, ("nothing could be scored",))


def test_offline_judged_criteria_do_not_fail_floors():
    """`no_judge` under the offline provider is apart."""
    assert gate_decision(make_plan(TEST_A), trial("passed", "no_judge"), offline=True).exit_code == 0
    assert gate_decision(make_plan(TEST_A), trial("passed", "no_user"), offline=True).exit_code == 0
    assert gate_decision(make_plan(TEST_A), trial("passed", "no_user")).exit_code == 3
    assert gate_decision(make_plan(TEST_A), trial("no_user"), offline=True).exit_code == 3
    assert gate_decision(make_plan(TEST_A), trial("passed", "no_evidence"), offline=True).exit_code == 3


def test_a_floor_on_judged_criteria_alone_is_not_applied_offline():
    """The same thresholds serve the wiring run and the real one; it says so."""
    plan = make_plan(TEST_A | {"evaluations": [{"criterion": "c", "category": "tone"}]}, TEST_B)
    threshold = SelectorLimit(Selector(SelectorKind.CATEGORY, "tone"), 100)
    trials = (trial("no_judge", category="tone"), trial("passed"))
    check = gate_decision(plan, *trials, offline=True, thresholds=(threshold,)).checks[1]
    assert (check.passed, check.seen) == (None, None)
    assert "provider offline" in check.note
    online = gate_decision(plan, *trials, thresholds=(threshold,), max_errors=9).checks[1]
    assert (online.passed, online.seen, online.seen_if_undecided_failed) == (False, None, 0)


def test_the_score_shown_does_not_reach_a_floor_that_it_missed():
    """Not by a hair of binary rounding."""
    decision = gate_decision(make_plan(TEST_A), trial("passed*1e6", "failed*1e-300"), min_score=100)
    (check, _) = decision.checks
    assert not check.passed
    assert check.seen < 100
    assert numbers.score(check.seen) == "99.9"


def test_critical_tests_must_pass_in_every_trial():
    """One failing trial of three is too many, whatever the score."""
    plan = make_plan(TEST_A | {"critical": True}, TEST_B, loops=3)
    trials = [trial("passed*9", "failed" if i == 2 else "passed", index=i) for i in (1, 2, 3)]
    decision = gate_decision(plan, *trials, *(trial("passed", index=i) for i in (1, 2, 3)))
    assert decision.exit_code == 1
    required, seen, _, holds = checks(decision)["critical:a"]
    assert (required, round(seen, 1), holds) == (100, 66.7, False)


def test_a_critical_test_without_a_trial_does_not_pass():
    """No run leaves one, but a file may tell of it."""
    results = build.results(build.suite_result("S", build.test_result("a", critical=True, trials=())))
    (check,) = (c for c in checks_of(GateInput(results), Policy()) if c.name == "critical:a")
    assert (check.seen, check.passed) == (None, False)


def test_floors_of_suite_and_test():
    """`minScore` in the file is a check of its own."""
    plan = make_plan(TEST_A | {"minScore": 60}, TEST_B, minScore=70)
    decision = gate_decision(plan, trial("passed", "failed"), trial("passed"), min_score=0)
    assert checks(decision)["suite:S"][1:] == (75, 75, True)
    assert checks(decision)["test:a"] == (60, 50, 50, False)
    assert decision.exit_code == 1


def test_thresholds_on_every_selector():
    """Each is one check over the part it names."""
    plan = make_plan(TEST_A | {"tags": ["x"], "difficulty": "easy"}, TEST_B)
    first = trial("passed", "failed", category="tone", aui_logic=("R1",))
    thresholds = read_thresholds(
        "suite:S=70,test:b=100\ncategory:tone=50, tag:x=50\nlogic:R1=51\ndifficulty:easy=0"
    )
    # Categories and logic ids are those of the evaluations in the suite.
    plan = make_plan(
        TEST_A
        | {
            "tags": ["x"],
            "difficulty": "easy",
            "evaluations": [{"criterion": "c", "category": "tone", "aui_logic": ["R1"]}],
        },
        TEST_B,
    )
    decision = gate_decision(plan, first, trial("passed"), min_score=0, thresholds=thresholds)
    assert {name: check[3] for name, check in checks(decision).items()} == {
        "min-score": True,
        "suite:S": True,
        "test:b": True,
        "category:tone": True,
        "tag:x": True,
        "logic:R1": False,
        "difficulty:easy": True,
        "max-errors": True,
    }


def test_a_threshold_on_what_was_not_selected_is_not_checked_and_says_so():
    """A filtered run is not measured by what it left out."""
    plan = make_plan(TEST_A)
    threshold = SelectorLimit(Selector(SelectorKind.TEST, "left out"), 100)
    decision = gate_decision(plan, trial("passed"), thresholds=(threshold,))
    assert decision.checks[1].passed is None
    assert decision.checks[1].note == "none of its tests was selected for this run"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (None, []),
        (" \n ", []),
        ("test:a=1", [("test", "a", 1)]),
        ("test:a, b and c=80,category:x=5.5", [("test", "a, b and c", 80), ("category", "x", 5.5)]),
        ("test:is 2=2?=90", [("test", "is 2=2?", 90)]),
        ("test:a: b=9\nsuite: S = 100 ", [("test", "a: b", 9), ("suite", "S", 100)]),
    ],
)
def test_reading_thresholds(text, read):
    """One per line or comma; commas and equals signs in names do no harm."""
    assert [(t.selector.kind, t.selector.name, t.limit) for t in read_thresholds(text)] == read


@each_row("text", ["80", "test=80", "tst:a=80", "test:a", "test:a=", "test:a=101", "test:a=-1"])
def test_unreadable_thresholds(text):
    """Are refused with the form that is wanted."""
    with pytest.raises(UsageError, match="KIND:NAME=SCORE"):
        read_thresholds(text)


def test_a_threshold_on_an_unknown_name_is_refused():
    """It would guard nothing."""
    suites = [make_plan(TEST_A).suites[0].suite]
    with pytest.raises(UsageError, match="there is no test 'aa'; did you mean 'a'"):
        check_names("thresholds", [SelectorLimit(Selector(SelectorKind.TEST, "aa"), 5)], suites)
    with pytest.raises(UsageError, match="there is no tag 'x'; available: none"):
        check_names("thresholds", [SelectorLimit(Selector(SelectorKind.TAG, "x"), 5)], suites)


@each_row(
    ("trials", "ending", "enforced", "code"),
    [
        (["failed"], RunEnding(), True, 1),
        (["failed"], RunEnding(), False, 0),
        (["judge_error"], RunEnding(), False, 3),
        (["passed"], RunEnding(interrupted=True), False, 130),
        (["judge_error"], RunEnding(interrupted=True), True, 130),
        (["passed"], RunEnding(stopped_because="a bug", bug=True, interrupted=True), False, 70),
        (["passed"], RunEnding(stopped_because="the key was refused"), True, 3),
    ],
)
def test_exit_codes(trials, ending, enforced, code):
    """Interrupted before invalid before failed; `--no-gate` forgives only the last."""
    assert (
        gate_decision(make_plan(TEST_A), trial(*trials), ending=ending, enforced=enforced).exit_code == code
    )


def test_what_was_not_begun_after_the_first_failure_fails_no_check():
    """That check comes first and says what failed; of critical tests that were not begun nothing is known."""
    plan = make_plan(
        TEST_A, TEST_B | {"critical": True, "minScore": 90}, {"name": "c", "critical": True}, loops=2
    )
    ending = RunEnding(stopped_because="a trial failed 'c' (fail-fast)", failed_fast=True)
    trials = [trial("passed"), trial("failed", index=2), trial("passed"), None, None, None]
    decision = gate_decision(plan, *trials, ending=ending, min_score=50)
    assert decision.exit_code == 1
    assert [(check.name, check.passed) for check in decision.checks] == [
        ("fail-fast", False),
        ("min-score", True),
        ("test:b", True),
        ("critical:b", True),
        ("max-errors", True),
    ]


def two_suites(*trials, names=("Shop", "Desk"), test=None, **policy) -> Decision:
    """The gate over two suites with a test of one name each, a trial for each."""
    both = [make_plan({"name": "Refund"} | (test or {}), name=name).suites[0] for name in names]
    both = [replace(suite, file=f"{place}.json") for place, suite in enumerate(both)]
    return gate_decision(Plan(suites=tuple(both), loops=1), *trials, **policy)


def test_critical_tests_of_one_name_are_two_checks():
    """Each says whose it is, in its name and for programs; so do two suites of one name."""
    decision = two_suites(trial("passed"), trial("failed"), test={"critical": True}, min_score=0)
    found = [check for check in decision.checks if check.kind is CheckKind.CRITICAL]
    assert [
        (one.name, one.suite, one.test, one.suite_number, one.test_number, one.passed) for one in found
    ] == [
        ("critical:Shop › Refund", "Shop", "Refund", 1, 1, True),
        ("critical:Desk › Refund", "Desk", "Refund", 2, 1, False),
    ]
    assert found[0].key != found[1].key
    alike = two_suites(
        trial("passed"), trial("failed"), names=("Shop", "Shop"), test={"critical": True}, min_score=0
    )
    named = [check.name for check in alike.checks if check.kind is CheckKind.CRITICAL]
    assert named == ["critical:Shop (0.json) › Refund", "critical:Shop (1.json) › Refund"]


@pytest.mark.parametrize(
    ("text", "names", "shown"),
    [
        ("test:Refund=80", ("Shop", "Desk"), ["test:Shop › Refund", "test:Desk › Refund"]),
        ("suite:Shop=80", ("Shop", "Shop"), ["suite:Shop (0.json)", "suite:Shop (1.json)"]),
    ],
)
def test_a_floor_of_a_name_that_two_share_holds_for_each(text, names, shown):
    """A good one does not make up for a bad one: their mean of 80 would."""
    trials = (trial("passed"), trial("passed*6", "failed*4"))
    decision = two_suites(*trials, names=names, min_score=0, thresholds=read_thresholds(text))
    found = [check for check in decision.checks if check.kind is CheckKind.THRESHOLD]
    assert [(check.name, check.passed) for check in found] == list(zip(shown, (True, False), strict=True))
    assert {check.selector for check in found} == {text.partition("=")[0]}
    assert decision.exit_code == 1


def test_a_check_with_a_tricky_name_is_read_by_its_keys_alone():
    """A test may be called like an option."""
    plan = make_plan({"name": "max-drop suite:X", "minScore": 90, "critical": True})
    decision = gate_decision(plan, trial("failed"), min_score=0)
    floor, critical = decision.checks[1:3]
    assert (floor.kind, floor.test, critical.kind) == ("min-score", "max-drop suite:X", "critical")
    assert "the score of the test “max-drop suite:X” of the suite “S” is 0, at least 90" in failure(
        floor, build.results()
    )


def test_a_critical_test_without_a_judge_counts_what_was_decided():
    """Where nothing was, it is not applied. What is missing for another cause counts against it."""
    a = {"name": "a", "critical": True}
    judged = gate_decision(make_plan(a, TEST_B), trial("no_judge"), trial("passed"), offline=True)
    check = judged.checks[1]
    assert (check.passed, judged.exit_code) == (None, 0)
    assert check.note.startswith("all of its criteria need a model")
    for outcomes, code in (
        (("passed", "no_judge"), 0),
        (("failed", "no_judge"), 1),
        (("no_evidence", "no_judge"), 1),
    ):
        decision = gate_decision(
            make_plan(a, TEST_B), trial(*outcomes), trial("passed"), offline=True, max_errors=1, min_score=0
        )
        assert decision.checks[1].passed is (code == 0)
        assert decision.exit_code == code
    broken = gate_decision(
        make_plan(a, TEST_B), trial("no_judge", status="failed"), trial("passed"), offline=True, max_errors=1
    )
    assert broken.checks[1].passed is False
    online = gate_decision(
        make_plan(a, TEST_B), trial("no_judge"), trial("passed"), max_errors=1, min_score=0
    )
    assert online.checks[1].passed is False


def test_a_required_baseline_that_is_missing_leaves_no_verdict():
    """Even where no check needs it; without the requirement the run passes, and says what was not checked."""
    found = gate_decision(make_plan(TEST_A), trial("passed"), max_drop=5)
    assert (found.exit_code, found.passed) == (0, True)
    assert (found.checks[1].name, found.checks[1].passed) == ("max-drop", None)
    required = gate_decision(make_plan(TEST_A), trial("passed"), baseline_required=True)
    assert (required.exit_code, required.passed) == (3, False)
    assert required.reasons == ("not compared with the required baseline: there is no baseline",)


def test_limits_are_named():
    """A limit that no rule has would guard nothing."""
    changed = replace(Policy(max_cost=2, max_errors=3), max_cost=1)
    assert changed == Policy(max_cost=1, max_errors=3)
    for wrong in (lambda: Policy(min_scor=95), lambda: replace(changed, min_scor=95)):
        with pytest.raises(TypeError, match="min_scor"):
            wrong()


def test_every_kind_of_check_has_one_rule():
    """Whoever words a check, draws it or estimates its noise asks its rule."""
    assert sorted(rule.kind for rule in RULES) == sorted(CheckKind)


@each_row("option", [option for rule in RULES for option in rule.options], ids=str)
def test_an_option_belongs_to_one_rule(option):
    """Its value reaches the rule, and its text says what it names."""
    assert sum(other.name == option.name for rule in RULES for other in rule.options) == 1
    assert option.names or option.kind is not str
    assert option.accepts(None) is False
