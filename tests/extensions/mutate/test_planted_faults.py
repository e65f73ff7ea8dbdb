"""Planted faults make of a conversation what an agent with that bug would have; the gate fails as predicted.

`pytest -m simulate -s` on this file prints the table of docs/mutations.md.
"""

import random
from dataclasses import replace
from statistics import fmean

import pytest
import shop_agents
from shop_agents import SUITE, ShopAgent

from ci_evals import create_adapter, load_suite, run_suite
from ci_evals.domain.run_ending import RunEnding
from ci_evals.domain.suite import PlannedTurn
from ci_evals.extensions.demo.faults import Misbehavior
from ci_evals.extensions.demo.server import DemoServer
from ci_evals.extensions.mutate.faults import FAULTS, KINDS
from ci_evals.extensions.mutate.faults.conversation import Conversation
from ci_evals.extensions.mutate.gate_draws import PlantedGate, graded_again
from ci_evals.extensions.mutate.planting import plant_all, saved_trials
from ci_evals.gate.decision import decide
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.policy import Policy
from ci_evals.scoring.scorecard import recounted
from ci_evals.scoring.scores import ScoreRule

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
    trials = await saved_trials((await run_suite(ShopAgent(bug, integrates), suite)), [suite.suite])
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


@pytest.mark.parametrize("kind", [
    "call_dropped", "call_changed", "call_failed", "param_changed", "state_unchanged", "reply_refused",
])  # fmt: skip
async def test_fault_that_drops_a_call_drops_its_effect_on_state(kind):
    healthy = (await conversations())["Refund"]
    planted = KINDS[kind].plant(healthy)
    assert healthy.transcript.probes["orders"].value == [{"id": "4711", "status": "refunded"}]
    assert planted.probes["orders"].value == [{"id": "4711", "status": "paid"}]


async def test_fault_is_not_planted_without_a_target_or_if_hand_over_is_allowed():
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
        assert any(KINDS["hand_over_added"].plant(trial.conversation) for trial in trials) is is_fault


async def test_state_after_a_planted_repeated_call_is_unknown():
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


RATES = (0.05, 0.1, 0.25, 0.5)
RUNS = 400
GATES = 5
"""Predictions that are averaged: one alone has 200 draws, whose share is within 7 points."""
POLICY = Policy(min_score=97)
KINDS_COMPARED = (
    *("call_dropped", "call_changed", "call_repeated", "call_forbidden", "call_failed", "hand_over_added"),
    *("rule_dropped", "param_changed", "state_unchanged", "reply_refused", "fact_changed"),
)
CHECKS = [
    {"criterion": "refunds once", "strict": "tool_called", "toolName": "refund"}
    | {"args": {"order": "4711"}, "times": 1, "status": "ok"},
    {"criterion": "nothing else", "strict": "tool_sequence", "tools": ["refund", "address"]}
    | {"mode": "subset"},
    {"criterion": "rule", "strict": "rule_triggered", "ruleCode": "refund-allowed"},
    {"criterion": "order", "strict": "param_equals", "paramName": "order", "paramValue": "4711"},
    {"criterion": "amount", "strict": "contains", "text": "30 euros", "turn": 1},
]


def suite_of(copies):
    """The shop's suite with a stronger test of refunds, each test several times."""
    refund, *others = SUITE["tests"]
    refund = refund | {"evaluations": [*refund["evaluations"], *CHECKS]}
    tests = (refund, *others)
    tests = [test | {"name": f"{test['name']} {copy}"} for copy in range(copies) for test in tests]
    return load_suite(SUITE | {"tests": tests})


BUNDLED = ("demo:hr", "demo:retail", "demo:airbnb")
MISBEHAVIORS = {
    Misbehavior.ESCALATE_EARLY: "hand_over_added", Misbehavior.FORGET_PARAMETER: "param_changed",
    Misbehavior.SKIP_RULES: "rule_dropped", Misbehavior.WRONG_INTEGRATION: "call_dropped",
    Misbehavior.LEAK: "data_told",
}  # fmt: skip
"""What the demo agent can do wrong, and the kind of fault that is closest to it.

`claims` is left out: a probe of the demo's world needs a session's id, and there is none before the first
message.
"""


async def shares(kinds, copies):
    """By kind and rate: the share of runs that fail as predicted, and with the agent that has the bug.

    The agents always do the same, so that one conversation of each kind shows what every other would be.
    """
    suite = suite_of(copies)
    healthy = await run_suite(ShopAgent(), suite, policy=POLICY)
    trials = await saved_trials(healthy, [suite.suite])
    seeded = [with_run_id(healthy, f"run {n}") for n in range(GATES)]
    gates = [PlantedGate(graded_again(one, trials), POLICY) for one in seeded]
    result = {}
    for kind in kinds:
        plantings = await plant_all([KINDS[kind]], trials)
        affected = {planting.trial.key.test for planting in plantings}
        broken = await run_suite(ShopAgent(kind), suite, policy=POLICY)
        for rate in RATES:
            result[kind, rate] = (
                fmean(gate.failing_share(plantings, rate) for gate in gates),
                real_share(healthy, broken, affected, rate),
            )
    return result


def with_run_id(results, run):
    """Return the results under a run's id, which is the seed of the draws."""
    return replace(results, run=replace(results.run, id=run))


def real_share(healthy, broken, affected, rate):
    rng = random.Random(f"real {rate}")
    return sum(fails(healthy, broken, affected, rate, rng) for _ in range(RUNS)) / RUNS


def fails(healthy, broken, affected, rate, rng):
    """Return whether the gate fails a run in which the bug showed in some conversations."""
    (good,), (bad,) = healthy.suites, broken.suites
    pairs = zip(good.tests, bad.tests, strict=True)
    chances = [place in affected and rng.random() < rate for place in range(len(good.tests))]
    tests = tuple(pair[broken] for pair, broken in zip(pairs, chances, strict=True))
    suite = recounted(replace(good, tests=tests), ScoreRule(offline=True))
    results = replace(healthy, suites=(suite,), score=suite.score)
    return not decide(GateInput(results), POLICY, RunEnding()).passed


@pytest.mark.slow  # it computes
async def test_gate_fails_as_often_as_predicted():
    result = await shares(["call_dropped"], copies=3)
    for predicted, real in result.values():
        assert abs(predicted - real) <= 0.1


@pytest.mark.simulate
async def test_predicted_failure_share_matches_simulation_for_many_fault_kinds():
    """The table of the docs: predicted and real shares of failing runs, in percent."""
    result = await shares(KINDS_COMPARED, copies=4)
    for kind in KINDS_COMPARED:
        shares_of_kind = [result[kind, rate] for rate in RATES]
        cells = [f"{100 * one:.0f} / {100 * other:.0f}" for one, other in shares_of_kind]
        print(f"| `{kind}` | {' | '.join(cells)} |")
    for predicted, real in result.values():
        assert abs(predicted - real) <= 0.1


async def demo_shares(address, misbehavior, kind):
    """By rate, the share of runs that fail as predicted, and with the agent that misbehaves."""
    suite = load_suite(address)
    healthy = await run_demo(suite)
    trials = await saved_trials(healthy, [suite.suite])
    plantings = await plant_all([KINDS[kind]], trials)
    affected = {planting.trial.key.test for planting in plantings}
    if not affected:
        return {}, 0
    broken = await run_demo(suite, misbehavior)
    seeded = [with_run_id(healthy, f"run {n}") for n in range(GATES)]
    gates = [PlantedGate(graded_again(one, trials), POLICY) for one in seeded]
    return {
        rate: (
            fmean(gate.failing_share(plantings, rate) for gate in gates),
            real_share(healthy, broken, affected, rate),
        )
        for rate in RATES
    }, len(affected)


async def run_demo(suite, *misbehaves):
    with DemoServer(misbehaves=misbehaves) as server:
        agent = create_adapter(base_url=server.base_url, provider="offline")
        return await run_suite(agent, suite, policy=POLICY)


@pytest.mark.simulate
async def test_misbehaving_demo_agent_fails_at_least_as_often_as_predicted():
    """The second table of the docs. Only a forgotten parameter is milder than the fault closest to it."""
    for misbehavior, kind in MISBEHAVIORS.items():
        for address in BUNDLED:
            result, affected = await demo_shares(address, misbehavior, kind)
            if not affected:
                continue
            cells = [f"{100 * one:.0f} / {100 * other:.0f}" for one, other in result.values()]
            print(f"| `{misbehavior}` | `{kind}` | {address} | {' | '.join(cells)} |")
            if misbehavior is not Misbehavior.FORGET_PARAMETER:
                assert all(real >= predicted - 0.1 for predicted, real in result.values())
