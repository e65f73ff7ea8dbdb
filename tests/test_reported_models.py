"""The family of an agent's model as its replies name it, and judges of the same one."""

import builders as build
import endpoints
import fakes
import pytest
from commands import write_suite

from ci_evals import load_suite, run_suite
from ci_evals.domain.transcript import Turns
from ci_evals.extensions.openai_api import chat_wire, responses_wire
from ci_evals.extensions.openai_api.options import ChatOptions
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor


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
    assert turns.models == ("a", "b")
    assert [turn.models for turn in turns] == [("a", "b"), ("b",)]
