"""A suite crosses processes and machines: whatever it may hold is read again as it was written."""

import json
import pickle

from each_row import each_row
from every_evaluation import CONDITIONS, EVALUATIONS
from hypothesis import given
from hypothesis import strategies as st

from ci_evals.domain.checks.evaluation import STRICT_CHECKS, ClaimsBacked, Graded, Judged
from ci_evals.domain.checks.matcher import KEYS
from ci_evals.domain.suite import Suite, Test
from ci_evals.support.redaction import Redactor


def make_test(*evaluations, **fields):
    evaluations = [{"criterion": "c", **one} for one in evaluations]
    turns = [{"user": "Hi"}, {"assistant": "Hello"}, {"user": "A", "expectation": "B"}, {"user": "auto"}]
    test = {"name": "t", "guidelines": "g", "turns": turns, "evaluations": evaluations}
    return Test.model_validate(test | fields)


def as_json(value, **options):
    return type(value).model_validate(json.loads(json.dumps(value.model_dump(mode="json", **options))))


ROUND_TRIPS = {
    "JSON by alias": lambda value: as_json(value, by_alias=True),
    "JSON by name": as_json,
    "JSON of what was given": lambda value: as_json(value, by_alias=True, exclude_unset=True),
    "Python": lambda value: type(value).model_validate(value.model_dump()),
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "redaction": Redactor(keys=["key-0123456789"]).model,
}
"""The ways in which a test crosses to another process, or is copied."""


@each_row("way", ROUND_TRIPS.values(), ids=ROUND_TRIPS)
@each_row("written", EVALUATIONS.values(), ids=EVALUATIONS)
def test_every_evaluation_survives_every_round_trip(written, way):
    test = make_test(written)
    again = way(test)
    assert again == test
    assert _conditions(again) == _conditions(test)
    assert way(again).model_dump(by_alias=True) == test.model_dump(by_alias=True)


def _conditions(test):
    """The conditions that were given, which equal values may still differ in."""
    result = []
    for evaluation in test.evaluations:
        calls = [evaluation, *getattr(evaluation, "tools", ())]
        matchers = [one for call in calls for one in (getattr(call, "args", None) or {}).values()]
        matchers += [evaluation.param_value] if hasattr(evaluation, "param_value") else []
        matchers += [evaluation] if hasattr(evaluation, "probe") else []
        result += [{name: getattr(matcher, name) for name in matcher.conditions} for matcher in matchers]
    return result


def test_round_trip_examples_cover_every_evaluation_and_condition():
    kinds = {type(evaluation) for evaluation in make_test(*EVALUATIONS.values()).evaluations}
    assert kinds == {Judged, Graded, ClaimsBacked, *STRICT_CHECKS}
    assert {key for form in CONDITIONS.values() for key in form} >= set(KEYS)


NAMES = st.sampled_from([*KEYS, "one_of", "equal", "a"]) | st.text(max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_any_value_of_a_condition_survives_every_round_trip(value, other):
    """Keys of an object to be equal to may look like conditions."""
    matcher = {"equals": value, "oneOf": [other, value], "contains": other}
    state = {"strict": "state", "probe": "p", **matcher}
    forms = [{"equals": value}, {"oneOf": [value, other]}, {"contains": value}, matcher]
    calls = [{"strict": "tool_called", "toolName": "f", "args": {"a": form}} for form in forms]
    test = make_test(*calls, state)
    for way in ROUND_TRIPS.values():
        assert _conditions(way(test)) == _conditions(test)


def test_whole_suite_survives_every_round_trip():
    step = {"http": {"method": "POST", "url": "https://shop.example/{{trial}}", "json": {"oneOf": 1}}}
    test = make_test(
        *EVALUATIONS.values(),
        userInfo={"one_of": [1]},
        probes={"order": step},
        optimalTools=["a"],
        setup=[{"python": "checks:set_up"}],
        quarantine={"reason": "r", "until": "2099-01-01"},
        when={"paths": ["src/**"]},
    )
    suite = Suite(name="s", agent_id="a", tests=(test,), setup=[step], adapter_options={"min_x": 1})
    for name, way in ROUND_TRIPS.items():
        assert way(suite) == suite, name
