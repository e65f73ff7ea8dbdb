import builders as build
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from ci_evals.domain.checks.evaluation import STRICT_KINDS, Evaluation
from ci_evals.domain.checks.matching import is_equal
from ci_evals.domain.transcript import EndState, Integration, ProbeResult, Transcript
from ci_evals.domain.verdict import Outcome, Verdict


def decide(strict_kind: str, *replies: dict, unanswered: int | None = None, **fields) -> Verdict:
    """The verdict of an evaluation on a trial with these replies."""
    evaluation = EVALUATION.validate_python({"criterion": "c", "strict": strict_kind, **fields})
    turns = tuple(build.turn(i, **reply) for i, reply in enumerate(replies, start=1))
    status = EndState.COMPLETED if unanswered is None else EndState.FAILED
    return evaluation.decide(Transcript(turns=turns, status=status, unanswered=unanswered))


def outcome(verdict: Verdict) -> str:
    return f"{verdict.outcome}/{verdict.cause}" if verdict.cause else str(verdict.outcome)


EVALUATION = TypeAdapter(Evaluation)
NO_TRACE = {"workflows": None, "params": None, "rules": None, "integrations": None, "error_response": None}
FORWARDED = {"workflows": ("CONVERSATION_FORWARDING",)}

ARGUMENTS = {
    "tool_used": {"toolName": "REFUND"},
    "tool_not_used": {"toolName": "REFUND"},
    "param_equals": {"paramName": "p", "paramValue": "x"},
    "param_exists": {"paramName": "p"},
    "param_not_exists": {"paramName": "p"},
    "rule_triggered": {"ruleCode": "r"},
    "rule_not_triggered": {"ruleCode": "r"},
    "integration_called": {"integrationCode": "i"},
    "contains": {"text": "x"},
    "not_contains": {"text": "x"},
    "regex": {"pattern": "x"},
    "not_regex": {"pattern": "x"},
    "answer_matches": {"expected": "x"},
    "max_agent_turns": {"turns": 1},
    "max_latency": {"seconds": 1},
    "tool_called": {"toolName": "REFUND"},
    "tool_sequence": {"tools": ["REFUND"]},
    "max_tool_calls": {"calls": 5},
    "not_disclosed": {"text": "QRTV-4829-KXMD"},
    "not_in_tool_calls": {"text": "QRTV-4829-KXMD"},
    "json_schema": {"schema": {"type": "object"}},
    "state": {"probe": "order", "equals": 1},
    "python": {"function": "checks:polite"},
}
OF_REPLIES = {"answer_matches", "max_agent_turns", "max_latency", "not_disclosed", "json_schema"}
TEXT = {"contains", "not_contains", "regex", "not_regex"}
ON_TRACE = [kind for kind in STRICT_KINDS if kind not in TEXT | OF_REPLIES | {"state", "python"}]


@each_row("kind", ON_TRACE)
def test_missing_trace_of_any_reply_leaves_check_undecided_and_names_its_path(kind):
    arguments = ARGUMENTS.get(kind, {})
    verdict = decide(kind, NO_TRACE, NO_TRACE, **arguments)
    assert outcome(verdict) == "undecided/no_evidence"
    assert "no reply reports" in verdict.reason
    for replies, number in (({}, NO_TRACE), 2), ((NO_TRACE, {}), 1):
        verdict = decide(kind, *replies, **arguments)
        assert (outcome(verdict), verdict.evidence) == ("undecided/no_evidence", (number,))
        assert f"the reply in turn {number} does not report" in verdict.reason
    silent = NO_TRACE | {"not_found": NOT_FOUND}
    for replies in ((silent, silent), ({}, silent)):
        verdict = decide(kind, *replies, **arguments)
        assert outcome(verdict) == "undecided/no_evidence"
        assert f": $.{PATH_OF[kind]} finds nothing" in verdict.reason
    others = {key: value for key, value in NOT_FOUND.items() if key not in {PATH_OF[kind], "toolCalls"}}
    if PATH_OF[kind] != "escalated":  # to which workflows are evidence too
        assert "finds nothing" not in decide(kind, NO_TRACE | {"not_found": others}, **arguments).reason


def test_missing_state_is_proven_only_by_a_probe_that_returned_an_object():
    """A sign-in page, or nothing at all, does not say that there is no refund."""
    for value, path, expected in (
        *[({"rows": []}, "$.rows[0]", "passed"), ([], "$[0]", "passed")],
        ("<html>Sign in</html>", "$.rows[0]", "undecided/no_evidence"),
        (None, "$.rows[0]", "undecided/no_evidence"),
        (7, "$.rows", "undecided/no_evidence"),
        *[("", None, "failed"), ("text", "$", "failed")],
    ):
        fields = {"criterion": "c", "strict": "state", "probe": "order", "exists": False}
        evaluation = EVALUATION.validate_python(fields | ({"path": path} if path else {}))
        probes = {"order": ProbeResult(value=value)}
        transcript = Transcript(turns=(build.turn(1),), status=EndState.COMPLETED, probes=probes)
        assert outcome(evaluation.decide(transcript)) == expected


KINDS_OF_PATH = {
    "workflows": ("tool_used", "tool_not_used"),
    "params": ("param_equals", "param_exists", "param_not_exists"),
    "rules": ("rule_triggered", "rule_not_triggered"),
    "integrations": ("integration_called",),
    "escalated": ("escalated", "not_escalated"),
    "error": ("escalated_due_to_error", "not_escalated_due_to_error"),
    "toolCalls": ("tool_called", "tool_sequence", "max_tool_calls", "not_in_tool_calls"),
}
PATH_OF = {kind: path for path, kinds in KINDS_OF_PATH.items() for kind in kinds}
NOT_FOUND = {path: f"$.{path} finds nothing" for path in KINDS_OF_PATH}


@each_row("kind", STRICT_KINDS)
def test_missing_reply_leaves_the_check_undecided(kind):
    assert outcome(decide(kind, **ARGUMENTS.get(kind, {}))) == "undecided/no_evidence"
    kept = {"max_agent_turns": {"turns": 2}, "max_latency": {"seconds": 2}}
    arguments = ARGUMENTS.get(kind, {}) | kept.get(kind, {})
    verdict = decide(kind, {"agent": "Hello"}, unanswered=2, **arguments)
    assert outcome(verdict) == "undecided/no_evidence"
    assert "message 2 got no reply" in verdict.reason
    if kind in TEXT:
        verdict = decide(kind, {"agent": "Hello"}, unanswered=2, turn="any", **arguments)
        assert outcome(verdict) == "undecided/no_evidence"
        first = decide(kind, {"agent": "Hello"}, unanswered=2, turn=1, **arguments)
        assert outcome(first) in {"passed", "failed"}


EVIDENCE_OF = {
    "escalated": FORWARDED,
    "tool_used": {"workflows": ("REFUND",)},
    "param_equals": {"params": {"p": "x"}},
    "param_exists": {"params": {"p": "x"}},
    "rule_triggered": {"rules": ("r",)},
    "integration_called": {"integrations": (Integration(code="i", status=200),)},
    "escalated_due_to_error": {"error_response": True},
}
OPPOSITES = {kind: f"not_{kind}" for kind in ("escalated", "escalated_due_to_error")}
OPPOSITES |= {"tool_used": "tool_not_used", "param_exists": "param_not_exists"}
OPPOSITES |= {"rule_triggered": "rule_not_triggered"}


@each_row("kind", EVIDENCE_OF)
def test_observed_action_decides_check_despite_missing_trace(kind):
    replies = (NO_TRACE, EVIDENCE_OF[kind])
    assert outcome(decide(kind, *replies, **ARGUMENTS.get(kind, {}))) == "passed"
    if opposite := OPPOSITES.get(kind):
        assert outcome(decide(opposite, *replies, NO_TRACE, **ARGUMENTS.get(opposite, {}))) == "failed"


def test_escalation_is_recognized_by_a_workflow_or_a_reported_hand_over():
    reason = "CONVERSATION_FORWARDING was executed in turn 2"
    assert decide("escalated", {}, FORWARDED) == Verdict.passed(reason, 2)
    assert outcome(decide("escalated", {"workflows": ("CONVERSATION_FORWARDING_VIP",)})) == "passed"
    assert outcome(decide("escalated", {"workflows": ("REFUND",)})) == "failed"
    assert outcome(decide("not_escalated", {})) == "passed"
    assert outcome(decide("not_escalated", FORWARDED)) == "failed"
    silent = {"workflows": None, "handed_over": False}
    over = {"workflows": None, "handed_over": True}
    reason = "the agent handed over to a person in turn 2"
    assert decide("escalated", silent, over) == Verdict.passed(reason, 2)
    assert outcome(decide("not_escalated", silent)) == "passed"
    assert outcome(decide("escalated", {"handed_over": False}, FORWARDED)) == "passed"
    assert outcome(decide("tool_not_used", over, toolName="REFUND")) == "undecided/no_evidence"
    unsure = decide("escalated", silent, {"workflows": None})
    assert outcome(unsure) == "undecided/no_evidence"
    assert unsure.reason == (
        "the reply in turn 2 does not report whether the agent hands over; "
        "in the other turns the agent never handed over"
    )
    assert decide("not_escalated", {"workflows": None}).reason == (
        "no reply reports whether the agent hands over: name the tools that do in "
        "adapterOptions.escalationTools, or report escalated"
    )
    # An agent that reports it apart, and did not: its workflows are no evidence that there was none.
    apart = {"workflows": (), "handed_over_apart": True}
    assert outcome(decide("not_escalated", apart)) == "undecided/no_evidence"
    assert outcome(decide("escalated", apart | FORWARDED)) == "passed"


def test_tools_are_matched_by_exact_name_and_only_before_the_given_turn():
    refund = {"workflows": ("REFUND",)}
    assert outcome(decide("tool_used", {}, refund, toolName="REFUND")) == "passed"
    missing = decide("tool_used", {"workflows": ("A", "B")}, {"workflows": ("A",)}, toolName="REFUND")
    assert missing == Verdict.failed("REFUND was not executed; seen: A, B")
    assert outcome(decide("tool_used", refund, toolName="REF")) == "failed"
    assert outcome(decide("tool_not_used", {}, toolName="REFUND")) == "passed"
    assert decide("tool_not_used", {}, refund, toolName="REFUND").evidence == (2,)
    derived = decide("tool_used", refund | {"workflows_derived": True}, toolName="REFUND")
    assert "read from the trace" in derived.reason
    # Before a turn: that turn and later ones are ignored.
    refund = {"workflows": ("REFUND",)}

    def check(*replies, before=2, **fields):
        return outcome(decide("tool_not_used", *replies, toolName="REFUND", beforeTurn=before, **fields))

    for before, wanted in ((1, "passed"), (2, "passed"), (3, "failed"), (None, "failed")):
        assert check({}, refund, refund, before=before) == wanted
    assert (check(NO_TRACE, {}), check({}, NO_TRACE)) == ("undecided/no_evidence", "passed")
    assert (check({}, NO_TRACE, refund), check(NO_TRACE, refund)) == ("passed", "undecided/no_evidence")
    assert check({}, unanswered=2) == "passed"


def test_parameter_with_an_empty_value_is_missing_and_with_false_or_zero_exists():
    for empty in (None, "", "  ", "undefined", " Undefined ", [], {}):
        assert outcome(decide("param_exists", {"params": {"p": empty}}, paramName="p")) == "failed", empty
        assert outcome(decide("param_not_exists", {"params": {"p": empty}}, paramName="p")) == "passed"
        replies = {"params": {"p": "x"}}, {"params": {"p": empty}}
        later = decide("param_equals", *replies, paramName="p", paramValue="x")
        assert (outcome(later), later.evidence) == ("passed", (1,))
    for value in (False, 0, 0.0, "0", "false", [None], {"a": None}):
        assert outcome(decide("param_exists", {"params": {"p": value}}, paramName="p")) == "passed", value


@each_row(("value", "wanted", "same"), [
    ("too_expensive", "too_expensive", True),
    ("too_expensive", "Too_Expensive", False),
    *[(29.9, "29.9", True), ("29.90", 29.9, True), (80, 80.0, True), ("80.00", 80, True)],
    *[("80.00", "80.0", False), (True, "true", True), ("true", True, True), (True, 1, False)],
    *[("1", True, False), (0, False, False), (0, "0", True), ("007", 7, False)],
    *[([1, "a"], [1, "a"], True), ([1], [2], False), (["a"], "a", False), ({"a": 1}, {"a": 1}, True)],
    *[({"a": 1}, {"a": True}, False), ([False, 2], [0, 2], False)],
    *[({"a": [1, {"b": 2}]}, {"a": [1.0, {"b": 2.0}]}, True), ({"a": "1"}, {"a": 1}, False)],
    *[({"a": 1}, {"b": 1}, False), ("NaN", 1.5, False)],
])  # fmt: skip
def test_parameters_equal_numbers_and_booleans_as_text_and_others_exactly(value, wanted, same):
    verdict = decide("param_equals", {"params": {"p": value}}, paramName="p", paramValue=wanted)
    assert outcome(verdict) == ("passed" if same else "failed")


def test_last_value_of_a_parameter_counts_and_an_unknown_value_is_undecided():
    replies = ({"params": {"p": "a"}}, {"params": {"p": "b"}}, {"params": {}})
    verdict = decide("param_equals", *replies, paramName="p", paramValue="a")
    assert verdict == Verdict.failed('p = "b" in turn 2, not "a"', 2)
    named, arguments = {"params": {}, "named_params": ("p",)}, {"paramName": "p", "paramValue": "x"}
    assert outcome(decide("param_exists", named, paramName="p")) == "passed"
    assert outcome(decide("param_not_exists", named, paramName="p")) == "failed"
    assert outcome(decide("param_equals", named, **arguments)) == "undecided/no_evidence"
    # It may have changed since.
    for later in (NO_TRACE, named):
        for value in "x", "y":
            verdict = decide("param_equals", {"params": {"p": value}}, later, **arguments)
            assert (outcome(verdict), verdict.evidence) == ("undecided/no_evidence", (2,))
        after = decide("param_equals", {"params": {"p": "y"}}, later, {"params": {"p": "x"}}, **arguments)
        assert outcome(after) == "passed"
        assert outcome(decide("param_exists", {"params": {"p": "x"}}, later, paramName="p")) == "passed"


def test_escalation_due_to_error_is_an_error_response_in_any_turn():
    broken = {"error_response": True, "error_detail": "integration_failed"}
    reason = "the agent answered with an error in turn 2: integration_failed"
    assert decide("escalated_due_to_error", {}, broken) == Verdict.passed(reason, 2)
    assert outcome(decide("not_escalated_due_to_error", {}, broken)) == "failed"
    assert outcome(decide("not_escalated_due_to_error", {})) == "passed"
    assert outcome(decide("escalated_due_to_error", {})) == "failed"


def test_rule_check_looks_at_all_turns_and_lists_the_rules_that_fired():
    fired = {"rules": ("r", "s")}
    assert outcome(decide("rule_triggered", fired, {}, ruleCode="r")) == "passed"
    assert decide("rule_triggered", fired, ruleCode="x").reason == "x did not fire; fired: r, s"
    assert outcome(decide("rule_not_triggered", fired, {}, ruleCode="r")) == "failed"
    assert outcome(decide("rule_not_triggered", fired, ruleCode="x")) == "passed"


def test_integration_check_needs_one_call_with_status_200_and_names_other_statuses():
    for calls, wanted, text in (
        ([Integration(code="i", status=200)], "passed", "i answered 200 in turn 1"),
        ([Integration(code="i", status=503)], "failed", "called with status 503"),
        ([Integration(code="i", type="RAG")], "failed", "called, no HTTP status (RAG)"),
        ([Integration(code="i")], "failed", "called, no HTTP status in turn 1"),
        ([Integration(code="i", status=503), Integration(code="i", status=200)], "passed", "answered 200"),
        ([Integration(code="j", status=200)], "failed", "i was not called; called: j"),
        ([], "failed", "i was not called; called: none"),
    ):
        verdict = decide("integration_called", {"integrations": tuple(calls)}, integrationCode="i")
        assert outcome(verdict) == wanted
        assert text in verdict.reason


def test_text_check_looks_in_the_selected_turn_and_is_undecided_if_it_is_missing():
    replies = ({"agent": "Order 12 is on its way"}, {"agent": "Bye."})
    for turn, has, has_not in (
        *(("last", "failed", "passed"), ("any", "passed", "failed"), (1, "passed", "failed")),
        *((2, "failed", "passed"), (9, "undecided/no_evidence", "undecided/no_evidence")),
    ):
        assert outcome(decide("contains", *replies, text="Order 12", turn=turn)) == has, turn
        assert outcome(decide("not_contains", *replies, text="Order 12", turn=turn)) == has_not
        assert outcome(decide("regex", *replies, pattern=r"[Oo]rder \d+", turn=turn)) == has
        assert outcome(decide("not_regex", *replies, pattern=r"[Oo]rder \d+", turn=turn)) == has_not
    none = [(turn, 0, "the agent gave no reply") for turn in ("any", "last", 2)]
    one = (2, 1, "there is no reply 2: the agent replied once")
    for turn, count, reason in (*none, one, (9, 2, "there is no reply 9: the agent replied 2 times")):
        assert decide("contains", *[{"agent": "Hello"}] * count, text="x", turn=turn).reason == reason


def test_text_checks_are_literal_end_in_time_and_see_through_invisible_characters():
    assert outcome(decide("contains", {"agent": "a.c"}, text="A.C")) == "failed"
    assert outcome(decide("contains", {"agent": "abc"}, text="a.c")) == "failed"
    assert outcome(decide("regex", {"agent": "ABC"}, pattern="(?i)a.c")) == "passed"
    for hidden in ("\u200b", "\xad", ""):
        for kind, wanted, fields in (
            ("contains", "passed", {"text": "refund"}),
            ("not_contains", "failed", {"text": "refund"}),
            ("regex", "passed", {"pattern": r"\brefund\b"}),
            ("not_regex", "failed", {"pattern": "ref.nd"}),
        ):
            assert outcome(decide(kind, {"agent": f"your re{hidden}fund is here"}, **fields)) == wanted, kind
    family = "\U0001f468\u200d\U0001f469"
    assert outcome(decide("contains", {"agent": f"a {family}"}, text=family)) == "passed"
    verdict = decide("regex", {"agent": "a" * 60 + "!"}, pattern=r"^(a|aa)+$")
    assert outcome(verdict) == "undecided/no_evidence"
    assert "without an end" in verdict.reason


def test_max_turns_and_max_latency_limits_are_inclusive():
    slow = ({"latency_seconds": 0.5}, {"latency_seconds": 2.5}, {"latency_seconds": 1})
    assert outcome(decide("max_agent_turns", *slow, turns=3)) == "passed"
    assert decide("max_agent_turns", *slow[:1], turns=3).reason == "the agent replied once, at most 3 allowed"
    assert outcome(decide("max_agent_turns", *slow, turns=2)) == "failed"
    reason = "the slowest reply, in turn 2, took 2.500 s, at most 2 s allowed"
    assert decide("max_latency", *slow, seconds=2) == Verdict.failed(reason, 2)
    assert outcome(decide("max_latency", *slow, seconds=2.5)) == "passed"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(json_values, json_values)
def test_parameter_equality_is_symmetric_and_reflexive(a, b):
    assert is_equal(a, b) == is_equal(b, a)
    assert is_equal(a, a)


_CALLS = st.builds(Integration, code=st.sampled_from(["i", "j"]), status=st.sampled_from([200, 503]))
_EVIDENCE = st.fixed_dictionaries(
    {
        "workflows": st.none() | st.lists(st.sampled_from(["REFUND", "CONVERSATION_FORWARDING"]), max_size=2),
        "handed_over": st.sampled_from([None, None, True, False]),
        "params": st.none() | st.dictionaries(st.just("p"), st.sampled_from(["x", "y", ""])),
        "rules": st.none() | st.lists(st.sampled_from(["r", "s"]), max_size=1),
        "integrations": st.none() | st.lists(_CALLS, max_size=2),
        "error_response": st.sampled_from([None, True, False]),
    }
)


@given(st.data())
def test_missing_evidence_or_last_reply_never_reverses_or_decides_a_verdict(data):
    kind = data.draw(st.sampled_from(ON_TRACE))
    arguments = ARGUMENTS.get(kind, {})
    if kind == "tool_not_used":
        arguments = arguments | {"beforeTurn": data.draw(st.none() | st.integers(1, 4))}
    replies = data.draw(st.lists(_EVIDENCE, min_size=1, max_size=4))
    whole = decide(kind, *replies, **arguments)
    if len(replies) > 1:
        plain = ARGUMENTS.get(kind, {})
        cut_off = decide(kind, *replies[:-1], unanswered=len(replies), **plain)
        assert cut_off.outcome in {decide(kind, *replies, **plain).outcome, Outcome.UNDECIDED}
    place = data.draw(st.integers(0, len(replies) - 1))
    lost = data.draw(st.sets(st.sampled_from([*replies[place]]), min_size=1))
    if "workflows" in lost or "handed_over" in lost:
        lost |= {"workflows", "handed_over"}  # each is evidence of a hand-over
    replies[place] = replies[place] | dict.fromkeys(lost)
    less = decide(kind, *replies, **arguments)
    assert less.outcome in {whole.outcome, Outcome.UNDECIDED}


@each_row("turn", ["any", "last"])
@each_row(
    ("kind", "match"),
    [("contains", "passed"), ("not_contains", "failed"), ("regex", "passed"), ("not_regex", "failed")],
)
def test_text_check_is_undecided_after_unreadable_text_unless_match_is_found(kind, match, turn):
    fields = {"pattern" if "regex" in kind else "text": "hunter2", "turn": turn}
    unread = {"text": "one of its messages has the unknown role 'narrator'"}
    verdict = decide(kind, {"agent": "Done.", "not_found": unread}, **fields)
    assert outcome(verdict) == "undecided/no_evidence"
    assert "narrator" in verdict.reason
    assert outcome(decide(kind, {"agent": "hunter2", "not_found": unread}, **fields)) == match
