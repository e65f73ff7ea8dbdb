"""Every playbook holds together: what its steps name is known, and its workflows end with a reply."""

from collections.abc import Iterator

from each_row import each_row

from ci_evals.extensions.demo import catalog
from ci_evals.extensions.demo.playbook import (
    PLACEHOLDER,
    AnswerStep,
    AskStep,
    CallStep,
    ComputeStep,
    EscalateStep,
    Playbook,
    RuleStep,
    Step,
    Workflow,
)


def problems_of(playbook: Playbook, workflow: Workflow) -> Iterator[str]:
    """What would lead nowhere when the workflow is played."""
    unknown = [code for code in workflow.parameters if code not in playbook.parameters]
    yield from (f"unknown parameter {code!r}" for code in unknown)
    computed = {step.compute for step in workflow.steps if isinstance(step, ComputeStep)}
    known = {*playbook.variables, *playbook.parameters, *playbook.integrations, *computed}
    for step in workflow.steps:
        yield from (f"nothing is known as {name!r}" for name in sorted(names_in(step) - known))
        stray = [code for code in parameters_in(step) if code not in workflow.parameters]
        yield from (f"{code!r} is not among its parameters" for code in stray)
        if isinstance(step, CallStep) and step.call not in playbook.integrations:
            yield f"calls {step.call!r}, which is no integration"
        if isinstance(step, RuleStep) and len(effects_of(step)) > 1:
            yield f"rule {step.rule!r} has more than one effect"
    last = workflow.steps[-1]
    replies = isinstance(last, RuleStep) and any((last.answer, last.block, last.escalate))
    if last.when or not (replies or isinstance(last, AnswerStep | EscalateStep)):
        yield "its last step must answer, block or escalate, without 'when'"


def names_in(step: Step) -> set[str]:
    names = {*step.when, *PLACEHOLDER.findall(step.model_dump_json())}
    return names | {step.of[0], step.of[2]} if isinstance(step, ComputeStep) else names


def parameters_in(step: Step) -> tuple[str, ...]:
    if isinstance(step, AskStep):
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
    found = list(problems_of(playbook, workflow))
    assert problem in found
    assert "its last step must answer, block or escalate, without 'when'" in found
