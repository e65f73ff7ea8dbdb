"""The estimate of `plan`: counts, and ranges of tokens and time, compared with what is really asked."""

import asyncio
import json
import re
from dataclasses import replace
from functools import reduce
from operator import add

import builders as build
import fakes
import pytest
import world
from commands import ci_evals, read_results, write_suite
from each_row import each_row
from fakes import ScriptedLLM
from hypothesis import given
from hypothesis import strategies as st
from plans import make_plan

from ci_evals.conversation.simulated_user import ModelUser
from ci_evals.domain.suite import Suite
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.extensions.plan import forecast
from ci_evals.extensions.plan.estimate import measure_prompts
from ci_evals.extensions.plan.forecast import (
    Forecast,
    PromptSizes,
    Range,
    Spending,
    duration,
    of_trial,
    votes_of,
    with_votes,
)
from ci_evals.grading.judge import Judge
from ci_evals.library import load_suite
from ci_evals.planning.workload import of_plan
from ci_evals.support.redaction import Redactor

PASS = fakes.judge_answer()


@pytest.mark.slow
def test_measured_prompt_sizes_equal_real_prompts():
    strict = {"criterion": "c", "strict": "escalated"}
    test = {
        "name": "t", "guidelines": "You want your money back.",
        "userInfo": {"name": "Jane", "orders": [1, 2]},
        "turns": [{"user": "My money", "expectation": "Asks for the order"}, {"user": "auto"}], "maxTurns": 3,
        "evaluations": [{"criterion": "a"}, {"criterion": "b, longer"}, strict],
    }  # fmt: skip
    suite = make_plan(test).suites[0].suite
    test = suite.tests[0]
    turns = tuple(build.turn(i, user="u" * 40, agent="a" * 90) for i in (1, 2, 3))
    words = 3 * (40 + 90)
    user, judge = ScriptedLLM(["Hi"]), ScriptedLLM([PASS])

    async def ask():
        await ModelUser(user, Redactor()).next_message(test, turns)
        transcript = Transcript(turns=turns, status=EndState.COMPLETED)
        context = Judge([judge], Redactor()).context(test, suite.turns_of(test), transcript)
        for evaluation in test.evaluations[:2]:
            await context.decide(evaluation)

    asyncio.run(ask())
    sizes = asyncio.run(measure_prompts(suite, test))
    (user_prompt,) = user.prompts
    assert len(user_prompt.system + user_prompt.text) == sizes.user + 3 * sizes.user_turn + words
    lengths = [len(asked.system + asked.text + json.dumps(asked.schema)) for asked in judge.prompts]
    assert lengths == [size + 3 * sizes.judge_turn + words for size in sizes.judge]


@pytest.mark.slow
def test_forecast_votes_range_from_majority_to_all():
    assert [votes_of(place, 2, 5) for place in (0, 1)] == [Range(2, 3), Range(1, 2)]
    assert votes_of(0, 1, 1) == Range(1, 1)
    suite = load_suite("demo:retail").suite
    trial = of_trial(suite, suite.tests[0], asyncio.run(measure_prompts(suite, suite.tests[0])))
    assert with_votes(trial, 1).judging == trial.judging
    assert with_votes(trial, 5).judging == trial.judging * Range(1, 3)


@pytest.mark.slow
def test_calls_and_tokens_of_real_run_lie_in_forecast(tmp_path):
    def answers(asked):
        if asked.wants_json:
            return PASS
        return "Yes, please, that would be good." if asked.text.count('"you"') < 3 else "###STOP###"

    suite = load_suite("demo:retail").suite
    trials = [of_trial(suite, test, asyncio.run(measure_prompts(suite, test))) for test in suite.tests]
    with world.llm(answers) as models:
        ran = ci_evals("run", "demo:retail", "--parallel=4", "--no-gate", cwd=tmp_path, env=models.env)
    assert ran.returncode in {0, 3}, ran.stderr
    judging = [asked for asked in models.asked if asked.wants_json]
    talking = [asked for asked in models.asked if not asked.wants_json]
    for role, asked in (("user", talking), ("judge", judging)):
        spending = reduce(add, (getattr(trial, role) for trial in trials))
        tokens = sum(len(one.system + one.text) for one in asked) / 4
        assert spending.calls.low <= len(asked) <= spending.calls.high, role
        assert spending.input.low < tokens < spending.input.high, role
    counted = {used["role"]: used["calls"] for used in read_results(tmp_path)["usage"]["byRole"]}
    assert counted == {"user": len(talking), "judge": len(judging)}


@pytest.mark.slow
def test_plan_multiplies_judge_calls_by_votes_and_names_missing_prices(tmp_path):
    panel = "--judge-panel=gpt-6.1-terra,gpt-none"
    once, thrice = (ci_evals("plan", "demo:retail", *votes, cwd=tmp_path).stdout for votes in ([], [panel]))
    calls = [int(re.search(r"judge (\d+)", message)[1]) for message in (once, thrice)]
    assert (calls[1], "no price for gpt-none" in thrice) == (3 * calls[0], True)


@pytest.mark.slow
def test_plan_counts_the_judge_check_and_shows_an_optional_one_as_a_range(tmp_path):
    write_suite(tmp_path, {"evaluations": [{"criterion": "It greets"}]})
    write_suite(tmp_path, name="strict.json")

    def plan(*options, suite="suite.json"):
        env = {"AGENT_KEY": "agent-key-1234", "CI_EVALS_JUDGE_CHECK": "auto"}
        shown = ci_evals("plan", suite, *options, cwd=tmp_path, env=env).stdout
        asked = re.search(r"judge check (\d+)", shown)
        return int(asked[1]) if asked else 0, re.search(r"tokens +(.*)", shown)[1]

    (auto, may), (always, does) = plan(), plan("--judge-check=always")
    off, less = plan("--judge-check=off")
    assert (auto, always, off) == (16, 16, 0)
    assert may.split(" to ")[0] == less.split(" to ")[0] != does.split(" to ")[0]
    assert may.split(" to ")[1] == does.split(" to ")[1] != less.split(" to ")[1]
    assert plan("--judge-panel=gpt-6.1-terra,gpt-6-luna,gpt-6.1-sol")[0] == 3 * 16
    assert plan("--provider=offline")[0] == plan(suite="strict.json")[0] == 0


@pytest.mark.slow
def test_plan_shows_rounds_of_one_or_two_agents_as_a_range(tmp_path):
    suite, keys = write_suite(tmp_path), {"AGENT_KEY": "agent-key-1234"}

    def plan_with(*options):
        ran = ci_evals("plan", suite, "--provider=offline", *options, cwd=tmp_path, env=keys)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert "1 test, 2 to 7 trials" in plan_with("--rounds=auto")
    assert "1 test, 3 to 5 trials" in plan_with("--rounds=3,5")
    assert "1 test, 2 trials" in plan_with("--loops=2")
    against = "--against=base-url=http://127.0.0.1:9"
    assert "1 test for each of 2 agents, 3 to 14 trials" in plan_with("--rounds=auto", against)
    for rounds in ("--rounds=auto", "--rounds=2,5"):
        shown = plan_with(rounds, against, "--both-sides=always")
        assert "1 test for each of 2 agents, 6 to 14 trials" in shown
    both = ("--rounds=auto", "--loops=2")
    refused = ci_evals("plan", suite, "--provider=offline", *both, cwd=tmp_path, env=keys)
    assert (refused.returncode, "Omit --loops" in refused.stderr) == (2, True)


SIZES = PromptSizes(user=1000, user_turn=30, judge=(2000, 2100), judge_turn=50)
JUDGED = [{"criterion": "a"}, {"criterion": "b"}]


def suite_of(*users: str, **fields) -> Suite:
    test = {"name": "t", "turns": [{"user": user} for user in users], "maxTurns": 1, "evaluations": JUDGED}
    return make_plan(test, **fields).suites[0].suite


def trial_of(*users: str, sizes: PromptSizes | None = SIZES, **fields) -> Forecast:
    suite = suite_of(*users, **fields)
    return of_trial(suite, suite.tests[0], sizes)


@each_row(("users", "user_calls", "requests"), [
    (["hello"], (0, 0), (2, 2)),
    (["hello", "bye"], (0, 0), (3, 3)),
    (["hello", "auto"], (1, 1), (2, 3)),
    (["hello", "auto", "auto"], (1, 2), (2, 4)),
    (["hello", "well", "auto", "bye", "auto"], (1, 2), (3, 6)),
    (["auto"], (1, 1), (2, 2)),
    (["auto", "auto", "auto"], (2, 3), (2, 4)),
])  # fmt: skip
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


def test_forecast_without_models_has_only_agent_time():
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


@each_row(("seconds", "parallel", "end"), [
    ([], 3, 0),
    ([(10, 5)], 1, 15),
    ([(10, 5)] * 3, 1, 35),
    ([(10, 5)] * 3, 2, 25),
    ([(10, 5)] * 3, 50, 15),
    ([(1, 10)] * 3, 1, 31),
    ([(10, 0), (1, 0), (1, 0)], 2, 10),
    ([(1, 0), (1, 0), (10, 0)], 2, 11),
])  # fmt: skip
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
