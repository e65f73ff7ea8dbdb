"""Replies of the demo agent as the types of AUI's own client have them."""

import json
from functools import cache

import aui_types
from doc_pages import ROOT
from each_row import each_row

from ci_evals.extensions.demo import catalog, engine, wire
from ci_evals.extensions.demo.reply import State

LINES = ("yes", "My order is HL-20418", "no", "I want to talk to a person")
"""Said after the lines of each test, for what comes later in a conversation."""


@cache
def messages():
    """What the demo agent answers to the fixed lines of all bundled suites, with every part of the trace."""
    result = []
    for file in sorted((ROOT / "suites").rglob("*.json")):
        suite = json.loads(file.read_text())
        for test in suite["tests"]:
            lines = [turn["user"] for turn in test["turns"] if turn["user"] != "auto"]
            result += conversation(suite["agentId"], [*lines, *LINES], test.get("userInfo", {}))
    return result


def conversation(agent_id, lines, variables):
    state = State()
    for line in lines:
        move = engine.respond(catalog.playbook(agent_id), state, line, variables)
        state = move.state
        body = wire.agent_message("m1", "2026-05-04T09:00:01.120Z", "u1", move.reply)
        yield body | {"trace_info": wire.trace(line, move.reply, business=True, context=True)}


def test_replies_match_types_of_aui_client_and_cover_every_decision_and_condition():
    assert [fault for message in messages() for fault in aui_types.differences(message)] == []
    traces = [message["trace_info"] for message in messages()]
    decisions = [decision for trace in traces for decision in trace["decisions"]]
    unused = {"activate_sub_tool", "self_review"}
    assert {decision["type"] for decision in decisions} == aui_types.DECISIONS.keys() - unused
    assert {decision["rule"]["type"] for decision in decisions if "rule" in decision} >= {*aui_types.RULES}
    called = {decision["integration"]["type"] for decision in decisions if "integration" in decision}
    assert called == {*aui_types.INTEGRATIONS}
    conditions = conditions_in(traces)
    assert {condition["method"] for condition in conditions} == {"param_value", "api_response_param_value"}
    assert {condition["operation"] for condition in conditions} >= {"eq", "neq", "gt", "lt", "exist"}


def conditions_in(traces):
    evaluations = [one for trace in traces for one in trace.get("rules_evaluations", ())]
    return [result["condition"] for one in evaluations for result in one["reason"]]


OLD_FORMS = [
    ("rules_evaluations", [{"code": "r", "triggered": True, "reason": [{"condition": "a", "passed": True}]}]),
    ("decisions", [{"type": "ask_confirmation", "tool": "T", "confirmation_preview": "Sure?"}]),
]


@each_row(("key", "value"), OLD_FORMS)
def test_aui_types_reject_outdated_trace_format(key, value):
    (first, *_) = messages()
    trace = first["trace_info"] | {key: value}
    assert len(aui_types.differences(first | {"trace_info": trace})) == 1
