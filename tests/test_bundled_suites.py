"""The bundled suites: well made, and right about the demo agent, played over HTTP with nobody paid."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import builders as build
import pytest
import yaml
from each_row import each_row

from ci_evals import create_adapter, load_suite, run_suite
from ci_evals.adapters.suites import bundled_names
from ci_evals.agents.aui.agent import AuiAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.conversation.converse import ConversationPlayer
from ci_evals.conversation.in_world import WorldPlayer
from ci_evals.conversation.scripted_user import ScriptedUser
from ci_evals.conversation.simulated_user import STOP_MARKER
from ci_evals.domain.checks.evaluation import Judged
from ci_evals.domain.checks.strict.tool_calls import ToolCalled
from ci_evals.domain.null_agents import CLAIM, REFUSAL
from ci_evals.domain.suite import PlannedTurn, Suite
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Outcome
from ci_evals.extensions.demo import catalog
from ci_evals.extensions.demo.server import DemoServer
from ci_evals.extensions.mutate.faults import FAULTS
from ci_evals.extensions.mutate.planting import plant_all, saved_trials
from ci_evals.extensions.worlds.world_steps import WorldSteps
from ci_evals.scoring import process
from ci_evals.scoring.null_score import null_score
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

FOLDER = Path(__file__).parent.parent / "suites"
NOTES_FOLDER = Path(__file__).parent / "suite_notes"
ORIGINAL_TYPES = {
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
every_suite = each_row("suite", SUITES.values(), ids=SUITES)


def strict_evaluations(test):
    return [evaluation for evaluation in test.evaluations if not isinstance(evaluation, Judged)]


@dataclass(frozen=True)
class Notes:
    """Knowledge of one suite beyond the suite itself: `suite_notes/COLLECTION/NAME.yaml`."""

    numbers: Mapping[str, str] = field(default_factory=dict)
    """Keys of `userInfo` that hold a number of the user, and the form of such numbers, anybody's."""
    counterexamples: Sequence[Mapping[str, Any]] = ()
    """`user_info` and `lines` of conversations on which checks fail that pass on all the others: no bundled
    test should have them."""
    own_words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By test, what a person might say in place of `auto`: more than was asked for, and in other words."""
    wordings: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    """For each criterion that looks for words: what `right` and what `wrong` agents might say."""


def read_notes(path):
    text = (NOTES_FOLDER / path).with_suffix(".yaml").read_text(encoding="utf-8")
    return Notes(**yaml.load(text, yaml.CSafeLoader))


NOTES = {suite.name: read_notes(path) for path, suite in SUITES.items()}


class PoliteUser:
    """Does not leave a closing question unanswered, as models like to: says no and thanks, then stops."""

    goodbye = "No, that's all, thank you!"

    async def next_message(self, test, turns):
        """The scripted user's line, or once the goodbye in place of the stop after a question."""
        result = await ScriptedUser().next_message(test, turns)
        asked = turns and turns[-1].agent.endswith("?") and turns[-1].user != self.goodbye
        return self.goodbye if STOP_MARKER in result and asked else result


class TalkativeUser:
    """Speaks its own words as long as it has some, and is polite from there on."""

    def __init__(self, own_words):
        self.own_words = own_words

    async def next_message(self, test, turns):
        """Its next line of its own."""
        fixed = sum(not turn.auto for turn in test.turns)
        lines = self.own_words.get(test.name, [])[len(turns) - fixed :]
        return lines[0] if lines else await PoliteUser().next_message(test, turns)


USERS = {
    "scripted": lambda _: ScriptedUser(),
    "polite": lambda _: PoliteUser(),
    "talkative": lambda notes: TalkativeUser(notes.own_words),
}


def in_world(suite, test, server):
    return WorldPlayer(suite.world_of(test), WorldSteps({}, Redactor(), server.base_url), Stop())


@cache
def transcripts(user):
    """Every bundled test, played once against the demo agent: transcripts by suite and test.

    The scripted user holds the conversations on which checks fail too, and the talkative one only those for
    which it has words of its own: the others are the polite one's.
    """

    async def play(server, suite, test):
        agent = AuiAgent(AgentSettings(suite.agent_id, suite.api_key.get_secret_value(), server.base_url))
        conversation = ConversationPlayer(agent, USERS[user](NOTES[suite.name]), lambda _: None)
        end = await in_world(suite, test, server).play(conversation, test, suite.turns_of(test))
        return conversation.transcript(end)

    async def play_all(server):
        return {key: await play(server, suite, test) for key, suite, test in conversations(user)}

    with DemoServer() as server:
        played = asyncio.run(play_all(server))
    return transcripts("polite") | played if user == "talkative" else played


def conversations(user):
    """The conversations of such a user: a key, the suite and the test."""
    for suite in SUITES.values():
        notes = NOTES[suite.name]
        for test in suite.tests:
            if user != "talkative" or test.name in notes.own_words:
                yield (suite.name, test.name), suite, test
        for number, example in enumerate(notes.counterexamples if user == "scripted" else ()):
            turns = tuple(PlannedTurn(user=line) for line in example["lines"])
            changes = {"user_info": example.get("user_info", {}), "turns": turns}
            yield (suite.name, number), suite, suite.tests[0].model_copy(update=changes)


def test_all_suites_and_strict_types_of_original_tool_are_bundled():
    assert set(bundled_names()) == {
        "demo:airbnb", "demo:automotive-agent-140426", "demo:credit-card-dispute", "demo:hr",
        "demo:it-support", "demo:retail", "quack:artlist/payment_issues_tda", "quack:artlist/refunds",
        "quack:artlist/subscriptions", "quack:notable/account_access", "quack:notable/compass_tests",
        "quack:rentman/account_management", "quack:yotpo_ugc/policy_suites",
    }  # fmt: skip
    used = {e.strict for suite in SUITES.values() for test in suite.tests for e in strict_evaluations(test)}
    assert used >= ORIGINAL_TYPES


@every_suite
def test_bundled_suite_has_5_to_12_tests_of_all_kinds_and_wordings_of_text_checks(suite):
    names = [test.name for test in suite.tests]
    assert 5 <= len(names) <= 12
    assert len(set(names)) == len(names)
    assert {*names} >= NOTES[suite.name].own_words.keys()
    assert suite.description
    tags = {tag for test in suite.tests for tag in test.tags}
    assert tags >= {"happy-path", "edge-case", "escalation", "must-not-do", "adversarial"}
    assert {test.difficulty for test in suite.tests} >= {"easy", "medium", "hard"}
    evaluations = [evaluation for test in suite.tests for evaluation in test.evaluations]
    assert {evaluation.category for evaluation in evaluations} >= {"accuracy", "tone", "safety", "compliance"}
    assert any(evaluation.aui_logic for evaluation in evaluations)
    assert any(turn.expectation for test in suite.tests for turn in test.turns)
    assert all(test.critical for test in suite.tests if "must-not-do" in test.tags)
    strict = [evaluation for test in suite.tests for evaluation in strict_evaluations(test)]
    patterns = {one.criterion for one in strict if one.strict in {"regex", "not_regex", "not_contains"}}
    assert patterns == NOTES[suite.name].wordings.keys()  # `contains` is for a fact of the user's data


@each_row(("suite", "test"), TESTS)
def test_bundled_test_has_user_data_weights_and_checks_that_its_agent_can_meet(suite, test):
    """In an adversarial role a model might volunteer anything, which is not the agent's doing."""
    assert "adversarial" not in test.tags or not any(turn.auto for turn in suite.turns_of(test))
    assert test.user_info
    assert len(test.guidelines) > 60
    assert strict_evaluations(test)
    assert any(isinstance(evaluation, Judged) for evaluation in test.evaluations)
    assert all(evaluation.category for evaluation in test.evaluations)
    assert len({evaluation.weight for evaluation in test.evaluations}) > 1
    # A check of something that the agent does not have would pass or fail forever.
    playbook = catalog.playbook(suite.agent_id)
    tools = {workflow.code for workflow in playbook.workflows} | {"CONVERSATION_FORWARDING"}
    steps = [step for workflow in playbook.workflows for step in workflow.steps]
    rules = {getattr(step, "rule", None) for step in steps}
    known = {"tool_name": tools, "rule_code": rules, "param_name": playbook.parameters}
    known |= {"integration_code": playbook.integrations}
    for evaluation in strict_evaluations(test):
        if isinstance(evaluation, ToolCalled):
            assert evaluation.tool_name in tools | playbook.integrations.keys()
            assert set(evaluation.args or {}) <= playbook.parameters.keys()
            continue
        for key, names in known.items():
            assert getattr(evaluation, key, None) in {None, *names}


@each_row("user", USERS)
@each_row(("suite", "test"), TESTS)
def test_demo_agent_passes_strict_checks_and_ends_as_expected_with_any_user(suite, test, user):
    transcript = transcripts(user)[suite.name, test.name]
    verdicts = [(e.criterion, e.decide(transcript)) for e in strict_evaluations(test)]
    assert [pair for pair in verdicts if pair[1].outcome is not Outcome.PASSED] == []
    kinds = {evaluation.strict for evaluation in strict_evaluations(test)}
    if "escalated" in kinds:
        expected = EndState.ESCALATED
    elif "escalated_due_to_error" in kinds:
        expected = EndState.AGENT_ERROR
    else:
        fixed = not any(turn.auto for turn in suite.turns_of(test))
        expected = EndState.COMPLETED if fixed else EndState.STOPPED
    assert transcript.status is expected or user == "talkative"


@each_row(("suite", "test"), TESTS)
def test_every_strict_check_fails_on_some_conversation(suite, test):
    """Except the latency check: it would take a slow agent."""
    for evaluation in strict_evaluations(test):
        assert evaluation.strict == "max_latency" or fails_somewhere(evaluation), evaluation.criterion


def fails_somewhere(evaluation):
    """Return whether a scripted conversation fails the check; one that failed its kind is tried first."""
    order = likely_failures(evaluation.strict)
    for place, transcript in enumerate(order):
        if evaluation.decide(transcript).outcome is Outcome.FAILED:
            order.insert(0, order.pop(place))
            return True
    return False


@cache
def likely_failures(_kind):
    """The scripted conversations in an order of its own for each kind of check."""
    return list(transcripts("scripted").values())


@every_suite
@each_row("words", [REFUSAL, CLAIM])
def test_agent_that_does_nothing_scores_at_most_15(suite, words):
    """Checks of what must not happen pass for such an agent, so the other checks have the weight."""
    assert null_score(suite.tests, words) <= 15


@pytest.mark.slow
@pytest.mark.parametrize("name", bundled_names())
async def test_critical_tests_notice_every_kind_of_planted_fault(name):
    """Only the kinds that apply to some critical test of the suite are meant."""
    loaded = load_suite(name)
    results = await run_suite(create_adapter(provider="offline"), loaded, judge_check="off")
    trials = [trial for trial in await saved_trials(results, [loaded.suite]) if trial.test.critical]
    assert all(trial.passed for trial in trials)
    plantings = await plant_all(FAULTS, trials)
    noticed = {planting.kind for planting in plantings if planting.noticed}
    assert {planting.kind for planting in plantings} - noticed == set()


def test_demo_agent_runs_only_optimal_workflows_named_by_every_demo_suite():
    """Some of more than one workflow."""
    named = [one.values for one in TESTS if one.values[1].optimal_tools]
    demos = {suite.name for name, suite in SUITES.items() if name.startswith("demo/")}
    assert {suite.name for suite, _ in named} == demos
    assert sum(len(test.optimal_tools) > 1 for _, test in named) >= 5
    for suite, test in named:
        for user in ("scripted", "polite"):
            turns = transcripts(user)[suite.name, test.name].turns
            measures = process.of_turns(turns, test.optimal_tools).process
            assert (measures.begun, measures.missed, measures.overhead) == (test.optimal_tools, 0, 0.0)


@each_row(("suite", "test"), TESTS)
def test_user_info_is_consistent_in_itself_and_with_numbers_in_user_texts(suite, test):
    facts = test.user_info
    if "order_status" in facts:
        delivered = facts["order_status"] == "delivered"
        assert delivered == ("delivered_days_ago" in facts)
        assert 0 <= facts.get("delivered_days_ago", 0) <= facts["days_since_order"]
        assert not delivered or not {"expected_delivery", "delayed_days", "carrier"} & facts.keys()
        assert facts["order_status"] == "shipped" or "delayed_days" not in facts
        assert facts.get("delayed_days", 0) < max(1, facts["days_since_order"])
        delivery = float(facts["order_total"]) - float(facts["item_price"])
        assert delivery == (0 if facts["loyalty_tier"] == "gold" else 6)
        assert float(facts.get("competitor_price", 0)) < float(facts["item_price"])
    text = " ".join([test.guidelines, *(turn.user for turn in test.turns)])
    for key, shape in NOTES[suite.name].numbers.items():
        assert set(re.findall(shape, text)) <= {test.user_info.get(key)} or key not in test.user_info


WORDINGS = [
    pytest.param(suite, criterion, words["right"], words["wrong"], id=f"{suite.name}: {criterion}")
    for suite in SUITES.values()
    for criterion, words in NOTES[suite.name].wordings.items()
]


@each_row(("suite", "criterion", "right", "wrong"), WORDINGS)
def test_text_checks_accept_and_reject_other_wordings(suite, criterion, right, wrong):
    """A right agent passes in its own words, a wrong one does not pass by avoiding the expected ones."""
    checks = [e for test in suite.tests for e in strict_evaluations(test) if e.criterion == criterion]
    assert checks

    def outcomes(words):
        transcript = build.transcript(f"user: Hello | agent: {words}")
        # As the only reply it is the one that is looked at, whichever that is in the suite.
        decided = [check.model_copy(update={"turn": "last"}).decide(transcript) for check in checks]
        return {verdict.outcome for verdict in decided}

    assert [words for words in right if outcomes(words) != {Outcome.PASSED}] == []
    assert [words for words in wrong if outcomes(words) != {Outcome.FAILED}] == []
