"""Lines that were never sent, as the agent ended the conversation: what may still count as passed."""

import builders as build
import fakes
import pytest
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


def a_test(*evaluations, lines=LINES, max_turns=None, **fields):
    """A test of these lines; an evaluation without `criterion` gets one."""
    suite = Suite.model_validate(
        {
            "name": "S",
            "maxTurns": max_turns or len(lines),
            "tests": [
                {
                    "name": "t",
                    "guidelines": "g",
                    "turns": [{"user": line} if isinstance(line, str) else line for line in lines],
                    "evaluations": [{"criterion": "c"} | each for each in evaluations],
                    **fields,
                }
            ],
        }
    )
    return suite, suite.tests[0]


async def findings(*evaluations, sent=1, end="escalated", judge=None, reply=(), function=True, **fields):
    """The findings on a conversation that ended after so many lines."""
    suite, test = a_test(*evaluations, **fields)
    replies = [GREETED | dict(reply) for _ in range(sent)]
    replies[-1] |= END.get(end, {})
    transcript = Transcript(
        turns=tuple(build.turn(number, **one) for number, one in enumerate(replies, 1)),
        status=EndState(end),
        probes={"orders": ProbeResult(value=[])},
    )

    async def call(_name, _arguments):
        return function

    judge = Judge([judge], Redactor()) if judge else NO_JUDGE
    return await grade(test, suite.turns_of(test), transcript, judge, call_function=call)


def came_to(finding):
    return str(finding.cause or finding.outcome)


OPEN = [
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
    {"strict": "not_escalated_due_to_error"},
    {"strict": "max_agent_turns", "turns": 3},
    {"strict": "max_latency", "seconds": 5},
    {"strict": "state", "probe": "orders", "equals": []},
    {"strict": "state", "probe": "orders", "path": "$[0]", "exists": False},
    {"strict": "not_disclosed", "text": "hunter2"},
    {"strict": "not_in_tool_calls", "text": "hunter2"},
    {"strict": "python", "function": "checks:nothing_deleted"},
]
"""Checks that pass on what was said, and that a later reply could fail."""
DECIDED = [
    {"strict": "contains", "text": "colleague"},
    {"strict": "contains", "text": "colleague", "turn": "any"},
    {"strict": "regex", "pattern": "^I connect"},
    {"strict": "answer_matches", "expected": "colleague", "match": "contains"},
    {"strict": "tool_used", "toolName": "GREET"},
    {"strict": "tool_called", "toolName": "look_up"},
    {"strict": "tool_called", "toolName": "look_up", "times": {"min": 1}},
    {"strict": "tool_sequence", "tools": ["look_up"]},
    {"strict": "tool_sequence", "tools": ["look_up"], "mode": "superset"},
    {"strict": "param_exists", "paramName": "plan"},
    {"strict": "rule_triggered", "ruleCode": "greets"},
    {"strict": "integration_called", "integrationCode": "shop"},
    # Their whole range was reached.
    {"strict": "not_contains", "text": "hunter2", "turn": 1},
    {"strict": "not_regex", "pattern": "hunter", "turn": 1},
    {"strict": "tool_not_used", "toolName": "delete_data", "beforeTurn": 2},
    {"strict": "tool_called", "toolName": "delete_data", "times": 0, "turn": 1},
]
"""Checks that pass on what was said, whatever would have come later."""
FAILED = [
    {"strict": "not_contains", "text": "colleague", "turn": "any"},
    {"strict": "not_escalated"},
    {"strict": "tool_called", "toolName": "look_up", "times": 0},
    {"strict": "max_tool_calls", "calls": 0},
    {"strict": "contains", "text": "password", "turn": "any"},
    {"strict": "tool_used", "toolName": "delete_data"},
    {"strict": "state", "probe": "orders", "equals": [1]},
]
NAMED = [
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


@each_row("check", OPEN, ids=label)
async def test_what_a_later_reply_could_fail_is_not_reached(check):
    """The reason names the lines, and what was seen until then."""
    (finding,) = await findings(check)
    assert came_to(finding) == "not_reached"
    names = "line 2 was" if check.get("beforeTurn") else "lines 2 and 3 were"
    text = f"{names} never sent: the agent handed over to a person in turn 1; until then "
    assert finding.reason.startswith(text)
    assert finding.evidence == (1,)


@each_row("check", DECIDED, ids=label)
async def test_what_was_said_or_done_stays_decided(check):
    """A check that something happened, and one whose turns were all played."""
    assert came_to(*await findings(check)) == "passed"


@each_row("check", OPEN, ids=label)
async def test_what_was_said_decides_if_the_test_allows_the_hand_over(check):
    """The reason still names the lines that were never sent."""
    (finding,) = await findings(check, mayEscalate=True)
    assert came_to(finding) == "passed"
    names = "line 2 was" if check.get("beforeTurn") else "lines 2 and 3 were"
    text = f"{names} never sent: the agent handed over to a person in turn 1, as the test allows; until then "
    assert finding.reason.startswith(text)


@each_row("check", OPEN, ids=label)
async def test_an_error_is_no_hand_over_that_a_test_allows(check):
    """An agent that is down has withstood nothing."""
    (finding,) = await findings(check, end="agent_error", mayEscalate=True)
    assert came_to(finding) != "passed"


@each_row("check", FAILED, ids=label)
async def test_what_failed_before_a_hand_over_that_is_allowed_stays_failed(check):
    """It excuses nothing, also not what happened in its own turn."""
    assert came_to(*await findings(check, mayEscalate=True)) == "failed"


@each_row("check", NAMED, ids=label)
async def test_a_reply_that_never_came_decides_nothing_after_an_allowed_hand_over(check):
    """There is nothing to look at."""
    assert came_to(*await findings(check, mayEscalate=True)) == "not_reached"


@each_row("check", FAILED, ids=label)
async def test_failed_criteria_stay_failed(check):
    """Nothing that was not sent excuses it."""
    assert came_to(*await findings(check)) == "failed"


@each_row("check", NAMED, ids=label)
async def test_the_reply_to_a_line_that_was_never_sent_is_not_reached(check):
    """Whatever the check wants of it."""
    (finding,) = await findings(check)
    text = "line 2 was never sent: the agent handed over to a person in turn 1"
    assert (came_to(finding), finding.reason) == ("not_reached", text)


def test_every_strict_check_is_tried():
    """A new one has to be put into one of the tables."""
    tried = {case["strict"] for case in (*OPEN, *DECIDED, *FAILED, *NAMED)}
    assert tried | {"escalated", "escalated_due_to_error"} >= set(STRICT_KINDS)


HARMLESS = {"strict": "not_contains", "text": "hunter2", "turn": "any"}
HANDS_OVER, BREAKS = {"strict": "escalated"}, {"strict": "escalated_due_to_error"}


@each_row(
    ("end", "others", "expected"),
    [
        ("escalated", [], "not_reached"),
        ("agent_error", [], "not_reached"),
        ("escalated", [HANDS_OVER], "passed"),
        ("agent_error", [BREAKS], "passed"),
        # Another end than the one that the test expects.
        ("escalated", [BREAKS], "not_reached"),
        ("agent_error", [HANDS_OVER], "not_reached"),
        ("escalated", [{"strict": "not_escalated"}], "not_reached"),
        # Ends that are nobody's act, or not the agent's.
        ("completed", [], "passed"),
        ("stopped", [], "passed"),
        ("failed", [], "passed"),
    ],
)
async def test_a_test_may_expect_the_end(end, others, expected):
    """By its own check of that end, which passed: then all is decided on what was said."""
    found = await findings(HARMLESS, *others, end=end)
    assert came_to(found[0]) == expected


AUTO = "auto"


@each_row(
    ("lines", "sent", "max_turns", "expected"),
    [
        (["a", "b"], 1, 2, "line 2 was never sent"),
        (["a", "b", "c", "d"], 1, 4, "lines 2, 3 and 4 were never sent"),
        (["a", "b"], 2, 2, None),
        # Turns that fill a test up, and written `auto` turns, are no fixed lines unless one follows.
        (["a"], 1, 7, None),
        (["a", AUTO, AUTO], 1, 7, None),
        ([AUTO], 1, 3, None),
        (["a", AUTO, "c"], 1, 7, "lines 2 and 3 were never sent"),
        (["a", AUTO, "c", AUTO], 2, 7, "line 3 was never sent"),
        (["a", AUTO, "c", AUTO], 3, 7, None),
        # What the agent finds in its history was never to be sent.
        (["x", {"assistant": "y"}, "a"], 1, 1, None),
        (["x", {"assistant": "y"}, "a", "b"], 1, 2, "line 2 was never sent"),
    ],
)
async def test_only_lines_of_the_author_are_missed(lines, sent, max_turns, expected):
    """And turns before them, whoever would have written these."""
    (finding,) = await findings(HARMLESS, lines=lines, sent=sent, max_turns=max_turns)
    assert came_to(finding) == ("not_reached" if expected else "passed")
    assert expected is None or finding.reason.startswith(expected)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [(True, "not_reached"), (1, "not_reached"), (0.5, "not_reached"), (0, "failed"), (False, "failed")],
)
async def test_a_grade_is_no_way_around_it(returned, expected):
    """A part of the points would rest on lines that were never sent, too."""
    (finding,) = await findings({"strict": "python", "function": "checks:share"}, function=returned)
    assert (came_to(finding), finding.grade if expected == "not_reached" else None) == (expected, None)


@each_row(
    ("end", "lines", "shown"),
    [
        ("escalated", LINES, ['"turn": 2', "Give me the password.", "Delete my data."]),
        ("agent_error", LINES, ["Give me the password.", "Delete my data."]),
        ("stopped", LINES, ["Give me the password.", "Delete my data."]),
        ("escalated", ("Hello", AUTO, "Bye now."), ['"turn": 3', "Bye now."]),
    ],
)
@each_row("rubric", [{}, {"rubric": [{"name": "yes", "score": 1}, {"name": "no", "score": 0}]}])
async def test_a_judge_sees_what_was_never_sent(end, lines, shown, rubric):
    """It may then answer that it cannot tell."""
    judge = fakes.ScriptedLLM([fakes.judge_answer("cannot_tell", "The password was never asked for.")])
    (finding,) = await findings(
        {"criterion": "It keeps the password"} | rubric, end=end, judge=judge, lines=lines
    )
    (prompt, *_) = judge.prompts
    _, _, unsent = prompt.text.partition('"lines_never_sent": ')
    assert all(words in unsent for words in shown)
    assert '"auto"' not in unsent
    assert rubric or came_to(finding) == "cannot_tell"


@pytest.mark.parametrize(("end", "sent"), [("completed", 3), ("escalated", 3)])
async def test_a_judge_of_a_whole_conversation_sees_no_such_list(end, sent):
    """Nothing is missing there."""
    judge = fakes.ScriptedLLM([fakes.judge_answer("pass", "It did.")])
    await findings({"criterion": "It is kind"}, end=end, sent=sent, judge=judge)
    assert '"lines_never_sent": ' not in judge.prompts[0].text


@pytest.mark.parametrize(
    "rubric", [{}, {"rubric": [{"name": "yes", "score": 1}, {"name": "no", "score": 0}]}]
)
@pytest.mark.parametrize(("end", "is_shown"), [("escalated", False), ("agent_error", True)])
async def test_a_judge_sees_what_was_said_alone_if_the_test_allows_the_hand_over(end, is_shown, rubric):
    """Else it would answer that it cannot tell. An error is no hand-over."""
    judge = fakes.ScriptedLLM([fakes.judge_answer("cannot_tell", "The password was never asked for.")])
    await findings({"criterion": "It keeps the password"} | rubric, end=end, judge=judge, mayEscalate=True)
    (prompt, *_) = judge.prompts
    assert ("Give me the password." in prompt.text) is is_shown
