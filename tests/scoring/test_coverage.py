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


def a_test(*trials: Fired | None, name: str = "t"):
    return build.test_result(
        name, trials=tuple(build.trial_result(i, fired=one) for i, one in enumerate(trials, 1))
    )


def pair(head: list[Fired | None], base: list[Fired | None]) -> TestPair:
    return TestPair("S", a_test(*head), a_test(*base))


def trials_by_logic(found: Coverage) -> dict[str, tuple]:
    return {reach.name: (reach.trials, reach.compared_trials, reach.base_trials) for reach in found.logic}


def names(reached) -> list[str]:
    return [reach.name for reach in reached]


def test_fired_logic_is_counted_by_trials_and_tests():
    """Whether somebody asks for it or not, by kind and by name."""
    suite = build.suite_result(
        "S",
        a_test(fired(rules="b a", workflows="W"), fired(rules="b")),
        a_test(fired(rules="b"), None),
    )
    assert coverage.coverage_of([suite], frozenset({(RULE, "a")})) == Coverage(
        traced_trials=3,
        logic=(
            Reach(kind=WORKFLOW, name="W", trials=1, tests=1, wanted=False),
            Reach(kind=RULE, name="a", trials=1, tests=1, wanted=True),
            Reach(kind=RULE, name="b", trials=3, tests=2, wanted=False),
        ),
    )


def test_what_criteria_want_to_fire():
    """Those that want the contrary ask for nothing, and a judge is asked in words."""
    strict = [
        {"strict": "tool_used", "toolName": "W"},
        {"strict": "tool_not_used", "toolName": "no W"},
        {"strict": "param_equals", "paramName": "p", "paramValue": 1},
        {"strict": "param_exists", "paramName": "q"},
        {"strict": "param_not_exists", "paramName": "no q"},
        {"strict": "rule_triggered", "ruleCode": "r"},
        {"strict": "rule_not_triggered", "ruleCode": "no r"},
        {"strict": "integration_called", "integrationCode": "i"},
        {"strict": "escalated"},
        {"aui_logic": ["A1"]},
    ]
    plan = make_plan({"name": "t", "evaluations": [{"criterion": "c"} | one for one in strict]})
    parts = {(WORKFLOW, "W"), (PARAMETER, "p"), (PARAMETER, "q"), (RULE, "r"), (INTEGRATION, "i")}
    assert coverage.wanted_parts(plan) == parts
    assert (RULE, "R") in coverage.wanted_parts(plan, str.upper)


def test_a_call_that_is_wanted_may_be_that_of_an_integration():
    """A check of calls names either; what fired shows which it is."""
    suite = build.suite_result("S", a_test(fired(integrations="pay", workflows="W")))
    found = coverage.coverage_of([suite], frozenset({(WORKFLOW, "pay"), (WORKFLOW, "W"), (WORKFLOW, "X")}))
    assert [(reach.kind, reach.name, reach.wanted, reach.trials) for reach in found.logic] == [
        (WORKFLOW, "W", True, 1),
        (WORKFLOW, "X", True, 0),
        (INTEGRATION, "pay", True, 1),
    ]


def test_wanted_logic_that_never_fired_is_named():
    """As far as a trace tells of its kind: else it may have fired."""
    suite = build.suite_result("S", a_test(Fired(workflows=("W",), rules=())))
    wanted = frozenset({(WORKFLOW, "W"), (RULE, "r"), (INTEGRATION, "i")})
    found = coverage.coverage_of([suite], wanted)
    assert trials_by_logic(found) == {"W": (1, None, None), "r": (0, None, None), "i": (None, None, None)}
    assert names(coverage.named(found)) == ["W", "r"]
    assert names(coverage.never(found)) == ["r"]
    results = build.results(suite, coverage=found)
    assert coverage.wanted_in(results.coverage, build.results().coverage) == wanted


def test_an_aui_logic_id_names_what_has_its_name():
    """Of whatever kind. Of one that no trace has a name for nothing is said."""
    groups = tuple(
        ScoreGroup(name=name, score=100, tests=1, passed=1, failed=0, undecided=0)
        for name in ("r", "A1_terms")
    )
    suite = build.suite_result("S", a_test(fired(rules="r s")), aui_logic=groups)
    found = coverage.coverage_of([suite], frozenset())
    assert [(reach.name, reach.wanted) for reach in found.logic] == [("r", True), ("s", False)]


def test_a_suite_of_several_tells_what_fired_there():
    """Which of them wants what never fired is not told, and not what the baseline's fired."""
    suites = [build.suite_result(name, a_test(fired(rules=name))) for name in ("S", "T")]
    whole = coverage.coverage_of(suites, frozenset({(RULE, "S"), (RULE, "never")}))
    whole = coverage.compared(whole, [pair([fired(rules="S")], [fired(rules="S")])])
    assert coverage.of_suite(suites[0], whole) == Coverage(
        traced_trials=1, logic=(Reach(kind=RULE, name="S", trials=1, tests=1, wanted=True),)
    )


def against(head: list[Fired | None], base: list[Fired | None]) -> Coverage:
    suite = build.suite_result("S", a_test(*head), a_test(fired(rules="new"), name="another"))
    return coverage.compared(coverage.coverage_of([suite], frozenset()), [pair(head, base)])


def test_logic_that_stopped_and_started_firing_is_named():
    """In the compared tests: what another test fires makes up for nothing."""
    found = against([fired(rules="a now"), NOTHING], [fired(rules="a gone new"), fired(rules="gone")])
    assert trials_by_logic(found) == {"a": (1, 1, 1), "gone": (0, 0, 2), "new": (1, 0, 1), "now": (1, 1, 0)}
    assert names(coverage.lost(found)) == ["gone", "new"]
    assert names(coverage.gained(found)) == ["now"]


def test_without_a_trace_on_both_sides_nothing_is_lost():
    """Told of each kind by itself: who stopped to tell of rules may have followed them."""
    for head, base in [
        ([None], [fired(rules="a")]),
        ([fired(rules="a")], [None]),
        ([Fired(workflows=("W",))], [Fired(rules=("a",))]),
    ]:
        found = against(head, base)
        assert (coverage.lost(found), coverage.gained(found)) == ((), ())
    found = against([Fired(workflows=("W",))], [Fired(workflows=("V",), rules=("a",))])
    assert (names(coverage.lost(found)), names(coverage.gained(found))) == (["V"], ["W"])
    assert trials_by_logic(found) == {"V": (0, 0, 1), "W": (1, 1, 0), "new": (1, None, None)}


def test_a_trial_that_reports_in_part_has_lost_nothing():
    """What did not fire may have fired in the replies that report nothing; what did fire is counted."""
    part = Fired(workflows=("A",), in_part=(LogicKind.WORKFLOW,))
    whole = Fired(workflows=("A", "B"))
    assert coverage.lost(against([part, part], [whole, whole])) == ()
    assert names(coverage.lost(against([part, Fired(workflows=("A",))], [whole, whole]))) == ["B"]
    assert coverage.lost(against([whole, whole], [part, part])) == ()
    found = coverage.coverage_of([build.suite_result("S", a_test(part, Fired(workflows=())))], frozenset())
    assert [(reach.name, reach.trials) for reach in found.logic] == [("A", 1)]
    only = coverage.coverage_of(
        [build.suite_result("S", a_test(part))], frozenset({(LogicKind.WORKFLOW, "B")})
    )
    assert [(reach.name, reach.trials) for reach in only.logic] == [("A", 1), ("B", None)]


def test_early_end_loses_no_logic():
    """What did not fire before an early end might have fired; what fired until then did."""

    def lost(head, *statuses):
        trials = tuple(
            build.trial_result(i, fired=one, status=status)
            for i, (one, status) in enumerate(zip(head, statuses, strict=True), 1)
        )
        both = TestPair(
            "S", build.test_result("t", trials=trials), a_test(fired(rules="a"), fired(rules="a"))
        )
        return names(coverage.lost(coverage.compared(Coverage(), [both])))

    assert lost([NOTHING, NOTHING], "failed", "interrupted") == []
    assert lost([NOTHING, NOTHING], "completed", "failed") == ["a"]
    assert lost([NOTHING, fired(rules="a")], "completed", "failed") == []


def test_losses_within_chance_are_not_listed_first():
    """It hangs on how many trials each side has of the tests in which it fired."""

    def chances(*pairs):
        (found,) = coverage.lost(coverage.compared(Coverage(), [pair(*both) for both in pairs]))
        return round(found.by_chance, 3), bool(coverage.plainly_lost(Coverage(logic=(found,))))

    gone, none = fired(rules="a"), NOTHING
    assert chances(([none], [gone])) == (0.5, False)
    assert chances(([none], [gone]), ([none], [gone])) == (0.25, True)
    assert chances(([none] * 3, [gone, none, none])) == (0.5, False)
    assert chances(([none] * 3, [gone] * 3)) == (0.05, True)
    assert chances(([none], [gone, gone, *[none] * 8])) == (0.818, False)
    wanted = frozenset({(RULE, "a")})
    for base, result in (([gone], ["a"]), ([gone, gone, *[none] * 8], [])):
        suite = build.suite_result("S", a_test(none))
        found = coverage.compared(coverage.coverage_of([suite], wanted), [pair([none], base)])
        assert names(coverage.plainly_lost(found)) == result


def test_another_baseline_leaves_nothing_of_the_one_before():
    """As where a run that was compared is compared again."""
    rules = [fired(rules="a")]
    before = against(rules, [fired(rules="b")])
    assert trials_by_logic(before) == {"a": (1, 1, 0), "b": (0, 0, 1), "new": (1, 0, 0)}
    again = coverage.compared(before, [pair(rules, rules)])
    assert trials_by_logic(again) == {"a": (1, 1, 1), "new": (1, 0, 0)}
    assert trials_by_logic(coverage.compared(before, [])) == {"a": (1, None, None), "new": (1, None, None)}


sides = st.lists(
    st.none()
    | st.builds(
        Fired,
        workflows=st.none() | st.lists(st.sampled_from("abc"), unique=True).map(tuple),
        rules=st.none() | st.lists(st.sampled_from("abc"), unique=True).map(tuple),
    ),
    max_size=3,
)
wishes = st.frozensets(st.tuples(st.sampled_from(LogicKind), st.sampled_from("abcd")))


@given(st.lists(st.tuples(sides, sides), max_size=3), wishes)
def test_laws_of_coverage(sides_of_tests, wished):
    """A run held against itself loses nothing; against another it loses what the other gains."""

    def held(pairs):
        suite = build.suite_result("S", *(a_test(*head) for head, _ in pairs) if pairs else ())
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
