"""Each fault makes of a conversation what an agent with that bug would have made of it."""

import pytest
import shop_agents
from shop_agents import SUITE, ShopAgent

from ci_evals import load_suite, run_suite
from ci_evals.domain.suite import PlannedTurn
from ci_evals.extensions.mutate.faults import FAULTS, KINDS
from ci_evals.extensions.mutate.faults.conversation import Conversation
from ci_evals.extensions.mutate.planting import saved_trials

WORDS = {"reply_refused", "reply_claims", "reply_swapped", "reply_cut", "fact_changed", "data_told"}
"""Kinds whose words are known too."""
UNKNOWN_RESULT = {"call_changed", "param_changed", "call_failed"}
"""Kinds of which nobody can know what the call returned."""


@pytest.fixture(autouse=True)
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop_agents.open_shop()


async def conversations(bug=None, *, integrates=False):
    suite = load_suite(SUITE)
    results = await run_suite(ShopAgent(bug, integrates), suite)
    trials = await saved_trials(results, [suite.suite])
    return {trial.test.name: trial.conversation for trial in trials}


def evidence(transcript, *, results):
    """All that was seen of an agent, except how long it took."""
    left_out = {"latency_seconds", "trace", "raw"}
    turns = [turn.model_dump(exclude=left_out) for turn in transcript.turns]
    for turn in turns:
        for call in turn["tool_calls"] or ():
            call["result"] = call["result"] if results else None
    return turns, transcript.status


@pytest.mark.parametrize("integrates", [False, True], ids=["tool calls", "integrations"])
@pytest.mark.parametrize("kind", KINDS)
async def test_planted_fault_has_same_evidence_as_agent_with_that_bug(kind, integrates):
    test = "Person" if kind == "hand_over_dropped" else "Refund"
    healthy = (await conversations(integrates=integrates))[test]
    real = (await conversations(kind, integrates=integrates))[test].transcript
    planted = KINDS[kind].plant(healthy)
    compares_results = kind not in UNKNOWN_RESULT
    assert evidence(planted, results=compares_results) == evidence(real, results=compares_results)
    known = {name: probe for name, probe in planted.probes.items() if probe.error is None}
    assert known.items() <= real.probes.items()
    if kind not in WORDS:
        replies = [turn.agent for turn in healthy.turns[: len(planted.turns)]]
        assert [turn.agent for turn in planted.turns] == replies
    assert planted != healthy.transcript


@pytest.mark.parametrize(
    "kind",
    ["call_dropped", "call_changed", "call_failed", "param_changed", "state_unchanged", "reply_refused"],
)
async def test_fault_that_drops_a_call_drops_its_effect_on_state(kind):
    healthy = (await conversations())["Refund"]
    planted = KINDS[kind].plant(healthy)
    assert healthy.transcript.probes["orders"].value == [{"id": "4711", "status": "refunded"}]
    assert planted.probes["orders"].value == [{"id": "4711", "status": "paid"}]


async def test_fault_without_target_is_not_planted_and_repeated_call_has_no_known_state():
    healthy = (await conversations())["Person"]
    assert {fault.kind for fault in FAULTS if fault.plant(healthy) is None} == {
        *("call_dropped", "call_changed", "call_repeated", "call_failed", "hand_over_added"),
        *("rule_dropped", "param_changed", "state_unchanged", "fact_changed"),
    }
    suite = load_suite(SUITE)
    results = await run_suite(ShopAgent(), suite)
    tests = tuple(test.copy_with(may_escalate=True) for test in suite.suite.tests)
    for one, is_fault in ((suite.suite, True), (suite.suite.copy_with(tests=tests), False)):
        trials = await saved_trials(results, [one])
        planted = [KINDS["hand_over_added"].plant(trial.conversation) for trial in trials]
        assert any(planted) is is_fault
    healthy = (await conversations())["Refund"]
    assert KINDS["call_repeated"].plant(healthy).probes["orders"].error is not None


@pytest.mark.parametrize("kind", ["reply_swapped", "reply_cut", "fact_changed", "data_told"])
async def test_changed_reply_ends_conversation_before_simulated_user(kind):
    """After other words a simulated user could say something else, so the rest is not known."""
    healthy = (await conversations())["Refund"]
    planned = (PlannedTurn(user="Please refund order 4711."), PlannedTurn(user="auto"))
    auto = Conversation(healthy.transcript, planned, healthy.user_info, healthy.before, healthy.others)
    planted = KINDS[kind].plant(auto)
    assert (len(planted.turns), planted.unanswered, KINDS[kind].plant(healthy).unanswered) == (1, 2, None)
