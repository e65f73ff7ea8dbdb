"""What a plan would take, before anything runs: counts, and ranges of tokens and time."""

from dataclasses import replace

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from plans import make_plan

from ci_evals.domain.suite import Suite
from ci_evals.extensions.plan import forecast
from ci_evals.extensions.plan.forecast import Forecast, PromptSizes, Range, Spending, duration, of_trial
from ci_evals.planning.workload import of_plan

SIZES = PromptSizes(user=1000, user_turn=30, judge=(2000, 2100), judge_turn=50)
JUDGED = [{"criterion": "a"}, {"criterion": "b"}]


def suite_of(*users: str, **fields) -> Suite:
    test = {"name": "t", "turns": [{"user": user} for user in users], "maxTurns": 1, "evaluations": JUDGED}
    return make_plan(test, **fields).suites[0].suite


def trial_of(*users: str, sizes: PromptSizes | None = SIZES, **fields) -> Forecast:
    suite = suite_of(*users, **fields)
    return of_trial(suite, suite.tests[0], sizes)


@each_row(
    ("users", "user_calls", "requests"),
    [
        (["hello"], (0, 0), (2, 2)),
        (["hello", "bye"], (0, 0), (3, 3)),
        (["hello", "auto"], (1, 1), (2, 3)),
        (["hello", "auto", "auto"], (1, 2), (2, 4)),
        (["hello", "well", "auto", "bye", "auto"], (1, 2), (3, 6)),
        (["auto"], (1, 1), (2, 2)),
        (["auto", "auto", "auto"], (2, 3), (2, 4)),
    ],
)
def test_forecast_ranges_from_fixed_turns_to_all_turns(users, user_calls, requests):
    trial = trial_of(*users)
    assert (trial.user.calls, trial.judge.calls) == (Range(*user_calls), Range(2, 2))
    asked = forecast.USER_SECONDS * Range(*user_calls)
    assert trial.talking == forecast.AGENT_SECONDS * Range(*requests) + asked
    assert trial.judging == forecast.JUDGE_SECONDS


def test_forecast_tokens_follow_prompt_sizes():
    trial = trial_of("x" * 100, "auto", "auto")
    per, result = forecast.CHARACTERS_PER_TOKEN, forecast.AGENT_CHARACTERS
    first = 30 + 100 + result.high
    second = first + 30 + forecast.USER_CHARACTERS.high + result.high
    assert trial.user.input.low == pytest.approx((1000 + 30 + 100 + result.low) / per.high)
    assert trial.user.input.high == pytest.approx((1000 + first + 1000 + second) / per.low)
    assert trial.user.output == forecast.USER_TOKENS * Range(1, 2)
    whole = 3 * (50 + result.high) + 100 + 2 * forecast.USER_CHARACTERS.high
    assert trial.judge.input.low == pytest.approx((4100 + 2 * (50 + 100 + result.low)) / per.high)
    assert trial.judge.input.high == pytest.approx((4100 + 2 * whole) / per.low)
    assert trial.judge.output == forecast.JUDGE_TOKENS * Range(2, 2)


def test_forecast_without_models_or_judged_criteria_has_agent_time_only():
    trial = trial_of("hello", "auto", sizes=None)
    assert (trial.user, trial.judge, trial.judging) == (Spending(), Spending(), Range())
    assert trial.talking == forecast.AGENT_SECONDS * Range(2, 3)
    at_once = trial_of("hello", "auto", sizes=None, adapter="demo")
    assert at_once.talking == forecast.EMBEDDED_AGENT_SECONDS * Range(2, 3)
    trial = trial_of("hello", sizes=replace(SIZES, judge=()))
    assert (trial.judge, trial.judging) == (Spending(), Range())


def trials(*seconds: tuple[float, float]) -> list[Forecast]:
    """Trials whose conversation and judgments take so long."""
    none = Spending()
    return [Forecast(none, none, Range(talk, talk), Range(judge, judge)) for talk, judge in seconds]


@each_row(
    ("seconds", "parallel", "end"),
    [
        ([], 3, 0),
        ([(10, 5)], 1, 15),
        ([(10, 5)] * 3, 1, 35),
        ([(10, 5)] * 3, 2, 25),
        ([(10, 5)] * 3, 50, 15),
        ([(1, 10)] * 3, 1, 31),
        ([(10, 0), (1, 0), (1, 0)], 2, 10),
        ([(1, 0), (1, 0), (10, 0)], 2, 11),
    ],
)
def test_forecast_duration_matches_parallel_schedule_of_runner(seconds, parallel, end):
    assert duration(trials(*seconds), parallel) == Range(end, end)


@given(
    st.lists(st.sampled_from(["auto", "hello", "a longer line"]), min_size=1, max_size=9),
    st.integers(1, 5),
    st.integers(1, 4),
)
def test_forecast_low_end_never_exceeds_high_end(users, loops, parallel):
    trial = trial_of(*users)
    for spending in (trial.user, trial.judge):
        for amount in (spending.calls, spending.input, spending.output):
            assert 0 <= amount.low <= amount.high
        assert spending.between(Range(loops, loops)).input.high == pytest.approx(loops * spending.input.high)
    once, often = duration([trial], parallel), duration([trial] * loops, parallel)
    assert once.low <= once.high
    assert once.low <= often.low <= often.high
    assert once.high <= often.high <= once.high * loops + forecast.JUDGE_SECONDS.high


def test_workload_counts_calls_of_all_trials_and_rubrics():
    plan = make_plan({"name": "a", "evaluations": JUDGED}, {"name": "b", "loops": 3}, loops=2, maxTurns=3)
    work = of_plan(plan)
    assert (work.tests, work.trials, work.turns, work.user_calls) == (2, 5, 15, 10)
    assert (work.agent_calls, work.user_calls, work.judge_calls, work.needs_llm) == (20, 10, 7, True)
    rubric = {"criterion": "c", "dimensions": ["clarity", "reasoning", "usefulness"]}
    test = {"name": "t", "turns": [{"user": "hi"}], "maxTurns": 1, "evaluations": [*JUDGED, rubric]}
    plan = make_plan(test)
    assert of_plan(plan).judge_calls == 3
    (suite,) = plan.suites
    sizes = replace(SIZES, judge=(2000, 2100, 4000))
    graded = forecast.of_trial(suite.suite, suite.tests[0], sizes).judge.output
    assert graded == forecast.JUDGE_TOKENS * Range(3, 3) + forecast.DIMENSION_TOKENS * Range(3, 3)
