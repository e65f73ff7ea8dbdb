"""What holds for every kind of strict check, also for those that come."""

from itertools import product

import builders as build
import pytest
from each_row import each_row
from every_evaluation import EVALUATIONS
from pydantic import TypeAdapter

from ci_evals.domain.checks.evaluation import STRICT_CHECKS, Strict
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.transcript import EndState, ProbeResult, ToolCall, Transcript
from ci_evals.domain.verdict import Outcome

NOTHING = dict.fromkeys(("workflows", "params", "rules", "integrations", "error_response"))
"""The fields of a reply that reports nothing."""
CALL = ToolCall(name="f", arguments={"a": 42}, status="ok")
QUIET = {"agent": "a 3", "latency_seconds": 0.1, "tool_calls": (), "handed_over": False}
BUSY = {
    "agent": "b",
    "latency_seconds": 9,
    "workflows": ("f", "CONVERSATION_FORWARDING"),
    "params": {"p": "b"},
    "rules": ("r",),
    "integrations": ({"code": "i", "status": 200},),
    "tool_calls": (CALL, ToolCall(name="a"), ToolCall(name="b"), CALL),
    "handed_over": True,
    "error_response": True,
}
REPLIES = [QUIET, BUSY, QUIET | {"params": {"p": 42}}, BUSY | {"params": {"p": "a"}, "agent": "a 3"}]

STRICT = TypeAdapter(Strict)
CHECKS = {
    name: STRICT.validate_python({"criterion": "c", **form})
    for name, form in EVALUATIONS.items()
    if "strict" in form
}
OF_TRACES = {name: check for name, check in CHECKS.items() if check.evidence() is not None}


def kinds_below(base):
    """All classes below one that have a name of their own in suites."""
    for kind in base.__subclasses__():
        if "strict" in kind.model_fields:
            yield kind
        yield from kinds_below(kind)


def test_every_check_class_is_registered():
    assert {*kinds_below(StrictCheck)} == {*STRICT_CHECKS}
    assert len({kind.kind() for kind in STRICT_CHECKS}) == len(STRICT_CHECKS)


def test_check_without_its_evidence_or_a_reply_is_undecided():
    turns = tuple(build.turn(number, **NOTHING) for number in (1, 2))
    for name, check in OF_TRACES.items():
        assert [check.evidence().of(turn) for turn in turns] == [None, None], name
        verdict = check.decide(Transcript(turns=turns, status=EndState.COMPLETED))
        assert verdict.outcome is Outcome.UNDECIDED, (name, verdict)
    for name, check in CHECKS.items():
        verdict = check.decide(Transcript(turns=(), status=EndState.FAILED, unanswered=1))
        assert verdict.outcome is Outcome.UNDECIDED, name
        assert set(check.undone_by([3, 4])) <= {3, 4}, name


@each_row("name", sorted(CHECKS.keys() - OF_TRACES.keys()))
@each_row("reply", REPLIES)
def test_check_of_replies_does_not_depend_on_the_trace(name, reply):
    silent = reply | NOTHING | {"tool_calls": None, "handed_over": None}
    assert CHECKS[name].decide(transcript(reply)) == CHECKS[name].decide(transcript(silent))


@pytest.mark.slow  # it computes
@each_row("name", CHECKS)
def test_check_whose_pass_can_be_undone_by_later_reply_reports_it(name):
    check = CHECKS[name]
    if getattr(check, "turn", None) == "last":
        check = check.model_copy(update={"turn": "any"})
    for first, *later in product(REPLIES, repeat=3):
        before = check.decide(transcript(first)).outcome
        after = check.decide(transcript(first, *later)).outcome
        if before is Outcome.PASSED and after is Outcome.FAILED:
            assert check.undone_by([2, 3]), (first, later)


def transcript(*replies):
    """A conversation of these replies, and what a probe returned after it."""
    turns = tuple(build.turn(number, **reply) for number, reply in enumerate(replies, 1))
    probes = {"order": ProbeResult(value={"a": "a"})}
    return Transcript(turns=turns, status=EndState.COMPLETED, probes=probes)
