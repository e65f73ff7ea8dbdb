"""Steps are told from traces: what none tells is null, never nothing."""

import math
from dataclasses import asdict, replace
from functools import partial

import builders as build
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.actions import LogicKind, views_of
from ci_evals.domain.results.process import Fired, ProcessSummary, Times, TrialProcess
from ci_evals.domain.results.usage import Tokens, Usage
from ci_evals.domain.transcript import Integration, ToolCall, Turn, UserSource
from ci_evals.scoring import process
from ci_evals.scoring.scores import ScoreRule

ONLINE = ScoreRule(offline=False)


def turns_of(*replies: dict) -> tuple[Turn, ...]:
    """A conversation of replies whose traces are full and empty, but for what is given."""
    return tuple(build.turn(number, **fields) for number, fields in enumerate(replies, 1))


def ran(*names: str, **params) -> dict:
    return {"workflows": names, "params": params}


def called(*calls: str | tuple[str, int] | Integration, **params) -> dict:
    def integration(call) -> Integration:
        if isinstance(call, Integration):
            return call
        code, status = (call, 200) if isinstance(call, str) else call
        return Integration(code=code, status=status)

    return {"integrations": tuple(map(integration, calls)), "params": params}


def steps(*replies: dict) -> TrialProcess:
    measures = process.of_turns(turns_of(*replies)).process
    assert measures
    return measures


def test_workflow_steps_count_starts_returns_and_repetitions():
    """A continued workflow is one step, also through replies that ran none."""
    result = steps(ran("RETURN"), ran("RETURN", order="A1"), ran(), ran("RETURN"))
    assert (result.steps, result.tools, result.begun) == (1, 1, ("RETURN",))
    assert (result.repeated, result.backtracks) == (0, 0)
    same = steps(ran("RETURN", order="A1"), ran("POLICY", order="A1"), ran("RETURN", order="A1"))
    assert (same.steps, same.tools, same.backtracks, same.repeated) == (3, 2, 1, 1)
    learned = steps(ran("RETURN", order="A1"), ran("POLICY"), ran("RETURN", order="A2"))
    assert (learned.backtracks, learned.repeated) == (1, 0)
    # Several may continue in parallel: only one that had been left is returned to.
    parallel = steps(ran("A", "B"), ran("A", "B"), ran("B"), ran("B", "A"))
    assert (parallel.begun, parallel.backtracks) == (("A", "B", "A"), 1)
    # Which parameters were whose nobody can tell, so that it is no repetition.
    result = steps(ran("SEARCH", "SEARCH", city="Rome"), ran("SEARCH", city="Oslo"))
    assert (result.steps, result.tools, result.repeated, result.backtracks) == (2, 1, 0, 0)
    # They may have been other ones.
    blind = {"workflows": ("A",), "params": {}, "named_params": ("order",)}
    other = {"workflows": ("B",), "params": {}, "named_params": ("order",)}
    assert steps(blind, other, blind).repeated == 0
    unknown = steps(ran("A"), NO_TRACE | {"workflows": ("B",)}, NO_TRACE | {"workflows": ("A",)})
    assert unknown.repeated is None


def test_calls_count_as_repeated_by_parameters_and_failed_by_status():
    """The last value of each that is not empty counts. In JSON 1 and 1.0 are one number, keys unordered."""
    params = ({}, {"order": "undefined"}, {"reason": ""}, {"reason": "size"})
    lookups = [called("lookup", **({"order": "A1"} | given)) for given in params]
    result = steps(*lookups, called("lookup", "lookup", order="A2"))
    assert (result.steps, result.tools, result.calls, result.repeated) == (6, 1, 6, 3)
    equal = steps(called("lookup", order={"a": 1, "b": 2}), called("lookup", order={"b": 2.0, "a": 1.0}))
    assert equal.repeated == 1
    rag, mcp = Integration(code="rag"), Integration(code="mcp", error="gone")
    x = Integration(code="x", error="")
    result = steps(called(("a", 200), ("a", 302), ("a", 400), ("a", 503)), called(rag, mcp, x))
    assert (result.calls, result.failed_calls) == (7, 3)


NO_TRACE = {"workflows": None, "params": None, "rules": None, "integrations": None}


def tool(name: str, status: str = "ok", **arguments) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, status=status)


def test_tool_calls_count_as_steps_and_only_once_if_also_a_workflow():
    error = steps(
        views_of([tool("look_up", order=1)]) | {"integrations": None},
        views_of([tool("look_up", order=1), tool("look_up", order=2)]) | {"integrations": None},
        views_of([tool("refund", "error", order=1)]) | {"integrations": None},
    )
    assert (error.steps, error.tools, error.repeated, error.calls, error.failed_calls) == (4, 2, 1, 4, 1)
    assert (error.begun, error.backtracks) == (("look_up", "look_up", "look_up", "refund"), None)
    assert process.with_optimal(error, ["look_up", "refund"]).overhead == 1
    unknown = steps(views_of([ToolCall(name="look_up"), tool("refund")]))
    assert (unknown.calls, unknown.repeated) == (2, None)
    call = Integration(code="orders", status=503)
    result = steps(views_of([tool("refund", order=1)], ["REFUNDS"]) | {"integrations": (call,)})
    assert (result.steps, result.tools, result.calls) == (3, 3, 2)
    assert (result.failed_calls, result.backtracks) == (1, 0)


def test_steps_without_a_complete_trace_are_unknown():
    """No reply at all, parameters and rules alone, or calls that are known in part."""
    assert process.of_turns(turns_of(NO_TRACE, NO_TRACE)) == process.TraceSummary(None, None)
    assert process.of_turns(()) == process.TraceSummary(None, None)
    measures = process.of_turns(turns_of(NO_TRACE | {"rules": ("r",), "params": {"a": 1}}))
    assert measures == process.TraceSummary(None, Fired(parameters=("a",), rules=("r",)))
    in_part = process.of_turns(turns_of(views_of([tool("refund")]) | {"tool_calls_partial": True}))
    assert in_part.process is None
    # Who tells of workflows alone says nothing of calls or repetitions.
    workflows = steps(*(NO_TRACE | {"workflows": (name,)} for name in "ABA"))
    assert workflows == TrialProcess(steps=3, tools=2, begun=("A", "B", "A"), backtracks=1)
    calls = steps(NO_TRACE | {"integrations": (Integration(code="x", status=500),)})
    assert calls == TrialProcess(steps=1, tools=1, calls=1, failed_calls=1)
    # It may have run whatever seems to be missed; what was seen stays seen.
    ran_a = {"workflows": ("A",), "integrations": (Integration(code="i"),)}
    result = process.of_turns(turns_of(ran_a, {"workflows": None, "integrations": ()}), ["A", "B"])
    assert (result.process.begun, result.process.missed, result.process.overhead) == (None, None, None)
    assert (result.process.calls, result.process.steps) == (1, 1)
    assert (result.fired.workflows, result.fired.in_part) == (("A",), (LogicKind.WORKFLOW,))
    assert process.of_turns(turns_of(ran_a, NO_TRACE), ["A", "B"]).process is None


def test_fired_logic_is_listed_once_in_order_of_first_use_without_empty_parameters():
    """A parameter fires with a value, be it one that is not told; an empty one did not."""
    turns = turns_of(
        {"workflows": ("B", "A"), "params": {"x": "undefined", "y": 0}, "rules": ("r2", "r1")},
        {"workflows": ("A",), "params": {"y": 1, "z": [1]}, "named_params": ("secret",)},
        {"rules": ("r1",), "integrations": (Integration(code="i"), Integration(code="i"))},
    )
    measures = process.of_turns(turns)
    assert measures.fired == Fired(
        workflows=("B", "A"), parameters=("y", "z", "secret"), rules=("r2", "r1"), integrations=("i",)
    )


def test_step_names_are_capped_and_equal_measures_are_shared():
    names = tuple(f"W{number}" for number in range(1_500))
    result = process.of_turns(turns_of(ran(*names)))
    assert (result.process.steps, len(result.process.begun)) == (1_500, 1_000)
    assert len(result.fired.workflows) == 1_000
    one, other = (process.of_turns(turns_of(ran("A", order=number))) for number in (1, 2))
    assert (one.process is other.process, one.fired is other.fired) == (True, True)


def test_missed_and_overhead_are_measured_against_the_current_optimal_workflows():
    """Those count as ran in their order; calls of integrations are no part of either."""
    for best, workflows, missed, overhead in (
        *[("AB", "AB", 0, 0.0), ("AB", "AXB", 0, 0.5), ("AB", "BA", 1, 0.0), ("AB", "A", 1, -0.5)],
        *[("AB", "", 2, -1.0), ("ABA", "ABA", 0, 0.0), ("A", "BABA", 0, 3.0), ("ABC", "CACB", 1, 1 / 3)],
    ):
        optimal = list(best)
        measures = process.of_turns(turns_of(*map(ran, workflows), called("x")), optimal).process
        assert (measures.missed, measures.overhead) == (missed, overhead)
        plain = process.of_turns(turns_of(*map(ran, workflows), called("x"))).process
        assert (plain.missed, plain.overhead, process.with_optimal(plain, optimal)) == (None, None, measures)
        assert process.with_optimal(measures, None) == plain
        untold = process.of_turns(turns_of(NO_TRACE | {"integrations": ()}), optimal).process
        assert (untold.missed, untold.overhead) == (None, None)
    # They may have changed since the trial ended; if not, the trial is the same object.
    trial = build.trial_result(process=process.of_turns(turns_of(ran("A")), ["A"]).process)
    assert process.compared(trial, ["A"]) is trial
    assert process.compared(trial, ["A", "B"]).process.missed == 1
    assert process.compared(trial, None).process.overhead is None
    assert process.compared(build.trial_result(), ["A"]).process is None


def trial(*replies: dict, **fields):
    turns = turns_of(*replies)
    measures = process.of_turns(turns, fields.pop("optimal", None))
    return build.trial_result(turns=turns, process=measures.process, fired=measures.fired, **fields)


def numbers_of(summary: ProcessSummary) -> dict:
    """The numbers that are known."""
    return {name: value for name, value in asdict(summary).items() if value is not None}


def test_summary_of_trials_has_rates_of_all_steps_and_means_of_traced_trials():
    failed = (build.finding("failed"),)
    trials = [
        trial(ran("A", a=1), called("x", ("y", 500), a=1), optimal=["A"]),
        trial(ran("A"), ran("B"), ran("A"), optimal=["A"], findings=failed, times=Times(agent=2, judge=1)),
        trial(NO_TRACE, status="failed", times=Times(agent=1, user=0.5, other=4)),
    ]
    result = process.summary(trials, 5, ONLINE)
    rates = {"completion_rate": 2 / 5, "success_rate": 1 / 5, "redundancy_rate": 1 / 6, "failure_rate": 1 / 2}
    means = {
        "steps_per_trial": 3.0,
        "backtracks_per_trial": 0.5,
        "overhead": 1.0,
        "first_reply_seconds": 1.25,
    }
    times = {"agent": 3.0, "user": 0.5, "judge": 1.0, "other": 4.0}
    counts = {"traced_trials": 2, "calls": 2, "missed": 0, "times": times}
    assert numbers_of(result) == rates | means | counts


def test_process_summary_omits_unknown_rates_and_errored_trials_from_means():
    assert numbers_of(process.summary([], 3, ONLINE)) == {"traced_trials": 0}
    untold = process.summary([trial(NO_TRACE)], 1, ONLINE)
    rates = {"completion_rate": 1.0, "success_rate": 1.0}
    assert numbers_of(untold) == rates | {"traced_trials": 0, "first_reply_seconds": 1.25}
    # What it did not do it may not have come to; what it repeated, and what failed, it did.
    cut = trial(called("x", ("x", 500), a=1), status="failed", optimal=["A"])
    result = process.summary([trial(ran("A"), ran("B"), ran("C"), optimal=["A"]), cut], 2, ONLINE)
    assert (result.steps_per_trial, result.overhead, result.missed) == (3.0, 2.0, 0)
    assert (result.redundancy_rate, result.calls, result.failure_rate) == (1 / 5, 2, 1 / 2)
    alone = process.summary([cut], 1, ONLINE)
    assert (alone.steps_per_trial, alone.backtracks_per_trial, alone.overhead, alone.missed) == (None,) * 4
    wanted = (build.finding(strict="escalated_due_to_error"),)
    ended = [trial(ran("A"), status="agent_error", findings=wanted), trial(ran("A"), status="agent_error")]
    result = process.summary(ended, 2, ONLINE)
    assert (result.completion_rate, result.success_rate) == (0.5, 0.5)


def test_cost_adjusted_score_loses_twenty_points_per_dollar_of_a_trial():
    """At most 40; never below 0; unknown without a cost, a trial or a score."""
    nothing = process.summary([], 0, ONLINE)
    for each, adjusted in [(0.0, 80.0), (0.5, 70.0), (1.0, 60.0), (2.0, 40.0), (9.0, 40.0)]:
        usage = Usage(calls=4, tokens=Tokens(), cost_usd=each * 4)
        result = process.of_run(nothing, 80.0, usage, 4)
        assert (result.cost_usd_per_trial, result.cost_adjusted_score) == (each, adjusted)
    assert process.of_run(nothing, 80.0, Usage(), 4) == nothing
    assert process.of_run(nothing, 80.0, Usage(cost_usd=1), 0) == nothing
    assert process.of_run(nothing, None, Usage(cost_usd=4), 4).cost_adjusted_score is None
    assert process.of_run(nothing, 10.0, Usage(cost_usd=8), 4).cost_adjusted_score == 0


names = st.lists(st.sampled_from(["A", "B", "C"]), max_size=4).map(tuple)
texts, numbers = st.text(max_size=2), st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
statuses = st.none() | st.integers(-1, 10**20)
calls = st.builds(Integration, code=st.sampled_from("xy"), status=statuses, error=st.none() | texts)
turns = st.builds(
    partial(Turn, user="u", user_source=UserSource.FIXED, agent="a"),
    index=st.integers(1, 9),
    latency_seconds=st.floats(0, 1e9),
    workflows=st.none() | names,
    params=st.none() | st.dictionaries(texts, values, max_size=3),
    named_params=names,
    rules=st.none() | names,
    integrations=st.none() | st.lists(calls, max_size=3).map(tuple),
)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(st.lists(st.lists(turns, max_size=6), max_size=3), st.none() | names.filter(bool), st.integers(0, 2))
def test_process_measures_of_arbitrary_conversations_are_consistent(conversations, optimal, missing):
    """Shares are shares, a part is no more than its whole, and nothing is a number that is none."""
    trials = []
    for result in conversations:
        measures = process.of_turns(result, optimal)
        trials.append(build.trial_result(turns=tuple(result), process=measures.process, fired=measures.fired))
        if steps := measures.process:
            assert steps.tools <= steps.steps
            assert (steps.repeated or 0) <= steps.steps
            assert (steps.failed_calls or 0) <= (steps.calls or 0) <= steps.steps
            assert (steps.backtracks or 0) <= len(steps.begun or ())
            assert 0 <= (steps.missed or 0) <= len(optimal or ())
            assert steps.overhead is None or steps.overhead >= -1
        if measures.process:
            assert measures.fired
    whole = process.summary(trials, len(trials) + missing, ONLINE)
    numbers = numbers_of(replace(whole, times=None)).values()
    assert all(math.isfinite(number) for number in numbers)
    for share in (whole.completion_rate, whole.success_rate, whole.redundancy_rate, whole.failure_rate):
        assert share is None or 0 <= share <= 1
