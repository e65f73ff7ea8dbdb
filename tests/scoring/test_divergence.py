"""Where a test's conversations part from the baseline's."""

from dataclasses import replace

import builders as build

from ci_evals.domain.actions import LogicKind, views_of
from ci_evals.domain.results.comparison import Divergence, DivergentAction
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Integration, ToolCall, Turn, Turns
from ci_evals.reports.story.changes import divergence_sentence
from ci_evals.scoring.comparison import divergence
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.scores import ScoreRule


def trial_of(*turns: dict, index: int = 1, outcome: str = "passed", **fields) -> TrialResult:
    """A trial of these turns, with one finding."""
    texts = tuple(build.turn(number, **each) for number, each in enumerate(turns, start=1))
    return build.trial_result(index, turns=texts, findings=(build.finding(outcome),), **fields)


def workflow(name: str) -> DivergentAction:
    return DivergentAction(kind=LogicKind.WORKFLOW, name=name)


def parameter(name: str, value) -> DivergentAction:
    return DivergentAction(kind=LogicKind.PARAMETER, name=name, value=value)


HELLO = {"workflows": ("GREETING",)}
NO_TRACE = dict.fromkeys(("workflows", "params", "rules", "integrations"))
REFUND = {"workflows": ("REFUND",)}


def divergence_of(head: TrialResult, base: TrialResult) -> Divergence:
    result = divergence.between(head, base)
    assert result is not None
    return result


def test_divergence_is_the_first_turn_with_different_known_actions():
    """Later differences follow from it."""
    result = divergence_of(trial_of(HELLO, {}, REFUND), trial_of(HELLO, REFUND, {}))
    assert (result.turn, result.head, result.base) == (2, (), (workflow("REFUND"),))
    assert (result.only, result.user_differs) == (None, None)
    # There the other conversation had ended, whatever the agent did.
    longer, shorter, actions = trial_of(HELLO, REFUND), trial_of(HELLO), (workflow("REFUND"),)
    result = divergence_of(longer, shorter)
    assert (result.turn, result.only, result.head, result.base) == (2, "head", actions, ())
    result = divergence_of(shorter, longer)
    assert (result.turn, result.only, result.head, result.base) == (2, "base", (), actions)
    assert divergence_of(trial_of(HELLO, {}), trial_of(HELLO)).turn == 2
    # Untraced parts are unknown, not the same and not different; one traced reply on each side is enough.
    assert divergence_of(trial_of(HELLO, {"workflows": None}), trial_of(HELLO, REFUND)).unknown == (2,)
    assert divergence_of(trial_of(HELLO, REFUND), trial_of(HELLO, REFUND)).unknown == ()
    assert divergence_of(trial_of(NO_TRACE, HELLO), trial_of(NO_TRACE, HELLO)).unknown == (1,)
    untold = {"workflows": None, "rules": ("r1",)}
    assert divergence_of(trial_of(untold), trial_of(REFUND | {"rules": ("r1",)})).turn is None
    result = divergence_of(trial_of(untold), trial_of(REFUND))
    assert (result.head, result.base) == ((RULE_1,), ())
    assert divergence.between(trial_of(NO_TRACE), trial_of(REFUND)) is None
    assert divergence.between(trial_of(REFUND), trial_of(NO_TRACE, NO_TRACE)) is None
    assert divergence.between(trial_of(REFUND), trial_of()) is None
    assert divergence_of(trial_of(NO_TRACE, REFUND), trial_of(HELLO, REFUND)).turn is None


def action(kind: LogicKind, name: str, value=None) -> DivergentAction:
    return DivergentAction(kind=kind, name=name, value=value)


RULE_1 = action(LogicKind.RULE, "r1")
IN_USD, FIVE, SEVEN = {"currency": "USD"}, {"amount": 5}, {"amount": 7}


def test_workflows_rules_parameters_and_statuses_of_integrations_are_compared():
    """Listed is only what the other side has not."""
    for field, here, there, head, base in (
        ("workflows", ("A", "B"), ("B", "C"), workflow("A"), workflow("C")),
        ("rules", ("r1",), (), RULE_1, None),
        ("params", IN_USD | FIVE, IN_USD | SEVEN, parameter("amount", 5), parameter("amount", 7)),
        ("params", {"a": [True]}, {"a": [1]}, parameter("a", [True]), parameter("a", [1])),
        ("named_params", ("reason",), (), parameter("reason", None), None),
    ):
        result = divergence_of(trial_of({field: here}), trial_of({field: there}))
        assert (result.turn, result.head, result.base) == (1, (head,), (base,) if base else ())
    head, base = ({"integrations": (Integration(code="orders", status=status),)} for status in (503, 200))
    result = divergence_of(trial_of(head), trial_of(base))
    assert result.head == (action(LogicKind.INTEGRATION, "orders", 503),)
    assert (result.turn, result.base) == (1, (action(LogicKind.INTEGRATION, "orders", 200),))


def test_differences_in_order_wording_or_speed_are_not_a_divergence():
    """How often, in which order, in which words, how fast, and what else the trace holds."""
    for here, there in (
        ({"workflows": ("A", "B", "A")}, {"workflows": ("B", "A")}),
        ({"agent": "Good morning.", "latency_seconds": 9}, {"agent": "Hello!"}),
        ({"params": {"a": {"x": 1, "y": 2}}}, {"params": {"a": {"y": 2, "x": 1}}}),
        ({"params": {"a": 5, "b": [{"c": 1e3}]}}, {"params": {"a": 5.0, "b": [{"c": 1000}]}}),
        ({"params": {"a": "undefined", "b": None}}, {"params": {"c": []}}),
        ({"trace": {"id": 1}}, {"trace": {"id": 2}}),
    ):
        result = divergence_of(trial_of(HELLO, here), trial_of(HELLO, there))
        assert (result.turn, result.head, result.base, result.only) == (None, (), (), None)


def test_first_turn_with_another_answer_or_user_message_is_reported():
    """The answer if actions are equal, the user's message up to the divergence."""
    other = {"agent": "Good day."}
    assert divergence_of(trial_of({}, HELLO | other, other), trial_of({}, HELLO, {})).agent_differs == 2
    assert divergence_of(trial_of({}, {"user": "No."}), trial_of({}, {})).agent_differs is None
    assert divergence_of(trial_of(other, REFUND), trial_of({}, HELLO)).agent_differs is None
    no = {"user": "No."}
    assert divergence_of(trial_of(no, HELLO, {}), trial_of(HELLO, HELLO, REFUND)).user_differs == 1
    assert divergence_of(trial_of({}, no), trial_of({}, REFUND)).user_differs == 2
    assert divergence_of(trial_of({}, no), trial_of(HELLO, REFUND)).user_differs is None
    assert divergence_of(trial_of({}, no), trial_of({}, {})).user_differs == 2


def call(name: str, **arguments) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def test_arguments_of_tool_calls_are_compared_if_known_on_both_sides():
    """They are a part of the call; ids and results are not."""
    head, base = views_of([call("refund", amount=24)]), views_of([call("refund", amount=42)])
    result = divergence_of(trial_of(HELLO, head), trial_of(HELLO, base))
    assert (result.turn, result.head) == (2, (action(LogicKind.WORKFLOW, "refund", {"amount": 24}),))
    assert result.base == (action(LogicKind.WORKFLOW, "refund", {"amount": 42}),)
    assert 'ran refund with {"amount": 42}' in divergence_sentence(result)
    other = call("refund", amount=42.0).model_copy(update={"id": "c7", "result": "ok"})
    assert divergence_of(trial_of(views_of([other])), trial_of(base)).turn is None
    known = trial_of(views_of([call("refund", amount=42)]))
    for turn in (views_of([ToolCall(name="refund")]), REFUND | {"workflows": ("refund",)}):
        assert divergence_of(known, trial_of(turn)).turn is None
        assert divergence_of(trial_of(turn), known).turn is None
    assert divergence_of(known, trial_of(views_of([ToolCall(name="close")]))).turn == 1


def comparer_of(head: list[TrialResult], base: list[TrialResult]) -> RunComparer:
    def run(run_id: str, trials: list[TrialResult]) -> Results:
        test = build.test_result("t", trials=tuple(trials))
        return build.results(build.suite_result("S", test), run=build.run_info(id=run_id))

    return RunComparer(run("head", head), run("base", base))


def test_divergence_of_changed_test_is_of_first_failed_and_first_passed_trial():
    """The first failed and the first passed one, not one that broke off."""
    broken_off = trial_of({}, index=1, outcome="failed", status="failed")
    head = [broken_off, trial_of(HELLO, index=2), trial_of({}, index=3, outcome="failed")]
    comparison = comparer_of(head, [trial_of(HELLO, index=1), trial_of(HELLO, index=2)]).comparison()
    result = comparison.regressed[0].first_divergence
    assert (result.head_trial, result.base_trial, result.turn) == (3, 1, 1)
    assert result.base == (workflow("GREETING"),)
    assert [one.first_divergence for one in comparison.suspects] == [result]
    base = [trial_of(HELLO, index=1), trial_of({}, index=2, outcome="failed")]
    (test,) = comparer_of([trial_of(HELLO, index=1), trial_of(HELLO, index=2)], base).comparison().fixed
    result = test.first_divergence
    assert (result.head_trial, result.base_trial, result.head) == (1, 2, (workflow("GREETING"),))


def test_trial_with_an_agent_error_counts_as_failed_in_a_divergence():
    """Whatever its verdicts say, a test has not passed with an agent error."""
    head = [trial_of(HELLO, index=1), trial_of({}, index=2, status="agent_error")]
    (suite,) = comparer_of(head, [trial_of(HELLO)]).suites
    result = divergence.of_test(suite.pairs[0], ScoreRule(offline=False), ScoreRule(offline=False))
    assert result is not None
    assert (result.head_trial, result.turn, result.base) == (2, 1, (workflow("GREETING"),))


def test_divergence_lists_a_limited_number_of_actions():
    """A reply that tells of thousands does not make the results as large again."""
    result = divergence_of(trial_of({"rules": tuple(map(str, range(1000)))}), trial_of({}))
    assert len(result.head) == divergence.MOST_ACTIONS


def test_packed_and_unpacked_conversations_have_the_same_divergence():
    """A run holds them packed; those read from a file are not."""
    long_ago = Turn.model_validate(build.turn(trace={"a": ["b"]}, workflows=("GREETING",)))
    one, other = trial_of(REFUND), trial_of(HELLO)
    other = replace(other, turns=Turns((long_ago,)))
    assert divergence.between(one.packed(), other.packed()) == divergence.between(one, other) is not None
