"""Fault profiles of the demo agent: faults drawn from a seed, and workflows without rules and back end."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from commands import ci_evals, read_results, start

from ci_evals import load_suite
from ci_evals.extensions.demo import catalog
from ci_evals.extensions.demo.engine import respond
from ci_evals.extensions.demo.faults import FaultProfile, ReplyFault, UnknownWorkflowError
from ci_evals.extensions.demo.reply import IntegrationCall, ResponseType, RuleFired, State
from ci_evals.extensions.demo.server import DemoServer

RETAIL = catalog.playbook("demo-retail")
LATE = {"order_number": "HL-30771", "delivered_days_ago": 47}
RETURN = "I want to return order HL-30771, please."
SAID = (RETURN, "It is too wide.", "Yes, please.", "Where is my order HL-30771?", "I want a discount")
FLAGS = {"include_business_trace": "true", "include_context_trace": "true"}


def replies_of(playbook, messages, variables=LATE, profile=None, faults=()):
    """The replies of one conversation; the first messages have these faults."""
    state, replies = State(), []
    for number, text in enumerate(messages):
        fault = faults[number] if number < len(faults) else None
        move = (profile or FaultProfile()).respond(playbook, state, text, variables, fault)
        replies.append(move.reply)
        state = move.state
    return replies


def of_kind(reply, kind):
    """The codes of a reply's decisions of one kind."""
    return [item.code for item in reply.decisions if isinstance(item, kind)]


def converse(http, variables):
    """One conversation over HTTP: the texts and traces of its replies."""
    task_id = http.post("tasks", json={"user_id": "u", "agent_id": "demo-retail"}).json()["id"]
    replies = []
    for text in SAID:
        body = {"task_id": task_id, "text": text, "agent_variables": variables}
        reply = http.post("message", params=FLAGS, json=body).json()
        fetched = http.get(f"tasks/{task_id}/messages/{reply['id']}/trace-info").json()
        assert fetched == reply["trace_info"]
        replies.append(json.dumps([reply["text"], fetched]))
    return tuple(replies)


def conversations(parallel=1, **options):
    """Six conversations with each of three users, in order of their text: what a server says to them."""
    users = [{**LATE, "name": name} for name in ("Ada", "Bo", "Cy")] * 6
    with DemoServer(**options) as server:
        base = f"{server.base_url}/api/v1/external/"
        key = {"x-network-api-key": "k"}
        http = httpx2.Client(base_url=base, headers=key, trust_env=False)
        with http, ThreadPoolExecutor(parallel) as pool:
            return sorted(pool.map(lambda variables: converse(http, variables), users))


def test_zero_noise_changes_no_reply():
    assert conversations(noise=0, seed=7) == conversations()
    state, replies = State(), []
    for text in SAID:
        move = respond(RETAIL, state, text, LATE)
        replies.append(move.reply)
        state = move.state
    assert replies_of(RETAIL, SAID) == replies


def test_seed_gives_the_same_conversations_at_any_concurrency():
    """A draw depends on what is said, not on who comes first."""
    one_by_one = conversations(noise=0.4, seed=3)
    assert conversations(parallel=6, noise=0.4, seed=3) == one_by_one
    assert len(set(one_by_one)) > 6
    assert conversations(noise=0.4, seed=4) != one_by_one


def test_noise_is_the_share_of_messages_with_faults():
    """Half of the faults are of each kind; more noise adds faults and removes none."""
    few, many = (
        [FaultProfile(noise=noise, seed=5).draw("c", n) for n in range(4000)] for noise in (0.1, 0.3)
    )
    assert len([fault for fault in few if fault]) == pytest.approx(400, abs=60)
    assert few.count(ReplyFault.LOST) == pytest.approx(200, abs=45)
    assert all(less in {None, more} for less, more in zip(few, many, strict=True))
    assert all(FaultProfile(noise=1).draw("c", n) for n in range(100))
    assert not any(FaultProfile(noise=0).draw("c", n) for n in range(100))
    for noise in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="noise is a share from 0 to 1"):
            DemoServer(noise=noise)


def test_lost_fault_drops_one_message_and_keeps_the_state():
    texts = ["I want to return something", "HL-30771", "HL-30771"]
    first, lost, after = replies_of(RETAIL, texts, faults=[None, ReplyFault.LOST])
    assert first.asking_for == ("order-number",)
    assert (lost.text, lost.type, lost.workflows) == (RETAIL.texts.fallback, ResponseType.QUESTION, ())
    assert of_kind(after, RuleFired) == ["return-window-closed"]


def test_hasty_fault_ignores_the_rules_for_one_message():
    """A workflow that is only a rule still replies with the rule's text."""
    (calm,) = replies_of(RETAIL, [RETURN])
    hasty, after = replies_of(RETAIL, [RETURN] * 2, faults=[ReplyFault.HASTY])
    assert of_kind(calm, RuleFired) == ["return-window-closed"]
    assert (hasty.evaluations, of_kind(hasty, RuleFired)) == ((), [])
    assert (hasty.asking_for, of_kind(hasty, IntegrationCall)) == (("return-reason",), ["order-lookup"])
    assert of_kind(after, RuleFired) == ["confirm-before-returning"]
    (calm,) = replies_of(RETAIL, ["I will call my lawyer"])
    (hasty,) = replies_of(RETAIL, ["I will call my lawyer"], faults=[ReplyFault.HASTY])
    assert of_kind(calm, RuleFired) == ["legal-threat-to-person"]
    assert (hasty.text, hasty.workflows) == (calm.text, calm.workflows)
    assert of_kind(hasty, RuleFired) == []


def test_broken_workflow_calls_no_integration_and_fires_no_rule():
    replies = replies_of(RETAIL, SAID, profile=FaultProfile(broken=frozenset({"RETURN_REQUEST"})))
    assert [of_kind(reply, IntegrationCall) for reply in replies[:3]] == [[], [], []]
    assert [of_kind(reply, RuleFired) for reply in replies[:3]] == [[], ["confirm-before-returning"], []]
    assert "label is on its way" in replies[2].text
    assert of_kind(replies[3], IntegrationCall) == ["order-lookup"]
    assert of_kind(replies[4], RuleFired) == ["no-unauthorised-discount"]


@pytest.mark.parametrize("name", ["hr", "retail"])
def test_agent_still_answers_with_any_workflow_broken(name):
    suite = load_suite(f"demo:{name}").suite
    playbook = catalog.playbook(suite.agent_id)
    for workflow in playbook.workflows:
        profile = FaultProfile(broken=frozenset({workflow.code}))
        for test in suite.tests:
            lines = [turn.user for turn in test.turns if not turn.auto]
            lines += ["HL-30771", "yes", "5 days", "yes"]
            for fault in (None, ReplyFault.HASTY):
                replies = replies_of(playbook, lines, test.user_info, profile, [fault] * 9)
                assert all(reply.text and "{" not in reply.text for reply in replies)


def test_unknown_workflow_to_break_is_refused_with_suggestions():
    with pytest.raises(UnknownWorkflowError, match="'RETURN_REQEST'; did you mean 'RETURN_REQUEST'"):
        DemoServer(broken=["RETURN_REQEST"])
    with pytest.raises(UnknownWorkflowError, match=r"'X'; available: .*PAYSLIP_INQUIRY.*RETURN_REQUEST"):
        DemoServer(broken=["RETURN_REQUEST", "X"])


@pytest.mark.slow
def test_run_fails_only_the_tests_of_a_broken_workflow(tmp_path):
    served = start("demo-agent", "--port=0", "--break=RETURN_REQUEST", cwd=tmp_path)
    try:
        url = served.stdout.readline().split()[-1]
        assert "RETURN_REQUEST is broken" in served.stdout.readline()
        ran = ci_evals("run", "demo:retail", "--provider=offline", f"--base-url={url}", cwd=tmp_path)
    finally:
        served.send_signal(signal.SIGTERM)
        served.communicate(timeout=300)
    assert ran.returncode == 1, ran.stderr
    tests = read_results(tmp_path)["suites"][0]["tests"]
    reasons = {}
    for test in tests:
        failed = [item["reason"] for item in test["trials"][0]["findings"] if item["outcome"] == "failed"]
        if test["score"] < 100:
            reasons[test["name"]] = failed[0]
    gold = "gold-extended-window did not fire; fired: gold-member-discount, confirm-before-returning"
    window = "return-window-closed did not fire; fired: confirm-before-returning"
    assert reasons == {
        "Takes back what does not fit": "returns-portal was not called; called: none",
        "Keeps to the return window under pressure": window,
        "Gives Gold members their sixty days": gold,
    }


@pytest.mark.slow
def test_invalid_break_and_noise_options_exit_with_2(tmp_path):
    for option, text in (
        ("--break=RETURN_REQEST", "--break: no playbook has a workflow 'RETURN_REQEST'; did you mean"),
        ("--noise=1.5", "Invalid value for '--noise'"),
        ("--noise=nan", "Invalid value for '--noise'"),
    ):
        ran = ci_evals("demo-agent", option, cwd=tmp_path)
        assert ran.returncode == 2
        assert text in " ".join(ran.stderr.split())


@pytest.mark.slow
def test_demo_agent_announces_noise_seed_and_broken_workflows(tmp_path):
    """The environment sets them too."""
    env = {"CI_EVALS_BREAK": "RETURN_REQUEST, SICK_LEAVE", "CI_EVALS_SEED": "7"}
    served = start("demo-agent", "--port=0", "--noise=0.25", cwd=tmp_path, env=env)
    try:
        assert served.stdout.readline().startswith("The demo agent listens on http://127.0.0.1:")
        note = "it slips at 25 % of messages (seed 7); RETURN_REQUEST is broken; SICK_LEAVE is broken."
        assert served.stdout.readline() == f"Note: {note}\n"
    finally:
        served.send_signal(signal.SIGTERM)
        served.communicate(timeout=300)
