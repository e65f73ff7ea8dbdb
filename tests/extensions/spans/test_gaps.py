"""Gaps in evidence that was read, and contradictions between reports and spans."""

from each_row import each_row

from ci_evals.domain.transcript import Integration, Reply, ToolCall
from ci_evals.extensions.spans.contradiction import contradiction
from ci_evals.extensions.spans.gaps import Gaps


def traceparent(number: int) -> str:
    return f"00-{number:032x}-{'b' * 16}-01"


def test_unattributed_late_spans_mark_only_earlier_turns_incomplete():
    heard = []
    gaps = Gaps(listen=lambda traces, *, earlier: heard.append((sorted(traces), earlier)))
    for number in range(3):
        gaps.begin(traceparent(number))
    gaps.add(traceparent(0), "late")
    gaps.add(traceparent(0), "later")
    gaps.add_before(2, "of nobody", {"under way"})
    gaps.add_before(1, "earlier", ())
    gaps.begin(traceparent(3))
    assert [gaps.reason(traceparent(number)) for number in range(4)] == ["late", "of nobody", None, None]
    assert gaps.reason(None) is gaps.reason(traceparent(9)) is None
    assert heard == [([traceparent(0).split("-")[1]], False), (["under way"], True)]


def call(name: str, arguments: dict | None = None) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


LOOKUP, REFUND = call("lookup", {"order": 1}), call("refund", {"amount": 42})
BARE = call("refund")
CONTRADICTIONS = {
    "nothing": ({"tool_calls": ()}, [], None),
    "the same": ({"tool_calls": (LOOKUP, REFUND)}, [REFUND, LOOKUP], None),
    "less": ({"tool_calls": (LOOKUP, REFUND)}, [LOOKUP], None),
    "more": ({"tool_calls": (LOOKUP,)}, [LOOKUP, REFUND], "'refund'"),
    "once more": ({"tool_calls": (REFUND,)}, [REFUND, REFUND], "'refund'"),
    "other arguments": ({"tool_calls": (REFUND,)}, [call("refund", {"amount": 24})], "other than"),
    "unknown arguments": ({"tool_calls": (REFUND,)}, [BARE], None),
    "arguments that are not reported": ({"tool_calls": (BARE,)}, [REFUND], None),
    "one known, one not": ({"tool_calls": (REFUND, BARE)}, [BARE, REFUND], None),
    "two for one": ({"tool_calls": (BARE,)}, [BARE, REFUND], "'refund'"),
    "a workflow": ({"workflows": ("refund",)}, [REFUND, REFUND], None),
    "no workflow": ({"workflows": ()}, [REFUND], "'refund'"),
    "an integration": ({"workflows": (), "integrations": (Integration(code="refund"),)}, [REFUND], None),
    "integration's tool": ({"integrations": (Integration(code="mcp", tools=(BARE,)),)}, [REFUND], None),
}


@each_row("case", CONTRADICTIONS)
def test_call_in_spans_missing_from_agent_report_is_a_contradiction(case):
    reported, shown, expected = CONTRADICTIONS[case]
    result = contradiction(Reply(agent="", latency_seconds=0, **reported), shown)
    assert result is None if expected is None else expected in result
