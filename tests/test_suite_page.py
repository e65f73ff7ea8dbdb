"""docs/writing-a-suite.md and docs/import.md: their examples run, their tables match the code."""

import json
from itertools import product

import pytest
from doc_pages import blocks, code, page, table

from ci_evals.domain.checks.evaluation import PASS_AT, Graded
from ci_evals.domain.verdict import DimensionGrade, Grade
from ci_evals.extensions.importers.formats import IMPORTERS
from ci_evals.extensions.importers.imported import suite_text
from ci_evals.extensions.importers.table import COLUMNS, USER_INFO
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load

PAGE = page("writing-a-suite.md")
IMPORT = page("import.md")
VALUES = {
    "latency": {"threshold": 1000},
    "similar": {"value": "a"},
    "is-refusal": {},
    "is-json": {"value": None},
    "trajectory:tool-args-match": {"value": {"name": "a", "args": {"b": 1}}},
    "trajectory:tool-sequence": {"value": ["a", "b"]},
    "trajectory:step-count": {"value": {"type": "tool", "max": 3}},
}


@pytest.mark.parametrize("example", blocks("yaml", PAGE))
def test_documented_suites_have_no_weaknesses(example):
    assert [str(problem) for problem in weaknesses(load(example, "page.yaml", Reading()))] == []


def test_documented_csv_is_imported_and_every_column_is_listed():
    (example,) = blocks("csv", IMPORT)
    text = suite_text(IMPORTERS["csv"].read(example, "t.csv"), "csv", "t.csv", "s.yaml")
    suite = load(text, "s.yaml", Reading()).suite
    assert [test.name for test in suite.tests] == ["Opening hours", "Closed on Sundays"]
    assert [len(test.evaluations) for test in suite.tests] == [2, 1]
    named = {name for cell, _ in table("column", IMPORT) for name in code(cell).split("`, `")}
    assert named == {*COLUMNS, f"{USER_INFO}NAME"}


ASSERTIONS = [
    (name, code(to)) for cell, to in table("assertion", IMPORT) for name in code(cell).split("`, `")
]


@pytest.mark.parametrize(("assertion", "evaluation"), ASSERTIONS)
def test_promptfoo_assertion_becomes_documented_check(assertion, evaluation):
    given = {"type": assertion, "value": "a"} | VALUES.get(assertion.removeprefix("not-"), {})
    config = json.dumps({"tests": [{"vars": {"question": "Hi"}, "assert": [given]}]})
    (test,) = IMPORTERS["promptfoo"].read(config, "c.json").tests
    assert [item.get("strict", "judged") for item in test["evaluations"]] == [evaluation]


# The coding rubric of the lecture on the evaluation of agents: weight, and what the levels are worth.
CODING = {
    "correctness": (0.40, [1.0, 0.75, 0.5, 0.25, 0.0]),
    "code quality": (0.20, [1.0, 0.75, 0.5, 0.25, 0.0]),
    "efficiency": (0.15, [1.0, 0.75, 0.5, 0.25, 0.0]),
    "error handling": (0.15, [1.0, 0.5, 0.0]),
    "process": (0.10, [1.0, 0.5, 0.0]),
}


def coding() -> Graded:
    (example,) = [block for block in blocks("yaml", PAGE) if "dimensions" in block]
    suite = load(example, "page.yaml", Reading()).suite
    (graded,) = [item for item in suite.tests[0].evaluations if isinstance(item, Graded)]
    return graded


def test_suite_page_rubric_has_values_of_lecture_and_lists_every_key():
    dimensions = coding().whole_rubric.dimensions
    result = {one.name: (one.weight, [level.score for level in one.levels]) for one in dimensions}
    assert result == CODING
    rows = table("key", PAGE)
    own = Graded.model_fields.keys() - {"criterion", "weight", "category", "aui_logic"}
    assert {code(cell) for cell, _ in rows} == {Graded.model_fields[name].alias for name in own}
    assert f"{PASS_AT:g} by default" in rows[-1][1]


def rubric_evaluate(scores: dict[str, float]) -> float:
    """The lecture's formula."""
    total = sum(score * CODING[name][0] for name, score in scores.items())
    return total / sum(CODING[name][0] for name in scores)


def test_grades_of_documented_rubric_match_formula_of_lecture():
    """For every seventh combination of its levels."""
    rubric = coding().whole_rubric
    for chosen in list(product(*(one.levels for one in rubric.dimensions)))[::7]:
        levels = tuple(
            DimensionGrade(name=one.name, level=level.name, score=level.score, weight=one.weight, reason="")
            for one, level in zip(rubric.dimensions, chosen, strict=True)
        )
        wanted = rubric_evaluate({one.name: one.score for one in levels})
        assert abs(Grade.of(rubric.pass_at, levels).score - wanted) < 1e-12
