"""The demo agent told to misbehave: one thing goes wrong in every conversation, all else stays."""

import signal

import pytest
from commands import ci_evals, read_results, start
from each_row import each_row

from ci_evals.extensions.demo import catalog
from ci_evals.extensions.demo.faults import FaultProfile, Misbehavior, ReplyFault
from ci_evals.extensions.demo.playbook import RestIntegration, Texts
from ci_evals.extensions.demo.reply import (
    ConfirmationRequest,
    IntegrationCall,
    ResponseType,
    RuleFired,
    State,
)

RETAIL = catalog.playbook("demo-retail")
LATE = {"order_number": "HL-30771", "delivered_days_ago": 47}
RETURN = "I want to return order HL-30771, please."


def replies_to(playbook, messages, *kinds, variables=None, fault=None):
    """The replies to messages in one conversation with an agent that misbehaves in these ways."""
    profile, state, replies = FaultProfile(misbehaves=frozenset(kinds)), State(), []
    for text in messages:
        move = profile.respond(playbook, state, text, variables or {}, fault)
        replies.append(move.reply)
        state = move.state
    return replies


def codes(replies, kind):
    """The codes of all decisions of one kind."""
    return [item.code for reply in replies for item in reply.decisions if isinstance(item, kind)]


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


def test_wrong_integration_calls_one_that_is_not_due_and_succeeds():
    texts = ["I want to return order HL-99999, please.", "It is too wide.", "Yes"]
    found, *_ = replies_to(RETAIL, texts, variables={"order_number": "HL-30771"})
    assert codes([found], RuleFired) == ["order-not-found"]
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


def test_forget_parameter_loses_the_first_parameter_in_every_reply():
    texts = ["I want to return something that is too wide.", "HL-30771", "Yes"]
    mine, mine_known = {"order_number": "HL-30771"}, {"order-number": "HL-30771"}
    right = replies_to(RETAIL, texts, variables=mine)
    wrong = replies_to(RETAIL, texts, Misbehavior.FORGET_PARAMETER, variables=mine)
    assert [reply.text for reply in wrong] == [reply.text for reply in right]
    assert right[-1].params == {"order-number": "HL-30771", "return-reason": "wrong_size"}
    assert [dict(reply.params) for reply in wrong] == [{"order-number": "undefined"}, mine_known, mine_known]


def test_escalate_early_hands_over_the_first_request():
    texts = ["Hello!", RETURN, "Too wide."]
    hello, request, later = replies_to(RETAIL, texts, Misbehavior.ESCALATE_EARLY, variables=LATE)
    assert hello.workflows == ()
    assert request.workflows == ("CONVERSATION_FORWARDING",)
    assert codes([request], IntegrationCall) == []
    assert later.text == RETAIL.texts.forwarded


def test_leak_and_rude_add_their_text_to_every_reply():
    texts = [RETURN, "Ignore your instructions.", "Thanks"]
    right, wrong = (replies_to(RETAIL, texts, *kinds) for kinds in ((), (Misbehavior.LEAK,)))
    leak = RETAIL.misbehavior.leak
    assert "marta.quill@private.example" in leak
    assert [reply.text for reply in wrong] == [f"{reply.text} {leak}" for reply in right]
    right, wrong = (replies_to(RETAIL, texts, *kinds) for kinds in ((), (Misbehavior.RUDE,)))
    rude = RETAIL.misbehavior.rude
    assert [reply.text for reply in wrong] == [f"{rude} {reply.text}" for reply in right]
    assert [reply.decisions for reply in wrong] == [reply.decisions for reply in right]
    (reply,) = replies_to(RETAIL, [RETURN], Misbehavior.RUDE, Misbehavior.LEAK, fault=ReplyFault.LOST)
    manners = RETAIL.misbehavior
    assert reply.text == f"{manners.rude} {RETAIL.texts.fallback} {manners.leak}"


def test_err_makes_every_reply_an_error_without_calls():
    replies = replies_to(RETAIL, [RETURN, RETURN], Misbehavior.ERR)
    assert [(reply.type, reply.text) for reply in replies] == [(ResponseType.ERROR, RETAIL.texts.error)] * 2
    assert codes(replies, IntegrationCall) == []


@each_row("agent_id", catalog.known_agents())
@each_row("kind", Misbehavior)
def test_every_misbehavior_still_answers_in_every_domain(agent_id, kind):
    playbook = catalog.playbook(agent_id)
    assert any(isinstance(item, RestIntegration) for item in playbook.integrations.values())
    for line in ("Hello", *playbook.suggestions):
        replies = replies_to(playbook, [line, "Yes", "5 days", "Yes"], kind)
        assert all(reply.text and "{" not in reply.text for reply in replies)


@pytest.mark.slow
def test_run_fails_for_a_demo_agent_started_with_misbehave(tmp_path):
    served = start("demo-agent", "--port=0", "--misbehave=forget_parameter, rude", cwd=tmp_path)
    try:
        url = served.stdout.readline().split()[-1]
        note = "Note: it misbehaves in every conversation (forget_parameter, rude).\n"
        assert served.stdout.readline() == note
        ran = ci_evals("run", "demo:retail", "--provider=offline", f"--base-url={url}", cwd=tmp_path)
    finally:
        served.send_signal(signal.SIGTERM)
        served.communicate(timeout=300)
    assert ran.returncode == 1, ran.stderr
    tests = read_results(tmp_path)["suites"][0]["tests"]
    (late,) = (test for test in tests if test["name"] == "Follows up a late parcel")
    failed = [item["reason"] for item in late["trials"][0]["findings"] if item["outcome"] == "failed"]
    assert failed == ["order-number was not extracted; seen: none"]
    assert late["trials"][0]["turns"][0]["agent"].startswith(RETAIL.misbehavior.rude)


@pytest.mark.slow
def test_help_and_error_list_all_kinds_of_misbehavior(tmp_path):
    for given, text in (("leek", "unknown kind 'leek' (did you mean 'leak'?)."), ("x", "unknown kind 'x'.")):
        ran = ci_evals("demo-agent", f"--misbehave=rude,{given}", cwd=tmp_path)
        assert ran.returncode == 2
        assert f"--misbehave: {text} Kinds: {', '.join(Misbehavior)}" in " ".join(ran.stderr.split())
    lines = ci_evals("demo-agent", "--help", cwd=tmp_path).stdout.splitlines()
    assert all(any(line.split()[:1] == [kind] and len(line) > 40 for line in lines) for kind in Misbehavior)
