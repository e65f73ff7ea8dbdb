"""Checks of tool calls: the verdict, and when there is none."""

import itertools
import time

import builders as build
import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from ci_evals.domain.checks.call_sequences import paired
from ci_evals.domain.checks.evaluation import Evaluation
from ci_evals.domain.checks.matching import PATTERN_SECONDS
from ci_evals.domain.transcript import EndState, Integration, ToolCall, Transcript

EVALUATION = TypeAdapter(Evaluation)


def call(name: str, status: str = "ok", /, **arguments) -> ToolCall:
    return ToolCall(name=name, status=status, arguments=arguments)


def uncaptured(name: str) -> ToolCall:
    return ToolCall(name=name, not_captured="set CAPTURE=yes")


def decide(kind: str, *turns: list[ToolCall] | None, unanswered: int | None = None, **fields):
    """The verdict on turns with these calls; None for a turn whose calls are unknown."""
    evaluation = EVALUATION.validate_python({"criterion": "c", "strict": kind, **fields})
    untold = {"workflows": None, "integrations": None}
    replies = tuple(build.turn(i, tool_calls=calls, **untold) for i, calls in enumerate(turns, 1))
    status = EndState.COMPLETED if unanswered is None else EndState.FAILED
    return evaluation.decide(Transcript(turns=replies, status=status, unanswered=unanswered))


def outcome(kind: str, *turns, **fields) -> str:
    return str(decide(kind, *turns, **fields).outcome)


LOOKUP, REFUND = call("lookup", order="A-1"), call("refund", order="A-1", amount=42)
UNCAPTURED = uncaptured("refund")


@each_row(("fields", "wanted"), [
    *[({}, "passed"), ({"args": {"amount": 42}}, "passed")],
    ({"args": {"amount": {"min": 40, "max": 45}, "order": {"regex": "^A-"}}}, "passed"),
    ({"args": {"amount": 43}}, "failed"),
    ({"args": {"amount": 42}, "argsMode": "exact"}, "failed"),
    ({"args": {"amount": 42, "order": "A-1"}, "argsMode": "exact"}, "passed"),
    *[({"args": {"reason": {"exists": False}}}, "passed"), ({"times": 1}, "passed")],
    *[({"times": 0}, "failed"), ({"times": 2}, "failed"), ({"times": {"max": 1}}, "passed")],
    *[({"times": {"min": 2}}, "failed"), ({"turn": 1}, "failed"), ({"turn": 2}, "passed")],
    *[({"turn": "last"}, "passed"), ({"turn": 3}, "undecided"), ({"status": "ok"}, "passed")],
    ({"status": "error"}, "failed"),
])  # fmt: skip
def test_tool_call_is_matched_by_arguments_count_turn_and_status(fields, wanted):
    assert outcome("tool_called", [LOOKUP], [LOOKUP, REFUND], toolName="refund", **fields) == wanted


def test_reason_of_a_missing_call_names_the_calls():
    verdict = decide("tool_called", [LOOKUP], [REFUND], toolName="refund", args={"amount": 24})
    assert verdict.reason == (
        "refund(amount: 24) was not called, expected: at least 1; "
        'called: refund(order: "A-1", amount: 42) in turn 2'
    )
    assert verdict.evidence == (2,)
    twice = decide("tool_called", [REFUND], [REFUND], toolName="refund", times=1)
    assert twice.reason == "refund was called 2 times (turn 1, 2), expected: exactly 1"
    failed = decide("tool_called", [REFUND], toolName="refund", status="error")
    assert failed.reason.startswith("refund was not called with an error, expected: at least 1; called: ")


@each_row(("wanted", "turns", "fields"), [
    ("passed", ([REFUND], None), {}),
    ("undecided", ([LOOKUP], None), {}),
    ("undecided", ([REFUND], None), {"times": 1}),
    ("failed", ([REFUND, REFUND], None), {"times": 1}),
    ("failed", ([REFUND], None), {"times": 0}),
    ("undecided", ([LOOKUP], None), {"times": 0}),
    ("passed", ([REFUND], None), {"times": 1, "turn": 1}),
    ("passed", ([UNCAPTURED],), {}),
    ("undecided", ([UNCAPTURED],), {"args": {"a": 1}, "times": 0}),
    ("failed", ([uncaptured("lookup")],), {"args": {"a": 1}}),
    ("passed", ([UNCAPTURED, REFUND],), {"args": {"amount": 42}}),
    ("undecided", ([UNCAPTURED, REFUND],), {"args": {"amount": 42}, "times": 1}),
    ("undecided", ([UNCAPTURED],), {"argsMode": "exact"}),
])  # fmt: skip
def test_call_check_is_undecided_if_unknown_calls_or_arguments_could_change_it(wanted, turns, fields):
    """All calls of a turn may be unknown, or the arguments of one call."""
    assert outcome("tool_called", *turns, toolName="refund", **fields) == wanted


def test_reason_names_the_call_whose_arguments_or_status_are_unknown():
    verdict = decide("tool_called", [UNCAPTURED], toolName="refund", args={"amount": 42})
    assert str(verdict.outcome) == "undecided"
    assert verdict.reason == "the arguments of refund in turn 1 were not captured (set CAPTURE=yes)"
    verdict = decide("tool_called", [call("refund", "unknown")], toolName="refund", status="ok")
    assert verdict.reason == "whether refund in turn 1 succeeded is not reported"


def test_maximum_of_calls_is_undecided_if_unknown_calls_could_exceed_it():
    assert outcome("max_tool_calls", [REFUND], None, calls=1) == "undecided"
    assert outcome("max_tool_calls", [REFUND, REFUND], None, calls=1) == "failed"
    assert outcome("max_tool_calls", [REFUND], unanswered=2, calls=1) == "undecided"


@pytest.mark.slow  # it computes
def test_catastrophic_pattern_is_tried_once_for_many_calls():
    long = [call("pay", "unknown", note=f"{'a' * 60}!{number}") for number in range(50)]
    endless = {"note": {"regex": "^(a|aa)+$"}}
    checks = [("tool_called", {"toolName": "pay", "args": endless})]
    checks += [("tool_sequence", {"tools": [{"name": "pay", "args": endless}] * 2})]
    for kind, fields in checks:
        begun = time.process_time()
        verdict = decide(kind, long, **fields)
        assert time.process_time() - begun < 3 * PATTERN_SECONDS
        assert str(verdict.outcome) == "undecided"
        assert verdict.reason == "a pattern was searched in the arguments of pay in turn 1 without an end"


def test_workflows_and_integrations_count_as_calls_without_arguments():
    turn = build.turn(1, workflows=("REFUND",), integrations=(Integration(code="pay", status=500),))

    def verdict(**fields):
        evaluation = EVALUATION.validate_python({"criterion": "c", "strict": "tool_called", **fields})
        return evaluation.decide(Transcript(turns=(turn,), status=EndState.COMPLETED))

    assert verdict(toolName="REFUND", times=1).outcome.value == "passed"
    assert verdict(toolName="pay", status="error").outcome.value == "passed"
    assert verdict(toolName="pay", status="ok").outcome.value == "failed"
    assert "only names" in verdict(toolName="REFUND", args={"a": 1}).reason


A, B, C = call("a"), call("b"), call("c")
MODES = ["in_order", "strict", "unordered", "subset", "superset"]


def test_sequence_modes_follow_openevals_and_are_undecided_if_unknown_calls_matter():
    """The modes are those of openevals."""
    for calls, passing in (
        *[([A, B], MODES), ([B, A], ["unordered", "subset", "superset"])],
        *[([A, C, B], ["in_order", "superset"]), ([B, C, A], ["superset"]), ([A], ["subset"]), ([A, A], [])],
        *[([], ["subset"]), ([A, B, B], ["in_order", "superset"])],
    ):
        outcomes = {mode: outcome("tool_sequence", calls, tools=["a", "b"], mode=mode) for mode in MODES}
        assert [mode for mode in MODES if outcomes[mode] == "passed"] == passing
    tools = ["lookup", {"name": "refund", "args": {"amount": 42}}]
    assert outcome("tool_sequence", [LOOKUP], [REFUND], tools=tools) == "passed"
    assert outcome("tool_sequence", [REFUND], [LOOKUP], tools=tools) == "failed"
    assert outcome("tool_sequence", [LOOKUP], [call("refund", amount=1)], tools=tools) == "failed"
    assert outcome("tool_sequence", [LOOKUP], [uncaptured("refund")], tools=tools) == "undecided"
    for mode in MODES:
        expected = "passed" if mode in {"in_order", "superset"} else "undecided"
        assert outcome("tool_sequence", [A, B], None, tools=["a", "b"], mode=mode) == expected
        expected = "undecided" if mode in {"in_order", "superset"} else "failed"
        assert outcome("tool_sequence", [C], None, tools=["a", "b"], mode=mode) == expected
    assert outcome("tool_sequence", [B, A], None, tools=["a", "b"], mode="strict") == "failed"
    assert outcome("tool_sequence", [A], None, tools=["a", "b"], mode="strict") == "undecided"


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=4))
def test_call_pairing_finds_maximum_matching(table):
    best = 0
    for columns in itertools.permutations([0, 1, 2, None, None, None, None], len(table)):
        best = max(best, sum(c is not None and table[row][c] for row, c in enumerate(columns)))
    assert paired(table, 3) == best


SCHEMA = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number"}}}


def on_text(text: str, **fields):
    evaluation = EVALUATION.validate_python({"criterion": "c", "strict": "json_schema", **fields})
    return evaluation.decide(Transcript(turns=(build.turn(1, agent=text),), status=EndState.COMPLETED))


def test_reply_must_be_json_of_the_schema_whose_references_stay_within_it():
    for text, wanted in (
        *[('{"amount": 42}', "passed"), (' {"amount": 1.5} ', "passed"), ('{"amount": "42"}', "failed")],
        *[("{}", "failed"), ('```json\n{"amount": 42}\n```', "failed"), ('{"amount": NaN}', "failed")],
        ("[" * 100_000, "failed"),
    ):
        assert on_text(text, schema=SCHEMA).outcome.value == wanted
    verdict = on_text(f'"{"a" * 60}!"', schema={"type": "string", "pattern": "^(a|aa)+$"})
    assert verdict.outcome.value == "undecided"
    assert "without an end" in verdict.reason
    for elsewhere in ("http://127.0.0.1:9/schema.json", "other.json", "other.json#/a"):
        with pytest.raises(ValueError, match="leads to another document"):
            on_text("{}", schema={"$ref": elsewhere})
    assert "leads nowhere" in on_text("{}", schema={"$ref": "#/$defs/other"}).reason
    own = {"$ref": "own", "$defs": {"own": {"$id": "own", "type": "object"}}}
    assert on_text("{}", schema=own).outcome == "passed"
