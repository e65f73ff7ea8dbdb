"""Spans that real instrumentations sent, recorded by `make frameworks`: the calls that they show."""

from pathlib import Path

import pytest

from ci_evals.extension_support.span_reading import evidence, spans
from ci_evals.extension_support.span_reading.belonging import TurnSpan, by_turn
from ci_evals.extension_support.span_reading.evidence import Progress

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
TURN = "b" * 16
CALLS = [("lookup", {"order": "A-1"}), ("refund", {"order": "A-1", "amount": 42})]


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_recorded_spans_show_each_call_once_in_order(file):
    received = spans.read(file.read_bytes(), "application/json")
    assert {span.trace_id for span in received} == {"a" * 32}
    turn = by_turn({each.span_id: each for each in received}, [TurnSpan(TURN, 0)], {})[TURN]
    assert evidence.progress(turn, TURN, 1) >= Progress.WHOLE
    result = evidence.read(turn)
    assert (result.missing, [(call.name, call.arguments) for call in result.calls]) == (None, CALLS)
    assert result.models == (("function:respond:",) if file.stem == "pydantic-ai" else ())
    if file.stem in {"sdk", "pydantic-ai"}:
        assert {call.agent for call in result.calls} == {"refunds"}


def test_every_framework_has_a_recording():
    assert {file.stem for file in RECORDED} == {"sdk", "sdk-json", "node-json", "pydantic-ai", "langgraph"}
