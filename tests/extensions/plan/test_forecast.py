"""The estimate of `plan`, held against what is really asked."""

import asyncio
import json
import re
from functools import reduce
from operator import add

import builders as build
import fakes
import pytest
import world
from commands import ci_evals, read_results, write_suite
from fakes import ScriptedLLM
from plans import make_plan

from ci_evals.conversation.simulated_user import ModelUser
from ci_evals.domain.transcript import EndState, Transcript
from ci_evals.extensions.plan.estimate import measure_prompts
from ci_evals.extensions.plan.forecast import Range, of_trial, votes_of, with_votes
from ci_evals.grading.judge import Judge
from ci_evals.library import load_suite
from ci_evals.support.redaction import Redactor

pytestmark = pytest.mark.slow

PASS = fakes.judge_answer()


def test_measured_prompt_sizes_equal_real_prompts():
    strict = {"criterion": "c", "strict": "escalated"}
    test = {
        "name": "t",
        "guidelines": "You want your money back.",
        "userInfo": {"name": "Jane", "orders": [1, 2]},
        "turns": [{"user": "My money", "expectation": "Asks for the order"}, {"user": "auto"}],
        "maxTurns": 3,
        "evaluations": [{"criterion": "a"}, {"criterion": "b, longer"}, strict],
    }
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


def test_calls_and_tokens_of_real_run_lie_in_forecast(tmp_path):
    def answers(asked):
        if asked.wants_json:
            return PASS
        return "Yes, please, that would be good." if asked.text.count('"you"') < 3 else "###STOP###"

    loaded = load_suite("demo:retail")
    suite = loaded.suite
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


def test_forecast_of_judge_votes_ranges_from_majority_to_all_votes():
    assert [votes_of(place, 2, 5) for place in (0, 1)] == [Range(2, 3), Range(1, 2)]
    assert votes_of(0, 1, 1) == Range(1, 1)
    suite = load_suite("demo:retail").suite
    trial = of_trial(suite, suite.tests[0], asyncio.run(measure_prompts(suite, suite.tests[0])))
    assert with_votes(trial, 1).judging == trial.judging
    assert with_votes(trial, 5).judging == trial.judging * Range(1, 3)


def test_plan_counts_all_votes_and_the_judge_check(tmp_path):
    panel = "--judge-panel=gpt-6.1-terra,gpt-none"
    once, thrice = (ci_evals("plan", "demo:retail", *votes, cwd=tmp_path).stdout for votes in ([], [panel]))
    calls = [int(re.search(r"judge (\d+)", message)[1]) for message in (once, thrice)]
    assert calls[1] == 3 * calls[0]
    assert "no price for gpt-none" in thrice
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


def test_plan_of_rounds_and_two_agents_is_a_range(tmp_path):
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
