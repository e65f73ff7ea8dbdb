"""Where a test's conversations part from the baseline's."""

from dataclasses import replace

import builders as build
import pytest

from ci_evals.domain.actions import LogicKind, views_of
from ci_evals.domain.results.comparison import Divergence, DivergentAction
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Integration, ToolCall, Turn, Turns
from ci_evals.reports.story.changes import divergence_sentence
from ci_evals.scoring.comparison import divergence
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.scores import ScoreRule


def talk(*turns: dict, index: int = 1, outcome: str = "passed", **fields) -> TrialResult:
    """A trial of these turns, with one finding."""
    texts = tuple(build.turn(number, **each) for number, each in enumerate(turns, start=1))
    return build.trial_result(index, turns=texts, findings=(build.finding(outcome),), **fields)


def workflow(name: str) -> DivergentAction:
    return DivergentAction(kind=LogicKind.WORKFLOW, name=name)


def parameter(name: str, value) -> DivergentAction:
    return DivergentAction(kind=LogicKind.PARAMETER, name=name, value=value)


HELLO = {"workflows": ("GREETING",)}
REFUND = {"workflows": ("REFUND",)}


def parted(head: TrialResult, base: TrialResult) -> Divergence:
    found = divergence.between(head, base)
    assert found is not None
    return found


def test_the_first_turn_that_differs_is_where_they_part():
    """What comes after it follows from it."""
    found = parted(talk(HELLO, {}, REFUND), talk(HELLO, REFUND, {}))
    assert (found.turn, found.head, found.base) == (2, (), (workflow("REFUND"),))
    assert (found.only, found.user_differs) == (None, None)


def test_an_turn_that_one_side_does_not_report_is_unknown():
    """Not the same, and not different either."""
    assert parted(talk(HELLO, {"workflows": None}), talk(HELLO, REFUND)).unknown == (2,)
    assert parted(talk(HELLO, REFUND), talk(HELLO, REFUND)).unknown == ()
    nothing = dict.fromkeys(("workflows", "params", "rules", "integrations"))
    assert parted(talk(nothing, HELLO), talk(nothing, HELLO)).unknown == (1,)


@pytest.mark.parametrize(
    ("field", "here", "there", "deeds"),
    [
        ("workflows", ("A", "B"), ("B", "C"), ((workflow("A"),), (workflow("C"),))),
        ("rules", ("r1",), (), ((DivergentAction(kind=LogicKind.RULE, name="r1"),), ())),
        (
            "params",
            {"amount": 5, "currency": "USD"},
            {"amount": 7, "currency": "USD"},
            ((parameter("amount", 5),), (parameter("amount", 7),)),
        ),
        ("params", {"a": [True]}, {"a": [1]}, ((parameter("a", [True]),), (parameter("a", [1]),))),
        ("named_params", ("reason",), (), ((parameter("reason", None),), ())),
        (
            "integrations",
            (Integration(code="orders", status=503),),
            (Integration(code="orders", status=200),),
            (
                (DivergentAction(kind=LogicKind.INTEGRATION, name="orders", value=503),),
                (DivergentAction(kind=LogicKind.INTEGRATION, name="orders", value=200),),
            ),
        ),
    ],
)
def test_all_that_an_agent_does_is_compared(field, here, there, deeds):
    """Workflows, rules, parameters and integrations; told is only what the other side has not."""
    found = parted(talk({field: here}), talk({field: there}))
    assert (found.turn, found.head, found.base) == (1, *deeds)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ({"workflows": ("A", "B", "A")}, {"workflows": ("B", "A")}),
        ({"agent": "Good morning.", "latency_seconds": 9}, {"agent": "Hello!"}),
        ({"params": {"a": {"x": 1, "y": 2}}}, {"params": {"a": {"y": 2, "x": 1}}}),
        ({"params": {"a": 5, "b": [{"c": 1e3}]}}, {"params": {"a": 5.0, "b": [{"c": 1000}]}}),
        ({"params": {"a": "undefined", "b": None}}, {"params": {"c": []}}),
        ({"trace": {"id": 1}}, {"trace": {"id": 2}}),
    ],
)
def test_order_words_and_speed_are_no_divergence(here, there):
    """How often, in which order, in which words, how fast, and what else the trace holds."""
    found = parted(talk(HELLO, here), talk(HELLO, there))
    assert (found.turn, found.head, found.base, found.only) == (None, (), (), None)


def test_where_only_words_differ():
    """The first turn in which the agent said something else, and none where it said the same."""
    other = {"agent": "Good day."}
    assert parted(talk({}, HELLO | other, other), talk({}, HELLO, {})).agent_differs == 2
    assert parted(talk({}, {"user": "No."}), talk({}, {})).agent_differs is None
    assert parted(talk(other, REFUND), talk({}, HELLO)).agent_differs is None


def test_an_turn_that_one_side_alone_has():
    """There the other conversation had ended, whatever the agent did."""
    longer, shorter = talk(HELLO, REFUND), talk(HELLO)
    found = parted(longer, shorter)
    assert (found.turn, found.only, found.head, found.base) == (2, "head", (workflow("REFUND"),), ())
    found = parted(shorter, longer)
    assert (found.turn, found.only, found.head, found.base) == (2, "base", (), (workflow("REFUND"),))
    assert parted(talk(HELLO, {}), talk(HELLO)).turn == 2


def test_what_a_reply_does_not_tell_was_not_left_out():
    """A missing part of a trace is no evidence, so it is not compared; the rest is."""
    untold = {"workflows": None, "rules": ("r1",)}
    assert parted(talk(untold), talk(REFUND | {"rules": ("r1",)})).turn is None
    found = parted(talk(untold), talk(REFUND))
    assert (found.head, found.base) == ((DivergentAction(kind=LogicKind.RULE, name="r1"),), ())


def call(name: str, **arguments) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def test_arguments_of_tool_calls_are_compared():
    """They are a part of the call; ids and results are not."""
    head, base = views_of([call("refund", amount=24)]), views_of([call("refund", amount=42)])
    found = parted(talk(HELLO, head), talk(HELLO, base))
    assert (found.turn, found.head, found.base) == (
        2,
        (DivergentAction(kind=LogicKind.WORKFLOW, name="refund", value={"amount": 24}),),
        (DivergentAction(kind=LogicKind.WORKFLOW, name="refund", value={"amount": 42}),),
    )
    assert 'ran refund with {"amount": 42}' in divergence_sentence(found)
    other = call("refund", amount=42.0).model_copy(update={"id": "c7", "result": "ok"})
    assert parted(talk(views_of([other])), talk(base)).turn is None


def test_arguments_that_are_unknown_on_one_side_make_no_difference():
    """Nor does a baseline of names alone."""
    known = talk(views_of([call("refund", amount=42)]))
    for unknown in (talk(views_of([ToolCall(name="refund")])), talk(REFUND | {"workflows": ("refund",)})):
        assert parted(known, unknown).turn is None
        assert parted(unknown, known).turn is None
    assert parted(known, talk(views_of([ToolCall(name="close")]))).turn == 1


def test_without_a_trace_no_divergence_is_reported():
    """On either side; one traced reply is enough."""
    silent = dict.fromkeys(("workflows", "params", "rules", "integrations"))
    assert divergence.between(talk(silent), talk(REFUND)) is None
    assert divergence.between(talk(REFUND), talk(silent, silent)) is None
    assert divergence.between(talk(REFUND), talk()) is None
    assert parted(talk(silent, REFUND), talk(HELLO, REFUND)).turn is None


def test_where_the_user_said_something_else_first():
    """Up to the turn where they part, and with it; not after it."""
    no = {"user": "No."}
    assert parted(talk(no, HELLO, {}), talk(HELLO, HELLO, REFUND)).user_differs == 1
    assert parted(talk({}, no), talk({}, REFUND)).user_differs == 2
    assert parted(talk({}, no), talk(HELLO, REFUND)).user_differs is None
    assert parted(talk({}, no), talk({}, {})).user_differs == 2


def test_many_deeds_are_cut():
    """A reply that tells of thousands does not make the results as large again."""
    found = parted(talk({"rules": tuple(map(str, range(1000)))}), talk({}))
    assert len(found.head) == divergence.MOST_ACTIONS


def compared(head: list[TrialResult], base: list[TrialResult]) -> RunComparer:
    def side(run_id: str, trials: list[TrialResult]) -> Results:
        test = build.test_result("t", trials=tuple(trials))
        return build.results(build.suite_result("S", test), run=build.run_info(id=run_id))

    return RunComparer(side("head", head), side("base", base))


def test_the_trials_that_show_a_regression():
    """The first that fails now, and the first that passed then; not one that broke off."""
    head = [
        talk({}, index=1, outcome="failed", status="failed"),
        talk(HELLO, index=2),
        talk({}, index=3, outcome="failed"),
    ]
    comparison = compared(head, [talk(HELLO, index=1), talk(HELLO, index=2)]).comparison()
    (test,) = comparison.regressed
    assert test.first_divergence is not None
    assert (
        test.first_divergence.head_trial,
        test.first_divergence.base_trial,
        test.first_divergence.turn,
    ) == (3, 1, 1)
    assert test.first_divergence.base == (workflow("GREETING"),)
    assert [one.first_divergence for one in comparison.suspects] == [test.first_divergence]


def test_the_trials_that_show_a_fix():
    """The first that passes now, and the first that failed then."""
    base = [talk(HELLO, index=1), talk({}, index=2, outcome="failed")]
    (test,) = compared([talk(HELLO, index=1), talk(HELLO, index=2)], base).comparison().fixed
    assert test.first_divergence is not None
    assert (test.first_divergence.head_trial, test.first_divergence.base_trial) == (1, 2)
    assert test.first_divergence.head == (workflow("GREETING"),)


def test_a_conversation_that_the_agent_ended_by_an_error_shows_the_change():
    """Whatever its verdicts say, the test has not passed with it."""
    head = [talk(HELLO, index=1), talk({}, index=2, status="agent_error")]
    (suite,) = compared(head, [talk(HELLO)]).suites
    found = divergence.of_test(suite.pairs[0], ScoreRule(offline=False), ScoreRule(offline=False))
    assert found is not None
    assert (found.head_trial, found.turn, found.base) == (2, 1, (workflow("GREETING"),))


def test_packed_conversations_part_alike():
    """As a run holds them, and as they are read from a file."""
    long_ago = Turn.model_validate(build.turn(trace={"a": ["b"]}, workflows=("GREETING",)))
    one, other = talk(REFUND), talk(HELLO)
    other = replace(other, turns=Turns((long_ago,)))
    assert divergence.between(one.packed(), other.packed()) == divergence.between(one, other) is not None
