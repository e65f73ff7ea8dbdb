"""Which parts of the agent's logic fired: told of each kind by itself, and only where traces tell of it."""

from dataclasses import replace

import builders as build
from hypothesis import given
from hypothesis import strategies as st
from plans import make_plan

from ci_evals.domain.actions import LogicKind
from ci_evals.domain.results.process import Coverage, Fired, Reach
from ci_evals.domain.results.suite import ScoreGroup
from ci_evals.scoring import coverage
from ci_evals.scoring.comparison.pairing import TestPair

NOTHING = Fired(workflows=(), parameters=(), rules=(), integrations=())
WORKFLOW, PARAMETER, RULE, INTEGRATION = LogicKind


def fired(**names: str) -> Fired:
    """`rules="a b"`: these fired, and of the other kinds none."""
    return replace(NOTHING, **{kind: tuple(text.split()) for kind, text in names.items()})


def made_test(*trials: Fired | None, name: str = "t"):
    made = tuple(build.trial_result(i, fired=one) for i, one in enumerate(trials, 1))
    return build.test_result(name, trials=made)


def coverage_of(*tests, wanted=()) -> Coverage:
    return coverage.coverage_of([build.suite_result("S", *tests)], frozenset(wanted))


def pair(head: list[Fired | None], base: list[Fired | None]) -> TestPair:
    return TestPair("S", made_test(*head), made_test(*base))


def trials_by_logic(measured: Coverage) -> dict[str, tuple]:
    return {reach.name: (reach.trials, reach.compared_trials, reach.base_trials) for reach in measured.logic}


def names(reached) -> list[str]:
    return [reach.name for reach in reached]


def test_wanted_logic_is_read_from_positive_criteria_and_marked_by_its_kind():
    """Those that want the contrary ask for nothing, and a judge is asked in words."""
    strict = [
        *({"strict": "tool_used", "toolName": "W"}, {"strict": "tool_not_used", "toolName": "no W"}),
        {"strict": "param_equals", "paramName": "p", "paramValue": 1},
        *({"strict": "param_exists", "paramName": "q"}, {"strict": "param_not_exists", "paramName": "no q"}),
        *(
            {"strict": "rule_triggered", "ruleCode": "r"},
            {"strict": "rule_not_triggered", "ruleCode": "no r"},
        ),
        {"strict": "integration_called", "integrationCode": "i"},
        *({"strict": "escalated"}, {"aui_logic": ["A1"]}),
    ]
    plan = make_plan({"name": "t", "evaluations": [{"criterion": "c"} | one for one in strict]})
    parts = {(WORKFLOW, "W"), (PARAMETER, "p"), (PARAMETER, "q"), (RULE, "r"), (INTEGRATION, "i")}
    assert coverage.wanted_parts(plan) == parts
    assert (RULE, "R") in coverage.wanted_parts(plan, str.upper)
    # A check of calls names either a workflow or an integration; what fired shows which it is.
    wanted = [(WORKFLOW, "pay"), (WORKFLOW, "W"), (WORKFLOW, "X")]
    result = coverage_of(made_test(fired(integrations="pay", workflows="W")), wanted=wanted)
    expected = [(WORKFLOW, "W", True, 1), (WORKFLOW, "X", True, 0), (INTEGRATION, "pay", True, 1)]
    assert [(reach.kind, reach.name, reach.wanted, reach.trials) for reach in result.logic] == expected
    # Of whatever kind. Of one that no trace has a name for nothing is said.
    counts = {"score": 100, "tests": 1, "passed": 1, "failed": 0, "undecided": 0}
    groups = tuple(ScoreGroup(name=name, **counts) for name in ("r", "A1_terms"))
    suite = build.suite_result("S", made_test(fired(rules="r s")), aui_logic=groups)
    result = coverage.coverage_of([suite], frozenset())
    assert [(reach.name, reach.wanted) for reach in result.logic] == [("r", True), ("s", False)]
    suite = build.suite_result("S", made_test(Fired(workflows=("W",), rules=())))
    wanted = frozenset({(WORKFLOW, "W"), (RULE, "r"), (INTEGRATION, "i")})
    result = coverage.coverage_of([suite], wanted)
    assert trials_by_logic(result) == {"W": (1, None, None), "r": (0, None, None), "i": (None, None, None)}
    assert (names(coverage.named(result)), names(coverage.never(result))) == (["W", "r"], ["r"])
    results = build.results(suite, coverage=result)
    assert coverage.wanted_in(results.coverage, build.results().coverage) == wanted


def test_coverage_of_run_and_suite_counts_trials_in_which_their_logic_fired():
    """They are counted even if no criterion needs them, by kind and by name."""
    tests = made_test(fired(rules="b a", workflows="W"), fired(rules="b")), made_test(fired(rules="b"), None)
    logic = (
        Reach(kind=WORKFLOW, name="W", trials=1, tests=1, wanted=False),
        Reach(kind=RULE, name="a", trials=1, tests=1, wanted=True),
        Reach(kind=RULE, name="b", trials=3, tests=2, wanted=False),
    )
    assert coverage_of(*tests, wanted=[(RULE, "a")]) == Coverage(traced_trials=3, logic=logic)
    # A suite lists neither what never fired in it nor what the baseline's fired.
    suites = [build.suite_result(name, made_test(fired(rules=name))) for name in ("S", "T")]
    whole = coverage.coverage_of(suites, frozenset({(RULE, "S"), (RULE, "never")}))
    whole = coverage.compared(whole, [pair([fired(rules="S")], [fired(rules="S")])])
    expected = (Reach(kind=RULE, name="S", trials=1, tests=1, wanted=True),)
    assert coverage.of_suite(suites[0], whole) == Coverage(traced_trials=1, logic=expected)


def compared_coverage(head: list[Fired | None], base: list[Fired | None]) -> Coverage:
    tests = made_test(*head), made_test(fired(rules="new"), name="another")
    return coverage.compared(coverage_of(*tests), [pair(head, base)])


def test_lost_and_gained_logic_is_taken_per_test_from_last_comparison():
    """Logic that another test fires does not make up for it."""
    base = [fired(rules="a gone new"), fired(rules="gone")]
    result = compared_coverage([fired(rules="a now"), NOTHING], base)
    assert trials_by_logic(result) == {"a": (1, 1, 1), "gone": (0, 0, 2), "new": (1, 0, 1), "now": (1, 1, 0)}
    assert (names(coverage.lost(result)), names(coverage.gained(result))) == (["gone", "new"], ["now"])
    # As of a run that was compared and is compared again.
    rules = [fired(rules="a")]
    before = compared_coverage(rules, [fired(rules="b")])
    assert trials_by_logic(before) == {"a": (1, 1, 0), "b": (0, 0, 1), "new": (1, 0, 0)}
    again = coverage.compared(before, [pair(rules, rules)])
    assert trials_by_logic(again) == {"a": (1, 1, 1), "new": (1, 0, 0)}
    assert trials_by_logic(coverage.compared(before, [])) == {"a": (1, None, None), "new": (1, None, None)}


def test_logic_is_lost_only_if_fully_traced_in_both_runs():
    """By each kind: who stopped to tell of rules may have followed them."""
    for head, base in [
        *(([None], [fired(rules="a")]), ([fired(rules="a")], [None])),
        ([Fired(workflows=("W",))], [Fired(rules=("a",))]),
    ]:
        result = compared_coverage(head, base)
        assert (coverage.lost(result), coverage.gained(result)) == ((), ())
    result = compared_coverage([Fired(workflows=("W",))], [Fired(workflows=("V",), rules=("a",))])
    assert (names(coverage.lost(result)), names(coverage.gained(result))) == (["V"], ["W"])
    assert trials_by_logic(result) == {"V": (0, 0, 1), "W": (1, 1, 0), "new": (1, None, None)}
    # Logic that did not fire may have fired unseen; logic that fired counts.
    part, only_a = Fired(workflows=("A",), in_part=(WORKFLOW,)), Fired(workflows=("A",))
    whole = Fired(workflows=("A", "B"))
    assert coverage.lost(compared_coverage([part, part], [whole, whole])) == ()
    assert names(coverage.lost(compared_coverage([part, only_a], [whole, whole]))) == ["B"]
    assert coverage.lost(compared_coverage([whole, whole], [part, part])) == ()
    result = coverage_of(made_test(part, Fired(workflows=())))
    assert [(reach.name, reach.trials) for reach in result.logic] == [("A", 1)]
    only = coverage_of(made_test(part), wanted=[(WORKFLOW, "B")])
    assert [(reach.name, reach.trials) for reach in only.logic] == [("A", 1), ("B", None)]

    def lost(head, *statuses):
        ended = enumerate(zip(head, statuses, strict=True), 1)
        trials = tuple(build.trial_result(i, fired=one, status=status) for i, (one, status) in ended)
        base = made_test(fired(rules="a"), fired(rules="a"))
        both = TestPair("S", build.test_result("t", trials=trials), base)
        return names(coverage.lost(coverage.compared(Coverage(), [both])))

    assert lost([NOTHING, NOTHING], "failed", "interrupted") == []
    assert lost([NOTHING, NOTHING], "completed", "failed") == ["a"]
    assert lost([NOTHING, fired(rules="a")], "completed", "failed") == []


def test_logic_whose_loss_may_be_chance_is_not_listed_as_plainly_lost():
    """It depends on how many trials each side has of the tests in which it fired."""

    def chances(*pairs):
        (outcome,) = coverage.lost(coverage.compared(Coverage(), [pair(*both) for both in pairs]))
        return round(outcome.by_chance, 3), bool(coverage.plainly_lost(Coverage(logic=(outcome,))))

    gone, none = fired(rules="a"), NOTHING
    assert chances(([none], [gone])) == (0.5, False)
    assert chances(([none], [gone]), ([none], [gone])) == (0.25, True)
    assert chances(([none] * 3, [gone, none, none])) == (0.5, False)
    assert chances(([none] * 3, [gone] * 3)) == (0.05, True)
    assert chances(([none], [gone, gone, *[none] * 8])) == (0.818, False)
    for base, result in (([gone], ["a"]), ([gone, gone, *[none] * 8], [])):
        wanted = coverage_of(made_test(none), wanted=[(RULE, "a")])
        assert names(coverage.plainly_lost(coverage.compared(wanted, [pair([none], base)]))) == result


_names = st.none() | st.lists(st.sampled_from("abc"), unique=True).map(tuple)
sides = st.lists(st.none() | st.builds(Fired, workflows=_names, rules=_names), max_size=3)
wishes = st.frozensets(st.tuples(st.sampled_from(LogicKind), st.sampled_from("abcd")))


@given(st.lists(st.tuples(sides, sides), max_size=3), wishes)
def test_swapping_compared_runs_swaps_lost_and_gained_logic(sides_of_tests, wished):
    """A run held against itself loses nothing; against another it loses what the other gains."""

    def held(pairs):
        suite = build.suite_result("S", *(made_test(*head) for head, _ in pairs) if pairs else ())
        return coverage.compared(coverage.coverage_of([suite], wished), [pair(*both) for both in pairs])

    same = held([(head, head) for head, _ in sides_of_tests])
    assert not coverage.lost(same)
    assert not coverage.gained(same)
    there, back = held(sides_of_tests), held([(base, head) for head, base in sides_of_tests])

    def parts(reached):
        return {(reach.kind, reach.name) for reach in reached}

    assert parts(coverage.lost(there)) == parts(coverage.gained(back))
    assert parts(coverage.never(there)) <= parts(coverage.named(there)) <= wished
    for reach in there.logic:
        assert reach.tests is None or reach.tests <= reach.trials <= there.traced_trials
        assert (reach.compared_trials is None) == (reach.base_trials is None)
        assert (reach.by_chance is not None) == bool(reach.base_trials and not reach.compared_trials)
    assert parts(coverage.plainly_lost(there)) <= parts(coverage.lost(there))
