"""The bundled suites: well made, and right about the demo agent, played over HTTP with nobody paid."""

import asyncio
from functools import cache
from pathlib import Path

import pytest

from ci_evals.adapters.aui_agent import AuiAgent, AuiConfig
from ci_evals.conversation.converse import Conversation
from ci_evals.conversation.scripted_user import ScriptedUser
from ci_evals.demo_agent import catalogue
from ci_evals.demo_agent.server import DemoServer
from ci_evals.domain.evaluation import Judged
from ci_evals.domain.suite import Suite, Turn
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Outcome
from ci_evals.grading import strict

FOLDER = Path(__file__).parent.parent / "suites"
SEED_TYPES = {
    "escalated", "not_escalated", "tool_used", "tool_not_used", "param_equals", "param_exists",
    "param_not_exists", "escalated_due_to_error", "not_escalated_due_to_error", "rule_triggered",
    "rule_not_triggered", "integration_called",
}  # fmt: skip
SUITES = {
    path.relative_to(FOLDER).as_posix(): Suite.model_validate_json(path.read_bytes(), strict=True)
    for path in sorted(FOLDER.rglob("*.json"))
}
TESTS = [
    pytest.param(suite, test, id=f"{suite.agent_id}: {test.name}")
    for suite in SUITES.values()
    for test in suite.tests
]
every_suite = pytest.mark.parametrize("suite", SUITES.values(), ids=SUITES)


def strict_evaluations(test):
    return [evaluation for evaluation in test.evaluations if not isinstance(evaluation, Judged)]


COUNTEREXAMPLES = [
    ("demo-hr", {}, ["I need a copy of my payslip for September."]),
    ("demo-hr", {"name": "employee E-31877"}, ["I need an employment letter for a visa."]),
    (
        "demo-retail",
        {"payment_method": "your husband's Visa"},
        ["A refund for order HL-20418, please, the quality is poor.", "Yes"],
    ),
]
"""What no bundled test should see: conversations on which checks fail that pass on all the others."""


@cache
def transcripts():
    """Every bundled test, played once against the demo agent: transcripts by suite and test."""

    async def play(agent, suite, test):
        conversation = Conversation(agent, ScriptedUser(), lambda _: None)
        return conversation.transcript(await conversation.play(test, suite.turns_of(test)))

    async def play_all(base_url):
        played = {}
        for suite in SUITES.values():
            config = AuiConfig(suite.agent_id, suite.api_key.get_secret_value(), base_url)
            for test in suite.tests:
                played[suite.name, test.name] = await play(AuiAgent(config), suite, test)
        for number, (agent_id, user_info, lines) in enumerate(COUNTEREXAMPLES):
            suite = next(suite for suite in SUITES.values() if suite.agent_id == agent_id)
            turns = tuple(Turn(user=line) for line in lines)
            test = suite.tests[0].model_copy(update={"user_info": user_info, "turns": turns})
            agent = AuiAgent(AuiConfig(agent_id, "a key", base_url))
            played["counterexample", number] = await play(agent, suite, test)
        return played

    with DemoServer() as server:
        return asyncio.run(play_all(server.base_url))


def test_the_bundled_names_are_there():
    """The names that the README gives lead to files."""
    assert {"demo/hr.json", "demo/retail.json"} <= SUITES.keys()


def test_between_them_they_show_every_seed_type():
    """A reader finds an example of each of the twelve strict types."""
    used = {e.strict for suite in SUITES.values() for test in suite.tests for e in strict_evaluations(test)}
    assert used >= SEED_TYPES


def test_one_suite_shows_an_expected_agent_error():
    """An agent that says it failed can be what a test asks for."""
    kinds = [{e.strict for t in suite.tests for e in strict_evaluations(t)} for suite in SUITES.values()]
    assert any("escalated_due_to_error" in used for used in kinds)


@every_suite
def test_a_suite_is_of_a_good_size(suite):
    """Enough to begin with, little enough to read, and no name twice."""
    names = [test.name for test in suite.tests]
    assert 5 <= len(names) <= 12
    assert len(set(names)) == len(names)
    assert suite.description


@every_suite
def test_a_suite_has_every_ingredient(suite):
    """Happy paths, edge cases, an escalation, what must not be, and a user who means ill."""
    tags = {tag for test in suite.tests for tag in test.tags}
    assert tags >= {"happy-path", "edge-case", "escalation", "must-not-do", "adversarial"}
    assert {test.difficulty for test in suite.tests} >= {"easy", "medium", "hard"}
    evaluations = [evaluation for test in suite.tests for evaluation in test.evaluations]
    assert {evaluation.category for evaluation in evaluations} >= {"accuracy", "tone", "safety", "compliance"}
    assert any(evaluation.aui_logic for evaluation in evaluations)
    assert any(turn.expectation for test in suite.tests for turn in test.turns)
    assert all(test.critical for test in suite.tests if "must-not-do" in test.tags)


@pytest.mark.parametrize(("suite", "test"), TESTS)
def test_a_test_is_complete(suite, test):
    """Each has a user with data and a character, strict and judged criteria, and weights that differ."""
    assert test.user_info
    assert len(test.guidelines) > 60
    assert strict_evaluations(test)
    assert any(isinstance(evaluation, Judged) for evaluation in test.evaluations)
    assert all(evaluation.category for evaluation in test.evaluations)
    assert len({evaluation.weight for evaluation in test.evaluations}) > 1


@pytest.mark.parametrize(("suite", "test"), TESTS)
def test_names_in_checks_exist(suite, test):
    """A check of something that the agent does not have would pass or fail for ever."""
    playbook = catalogue.playbook(suite.agent_id)
    tools = {workflow.code for workflow in playbook.workflows} | {"CONVERSATION_FORWARDING"}
    known = {
        "tool_name": tools,
        "rule_code": playbook.rules,
        "param_name": playbook.parameters,
        "integration_code": playbook.integrations,
    }
    for evaluation in strict_evaluations(test):
        for field, names in known.items():
            assert getattr(evaluation, field, None) in {None, *names}


@pytest.mark.parametrize(("suite", "test"), TESTS)
def test_every_strict_check_passes(suite, test):
    """The demo agent is as good as its suites ask."""
    transcript = transcripts()[suite.name, test.name]
    verdicts = [(e.criterion, strict.decide(e, transcript)) for e in strict_evaluations(test)]
    assert [pair for pair in verdicts if pair[1].outcome is not Outcome.PASSED] == []


@pytest.mark.parametrize(("suite", "test"), TESTS)
def test_every_strict_check_can_fail(suite, test):
    """Each check fails on some other conversation with the agents, so that its pass says something.

    The latency check is left out: it would take a slow agent.
    """
    for evaluation in strict_evaluations(test):
        outcomes = {strict.decide(evaluation, transcript).outcome for transcript in transcripts().values()}
        assert evaluation.strict == "max_latency" or Outcome.FAILED in outcomes, evaluation.criterion


@pytest.mark.parametrize(("suite", "test"), TESTS)
def test_conversations_end_in_good_order(suite, test):
    """No conversation runs out of turns or breaks off: someone says that it is over."""
    status = transcripts()[suite.name, test.name].status
    kinds = {evaluation.strict for evaluation in strict_evaluations(test)}
    if "escalated" in kinds:
        assert status is EndState.ESCALATED
    elif "escalated_due_to_error" in kinds:
        assert status is EndState.AGENT_ERROR
    else:
        assert status is EndState.STOPPED
