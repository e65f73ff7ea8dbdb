"""Playbooks that cannot be played are refused when they are read."""

import pytest
import yaml
from each_row import each_row
from pydantic import ValidationError

from ci_evals.extensions.demo import catalog, knowledge
from ci_evals.extensions.demo.playbook import ValueCheck

TEXTS = (
    "welcome", "follow_up", "again", "fallback", "lost", "person", "forwarded", "sympathy", "repeated",
    "angry", "error",
)  # fmt: skip


def playbook(**changes):
    content = {
        "variables": {"plan": "day"},
        "texts": dict.fromkeys(TEXTS, "Text."),
        "refusals": [],
        "small_talk": [],
        "parameters": {"days": {"ask": "How many?"}},
        "integrations": {},
        "workflows": [workflow({"answer": "Done."})],
    }
    return catalog.read(yaml.safe_dump(content | changes))


def workflow(*steps, **changes):
    return {
        "code": "HIRE",
        "title": "hiring",
        "intents": ["hire"],
        "parameters": ["days"],
        "steps": [*steps],
    } | changes


def test_a_small_one_can_be_read():
    """What the other tests break is whole before."""
    assert playbook().workflow("HIRE").title == "hiring"


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"answer": "Done.", "whne": {"plan": "day"}}, "Extra inputs are not permitted"),
        ({"say": "Done."}, "Unable to extract tag"),
    ],
)
def test_steps_that_lead_nowhere(step, problem):
    """A slip of the pen is found when the file is read, not in the third conversation."""
    with pytest.raises(ValidationError, match=problem):
        playbook(workflows=[workflow(step, {"answer": "Done."})])


def test_unknown_keys_and_bad_patterns_are_refused():
    """Also at the top, and in regular expressions."""
    with pytest.raises(ValidationError, match="Extra inputs"):
        playbook(workflow=[])
    with pytest.raises(ValidationError, match="regular expression"):
        playbook(workflows=[workflow({"answer": "Done."}, intents=["hire("])])


def test_unknown_agent_error_lists_known_agents():
    """The names that there are stand in the error."""
    with pytest.raises(catalog.UnknownAgentError, match="'demo-nobody'") as error:
        catalog.playbook("demo-nobody")
    assert {"demo-hr", "demo-retail"} <= set(catalog.known_agents())
    assert ", ".join(catalog.known_agents()) in str(error.value)


@pytest.mark.parametrize("name", ["../hr", "demo-../hr", "demo-_shared", "demo-", "hr"])
def test_an_agent_id_is_no_path(name):
    """Only what is listed is opened."""
    with pytest.raises(catalog.UnknownAgentError):
        catalog.playbook(name)


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
def test_conditions(value, wanted, expected):
    """Numbers are compared as numbers, text whatever its case, and the unknown with nothing."""
    assert knowledge.part_holds("x", wanted, {"x": value, "limit": 5}) is expected


def test_sums_are_exact():
    """Money is neither rounded nor shown with the noise of binary fractions."""
    amounts = {"total": "84.10", "fee": 0.2, "days": 5, "left": "12", "word": "many"}
    assert knowledge.compute("total", "minus", "fee", amounts) == "83.90"
    assert knowledge.compute("left", "minus", "days", amounts) == 7
    assert knowledge.compute("days", "times", "left", amounts) == 60
    assert knowledge.compute("days", "plus", "word", amounts) is None
    assert knowledge.fill("{fee} of {total}, {none}.", amounts) == "0.20 of 84.10, ."
