"""Warnings of runs: scores that an idle agent would reach, and judges of the agent's own model family."""

import builders as build
import endpoints
import fakes
import pytest
from commands import write_suite
from plans import make_plan

from ci_evals import Policy, load_suite, run_suite
from ci_evals.cli.app import invoke
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.null_agents import CLAIM, REFUSAL
from ci_evals.domain.transcript import Turns
from ci_evals.extensions.openai_api import chat_wire, responses_wire
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.reports.markdown import comment
from ci_evals.reports.story.story import story_of
from ci_evals.runner import Participants
from ci_evals.scoring.null_score import NullScores, null_score
from ci_evals.support.redaction import Redactor

SILENT = {"criterion": "no hand-over", "strict": "not_escalated"}
CALLS = {"criterion": "refunds", "strict": "tool_called", "toolName": "refund"}
SAYS_DONE = {"criterion": "says so", "strict": "contains", "text": "done"}
SAYS_SORRY = {"criterion": "says sorry", "strict": "contains", "text": "sorry"}
JUDGED = {"criterion": "friendly"}
STATE = {"criterion": "paid", "strict": "state", "probe": "agent_state", "equals": 1}


def summary_of(results):
    return comment.render(story_of(results), comment.SummaryContext())


def planned_tests(*evaluations):
    (suite,) = make_plan(*({"name": f"t{n}", "evaluations": own} for n, own in enumerate(evaluations))).suites
    return suite.tests


@pytest.mark.parametrize(
    ("tests", "words", "score"),
    [
        ([[SILENT, CALLS]], REFUSAL, 50),
        ([[SILENT, CALLS | {"weight": 3}]], REFUSAL, 25),
        ([[CALLS, JUDGED, STATE]], REFUSAL, 0),
        ([[JUDGED]], REFUSAL, None),
        ([[SAYS_DONE], [SILENT]], REFUSAL, 50),
        ([[SAYS_DONE], [SILENT]], CLAIM, 100),
    ],
)
def test_null_score_is_share_of_strict_criteria_passed_by_idle_agent(tests, words, score):
    """Criteria that need a judge or a probe are left out."""
    assert null_score(planned_tests(*tests), words) == score


def test_minimum_score_not_above_null_score_causes_warning():
    plan = make_plan({"name": "t", "evaluations": [SILENT, CALLS]}, minScore=40)
    scores = NullScores.of(plan)
    assert (scores.run, scores.suites) == (50, (50,))
    run, suite = scores.reached_floors(plan, 50)
    assert run.startswith("a minimum score of 50 guards nothing: an agent that refuses")
    assert suite.startswith("minScore 40 of 'S' guards nothing")
    assert len(list(scores.reached_floors(plan, 51))) == 1


async def test_results_have_null_score_of_run_and_tests():
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "x"}], "evaluations": [SILENT, SAYS_DONE]}
    suite = load_suite({"name": "s", "tests": [test], "maxTurns": 1})
    results = await run_suite(lambda _: "done", suite)
    assert (results.run.null_score, [test.null_score for test in results.tests]) == (50, [50])
    assert "guards nothing" not in summary_of(results)


@pytest.mark.parametrize("where", ["run", "suite"])
async def test_reports_warn_if_refusing_agent_would_reach_minimum_score(where):
    test = {"name": "t", "guidelines": "g", "turns": [{"user": "x"}], "evaluations": [SAYS_SORRY]}
    floors = {"minScore": 60} if where == "suite" else {}
    suite = load_suite({"name": "s", "tests": [test], "maxTurns": 1, **floors})
    policy = Policy(min_score=0 if where == "suite" else 80)
    results = await run_suite(lambda _: "sorry", suite, policy=policy)
    name = "minScore of the suite “s”" if where == "suite" else "min-score"
    assert f"{name} guards nothing: an agent that refuses everything would score 100" in summary_of(results)


def test_validate_prints_null_score(capsys):
    invoke(["validate", "demo:hr"], RunContext({}))
    assert "an agent that refuses everything would score" in capsys.readouterr().out


@pytest.mark.parametrize("model", ["gpt-6.1-terra", None, 7, "", "x" * 300])
def test_reply_keeps_model_name_it_reports(model):
    """A value that cannot be a name is left out."""
    named = ("gpt-6.1-terra",) if model == "gpt-6.1-terra" else ()
    chat = chat_wire.read(endpoints.completion("Hi") | {"model": model}, Redactor())
    assert chat_wire.reply([chat, chat], 1.0, ChatOptions()).models == named
    response = responses_wire.read(endpoints.response("Hi") | {"model": model}, Redactor())
    assert responses_wire.reply([response], 1.0, ChatOptions()).models == named


async def play(tmp_path, *, reported, judge="gpt-6", criterion=None, **fields):
    """The warnings of a run whose agent's replies name a model."""
    test = {"turns": [{"user": "Hi"}], "evaluations": [criterion or {"criterion": "Polite"}], "maxTurns": 1}
    suite = load_suite(tmp_path / write_suite(tmp_path, test, apiKey="key-123456", **fields))
    agent = fakes.ScriptedAgent([fakes.reply("Hello", models=(reported,))])
    llm = fakes.ScriptedLLM(lambda _: fakes.judge_answer("pass", "So.", (1, "Hello")), judge)
    results = await run_suite(Participants(agent, judge_panel=[llm]), suite, judge_check="off")
    return [warning for warning in results.run.warnings if "model family" in warning]


async def test_run_warns_if_reported_model_is_of_judge_family(tmp_path):
    (warning,) = await play(tmp_path, reported="openai/gpt-6-sol")
    assert "gpt-6 judges openai/gpt-6-sol (GPT)" in warning
    assert len(await play(tmp_path, reported="gpt-6-sol", adapter="openai", model="our-bot")) == 1


@pytest.mark.parametrize(
    "run",
    [
        {"reported": "claude-opus-5-5"},
        {"reported": "our-bot"},
        {"reported": "gpt-6-sol", "judge": "sonnet"},
        {"reported": "gpt-6-sol", "criterion": {"criterion": "c", "strict": "not_escalated"}},
        {"reported": "gpt-6-sol", "model": "gpt-6-sol"},
    ],
)
async def test_run_does_not_warn_about_other_model_family(run, tmp_path):
    """Nor if nothing is judged, nor if the suite names the model: the plan has warned then."""
    assert await play(tmp_path, **run) == []


def test_packed_turns_keep_their_models():
    turns = Turns([build.turn(1, models=("a", "b")), build.turn(2, models=("b",))]).packed()
    assert (turns.models, [turn.models for turn in turns]) == (("a", "b"), [("a", "b"), ("b",)])
