"""Matchers: how a suite writes them, and what meets them."""

import pytest
from each_row import each_row
from pydantic import TypeAdapter, ValidationError

from ci_evals.domain.checks.matcher import MatcherField
from ci_evals.domain.checks.matching import ABSENT, args_match, described, meets

MATCHER = TypeAdapter(MatcherField)
NUMERIC = {"match": "numeric", "expected": "42"}


def meets_matcher(value, written) -> bool | None:
    return meets(value, MATCHER.validate_python(written))


@each_row(("written", "meeting", "others"), [
    (42, [42, 42.0, "42"], [41, "forty-two", None, ABSENT, [42]]),
    *[("a", ["a"], ["A", "a ", ABSENT]), (None, [None], [0, "", ABSENT])],
    (True, [True, "true"], [1, False]),
    ({"id": 1, "tags": ["x"]}, [{"tags": ["x"], "id": 1.0}], [{"id": 1}, {"id": True, "tags": ["x"]}]),
    *[({"equals": {"min": 3}}, [{"min": 3}], [3]), ({}, [{}], [[], None])],
    ({"contains": "refund"}, ["a refund please", ["refund"]], ["Refund", ["a refund"], 5, ABSENT]),
    ({"contains": {"id": 1}}, [{"id": 1, "b": 2}], [{"id": 2}, {}, "id"]),
    ({"contains": 4}, [[3, 4.0], "a 42"], [[3], 4]),
    ({"regex": "^A-[0-9]+$"}, ["A-12"], ["A-", 12, ABSENT]),
    ({"regex": "^12$"}, [12, "12"], [123]),
    ({"regex": "\\S"}, ["a", 0, False], [None, [], ["a"], {"a": 1}, ABSENT]),
    ({"min": 40}, [40, 40.5, "41"], [39, "many", True, None, ABSENT]),
    ({"max": 40}, [40, -1], [41, False]),
    ({"min": 1, "max": 2}, [1, 1.5, 2], [0, 3]),
    ({"oneOf": ["a", 2]}, ["a", 2, "2"], ["b", ABSENT]),
    ({"exists": True}, [0, "", False, []], [None, ABSENT]),
    ({"exists": False}, [None, ABSENT], [0, ""]),
    ({"answer": "42"}, ["$42", 42], ["43", None, [42], ABSENT]),
    ({"answer": NUMERIC}, [42], [[9999, 42], {"value": 9999, "currency": 42}]),
    ({"answer": NUMERIC | {"tolerance": 1}}, ["about 43"], ["45"]),
])  # fmt: skip
def test_matcher_accepts_matching_values_and_rejects_others(written, meeting, others):
    assert [meets_matcher(value, written) for value in meeting] == [True] * len(meeting)
    assert [meets_matcher(value, written) for value in others] == [False] * len(others)


@pytest.mark.slow  # it computes
def test_catastrophic_pattern_is_undecided_unless_another_condition_fails():
    endless = {"regex": "^(a|aa)+$"}
    assert meets_matcher("a" * 60 + "!", endless) is None
    assert meets_matcher("a" * 60 + "!", endless | {"equals": "no"}) is False


@each_row(("written", "place", "message"), [
    ({"equal": 1}, (), "looks like 'equals'"),
    ({"one_of": [1]}, (), "looks like 'oneOf'"),
    ({"pattern": "x"}, (), "looks like 'regex'"),
    ({"contians": "x"}, (), "looks like 'contains'"),
    ({"regx": "x"}, (), "looks like 'regex'"),
    ({"min": 1, "maximum": 2}, ("maximum",), "Extra inputs"),
    ({"regex": "("}, ("regex",), "is not a regular expression"),
    ({"min": "1"}, ("min",), "valid number"),
    ({"min": 2, "max": 1}, (), "'min' is above 'max'"),
    ({"oneOf": []}, ("oneOf",), "at least 1 item"),
    ({"regex": None}, (), "'regex' is null"),
    ({"min": None, "max": 4}, (), "'min' is null"),
    ({"oneOf": None}, (), "'oneOf' is null"),
    ({"exists": None}, (), "'exists' is null"),
    ({"exists": False, "equals": 1}, (), "'exists' is false"),
    ({"answer": {"match": "semantic", "expected": "x"}}, ("answer",), "no model is asked"),
    ({"answer": {"match": "numeric", "expected": "x"}}, ("answer", "expected"), "is not a number"),
])  # fmt: skip
def test_invalid_matcher_is_refused_at_its_key(written, place, message):
    with pytest.raises(ValidationError) as caught:
        MATCHER.validate_python(written, strict=True)
    (error,) = caught.value.errors()
    assert error["loc"] == place
    assert message in error["msg"]


def test_matcher_is_serialized_as_written_and_described_in_words():
    """A test's digest depends on how it is serialized."""
    for written in (42, {"min": 1}, [1], {"regex": "a", "exists": True}, {"a": 1}):
        assert MATCHER.dump_python(MATCHER.validate_python(written)) == written
    assert described(MATCHER.validate_python({"min": 1, "max": 2.5})) == "at least 1 and at most 2.5"
    assert described(MATCHER.validate_python("a")) == '"a"'


def test_other_arguments_are_allowed_unless_exact():
    wanted = {"amount": MATCHER.validate_python(42), "coupon": MATCHER.validate_python({"exists": False})}
    assert args_match({"amount": 42, "note": "x"}, wanted) is True
    assert args_match({"amount": 42, "note": "x"}, wanted, exact=True) is False
    assert args_match({"amount": 42}, wanted, exact=True) is True
    assert args_match({"amount": 42, "coupon": "A"}, wanted) is False
    assert args_match({}, wanted) is False
