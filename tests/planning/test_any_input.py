"""Whatever the text: a suite, or a `SuiteError` with a place."""

import copy
import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from property_examples import examples

from ci_evals.domain.errors import SuiteError
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.selection import Selection, plan

VALID = {
    "name": "S", "agentId": "a", "apiKey": "key-123456",
    "tests": [
        {
            "name": "one", "guidelines": "g", "userInfo": {"plan": "Pro"},
            "turns": [{"user": "hi", "timeout": 5}],
            "evaluations": [
                {"criterion": "c", "weight": 2, "aui_logic": ["R"]},
                {"criterion": "d", "strict": "contains", "text": "x", "turn": 1},
                {"criterion": "e", "strict": "param_equals", "paramName": "p", "paramValue": {"a": [1]}},
            ],
            "tags": ["t"],
        },
    ],
}  # fmt: skip
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    plain | st.sampled_from(["auto", "${A}", "escalated"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def paths_in(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths_in(inner, (*path, key))


PATHS = [path for path in paths_in(VALID) if path]


def changed(path, value):
    suite = copy.deepcopy(VALID)
    here = suite
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    return suite


def read_and_plan(text: str, file: str) -> None:
    try:
        loaded = load(text, file, Reading(environ={"A": "value-of-a"}))
    except SuiteError as error:
        refused = error
    else:
        plan([loaded], Selection(), 2)
        return
    assert refused.problems
    assert all(p.line >= 1 and p.column >= 1 and p.message for p in refused.problems)


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(st.sampled_from(PATHS), values)
@example(("tests", 0, "userInfo", "plan"), float("inf"))
@example(("tests", 0, "evaluations", 0, "weight"), float("nan"))
@example(("tests", 0, "evaluations", 0, "strict"), {"a": 1})
@example(path=("tests", 0, "evaluations", 1, "turn"), value=True)
@example(path=("maxTurns",), value=10**9)
def test_any_value_at_any_path_is_planned_or_refused_with_a_location(path, value):
    suite = changed(path, value)
    read_and_plan(json.dumps(suite), "s.json")
    read_and_plan(yaml.safe_dump(suite), "s.yaml")


@settings(max_examples=examples(200))
@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
@example("9" * 5000)
@example('{"a": 1e999}')
@example("- 1e999999")
@example("!!python/object:os.system x")
@example("!!binary x")
@example("%TAG ! x\n")
def test_any_text_is_planned_or_refused_with_a_location(text):
    read_and_plan(text, "s.json")
    read_and_plan(text, "s.yaml")
