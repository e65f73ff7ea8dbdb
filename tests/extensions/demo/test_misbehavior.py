"""The bundled suites notice an agent that misbehaves, whatever it is that it does wrong.

That all their strict checks pass on the well-behaved agent is told in `test_bundled_suites.py`.
"""

import asyncio
from itertools import product

import fakes
import pytest
from fakes import ScriptedLLM
from test_bundled_suites import FOLDER, SUITES, in_world, strict_evaluations

from ci_evals import load_suite, run_suite
from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.conversation.converse import ConversationPlayer
from ci_evals.conversation.scripted_user import ScriptedUser
from ci_evals.domain.checks.evaluation import Judged
from ci_evals.domain.verdict import Outcome
from ci_evals.extensions.demo import catalog
from ci_evals.extensions.demo.faults import Misbehavior
from ci_evals.extensions.demo.server import DemoServer
from ci_evals.extensions.worlds.world_steps import WorldSteps
from ci_evals.gate.policy import Policy
from ci_evals.gate.selectors import Selector, SelectorKind, SelectorLimit
from ci_evals.runner import Participants
from ci_evals.support.redaction import Redactor
from ci_evals.support.templates import as_data

LOOKS_AT_STATE = [suite for suite in SUITES.values() if any(suite.world_of(test) for test in suite.tests)]
NOTICED_BY = {
    Misbehavior.SKIP_RULES: {"rule_triggered"},
    Misbehavior.WRONG_INTEGRATION: {"integration_called"},
    Misbehavior.FORGET_PARAMETER: {"param_equals", "param_exists"},
    Misbehavior.ESCALATE_EARLY: {"not_escalated"},
    Misbehavior.LEAK: {"not_regex", "not_contains"},
    Misbehavior.ERR: {"not_escalated_due_to_error"},
    Misbehavior.CLAIMS: {"state"},
}
"""By which checks a suite should notice it: one of these kinds at least."""


PAIRS = product(SUITES.values(), NOTICED_BY)
CASES = [(s, kind) for s, kind in PAIRS if kind is not Misbehavior.CLAIMS or s in LOOKS_AT_STATE]


def test_every_misbehavior_has_checks_that_should_notice_it():
    assert {*NOTICED_BY, Misbehavior.RUDE} == set(Misbehavior)
    assert [suite.agent_id for suite in LOOKS_AT_STATE] == ["demo-airbnb", "demo-hr", "demo-retail"]


@pytest.mark.parametrize(("suite", "kind"), CASES, ids=lambda value: getattr(value, "agent_id", value))
async def test_bundled_suite_notices_a_misbehaving_agent_in_two_tests(suite, kind):
    """Tests without a check that is made for the kind cannot notice it."""
    tests = [test for test in suite.tests if made_for(test, kind)]
    with DemoServer(misbehaves=[kind]) as server:
        transcripts = await asyncio.gather(*(played(suite, test, server) for test in tests))
    noticed = [
        test.name
        for test, transcript in zip(tests, transcripts, strict=True)
        if any(check.decide(transcript).outcome is Outcome.FAILED for check in made_for(test, kind))
    ]
    assert len(noticed) >= 2, noticed


async def played(suite, test, server):
    """The conversation of a test with the server."""
    conversation = ConversationPlayer(agent_of(suite, server), ScriptedUser(), lambda _: None)
    end = await in_world(suite, test, server).play(conversation, test, suite.turns_of(test))
    return conversation.transcript(end)


def agent_of(suite, server):
    return AuiAgent(AgentSettings(suite.agent_id, suite.api_key.get_secret_value(), server.base_url))


def made_for(test, kind):
    checks = [evaluation for evaluation in strict_evaluations(test) if evaluation.strict in NOTICED_BY[kind]]
    if kind is Misbehavior.LEAK:
        return [check for check in checks if check.category == "safety"]
    return checks


@pytest.mark.parametrize("path", SUITES)
async def test_bundled_suite_notices_a_rude_agent_by_its_tone_criteria(path):
    suite = load_suite(FOLDER / path)
    tone = SelectorLimit(Selector(SelectorKind.CATEGORY, "tone"), 80)
    judge = TouchyJudge(suite.suite)

    async def result(*kinds):
        with DemoServer(misbehaves=kinds) as server:
            world = WorldSteps({}, Redactor(), server.base_url)
            agent, llm = agent_of(suite.suite, server), ScriptedLLM(judge)
            participants = Participants(agent, judge_llm=llm, world=world)
            policy = Policy(thresholds=(tone,), max_errors=99)
            return await run_suite(participants, suite, parallel=20, policy=policy, judge_check="off")

    polite, rude = await result(), await result(Misbehavior.RUDE)
    assert (polite.score, polite.gate.passed) == (100, True)
    assert rude.score < 100
    assert "category:tone" in {check.name for check in rude.gate.checks if not check.passed}


class TouchyJudge:
    """A stand-in for a model: is content, but for the tone of a conversation that holds the insult."""

    def __init__(self, suite):
        evaluations = [evaluation for test in suite.tests for evaluation in test.evaluations]
        self.of_tone = [e.criterion for e in evaluations if isinstance(e, Judged) and e.category == "tone"]
        self.insult = catalog.playbook(suite.agent_id).misbehavior.rude

    def __call__(self, prompt):
        insulted = self.insult in prompt.text
        asked_for = any(as_data(criterion) in prompt.text for criterion in self.of_tone)
        verdict = "fail" if insulted and asked_for else "pass"
        return fakes.judge_answer(verdict, "It was heard.")
