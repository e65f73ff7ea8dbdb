import json
import re
from importlib.resources import files
from typing import get_args

import builders as build
import jsonschema
import pytest
from each_row import each_row

from ci_evals.domain.checks.evaluation import Graded, judged
from ci_evals.domain.checks.rubric import BUILT_IN_FILE, BuiltIn
from ci_evals.domain.errors import SuiteError
from ci_evals.domain.suite import suite_schema
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import LoadedSuite, load

LEVELS = [{"score": 1, "name": "good"}, {"score": 0.5, "name": "fair"}, {"score": 0, "name": "bad"}]


def suite_with(**fields) -> dict:
    evaluation = {"criterion": "The answer is well made"} | fields
    test = {"name": "one", "guidelines": "g", "turns": [{"user": "hi"}], "evaluations": [evaluation]}
    return {"name": "S", "agentId": "a", "tests": [test]}


def read(**fields) -> Graded:
    evaluation = loaded(suite_with(**fields)).suite.tests[0].evaluations[0]
    assert isinstance(evaluation, Graded)
    return evaluation


def loaded(suite: dict) -> LoadedSuite:
    return load(json.dumps(suite), "s.json", Reading())


def test_built_in_dimensions_have_descriptions_and_levels():
    names = ["correctness", "completeness", "clarity", "usefulness", "reasoning"]
    assert [*json.loads(files("ci_evals").joinpath(BUILT_IN_FILE).read_text())] == [*get_args(BuiltIn)]
    dimensions = read(dimensions=names).whole_rubric.dimensions
    assert [one.name for one in dimensions if one.description and len(one.levels) == 5] == names
    assert [one.name for one in dimensions if one.steps] == ["reasoning"]
    assert all(level.description for one in dimensions for level in one.levels)
    (clarity,) = read(dimensions=["clarity"], rubric=LEVELS).whole_rubric.dimensions
    assert [level.name for level in clarity.levels] == ["good", "fair", "bad"]
    assert clarity.description == dimensions[2].description


def test_levels_without_dimensions_are_one_dimension():
    graded = read(rubric=LEVELS[::-1])
    (whole,) = graded.whole_rubric.dimensions
    assert [level.name for level in whole.levels] == ["good", "fair", "bad"]
    assert (graded.pass_at, graded.whole_rubric.pass_at, whole.steps) == (0.7, 0.7, False)


def test_own_dimension_and_changed_built_in_dimensions_are_read():
    own = {"name": "tact", "description": "Is it kind?", "weight": 0.15, "rubric": LEVELS[1:], "steps": True}
    changed = {"name": "clarity", "weight": 3}, {"name": "reasoning", "steps": False}
    tact, clarity, reasoning = read(dimensions=[own, *changed], passAt=0.5).whole_rubric.dimensions
    assert (tact.description, tact.weight, tact.steps) == ("Is it kind?", 0.15, True)
    assert [level.score for level in tact.levels] == [0.5, 0]
    assert (clarity.weight, len(clarity.levels), reasoning.steps) == (3, 5, False)


def test_criterion_is_rebuilt_from_saved_finding_and_rubric():
    rubric = read(dimensions=["reasoning", {"name": "tact", "rubric": LEVELS}], passAt=0.9).whole_rubric
    finding = build.finding(kind="judged", criterion="The answer is well made")
    again = judged(finding, rubric)
    assert isinstance(again, Graded)
    assert again.whole_rubric == rubric
    assert not isinstance(judged(finding, None), Graded)


NO_LEVELS = "needs at least two levels with different scores"


@each_row(("fields", "text"), [
    ({"rubric": LEVELS[:1]}, f"rubric: {NO_LEVELS}"),
    ({"rubric": []}, "rubric: needs at least one item"),
    ({"rubric": [{"score": 1, "name": "a"}, {"score": 1, "name": "b"}]}, f"rubric: {NO_LEVELS}"),
    ({"rubric": None}, "evaluations[0]: needs a 'rubric', 'dimensions' or both"),
    ({"rubric": {"score": 1}}, 'rubric: must be a list, found {"score": 1}'),
    ({"rubric": [*LEVELS, {"score": 0.2, "name": " Good"}]},
     "rubric[3].name: the name ' Good' is already used by item [0]"),
    ({"rubric": [*LEVELS, {"score": 0.2, "name": "Cannot tell"}]},
     "rubric[3].name: 'Cannot tell' is what a judge answers if it cannot tell a level"),
    ({"rubric": [*LEVELS, {"score": 1.5, "name": "x"}]},
     "rubric[3].score: 1.5 is not less than or equal to 1"),
    ({"rubric": [*LEVELS, {"score": "1", "name": "x"}]}, 'rubric[3].score: must be a number, found "1"'),
    ({"rubric": [*LEVELS, {"name": "x"}]}, "rubric[3].score: is missing"),
    ({"rubric": [*LEVELS, {"score": 1, "name": "x", "descripton": "y"}]},
     "rubric[3].descripton: unknown key; did you mean 'description'?"),
    ({"dimensions": ["corectness"]},
     "dimensions[0]: 'corectness' is not a built-in dimension; did you mean 'correctness'?"),
    ({"dimensions": ["tact"]}, "your own dimension is an object with 'name' and 'rubric'"),
    ({"dimensions": [3]}, "dimensions[0]: must be an object, found 3"),
    ({"dimensions": []}, "dimensions: needs at least one item"),
    ({"dimensions": [{"name": "tact"}]}, "dimensions[0]: 'tact' has no levels: give it, or the criterion"),
    ({"dimensions": ["clarity", {"name": "Clarity"}]},
     "dimensions[1].name: the name 'Clarity' is already used by item [0]"),
    ({"dimensions": [{"name": "clarity", "weight": 0}]}, "dimensions: all weights are 0"),
    ({"dimensions": [{"name": "clarity", "weigth": 1}]},
     "dimensions[0].weigth: unknown key; did you mean 'weight'?"),
    ({"dimensions": [{"name": "tact", "rubric": LEVELS[:1]}]}, f"dimensions[0].rubric: {NO_LEVELS}"),
    ({"rubric": LEVELS, "passAt": 70}, "passAt: 70 is not less than or equal to 1"),
    ({"rubric": LEVELS, "passat": 0.7}, "passat: unknown key; did you mean 'passAt'?"),
    ({"rubrics": LEVELS}, "rubrics: unknown key; did you mean 'rubric'?"),
    ({"passAt": 0.7}, "passAt: a criterion without 'strict' has no such key; it belongs to a criterion with"),
    ({"rubric": LEVELS, "strict": "tool_used", "toolName": "T"},
     "rubric: tool_used has no such key; it belongs to a criterion with a rubric"),
    ({"rubric": LEVELS, "toolName": "T"}, "toolName: a criterion with a rubric has no such key"),
])  # fmt: skip
def test_invalid_rubric_is_refused_at_its_key(fields, text):
    with pytest.raises(SuiteError) as refused:
        loaded(suite_with(**fields))
    (problem,) = refused.value.problems
    assert text in f"{problem.path}: {problem.message}"


def test_invalid_rubric_level_is_located_in_the_file():
    text = """name: S
agentId: a
tests:
  - name: one
    guidelines: g
    turns: [{user: hi}]
    evaluations:
      - criterion: c
        rubric:
          - {score: 1, name: good}
          - {score: 0, name: good}
"""
    with pytest.raises(SuiteError, match=re.escape("s.yaml:11:30: tests[0].evaluations[0].rubric[1].name: ")):
        load(text, "s.yaml", Reading())


def test_schema_lists_rubric_fields_and_built_in_dimensions():
    definitions = suite_schema()["$defs"]
    assert {"rubric", "dimensions", "passAt"} <= definitions["Graded"]["properties"].keys()
    assert definitions["Graded"]["anyOf"] == [{"required": ["rubric"]}, {"required": ["dimensions"]}]
    assert "correctness" in json.dumps(definitions["Graded"]["properties"]["dimensions"])
    assert definitions["Level"]["required"] == ["score", "name"]


def test_rubrics_allow_comment_keys():
    level = {"score": 0.2, "name": "weak", "x-why": "asked for"}
    rubric = [*LEVELS, level]
    graded = read(rubric=rubric, dimensions=[{"name": "tact", "x-owner": "us", "rubric": rubric}])
    assert len(graded.whole_rubric.dimensions[0].levels) == 4


def test_plain_criterion_is_written_with_its_original_fields():
    """So digests of tests without rubrics stay."""
    plain = loaded(suite_with()).suite.tests[0].evaluations[0]
    assert plain.model_dump().keys() == {"criterion", "weight", "category", "aui_logic"}


@each_row(("fields", "valid"), [
    ({}, True),
    ({"rubric": LEVELS, "passAt": 0.5, "x-why": "asked for"}, True),
    ({"dimensions": ["clarity", {"name": "tact", "rubric": LEVELS}]}, True),
    ({"passAt": 0.5}, False),
    ({"dimensions": ["clairty"]}, False),
    ({"dimensions": [{"rubric": LEVELS}]}, False),
    ({"rubric": [*LEVELS, {"score": 2, "name": "x"}]}, False),
    ({"rubric": LEVELS, "strict": "escalated"}, False),
])  # fmt: skip
def test_schema_accepts_valid_and_refuses_invalid_rubrics(fields, valid):
    assert jsonschema.Draft202012Validator(suite_schema()).is_valid(suite_with(**fields)) is valid
