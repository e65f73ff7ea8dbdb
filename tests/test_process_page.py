"""docs/process.md says what is so: its example is counted, its names are those of the results."""

import json
import re
from dataclasses import fields

import builders as build
import pytest
import yaml
from doc_pages import ROOT, blocks, code, table
from plans import make_plan
from pydantic.alias_generators import to_camel

from ci_evals.domain.results.process import ProcessSummary, Times
from ci_evals.domain.results.usage import Tokens, Usage
from ci_evals.domain.transcript import Integration
from ci_evals.scoring import process
from ci_evals.scoring.scores import ScoreRule
from ci_evals.support import dataclass_json

PAGE = (ROOT / "docs/process.md").read_text()


def test_process_page_example_has_documented_measures():
    (example,) = blocks("json", PAGE)
    turns = [
        build.turn(
            number,
            workflows=tuple(fields["workflows"]),
            params=fields["params"],
            integrations=tuple(map(Integration.model_validate, fields["integrations"])),
        )
        for number, fields in enumerate(json.loads(example), start=1)
    ]
    optimal = json.loads(re.search(r'"optimalTools": (\[.*?\])', PAGE)[1])
    measures = dataclass_json.to_value(process.of_turns(turns, optimal).process)
    del measures["begun"]
    assert measures == {code(name): float(value) for name, value, _ in table("measure", PAGE)}


def test_process_page_lists_every_measure_and_its_optimal_tools_are_read():
    named = [code(cell).split("`, `") for cell, _ in table("field", PAGE)]
    measures = {to_camel(field.name) for field in fields(ProcessSummary)}
    assert {name for names in named for name in names} == measures
    assert [code(name) for name, _ in table("part", PAGE)] == [field.name for field in fields(Times)]
    (example,) = blocks("yaml", PAGE)
    test = make_plan({"name": "t"} | yaml.safe_load(example)).suites[0].tests[0]
    assert test.optimal_tools == ("POLICY_QUESTION", "CANCEL_BOOKING")


def test_process_page_cost_adjusted_score_is_right():
    score, each, adjusted = map(
        float, re.search(r"(\d+) points at \$([\d.]+) per trial are (\d+)", " ".join(PAGE.split())).groups()
    )
    nothing = process.summary([], 0, ScoreRule(offline=False))
    result = process.of_run(nothing, score, Usage(tokens=Tokens(), cost_usd=each * 3), 3)
    assert result.cost_adjusted_score == pytest.approx(adjusted)
