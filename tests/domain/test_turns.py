"""The turns of a trial take little memory and are what they were, however they are held."""

import copy
import json
import pickle
import tracemalloc
from dataclasses import replace

import builders as build
import pytest
from each_row import each_row

from ci_evals.domain.results.trial import Attempt, TrialResult
from ci_evals.domain.transcript import EndState, Integration, Turn, Turns
from ci_evals.support import dataclass_json

NESTED = [[]]
for _ in range(230):
    NESTED = [NESTED]

EVIDENCE = build.turn(
    params={"order": 7, "list": [1, None, 0.1]},
    integrations=(Integration(code="orders", status=404),),
    input_tokens=12,
    trace={"big": 2**70, "small": 1e-9, "empty": {}},
    raw=[True, "漢"],
)
KINDS = {
    "none": (),
    "plain": (build.turn(1), build.turn(2, agent="Done.", workflows=("REFUND",))),
    "with evidence": (EVIDENCE,),
    "half a surrogate pair": (build.turn(1, agent="half \ud83d of one", trace={"\udc00": "\ud83d"}),),
    "nested deeply": (build.turn(1, trace=NESTED),),
}


def through_json(trial: TrialResult) -> TrialResult:
    """The trial as it is read back from a file."""
    return dataclass_json.from_value(TrialResult, json.loads(json.dumps(dataclass_json.to_plain(trial))))


@each_row("turns", KINDS.values(), ids=KINDS)
def test_turns_are_equal_after_packing_copying_pickling_and_json(turns: tuple[Turn, ...]):
    made = Turns(turns)
    trial = build.trial_result(turns=turns)
    kept = [
        made, made.packed(), made.packed().packed(), pickle.loads(pickle.dumps(made.packed())),
        copy.deepcopy(made.packed()), trial.turns, trial.packed().turns, through_json(trial).turns,
        through_json(trial.packed()).turns,
    ]  # fmt: skip
    for one in kept:
        assert tuple(one) == turns
        assert tuple(reversed(one)) == turns[::-1]
        assert (len(one), one[:1], one[-1:]) == (len(turns), turns[:1], turns[-1:])
        assert list(one.latencies) == [turn.latency_seconds for turn in turns]
        assert one == made
        assert one != Turns([*turns, build.turn(9)])
    assert through_json(trial) == trial == trial.packed()
    louder = made.packed().changed(lambda turn: turn.model_copy(update={"user": "HELP"}))
    assert [turn.user for turn in louder] == ["HELP"] * len(turns)
    assert louder.packed() is louder
    assert tuple(made.packed()) == turns


@each_row("turns", KINDS.values(), ids=KINDS)
def test_removing_traces_keeps_all_other_turn_data(turns: tuple[Turn, ...]):
    odd = {"trace": 1, "raw": ['\n    "raw": '], "inner": {"trace": {"raw": None}}}
    turns = (*turns, build.turn(8, trace=odd, params=odd, raw=odd, agent='\n    "trace": null'))
    bare = tuple(turn.model_copy(update={"trace": None}) for turn in turns)
    assert Turns(turns).without_traces() == bare
    assert Turns(turns).packed().without_traces() == bare
    words = [(turn.agent, turn.index, turn.user) for turn in turns]
    assert [*Turns(turns).said()] == [*Turns(turns).packed().said()] == words


def test_packed_turns_compare_by_content_and_count_only_reported_tokens():
    turns = KINDS["plain"]
    assert Turns(turns).packed() != Turns([turns[0], build.turn(2)])
    assert Turns(turns) != turns
    assert repr(Turns(turns).packed()) == f"Turns({list(turns)!r})"
    turns = [build.turn(1, input_tokens=3), build.turn(2), build.turn(3, output_tokens=0)]
    assert Turns(turns).packed().tokens == ((3, None), (None, 0))


def test_packed_trial_keeps_all_its_data():
    trial = build.trial_result(attempts=(Attempt(status=EndState.FAILED, error="x"),))
    assert dataclass_json.to_value(trial.packed()) == dataclass_json.to_value(trial)
    copied = replace(trial.packed(), index=7)
    assert dataclass_json.to_value(copied) == dataclass_json.to_value(trial) | {"index": 7}


def test_invalid_turn_of_a_results_file_is_refused_with_its_path():
    data = dataclass_json.to_value(build.trial_result())
    data["turns"][0]["latencySeconds"] = -1
    with pytest.raises(ValueError, match=r"turns\.0\.latencySeconds"):
        dataclass_json.from_value(TrialResult, data)


def test_packed_trial_takes_at_most_ten_kilobytes():
    """A conversation of seven replies with their traces takes 130 unpacked."""

    def trial(number: int) -> TrialResult:
        trace = {"steps": [{"type": f"step-{n}", "detail": {"order": f"{number}-{n}"}} for n in range(40)]}
        turns = (build.turn(n, agent=f"{number}: {'a word ' * 30}", trace=trace) for n in range(1, 8))
        result = (build.finding(reason=f"{number}-{n} {'because ' * 20}") for n in range(5))
        return build.trial_result(number, turns=tuple(turns), findings=tuple(result))

    trial(0).packed()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = [trial(number).packed() for number in range(20)]
        each = (tracemalloc.get_traced_memory()[0] - before) / len(held)
    finally:
        tracemalloc.stop()
    assert each < 10_000, each
