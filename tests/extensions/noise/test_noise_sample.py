"""What a study of noise plays: which tests, whose words, and who judges how often."""

import builders as build
import plans
import pytest

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, SuiteModels
from ci_evals.domain.results.run import Results
from ci_evals.domain.suite import unsent_lines
from ci_evals.domain.transcript import UserSource
from ci_evals.extensions.noise.sample import FIXED_SUFFIX, SamplePlan, match_tests, pick_tests, plan_sample
from ci_evals.support.redaction import Redactor

TURN = {"user": "Hello", "expectation": "It greets", "timeout": 7}
AUTO = {"turns": [TURN, {"user": "auto"}], "maxTurns": 3}
JUDGED = build.finding(kind="judged", criterion="It helps")


def trial_of(*words: str, **fields) -> object:
    sources = [UserSource.FIXED] + [UserSource.AUTO] * (len(words) - 1)
    user_turns = enumerate(zip(words, sources, strict=True), start=1)
    turns = (build.turn(index, user=word, user_source=source) for index, (word, source) in user_turns)
    return build.trial_result(turns=tuple(turns), findings=(JUDGED,), **fields)


def run_of(**trials: tuple) -> Results:
    tests = [build.test_result(name, trials=tuple(some), digest="t") for name, some in trials.items()]
    return build.results(build.suite_result("S", *tests, file="s.json"))


def sample_plan_of(results: Results, plan: Plan, *judges: str | None, plays=3, user="u") -> SamplePlan:
    result = pick_tests(results, "r.json", 100, 0)
    sample = match_tests(results, result, plan, Redactor())
    models = SuiteModels(judges=tuple(filter(None, judges)), user=user)
    return plan_sample(results, "openai", sample, {0: models}, plays)


RUN = run_of(a=(trial_of("Hello", "It is broken", "Thanks"),), b=(trial_of("Hello", "Where is it?"),))
PLAN = plans.make_plan(plans.TEST_A | AUTO, plans.TEST_B | AUTO)


def test_generated_user_messages_become_optional_fixed_turns_of_a_copy():
    sample_plan = sample_plan_of(RUN, PLAN, "j")
    fresh, fixed = sample_plan.plan.suites
    assert [fresh.suite.name, fixed.suite.name] == ["S", f"S{FIXED_SUFFIX}"]
    assert [sample_plan.plan.loops_of(test) for test in (*fresh.tests, *fixed.tests)] == [3] * 4
    turns = [fixed.suite.turns_of(test) for test in fixed.tests]
    texts = [[turn.user for turn in some] for some in turns]
    assert texts == [["Hello", "It is broken", "Thanks"], ["Hello", "Where is it?"]]
    assert (turns[0][0].expectation, turns[0][0].timeout) == ("It greets", 7)
    assert [turn.user for turn in fresh.suite.turns_of(fresh.tests[0])] == ["Hello", "auto", "auto"]
    assert (sample_plan.fresh, sample_plan.fixed) == ({(0, 0): 0, (0, 1): 1}, {(1, 0): 0, (1, 1): 1})
    _, fixed = sample_plan_of(RUN, PLAN, "j").plan.suites
    turns = fixed.suite.turns_of(fixed.tests[0])
    assert [turn.fixed for turn in turns] == [True, False, False]
    assert (list(unsent_lines(turns, 1)), list(unsent_lines(turns, 0))) == ([], [1])
    fixed = plans.make_plan(plans.TEST_A | AUTO, plans.TEST_B | {"turns": [{"user": "Hello"}], "maxTurns": 1})
    assert sample_plan_of(RUN, fixed, "j").fixed == {(1, 0): 0}
    assert sample_plan_of(RUN, PLAN, None, user=None).fixed == {}


def test_sample_plan_rejudges_conversation_once_per_play_with_panel_models():
    sample_plan = sample_plan_of(RUN, PLAN, "j", plays=4)
    (suite,) = sample_plan.judged.suites
    assert (suite.judge_model, suite.judge_votes, suite.judge_panel) == ("j", 1, ())
    assert [[trial.index for trial in test.trials] for test in suite.tests] == [[1, 2, 3, 4]] * 2
    assert sample_plan.rejudged == {(0, 0): 0, (0, 1): 1}
    assert sample_plan_of(RUN, PLAN, None, user=None).judged.suites == ()
    sample_plan = sample_plan_of(RUN, PLAN, "j", "k", "l", plays=2)
    played = sample_plan.plan
    judges = [(one.suite.judge_model, played.loops_of(one.tests[0])) for one in played.suites]
    assert judges == [("j", 1), ("j", 1), ("k", 1), ("k", 1)]
    rejudged = [(suite.judge_model, len(suite.tests[0].trials)) for suite in sample_plan.judged.suites]
    assert rejudged == [("j", 1), ("k", 1)]
    sample_plan = sample_plan_of(RUN, PLAN, "j", "k", plays=3)
    assert [sample_plan.plan.loops_of(one.tests[0]) for one in sample_plan.plan.suites] == [2, 2, 1, 1]


def test_noise_tests_are_picked_by_seed_among_unredacted_conversations():
    many = run_of(
        **{f"t{number}": (trial_of("Hello", "Please"),) for number in range(20)},
        secret=(trial_of("Hello", "I am ***"),),
        broken=(trial_of("Hello", "Please", status="failed"),),
    )
    picks = [pick_tests(many, "r.json", most, seed) for most, seed in ((5, 1), (5, 1), (5, 2), (100, 1))]
    names = [[one.test.name for one in some] for some in picks]
    assert names[0] == names[1] != names[2]
    assert (len(names[0]), names[3]) == (5, [f"t{number}" for number in range(20)])
    with pytest.raises(UsageError, match=r"r\.json: only 1 of its tests has a scored conversation"):
        pick_tests(run_of(a=(trial_of("Hello"),), b=(trial_of("Hello", "auto"),)), "r.json", 5, 0)
    run = run_of(a=(trial_of("My key is ***", "Please"),), b=(trial_of("Hello", "Please"),))
    assert len(pick_tests(run, "r.json", 5, 0)) == 2


def test_test_is_matched_by_suite_file_or_by_name_if_file_is_gone():
    other = plans.make_plan(plans.TEST_A | AUTO, plans.TEST_B | AUTO).suites[0]
    moved = Plan(suites=(type(other)(**{**vars(other), "file": "other.json"}), *PLAN.suites), loops=1)
    result = match_tests(RUN, pick_tests(RUN, "r.json", 5, 0), moved, Redactor())
    assert {one.planned.file for one in result} == {"s.json"}
    gone = Plan(suites=moved.suites[:1], loops=1)
    result = match_tests(RUN, pick_tests(RUN, "r.json", 5, 0), gone, Redactor())
    assert {one.planned.file for one in result} == {"other.json"}
