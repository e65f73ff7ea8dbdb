"""Playbooks that cannot be played are refused when they are read."""

import json

import pytest
from each_row import each_row
from pydantic import ValidationError

from ci_evals.extensions.demo import catalog, knowledge
from ci_evals.extensions.demo.playbook import Texts, ValueCheck


def playbook(**changes):
    content = {
        "variables": {"plan": "day"},
        "texts": dict.fromkeys(Texts.model_fields, "Text."),
        "refusals": [],
        "small_talk": [],
        "parameters": {"days": {"ask": "How many?"}},
        "integrations": {},
        "workflows": [workflow({"answer": "Done."})],
    }
    return catalog.read(json.dumps(content | changes))


def workflow(*steps, **changes):
    hire = {"code": "HIRE", "title": "hiring", "intents": ["hire"], "parameters": ["days"]}
    return hire | {"steps": steps} | changes


def test_unknown_steps_keys_and_invalid_patterns_are_refused():
    assert playbook().workflow("HIRE").title == "hiring"
    for step, problem in (
        ({"answer": "Done.", "whne": {"plan": "day"}}, "Extra inputs are not permitted"),
        ({"say": "Done."}, "Unable to extract tag"),
    ):
        with pytest.raises(ValidationError, match=problem):
            playbook(workflows=[workflow(step, {"answer": "Done."})])
    with pytest.raises(ValidationError, match="Extra inputs"):
        playbook(workflow=[])
    with pytest.raises(ValidationError, match="regular expression"):
        playbook(workflows=[workflow({"answer": "Done."}, intents=["hire("])])


def test_unknown_agent_or_path_is_refused_with_the_known_agents():
    with pytest.raises(catalog.UnknownAgentError, match="'demo-nobody'") as error:
        catalog.playbook("demo-nobody")
    assert {"demo-hr", "demo-retail"} <= set(catalog.known_agents())
    assert ", ".join(catalog.known_agents()) in str(error.value)
    for path in ("../hr", "demo-../hr", "demo-_shared", "demo-", "hr"):
        with pytest.raises(catalog.UnknownAgentError):
            catalog.playbook(path)


@each_row(
    ("value", "wanted", "expected"),
    [
        ("Gold", "gold", True),
        ("29.90", 29.9, True),
        ("$1,200", ValueCheck(at_least=1200), True),
        (True, "true", True),
        ("silver", ("gold", "silver"), True),
        (None, ("gold", "silver"), False),
        (None, ValueCheck(none_of=("gold",)), True),
        (30, ValueCheck(over=30), False),
        (30, ValueCheck(at_most=30), True),
        (29.99, ValueCheck(under=30), True),
        ("soon", ValueCheck(over=1), False),
        (None, ValueCheck(under=1), False),
        (7, ValueCheck(over="{limit}"), True),
        (7, ValueCheck(over="{nothing}"), False),
        ("", ValueCheck(given=True), False),
        (0, ValueCheck(given=True), True),
        (None, ValueCheck(given=False), True),
        ("NaN", ValueCheck(under=5), False),
    ],
)
def test_conditions_compare_numbers_as_numbers_and_text_in_any_case(value, wanted, expected):
    assert knowledge.part_holds("x", wanted, {"x": value, "limit": 5}) is expected


def test_money_is_computed_exactly():
    amounts = {"total": "84.10", "fee": 0.2, "days": 5, "left": "12", "word": "many"}
    assert knowledge.compute("total", "minus", "fee", amounts) == "83.90"
    assert knowledge.compute("left", "minus", "days", amounts) == 7
    assert knowledge.compute("days", "times", "left", amounts) == 60
    assert knowledge.compute("days", "plus", "word", amounts) is None
    assert knowledge.fill("{fee} of {total}, {none}.", amounts) == "0.20 of 84.10, ."
