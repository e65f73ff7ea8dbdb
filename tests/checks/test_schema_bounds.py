"""JSON Schemas: no reply blocks a run, and what bounds them changes no answer."""

import json
from contextlib import suppress

import builders as build
import pytest
from each_row import each_row
from jsonschema import Draft202012Validator
from processor_time import at_most

from ci_evals.domain.checks.strict.json_replies import JsonSchema
from ci_evals.support import json_schema
from ci_evals.support.json_schema_keywords import UnboundedError

MANY = [{"id": number, "name": f"item {number}"} for number in range(60_000)]
FIRST, ENDLESS = {"$ref": "#/$defs/l0"}, {"patternProperties": {"^(a|aa)+$": True}}
CLOSED, INTEGER = {"unevaluatedProperties": False}, {"type": "integer"}


def doubled(keyword, applied=None, levels=40):
    """A schema whose levels apply the next one twice each, from where `applied` refers to the first."""
    definitions = {f"l{n}": {keyword: [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)}
    return (applied or FIRST) | {"$defs": definitions | {f"l{levels}": {"type": "integer"}}}


def nested(keyword, levels=2_000):
    """A schema of so many levels."""
    schema = {"type": "integer"}
    for _ in range(levels):
        schema = {keyword: [schema]}
    return schema


SLOW = {
    "each two items": ({"uniqueItems": True}, MANY),
    "each two items, in vain": ({"uniqueItems": True}, [*MANY, MANY[0]]),
    "all of all": (doubled("allOf"), 1),
    "any of any, in vain": (doubled("anyOf"), "a"),
    "one of one": (doubled("oneOf"), 1),
    "not": (doubled("allOf", {"not": FIRST}), 1),
    "if": (doubled("anyOf", {"if": FIRST, "then": False}), "a"),
    "contains": (doubled("anyOf", {"contains": FIRST}), ["a"] * 100),
    "property names": (doubled("anyOf", {"propertyNames": FIRST}), {"a": 1}),
    "endless recursion": ({"$ref": "#"}, 1),
    "endless recursion of all": ({"allOf": [{"$ref": "#"}]}, 1),
    "endless recursion, denied": ({"not": {"$ref": "#"}}, 1),
    "many levels": (nested("allOf"), 1),
    "a pattern": ({"pattern": "^(a|aa)+$"}, "a" * 60 + "!"),
    "patterns": ({"items": {"pattern": "^(a|aa)+$"}}, ["a" * 60 + "!"] * 100),
    "a pattern of names": ({"patternProperties": {"^(a|aa)+$": False}}, {"a" * 60 + "!": 1}),
    "a pattern of other names": (ENDLESS | {"additionalProperties": True}, {"a" * 60 + "!": 1}),
    "a pattern of names alone": ({"propertyNames": {"pattern": "^(a|aa)+$"}}, {"a" * 60 + "!": 1}),
    "a pattern of unevaluated names": ({"allOf": [ENDLESS]} | CLOSED, {"a" * 60 + "!": 1}),
    "unevaluated items": ({"contains": {"type": "object"}, "unevaluatedItems": False}, MANY),
    "unevaluated names": (
        {"properties": {"a": True}, "unevaluatedProperties": INTEGER},
        {f"name {number}": number for number in range(60_000)},
    ),
    "all constants": ({"items": {"enum": [*range(100_000, 110_000)]}}, [*range(60_000)]),
}
"""Schemas and values that took minutes or for ever, or might."""
UNDECIDED = {"all of all", "any of any, in vain", "not", "endless recursion", "contains", "if"}
UNDECIDED |= {"a pattern", "patterns"}
"""What decides nothing, also where the schema is one that must not be met."""


@pytest.mark.slow  # each up to the limit
@each_row("case", SLOW)
def test_slow_schema_check_ends_within_time_limit(case):
    schema, value = SLOW[case]
    ended = pytest.raises(UnboundedError) if case in UNDECIDED else suppress(UnboundedError)
    with at_most(loops=9000), ended:
        json_schema.violation(schema, value, seconds=0.1)


@pytest.mark.slow  # it takes as long as it may
def test_reply_whose_check_takes_too_long_is_undecided(verdict_on_reply):
    verdict = verdict_on_reply(*SLOW["all of all"])
    reason = "reply 1 could not be checked: it took more than 2 s to check it against the schema"
    assert (verdict.outcome, verdict.reason) == ("undecided", reason)


def test_unique_items_are_checked_in_linear_time(verdict_on_reply):
    assert verdict_on_reply({"uniqueItems": True}, MANY).outcome.value == "passed"
    verdict = verdict_on_reply({"uniqueItems": True}, [*MANY, MANY[5]])
    assert (verdict.outcome.value, len(verdict.reason) < 2_000) == ("failed", True)


@pytest.fixture
def verdict_on_reply():
    """Decides a check of one reply."""

    def decide(schema, value):
        turn = build.turn(1, agent=json.dumps(value))
        transcript = build.transcript("user: a | agent: b").model_copy(update={"turns": (turn,)})
        return JsonSchema(criterion="c", strict="json_schema", schema=schema).decide(transcript)

    return decide


def properties(*required: str, **schemas):
    return {"properties": schemas} | ({"required": [*required]} if required else {})


A, B, NO_OTHERS = properties(a=True), properties(b=True), {"additionalProperties": False}
ONLY_A, ONLY_B = properties("a", a=True), properties("b", b=True)
A_IS_1 = properties("a", a={"const": 1})

NODE = properties(next={"$ref": "#/$defs/node"}, v=INTEGER)
SCHEMAS_AND_VALUES = [
    (
        {"uniqueItems": True},
        [[1, 1.0], [1, True], [0, False], ["1", 1], [[1], [1.0]], [{}, []], [None, None], "aa"],
    ),
    ({"uniqueItems": True}, [[{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
    ({"uniqueItems": False}, [[1, 1]]),
    (A | NO_OTHERS, [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}, [], 1]),
    ({"patternProperties": {"^a": INTEGER}} | NO_OTHERS, [{"ab": 1}, {"ab": "x"}, {"b": 1}]),
    (A | {"additionalProperties": INTEGER}, [{"a": "x", "b": 1}, {"b": "x"}]),
    ({"additionalProperties": True}, [{"a": 1}]),
    ({"pattern": "^a+$"}, ["aa", "b", 1]),
    (A | CLOSED, [{"a": 1}, {"b": 1}, 1]),
    ({"allOf": [A]} | CLOSED, [{"a": 1}, {"b": 1}]),
    ({"anyOf": [A_IS_1, B]} | CLOSED, [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 2}, {"c": 1}]),
    ({"oneOf": [ONLY_A, ONLY_B]} | CLOSED, [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}]),
    (
        {"if": A_IS_1, "then": B, "else": properties(c=True)} | CLOSED,
        [{"a": 1, "b": 1}, {"a": 1, "c": 1}, {"c": 1}, {"b": 1}],
    ),
    ({"$ref": "#/$defs/x", "$defs": {"x": A}} | CLOSED, [{"a": 1}, {"b": 1}]),
    (A | {"dependentSchemas": {"a": B}} | CLOSED, [{"a": 1, "b": 1}, {"b": 1}]),
    ({"patternProperties": {"^x": True}, "unevaluatedProperties": INTEGER}, [{"x": "s", "b": 1}, {"b": "s"}]),
    ({"allOf": [{"additionalProperties": INTEGER}]} | CLOSED, [{"b": 1}, {"b": "s"}]),
    ({"prefixItems": [True], "unevaluatedItems": False}, [[1], [1, 2], {}]),
    (
        {"contains": INTEGER, "minContains": 2, "unevaluatedItems": {"type": "string"}},
        [[1, 2, "a"], [1, "a"], [1, 2, None]],
    ),
    (
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        [{"v": 1, "next": {"v": 2}}, {"v": 1, "next": {"v": "x"}}],
    ),
]
"""Schemas with values, valid and not."""


@each_row(("schema", "values"), SCHEMAS_AND_VALUES, ids=lambda given: json.dumps(given)[:60])
def test_schema_keywords_decide_like_jsonschema_library(schema, values):
    for value in values:
        result = json_schema.violation(schema, value) is None
        assert result is Draft202012Validator(schema).is_valid(value), value
