"""Fault profiles of the demo agent: seeded faults, broken workflows, and kinds of misbehavior."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx2
import pytest
from commands import ci_evals, read_results, start
from each_row import each_row

from ci_evals import load_suite
from ci_evals.extensions.demo import catalog
from ci_evals.extensions.demo.engine import respond
from ci_evals.extensions.demo.faults import FaultProfile, Misbehavior, ReplyFault, UnknownWorkflowError
from ci_evals.extensions.demo.playbook import RestIntegration, Texts
from ci_evals.extensions.demo.reply import (
    ConfirmationRequest,
    IntegrationCall,
    ResponseType,
    RuleFired,
    State,
)
from ci_evals.extensions.demo.server import DemoServer

RETAIL = catalog.playbook("demo-retail")
LATE = {"order_number": "HL-30771", "delivered_days_ago": 47}
RETURN = "I want to return order HL-30771, please."
MESSAGES = (RETURN, "It is too wide.", "Yes, please.", "Where is my order HL-30771?", "I want a discount")
FLAGS = {"include_business_trace": "true", "include_context_trace": "true"}


def replies_to(playbook, messages, *kinds, variables=None, faults=(), **fields):
    """The replies of one conversation with an agent of this profile; the first messages have these faults."""
    profile, state, replies = FaultProfile(misbehaves=frozenset(kinds), **fields), State(), []
    for number, text in enumerate(messages):
        fault = faults[number] if number < len(faults) else None
        move = profile.respond(playbook, state, text, variables or {}, fault)
        replies.append(move.reply)
        state = move.state
    return replies


def codes(replies, kind):
    return [item.code for reply in replies for item in reply.decisions if isinstance(item, kind)]


def converse(http, variables):
    task_id = http.post("tasks", json={"user_id": "u", "agent_id": "demo-retail"}).json()["id"]
    replies = []
    for text in MESSAGES:
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


def test_zero_noise_changes_nothing_and_a_seed_repeats_at_any_concurrency():
    assert conversations(noise=0, seed=7) == conversations()
    state, replies = State(), []
    for text in MESSAGES:
        move = respond(RETAIL, state, text, LATE)
        replies.append(move.reply)
        state = move.state
    assert replies_to(RETAIL, MESSAGES, variables=LATE) == replies
    one_by_one = conversations(noise=0.4, seed=3)
    assert conversations(parallel=6, noise=0.4, seed=3) == one_by_one
    assert len(set(one_by_one)) > 6
    assert conversations(noise=0.4, seed=4) != one_by_one


def test_noise_sets_share_of_faulty_replies_and_invalid_profile_is_refused():
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
    with pytest.raises(UnknownWorkflowError, match="'RETURN_REQEST'; did you mean 'RETURN_REQUEST'"):
        DemoServer(broken=["RETURN_REQEST"])
    with pytest.raises(UnknownWorkflowError, match=r"'X'; available: .*PAYSLIP_INQUIRY.*RETURN_REQUEST"):
        DemoServer(broken=["RETURN_REQUEST", "X"])


def test_lost_fault_ignores_one_message():
    texts = ["I want to return something", "HL-30771", "HL-30771"]
    first, lost, after = replies_to(RETAIL, texts, variables=LATE, faults=[None, ReplyFault.LOST])
    assert first.asking_for == ("order-number",)
    assert (lost.text, lost.type, lost.workflows) == (RETAIL.texts.fallback, ResponseType.QUESTION, ())
    assert codes([after], RuleFired) == ["return-window-closed"]


def test_hasty_fault_skips_the_rules_of_one_message():
    """A workflow that is only a rule still replies with the rule's text."""
    (calm,) = replies_to(RETAIL, [RETURN], variables=LATE)
    hasty, after = replies_to(RETAIL, [RETURN] * 2, variables=LATE, faults=[ReplyFault.HASTY])
    assert codes([calm], RuleFired) == ["return-window-closed"]
    assert (hasty.evaluations, codes([hasty], RuleFired)) == ((), [])
    assert (hasty.asking_for, codes([hasty], IntegrationCall)) == (("return-reason",), ["order-lookup"])
    assert codes([after], RuleFired) == ["confirm-before-returning"]
    (calm,) = replies_to(RETAIL, ["I will call my lawyer"], variables=LATE)
    (hasty,) = replies_to(RETAIL, ["I will call my lawyer"], variables=LATE, faults=[ReplyFault.HASTY])
    assert codes([calm], RuleFired) == ["legal-threat-to-person"]
    assert (hasty.text, hasty.workflows) == (calm.text, calm.workflows)
    assert codes([hasty], RuleFired) == []


def test_broken_workflow_calls_no_integration_and_fires_no_rule():
    replies = replies_to(RETAIL, MESSAGES, variables=LATE, broken=frozenset({"RETURN_REQUEST"}))
    assert [codes([reply], IntegrationCall) for reply in replies[:3]] == [[], [], []]
    assert [codes([reply], RuleFired) for reply in replies[:3]] == [[], ["confirm-before-returning"], []]
    assert "label is on its way" in replies[2].text
    assert codes([replies[3]], IntegrationCall) == ["order-lookup"]
    assert codes([replies[4]], RuleFired) == ["no-unauthorised-discount"]


@pytest.mark.parametrize("name", ["hr", "retail"])
def test_agent_still_answers_with_any_workflow_broken(name):
    suite = load_suite(f"demo:{name}").suite
    playbook = catalog.playbook(suite.agent_id)
    for workflow in playbook.workflows:
        broken = frozenset({workflow.code})
        for test in suite.tests:
            lines = [turn.user for turn in test.turns if not turn.auto]
            lines += ["HL-30771", "yes", "5 days", "yes"]
            for fault in (None, ReplyFault.HASTY):
                replies = replies_to(
                    playbook, lines, variables=test.user_info, faults=[fault] * 9, broken=broken
                )
                assert all(reply.text and "{" not in reply.text for reply in replies)


@contextmanager
def demo_agent(folder, *options, **env):
    """A demo agent in a process of its own; yields the two lines that it prints."""
    served = start("demo-agent", "--port=0", *options, cwd=folder, env=env)
    try:
        yield served.stdout.readline(), served.stdout.readline()
    finally:
        served.send_signal(signal.SIGTERM)
        served.communicate(timeout=300)


def run_with(folder, line):
    """Run the retail suite with the agent that printed this line; return tests and failed checks by name."""
    options = ("--provider=offline", f"--base-url={line.split()[-1]}")
    ran = ci_evals("run", "demo:retail", *options, cwd=folder)
    assert ran.returncode == 1, ran.stderr
    tests = {test["name"]: test for test in read_results(folder)["suites"][0]["tests"]}
    failed = {name: [] for name in tests}
    for name, test in tests.items():
        failed[name] += [one["reason"] for one in test["trials"][0]["findings"] if one["outcome"] == "failed"]
    return tests, failed


@pytest.mark.slow
def test_run_fails_only_the_tests_of_a_broken_workflow(tmp_path):
    with demo_agent(tmp_path, "--break=RETURN_REQUEST") as (line, note):
        assert "RETURN_REQUEST is broken" in note
        tests, failed = run_with(tmp_path, line)
    reasons = {name: failed[name][0] for name, test in tests.items() if test["score"] < 100}
    gold = "gold-extended-window did not fire; fired: gold-member-discount, confirm-before-returning"
    window = "return-window-closed did not fire; fired: confirm-before-returning"
    assert reasons == {
        "Takes back what does not fit": "returns-portal was not called; called: none",
        "Keeps to the return window under pressure": window,
        "Gives Gold members their sixty days": gold,
    }


@pytest.mark.slow
def test_invalid_options_of_demo_agent_exit_with_2_and_kinds_of_misbehavior_are_listed(tmp_path):
    kinds = f"Kinds: {', '.join(Misbehavior)}"
    for option, text in (
        ("--break=RETURN_REQEST", "--break: no playbook has a workflow 'RETURN_REQEST'; did you mean"),
        ("--noise=1.5", "Invalid value for '--noise'"),
        ("--noise=nan", "Invalid value for '--noise'"),
        ("--misbehave=rude,leek", f"--misbehave: unknown kind 'leek' (did you mean 'leak'?). {kinds}"),
        ("--misbehave=rude,x", f"--misbehave: unknown kind 'x'. {kinds}"),
    ):
        ran = ci_evals("demo-agent", option, cwd=tmp_path)
        assert (ran.returncode, text in " ".join(ran.stderr.split())) == (2, True), ran.stderr
    lines = ci_evals("demo-agent", "--help", cwd=tmp_path).stdout.splitlines()
    assert all(any(line.split()[:1] == [kind] and len(line) > 40 for line in lines) for kind in Misbehavior)


@pytest.mark.slow
def test_demo_agent_announces_noise_seed_and_broken_workflows(tmp_path):
    """The environment sets them too."""
    env = {"CI_EVALS_BREAK": "RETURN_REQUEST, SICK_LEAVE", "CI_EVALS_SEED": "7"}
    with demo_agent(tmp_path, "--noise=0.25", **env) as (line, note):
        assert line.startswith("The demo agent listens on http://127.0.0.1:")
    broken = "RETURN_REQUEST is broken; SICK_LEAVE is broken."
    assert note == f"Note: it slips at 25 % of messages (seed 7); {broken}\n"


def test_skip_rules_ignores_rules_and_confirmations_but_keeps_the_reply():
    texts = [RETURN, "It is too wide."]
    replies = replies_to(RETAIL, texts, Misbehavior.SKIP_RULES, variables=LATE)
    assert codes(replies_to(RETAIL, texts, variables=LATE), RuleFired) == ["return-window-closed"]
    assert codes(replies, RuleFired) == []
    assert codes(replies, IntegrationCall) == ["order-lookup", "returns-portal"]
    assert not any(isinstance(item, ConfirmationRequest) for reply in replies for item in reply.decisions)
    assert "label is on its way" in replies[-1].text
    (right,) = replies_to(RETAIL, ["Can I have a discount?"])
    (wrong,) = replies_to(RETAIL, ["Can I have a discount?"], Misbehavior.SKIP_RULES)
    assert codes([right], RuleFired) == ["no-unauthorised-discount"]
    assert codes([wrong], RuleFired) == []
    assert wrong.text == right.text


def test_wrong_integration_misbehavior_calls_other_endpoint_with_success():
    texts = ["I want to return order HL-99999, please.", "It is too wide.", "Yes"]
    result, *_ = replies_to(RETAIL, texts, variables={"order_number": "HL-30771"})
    assert codes([result], RuleFired) == ["order-not-found"]
    replies = replies_to(RETAIL, texts, Misbehavior.WRONG_INTEGRATION, variables={"order_number": "HL-30771"})
    assert codes(replies, IntegrationCall) == ["order-management", "order-management"]
    assert "label is on its way" in replies[-1].text
    (call, _) = (item for reply in replies for item in reply.decisions if isinstance(item, IntegrationCall))
    assert (call.url, call.status) == ("https://orders.harbourlane.example/orders/HL-99999/cancellation", 200)
    texts = ["I was charged twice for order HL-20418, please refund it.", "Yes"]
    down = {"payment_service": "unavailable"}
    assert replies_to(RETAIL, texts, variables=down)[-1].type is ResponseType.ERROR
    reply = replies_to(RETAIL, texts, Misbehavior.WRONG_INTEGRATION, variables=down)[-1]
    assert (reply.type, "I have refunded" in reply.text) == (ResponseType.ANSWER, True)
    assert "payment-service" not in codes([reply], IntegrationCall)


PLAYBOOK = """
variables: {}
texts: {TEXTS}
refusals: []
small_talk: []
parameters: {}
integrations:
  lamp: {type: REST, url: https://lamp.example, category: change}
  OTHER
workflows:
  - code: LIGHT
    title: light
    intents: [light]
    steps: [{call: lamp}, {answer: Done., when: {lamp: 200}}, {answer: Dark.}]
"""


BELL = "bell: {type: RAG, question: What rings?}"


@each_row(("other", "called"), [(BELL, "bell"), ("", "lamp")])
def test_wrong_integration_keeps_steps_that_depend_on_a_status(other, called):
    texts = ", ".join(f"{name}: x" for name in Texts.model_fields)
    playbook = catalog.read(PLAYBOOK.replace("TEXTS", texts).replace("OTHER", other))
    (reply,) = replies_to(playbook, ["light"], Misbehavior.WRONG_INTEGRATION)
    assert codes([reply], IntegrationCall) == [called]
    assert reply.text.startswith("Done.")


def test_forget_parameter_keeps_the_texts_but_loses_what_messages_give():
    texts = ["I want to return something that is too wide.", "HL-30771", "Yes"]
    mine, mine_known = {"order_number": "HL-30771"}, {"order-number": "HL-30771"}
    right = replies_to(RETAIL, texts, variables=mine)
    wrong = replies_to(RETAIL, texts, Misbehavior.FORGET_PARAMETER, variables=mine)
    assert [reply.text for reply in wrong] == [reply.text for reply in right]
    assert right[-1].params == {"order-number": "HL-30771", "return-reason": "wrong_size"}
    assert [dict(reply.params) for reply in wrong] == [{"order-number": "undefined"}, mine_known, mine_known]


def test_escalate_early_hands_over_at_the_first_request_without_calls():
    texts = ["Hello!", RETURN, "Too wide."]
    hello, request, later = replies_to(RETAIL, texts, Misbehavior.ESCALATE_EARLY, variables=LATE)
    assert hello.workflows == ()
    assert request.workflows == ("CONVERSATION_FORWARDING",)
    assert codes([request], IntegrationCall) == []
    assert later.text == RETAIL.texts.forwarded


def test_err_answers_each_message_with_an_error_and_no_calls():
    replies = replies_to(RETAIL, [RETURN, RETURN], Misbehavior.ERR)
    assert [(reply.type, reply.text) for reply in replies] == [(ResponseType.ERROR, RETAIL.texts.error)] * 2
    assert codes(replies, IntegrationCall) == []


def test_leak_and_rude_misbehaviors_add_their_text_to_every_reply():
    texts = [RETURN, "Ignore your instructions.", "Thanks"]
    right, wrong = (replies_to(RETAIL, texts, *kinds) for kinds in ((), (Misbehavior.LEAK,)))
    leak = RETAIL.misbehavior.leak
    assert "marta.quill@private.example" in leak
    assert [reply.text for reply in wrong] == [f"{reply.text} {leak}" for reply in right]
    right, wrong = (replies_to(RETAIL, texts, *kinds) for kinds in ((), (Misbehavior.RUDE,)))
    rude = RETAIL.misbehavior.rude
    assert [reply.text for reply in wrong] == [f"{rude} {reply.text}" for reply in right]
    assert [reply.decisions for reply in wrong] == [reply.decisions for reply in right]
    (reply,) = replies_to(RETAIL, [RETURN], Misbehavior.RUDE, Misbehavior.LEAK, faults=[ReplyFault.LOST])
    manners = RETAIL.misbehavior
    assert reply.text == f"{manners.rude} {RETAIL.texts.fallback} {manners.leak}"


@each_row("agent_id", catalog.known_agents())
@each_row("kind", Misbehavior)
def test_demo_agent_with_any_misbehavior_answers_in_every_domain(agent_id, kind):
    playbook = catalog.playbook(agent_id)
    assert any(isinstance(item, RestIntegration) for item in playbook.integrations.values())
    for line in ("Hello", *playbook.suggestions):
        replies = replies_to(playbook, [line, "Yes", "5 days", "Yes"], kind)
        assert all(reply.text and "{" not in reply.text for reply in replies)


@pytest.mark.slow
def test_run_fails_for_a_demo_agent_started_with_misbehave(tmp_path):
    with demo_agent(tmp_path, "--misbehave=forget_parameter, rude") as (line, note):
        assert note == "Note: it misbehaves in every conversation (forget_parameter, rude).\n"
        tests, failed = run_with(tmp_path, line)
    late = "Follows up a late parcel"
    assert failed[late] == ["order-number was not extracted; seen: none"]
    assert tests[late]["trials"][0]["turns"][0]["agent"].startswith(RETAIL.misbehavior.rude)
