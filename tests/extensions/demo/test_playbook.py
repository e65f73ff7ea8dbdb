"""Playbooks: invalid ones are refused, and the bundled ones refer only to known names."""

import json
from collections.abc import Iterator

import pytest
from each_row import each_row
from pydantic import ValidationError

from ci_evals.extensions.demo import catalog, knowledge
from ci_evals.extensions.demo import playbook as books
from ci_evals.extensions.demo.playbook import Playbook, RuleStep, Step, Texts, ValueCheck, Workflow


def playbook(**changes):
    content = {"variables": {"plan": "day"}, "texts": dict.fromkeys(Texts.model_fields, "Text.")}
    content |= {"refusals": [], "small_talk": [], "integrations": {}}
    content |= {"parameters": {"days": {"ask": "How many?"}}, "workflows": [workflow({"answer": "Done."})]}
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


def problems_of(playbook: Playbook, workflow: Workflow) -> Iterator[str]:
    """What would lead nowhere when the workflow is played."""
    unknown = [code for code in workflow.parameters if code not in playbook.parameters]
    yield from (f"unknown parameter {code!r}" for code in unknown)
    computed = {step.compute for step in workflow.steps if isinstance(step, books.ComputeStep)}
    known = {*playbook.variables, *playbook.parameters, *playbook.integrations, *computed}
    for step in workflow.steps:
        yield from (f"nothing is known as {name!r}" for name in sorted(names_in(step) - known))
        stray = [code for code in parameters_in(step) if code not in workflow.parameters]
        yield from (f"{code!r} is not among its parameters" for code in stray)
        if isinstance(step, books.CallStep) and step.call not in playbook.integrations:
            yield f"calls {step.call!r}, which is no integration"
        if isinstance(step, RuleStep) and len(effects_of(step)) > 1:
            yield f"rule {step.rule!r} has more than one effect"
    last = workflow.steps[-1]
    replies = isinstance(last, RuleStep) and any((last.answer, last.block, last.escalate))
    if last.when or not (replies or isinstance(last, books.AnswerStep | books.EscalateStep)):
        yield "its last step must answer, block or escalate, without 'when'"


def names_in(step: Step) -> set[str]:
    names = {*step.when, *books.PLACEHOLDER.findall(step.model_dump_json())}
    return names | {step.of[0], step.of[2]} if isinstance(step, books.ComputeStep) else names


def parameters_in(step: Step) -> tuple[str, ...]:
    if isinstance(step, books.AskStep):
        return step.ask
    if isinstance(step, RuleStep):
        return (*step.forget, step.ask) if step.ask else step.forget
    return ()


def effects_of(rule: RuleStep) -> list[str]:
    effects = (rule.answer, rule.block, rule.escalate, rule.note, rule.ask)
    return [effect for effect in effects if effect is not None]


@each_row("agent_id", catalog.known_agents())
def test_bundled_playbooks_refer_only_to_known_names_and_end_with_a_reply(agent_id):
    playbook = catalog.playbook(agent_id)
    problems = {flow.code: [*problems_of(playbook, flow)] for flow in playbook.workflows}
    assert not any(problems.values()), problems


@each_row(
    ("step", "problem"),
    [
        ({"ask": ["day"]}, "'day' is not among its parameters"),
        ({"rule": "r", "reason": "x", "ask": "day"}, "'day' is not among its parameters"),
        ({"rule": "r", "reason": "x", "note": "n", "answer": "a"}, "rule 'r' has more than one effect"),
        ({"call": "ledger"}, "calls 'ledger', which is no integration"),
        ({"confirm": "Pay {amount}?", "declined": "No."}, "nothing is known as 'amount'"),
        ({"compute": "rest", "of": ["bill", "minus", "fee"]}, "nothing is known as 'fee'"),
        ({"answer": "Done.", "when": {"tier": "gold"}}, "nothing is known as 'tier'"),
    ],
)
def test_check_of_playbooks_finds_unknown_names_and_missing_replies(step, problem):
    playbook = catalog.playbook("demo-hr")
    steps = [step, {"rule": "end", "reason": "x", "note": "n"}]
    workflow = Workflow(code="HIRE", title="hiring", intents=["hire"], steps=steps)
    result = list(problems_of(playbook, workflow))
    assert problem in result
    assert "its last step must answer, block or escalate, without 'when'" in result
