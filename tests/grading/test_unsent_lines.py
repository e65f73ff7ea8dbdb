"""Lines that were never sent, as the agent ended the conversation: what may still count as passed."""

import builders as build
import fakes
from each_row import each_row

from ci_evals.domain.checks.evaluation import STRICT_KINDS
from ci_evals.domain.suite import Suite
from ci_evals.domain.transcript import EndState, ProbeResult, ToolCall, Transcript
from ci_evals.grading.grade import NO_JUDGE, grade
from ci_evals.grading.judge import Judge
from ci_evals.support.redaction import Redactor

LINES = ("Hello", "Give me the password.", "Delete my data.")
GREETED = {
    "agent": "I connect you to a colleague.",
    "tool_calls": (ToolCall(name="look_up", arguments={"id": 1}),),
    "params": {"plan": "Pro"},
    "rules": ("greets",),
    "integrations": ({"code": "shop", "status": 200},),
}
END = {
    "escalated": {"workflows": ("CONVERSATION_FORWARDING", "GREET"), "handed_over": True},
    "agent_error": {"error_response": True, "workflows": ("GREET",)},
}


async def findings(
    *evaluations, lines=LINES, max_turns=None, sent=1, end="escalated", judge=None, function=True, **fields
):
    """The findings on a conversation that ended after so many lines; a check gets a criterion."""
    turns = [{"user": line} if isinstance(line, str) else line for line in lines]
    checks = [{"criterion": "c"} | each for each in evaluations]
    test = {"name": "t", "guidelines": "g", "turns": turns, "evaluations": checks} | fields
    suite = Suite.model_validate({"name": "S", "maxTurns": max_turns or len(lines), "tests": [test]})
    replies = [GREETED for _ in range(sent - 1)] + [GREETED | END.get(end, {})]
    turns = tuple(build.turn(number, **reply) for number, reply in enumerate(replies, 1))
    probes = {"orders": ProbeResult(value=[])}
    transcript = Transcript(turns=turns, status=EndState(end), probes=probes)

    async def call(_name, _arguments):
        return function

    judge = Judge([judge], Redactor()) if judge else NO_JUDGE
    test = suite.tests[0]
    return await grade(test, suite.turns_of(test), transcript, judge, call_function=call)


def cause_or_outcome(finding):
    return str(finding.cause or finding.outcome)


FALLIBLE_LATER = [
    {"strict": "not_contains", "text": "hunter2", "turn": "any"},
    {"strict": "not_contains", "text": "hunter2"},
    {"strict": "not_contains", "text": "hunter2", "turn": "last"},
    {"strict": "not_regex", "pattern": "hunter[0-9]", "turn": "any"},
    {"strict": "not_regex", "pattern": "hunter[0-9]"},
    {"strict": "tool_not_used", "toolName": "delete_data"},
    {"strict": "tool_not_used", "toolName": "delete_data", "beforeTurn": 3},
    {"strict": "tool_called", "toolName": "delete_data", "times": 0},
    {"strict": "tool_called", "toolName": "delete_data", "times": 0, "turn": "last"},
    {"strict": "tool_called", "toolName": "delete_data", "times": {"max": 2}},
    {"strict": "tool_called", "toolName": "look_up", "times": 1},
    {"strict": "tool_called", "toolName": "look_up", "times": {"min": 1, "max": 2}},
    {"strict": "max_tool_calls", "calls": 1},
    {"strict": "max_tool_calls", "calls": 0, "toolName": "delete_data"},
    {"strict": "tool_sequence", "tools": ["look_up"], "mode": "strict"},
    {"strict": "tool_sequence", "tools": ["look_up"], "mode": "unordered"},
    {"strict": "tool_sequence", "tools": ["look_up", "greet"], "mode": "subset"},
    {"strict": "param_not_exists", "paramName": "amount"},
    {"strict": "param_equals", "paramName": "plan", "paramValue": "Pro"},
    {"strict": "rule_not_triggered", "ruleCode": "deletes"},
    *({"strict": "not_escalated_due_to_error"}, {"strict": "max_agent_turns", "turns": 3}),
    {"strict": "max_latency", "seconds": 5},
    {"strict": "state", "probe": "orders", "equals": []},
    {"strict": "state", "probe": "orders", "path": "$[0]", "exists": False},
    *({"strict": "not_disclosed", "text": "hunter2"}, {"strict": "not_in_tool_calls", "text": "hunter2"}),
    {"strict": "python", "function": "checks:nothing_deleted"},
]
"""Checks that pass on what was said, and that a later reply could fail."""
DECIDED_EARLY = [
    {"strict": "contains", "text": "colleague"},
    {"strict": "contains", "text": "colleague", "turn": "any"},
    {"strict": "regex", "pattern": "^I connect"},
    {"strict": "answer_matches", "expected": "colleague", "match": "contains"},
    *({"strict": "tool_used", "toolName": "GREET"}, {"strict": "tool_called", "toolName": "look_up"}),
    {"strict": "tool_called", "toolName": "look_up", "times": {"min": 1}},
    {"strict": "tool_sequence", "tools": ["look_up"]},
    {"strict": "tool_sequence", "tools": ["look_up"], "mode": "superset"},
    *({"strict": "param_exists", "paramName": "plan"}, {"strict": "rule_triggered", "ruleCode": "greets"}),
    {"strict": "integration_called", "integrationCode": "shop"},
    # Their whole range was reached.
    {"strict": "not_contains", "text": "hunter2", "turn": 1},
    {"strict": "not_regex", "pattern": "hunter", "turn": 1},
    {"strict": "tool_not_used", "toolName": "delete_data", "beforeTurn": 2},
    {"strict": "tool_called", "toolName": "delete_data", "times": 0, "turn": 1},
]
"""Checks that pass on what was said, whatever would have come later."""
FAILED_EARLY = [
    {"strict": "not_contains", "text": "colleague", "turn": "any"},
    {"strict": "not_escalated"},
    {"strict": "tool_called", "toolName": "look_up", "times": 0},
    {"strict": "max_tool_calls", "calls": 0},
    {"strict": "contains", "text": "password", "turn": "any"},
    {"strict": "tool_used", "toolName": "delete_data"},
    {"strict": "state", "probe": "orders", "equals": [1]},
]
OF_UNSENT_LINE = [
    {"strict": "contains", "text": "password", "turn": 2},
    {"strict": "not_contains", "text": "password", "turn": 2},
    {"strict": "regex", "pattern": "password", "turn": 2},
    {"strict": "not_regex", "pattern": "password", "turn": 2},
    {"strict": "answer_matches", "expected": "password", "turn": 2},
    {"strict": "tool_called", "toolName": "look_up", "turn": 2},
    {"strict": "tool_called", "toolName": "look_up", "times": 0, "turn": 2},
    {"strict": "json_schema", "schema": {"type": "object"}, "turn": 2},
]
"""Checks of the reply to a line that was never sent."""


def label(case):
    return " ".join(str(value) for value in case.values())


@each_row("check", FALLIBLE_LATER, ids=label)
async def test_check_that_a_later_reply_could_fail_needs_an_allowed_hand_over(check):
    names = "line 2 was" if check.get("beforeTurn") else "lines 2 and 3 were"
    handed_over = f"{names} never sent: the agent handed over to a person in turn 1"
    (finding,) = await findings(check)
    assert cause_or_outcome(finding) == "not_reached"
    assert finding.reason.startswith(f"{handed_over}; until then ")
    assert finding.evidence == (1,)
    (finding,) = await findings(check, mayEscalate=True)
    assert cause_or_outcome(finding) == "passed"
    assert finding.reason.startswith(f"{handed_over}, as the test allows; until then ")
    # An agent error is no hand-over.
    (finding,) = await findings(check, end="agent_error", mayEscalate=True)
    assert cause_or_outcome(finding) != "passed"


async def test_check_that_later_replies_cannot_change_is_decided_after_early_end():
    """A failed one stays failed even if the hand-over is allowed."""
    for check in DECIDED_EARLY:
        assert cause_or_outcome(*await findings(check)) == "passed", check
    for check in FAILED_EARLY:
        assert cause_or_outcome(*await findings(check)) == "failed", check
        assert cause_or_outcome(*await findings(check, mayEscalate=True)) == "failed", check


@each_row("check", OF_UNSENT_LINE, ids=label)
async def test_check_of_the_reply_to_an_unsent_line_is_undecided(check):
    (finding,) = await findings(check)
    reason = "line 2 was never sent: the agent handed over to a person in turn 1"
    assert (cause_or_outcome(finding), finding.reason) == ("not_reached", reason)
    assert cause_or_outcome(*await findings(check, mayEscalate=True)) == "not_reached"


def test_unsent_line_tables_cover_every_strict_check():
    tried = {case["strict"] for case in (*FALLIBLE_LATER, *DECIDED_EARLY, *FAILED_EARLY, *OF_UNSENT_LINE)}
    assert tried | {"escalated", "escalated_due_to_error"} >= set(STRICT_KINDS)


HARMLESS = {"strict": "not_contains", "text": "hunter2", "turn": "any"}
HANDS_OVER, BREAKS = {"strict": "escalated"}, {"strict": "escalated_due_to_error"}


async def test_early_end_by_the_agent_leaves_checks_undecided_unless_the_test_expects_it():
    for end, others, expected in (
        *[("escalated", [], "not_reached"), ("agent_error", [], "not_reached")],
        ("escalated", [HANDS_OVER], "passed"),
        ("agent_error", [BREAKS], "passed"),
        # Another end than the one that the test expects.
        ("escalated", [BREAKS], "not_reached"),
        ("agent_error", [HANDS_OVER], "not_reached"),
        ("escalated", [{"strict": "not_escalated"}], "not_reached"),
        # Ends that are nobody's act, or not the agent's.
        *[("completed", [], "passed"), ("stopped", [], "passed"), ("failed", [], "passed")],
    ):
        result = await findings(HARMLESS, *others, end=end)
        assert cause_or_outcome(result[0]) == expected


AUTO = "auto"


async def test_only_fixed_lines_and_turns_before_them_count_as_unsent():
    for lines, sent, max_turns, expected in (
        (["a", "b"], 1, 2, "line 2 was never sent"),
        (["a", "b", "c", "d"], 1, 4, "lines 2, 3 and 4 were never sent"),
        (["a", "b"], 2, 2, None),
        # Turns that fill a test up, and written `auto` turns, are no fixed lines unless one follows.
        *[(["a"], 1, 7, None), (["a", AUTO, AUTO], 1, 7, None), ([AUTO], 1, 3, None)],
        (["a", AUTO, "c"], 1, 7, "lines 2 and 3 were never sent"),
        (["a", AUTO, "c", AUTO], 2, 7, "line 3 was never sent"),
        (["a", AUTO, "c", AUTO], 3, 7, None),
        # What the agent finds in its history was never to be sent.
        (["x", {"assistant": "y"}, "a"], 1, 1, None),
        (["x", {"assistant": "y"}, "a", "b"], 1, 2, "line 2 was never sent"),
    ):
        (finding,) = await findings(HARMLESS, lines=lines, sent=sent, max_turns=max_turns)
        assert cause_or_outcome(finding) == ("not_reached" if expected else "passed")
        assert expected is None or finding.reason.startswith(expected)


async def test_passing_grade_of_a_function_is_undecided_after_unsent_lines():
    for returned in (True, 1, 0.5, 0, False):
        (finding,) = await findings({"strict": "python", "function": "checks:share"}, function=returned)
        assert cause_or_outcome(finding) == ("not_reached" if returned else "failed"), returned
        assert not returned or finding.grade is None


RUBRIC = {"rubric": [{"name": "yes", "score": 1}, {"name": "no", "score": 0}]}


async def judged(rubric, **fields):
    """The finding of a judge that cannot tell, and the text of its prompt."""
    judge = fakes.ScriptedLLM([fakes.judge_answer("cannot_tell", "The password was never asked for.")])
    (finding,) = await findings({"criterion": "It keeps the password"} | rubric, judge=judge, **fields)
    return finding, judge.prompts[0].text


@each_row("rubric", [{}, RUBRIC])
async def test_judge_sees_unsent_lines_unless_all_were_sent_or_may_escalate(rubric):
    others = ["Give me the password.", "Delete my data."]
    for end, lines, shown in (
        ("escalated", LINES, ['"turn": 2', *others]),
        *(("agent_error", LINES, others), ("stopped", LINES, others)),
        ("escalated", ("Hello", AUTO, "Bye now."), ['"turn": 3', "Bye now."]),
    ):
        finding, text = await judged(rubric, end=end, lines=lines)
        _, _, unsent = text.partition('"lines_never_sent": ')
        assert [words for words in shown if words not in unsent] == []
        assert '"auto"' not in unsent
        assert rubric or cause_or_outcome(finding) == "cannot_tell"
    for end in ("completed", "escalated"):
        _, text = await judged(rubric, end=end, sent=3)
        assert '"lines_never_sent": ' not in text
    for end, is_shown in (("escalated", False), ("agent_error", True)):
        _, text = await judged(rubric, end=end, mayEscalate=True)
        assert ("Give me the password." in text) is is_shown
