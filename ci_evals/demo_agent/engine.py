"""Plays a playbook: what was said so far and one more message in, the agent's reply out.

Pure: the same state, message and variables give the same reply. It knows nothing of HTTP or of any domain.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, assert_never

from pydantic import JsonValue

from ci_evals.demo_agent import extraction, known
from ci_evals.demo_agent.playbook import (
    Answer,
    Ask,
    Call,
    Compute,
    Condition,
    Confirm,
    Escalate,
    Phrases,
    Playbook,
    RestIntegration,
    Rule,
    Step,
    Workflow,
)
from ci_evals.demo_agent.reply import (
    Activated,
    Answered,
    Called,
    ConfirmationAsked,
    Decision,
    Move,
    ParamsChecked,
    Reply,
    ResponseType,
    RuleEvaluation,
    RuleFired,
    State,
)

FORWARDING = "CONVERSATION_FORWARDING"
Omits = Callable[[Workflow, Rule | Call | Confirm], bool]
"""Whether a workflow is played without that step."""
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d\u2013", "''\"\"-")


def respond(
    playbook: Playbook,
    state: State,
    message: str,
    variables: Mapping[str, JsonValue],
    omits: Omits = lambda _workflow, _step: False,
) -> Move:
    """The agent's move after `message`. `variables` are the agent variables as they were sent.

    Of a rule that is its workflow's last step the effect stays, even if it is omitted: some reply must come.
    """
    return _Thought(playbook, state, message, variables, omits).move()


class _Thought:
    """One message being answered: collects what happens on the way to the reply."""

    def __init__(
        self,
        playbook: Playbook,
        state: State,
        message: str,
        variables: Mapping[str, JsonValue],
        omits: Omits,
    ) -> None:
        self.playbook = playbook
        self.state = state
        self.said = " ".join(message.translate(_QUOTES).split())
        self.variables = {**playbook.variables, **known.from_variables(variables)}
        self.omits = omits
        self.decisions: list[Decision] = []
        self.evaluations: list[RuleEvaluation] = []
        self.notes: list[str] = []
        self.workflow = playbook.workflow(state.workflow) if state.workflow else None

    def move(self) -> Move:
        """What to do, from the most to the least pressing."""
        texts = self.playbook.texts
        if self.state.forwarded:
            return self._forward(texts.forwarded, "already handed over")
        urgent = next((w for w in self.playbook.workflows if w.urgent and self._matches(w.intents)), None)
        if urgent is not None and urgent is not self.workflow:
            return self._start(urgent)
        for refusal in (*self.playbook.guardrails, *self.playbook.refusals):
            if self._matches(refusal.patterns):
                return self._reply(refusal.text, ResponseType.BLOCKED, self.state, refusal=refusal.reason)
        if self._matches(self.playbook.language.person):
            return self._forward(texts.person, "asks for a person")
        if self._matches(self.playbook.language.anger):
            self.state = replace(self.state, angry=self.state.angry + 1)
            if self.state.angry >= self.playbook.patience:
                return self._forward(texts.angry, "angry more than once")
            self.notes.append(texts.sympathy)
        return self._go_on(self.workflow) if self.workflow else self._begin()

    def _go_on(self, workflow: Workflow) -> Move:
        """A workflow is under way and waits for the user."""
        before, found = self.state, self._extract(workflow)
        corrected = any(before.params.get(code, value) != value for code, value in found.items())
        self.state = replace(before, asked=None, confirming=False, lost=0, params={**before.params, **found})
        if corrected:
            self.state = replace(self.state, facts={})
            return self._play(0)
        other = self._intent()
        leaves = other is not None and other is not workflow
        if before.confirming:
            return self._confirmed(before, leaves=leaves)
        return self._answered(before, found, leaves=leaves)

    def _confirmed(self, before: State, *, leaves: bool) -> Move:
        """A yes was asked for."""
        language = self.playbook.language
        if not self._matches(language.decline) and self._matches(language.agree):
            return self._play(before.step + 1)
        if leaves:
            return self._begin()
        return self._decline(before.step) if self._matches(language.decline) else self._stuck(before)

    def _answered(self, before: State, found: Mapping[str, JsonValue], *, leaves: bool) -> Move:
        """A parameter was asked for."""
        if before.asked in found:
            return self._play(before.step)
        if leaves:
            return self._begin()
        asked = before.asked or ""
        if (value := extraction.answer(self.playbook.parameters[asked], self.said)) is not None:
            self.state = replace(self.state, params={**self.state.params, asked: value})
            return self._play(before.step)
        return self._play(before.step) if found.keys() - before.params.keys() else self._stuck(before)

    def _begin(self) -> Move:
        """No workflow is under way, or it is left for another."""
        workflow = self._intent()
        if workflow is not None:
            return self._start(workflow)
        for talk in self.playbook.small_talk:
            if self._matches(talk.patterns):
                return self._reply(talk.text, ResponseType.ANSWER, replace(self.state, lost=0))
        if self.state.lost + 1 > self.playbook.patience:
            return self._forward(self.playbook.texts.lost, "could not be understood")
        state = replace(self.state, lost=self.state.lost + 1)
        return self._reply(
            self.playbook.texts.fallback, ResponseType.QUESTION, state, suggestions=self.playbook.suggestions
        )

    def _start(self, workflow: Workflow) -> Move:
        self.state = self._over()
        self.workflow = workflow
        found = self._extract(workflow)
        self.state = replace(
            self.state, workflow=workflow.code, params={**self.state.params, **found}, lost=0
        )
        self.decisions.append(
            Activated(workflow.code, "intent_classification", f"the user speaks of {workflow.title}")
        )
        return self._play(0)

    def _stuck(self, before: State) -> Move:
        """The message was no answer: the same is asked again, until patience runs out."""
        lost = before.lost + 1
        if lost >= self.playbook.patience:
            return self._forward(self.playbook.texts.lost, "could not be understood")
        self.notes.append(self.playbook.texts.again)
        move = self._play(before.step)
        return replace(move, state=replace(move.state, lost=lost))

    def _decline(self, step: int) -> Move:
        confirm = self._under_way().steps[step]
        text = confirm.declined if isinstance(confirm, Confirm) else ""
        return self._reply(self._with_follow_up(text), ResponseType.ANSWER, self._over())

    def _play(self, start: int) -> Move:
        """Takes the workflow's steps from `start` until one of them replies."""
        workflow = self._under_way()
        for index in range(start, len(workflow.steps)):
            move = self._step(workflow, index)
            if move is not None:
                return move
        raise AssertionError("a playbook's last step always replies")

    def _step(self, workflow: Workflow, index: int) -> Move | None:
        """Does one step, if it is to be done; null where the next one is to follow."""
        step = workflow.steps[index]
        if isinstance(step, Rule | Call | Confirm) and self.omits(workflow, step):
            last = step is workflow.steps[-1]
            return self._effect(step, index) if isinstance(step, Rule) and last else None
        applies = known.holds(step.when, self._known())
        if isinstance(step, Rule) or (isinstance(step, Confirm) and step.rule):
            self._evaluated(step.rule or "", step.when, applies)
        return self._take(step, index) if applies else None

    def _take(self, step: Step, index: int) -> Move | None:
        move: Move | None = None
        match step:
            case Ask():
                move = self._ask(step.ask, index)
            case Rule():
                move = self._fire(step, index)
            case Call():
                move = self._call(step.call)
            case Compute():
                left, operation, right = step.of
                self._learn({step.compute: known.compute(left, operation, right, self._known())})
            case Confirm():
                move = self._confirm(step, index)
            case Answer():
                move = self._answer(step.answer)
            case Escalate():
                move = self._forward(step.escalate, "a step of the workflow", trigger="rule")
            case _:
                assert_never(step)
        return move

    def _ask(self, codes: tuple[str, ...], index: int, *, by_rule: bool = False) -> Move | None:
        missing = tuple(code for code in codes if code not in self.state.params)
        self.decisions.append(ParamsChecked(self._under_way().code, missing))
        if not missing:
            return None
        state = replace(self.state, step=index, asked=missing[0])
        question = self.playbook.parameters[missing[0]].ask
        return self._reply(
            question, ResponseType.QUESTION, state, asking_for=missing[:1], because_of_rule=by_rule
        )

    def _fire(self, rule: Rule, index: int) -> Move | None:
        tool = self._under_way().code
        self.decisions.append(
            RuleFired(
                tool=tool,
                code=rule.rule,
                type="block" if rule.block is not None else rule.type,
                action=rule.action,
                reason=rule.reason,
                trigger=self._moment(index),
                added=(rule.ask,) if rule.ask else (),
            )
        )
        move = self._effect(rule, index)
        if rule.forget and move is not None:
            params = {code: value for code, value in move.state.params.items() if code not in rule.forget}
            return replace(move, state=replace(move.state, params=params))
        return move

    def _effect(self, rule: Rule, index: int) -> Move | None:
        tool = self._under_way().code
        if rule.answer is not None:
            return self._answer(rule.answer)
        if rule.block is not None:
            self.decisions.append(Answered(tool, self._fill(rule.block), failed=True))
            return self._reply(self._with_follow_up(rule.block), ResponseType.BLOCKED, self._over())
        if rule.escalate is not None:
            return self._forward(rule.escalate, rule.reason, trigger="rule")
        if rule.note is not None:
            self.notes.append(self._fill(rule.note))
        return self._ask((rule.ask,), index, by_rule=True) if rule.ask else None

    def _moment(self, index: int) -> Literal["init", "pre-integration"] | None:
        """When a rule is looked at: before anything is asked for, or before the next call."""
        steps = self._under_way().steps
        if not any(isinstance(step, Ask | Call) for step in steps[:index]):
            return "init"
        return "pre-integration" if any(isinstance(step, Call) for step in steps[index:]) else None

    def _call(self, code: str) -> Move | None:
        tool, integration = self._under_way().code, self.playbook.integrations[code]
        if not isinstance(integration, RestIntegration):
            self.decisions.append(Called(tool, code, integration))
            return None
        facts = self._known()
        failure = next((item for item in integration.failures if known.holds(item.when, facts)), None)
        status = failure.status if failure else 200
        self.decisions.append(
            Called(
                tool,
                code,
                integration,
                self._fill(integration.url),
                status,
                failure.message if failure else None,
            )
        )
        self._learn({code: status})
        if status < 500:
            return None
        text = self.playbook.texts.error
        self.decisions.append(Answered(tool, self._fill(text), failed=True))
        return self._reply(text, ResponseType.ERROR, self._over(), error="integration_failed")

    def _confirm(self, step: Confirm, index: int) -> Move:
        tool = self._under_way().code
        if step.rule:
            self.decisions.append(
                RuleFired(tool, step.rule, "confirmation", "ASK_FOR_CONFIRMATION", "cannot be undone")
            )
        self.decisions.append(ConfirmationAsked(tool, self._fill(step.confirm)))
        state = replace(self.state, step=index, confirming=True)
        return self._reply(step.confirm, ResponseType.CONFIRMATION, state)

    def _answer(self, text: str) -> Move:
        workflow = self._under_way()
        self.decisions.append(Answered(workflow.code, self._fill(text)))
        return self._reply(
            self._with_follow_up(text), ResponseType.ANSWER, self._over(), suggestions=workflow.suggestions
        )

    def _forward(
        self,
        text: str,
        reason: str,
        trigger: Literal["intent_classification", "rule"] = "intent_classification",
    ) -> Move:
        self.decisions.append(Activated(FORWARDING, trigger, reason))
        state = replace(self._over(), forwarded=True)
        return self._reply(text, ResponseType.ANSWER, state, forwarding=True)

    def _reply(
        self,
        text: str,
        kind: ResponseType,
        state: State,
        *,
        refusal: str | None = None,
        forwarding: bool = False,
        asking_for: tuple[str, ...] = (),
        because_of_rule: bool = False,
        error: str | None = None,
        suggestions: tuple[str, ...] = (),
    ) -> Move:
        # The guardrails answer before any workflow is reached, so none has run.
        at_work = self.workflow if refusal is None else None
        workflows = (at_work.code,) if at_work else ()
        # Texts are filled here and nowhere before: filled twice, a user's "{name}" would be filled too.
        said = " ".join(part for part in (*self.notes, self._fill(text)) if part)
        if at_work and kind in {ResponseType.ANSWER, ResponseType.BLOCKED}:
            state = replace(state, last=said)
            said = f"{self.playbook.texts.repeated} {said}" if said == self.state.last else said
        reply = Reply(
            text=said,
            type=kind,
            intents=(at_work.title,) if at_work else (),
            params=self._extracted(at_work, asking_for) if at_work else {},
            workflows=(*workflows, FORWARDING) if forwarding else workflows,
            decisions=tuple(self.decisions),
            evaluations=tuple(self.evaluations),
            refusal=refusal,
            asking_for=asking_for,
            because_of_rule=because_of_rule,
            error=error,
            suggestions=suggestions,
        )
        return Move(state, reply)

    def _extracted(self, workflow: Workflow, asking_for: tuple[str, ...]) -> dict[str, JsonValue]:
        """The workflow's parameters so far. AUI shows what is being asked for as `undefined`."""
        params = self.state.params
        return {
            code: params.get(code, "undefined")
            for code in workflow.parameters
            if code in params or code in asking_for
        }

    def _over(self) -> State:
        """The state once the workflow under way has ended or was left."""
        kept = {
            code: value for code, value in self.state.params.items() if self.playbook.parameters[code].keep
        }
        return State(
            params=kept, angry=self.state.angry, forwarded=self.state.forwarded, last=self.state.last
        )

    def _extract(self, workflow: Workflow) -> dict[str, JsonValue]:
        """What the message says about the workflow's parameters, or else the agent variables do."""
        found: dict[str, JsonValue] = {}
        for code in workflow.parameters:
            parameter = self.playbook.parameters[code]
            value = extraction.value(parameter, self.said)
            if value is None and parameter.variable and code not in self.state.params:
                value = self.variables.get(parameter.variable) or None
            if value is not None:
                found[code] = value
        return found

    def _evaluated(self, code: str, condition: Condition, applies: bool) -> None:
        facts = self._known()
        parts = tuple(
            (known.describe(name, wanted), known.part_holds(name, wanted, facts))
            for name, wanted in condition.items()
        )
        self.evaluations.append(RuleEvaluation(code, applies, parts))

    def _intent(self) -> Workflow | None:
        return next((item for item in self.playbook.workflows if self._matches(item.intents)), None)

    def _under_way(self) -> Workflow:
        assert self.workflow is not None  # noqa: S101  # every caller has a workflow under way
        return self.workflow

    def _matches(self, phrases: Phrases) -> bool:
        return any(phrase.search(self.said) for phrase in phrases)

    def _learn(self, facts: Mapping[str, JsonValue]) -> None:
        self.state = replace(self.state, facts={**self.state.facts, **facts})

    def _known(self) -> known.Known:
        return {**self.variables, **self.state.params, **self.state.facts}

    def _fill(self, text: str) -> str:
        return known.fill(text, self._known())

    def _with_follow_up(self, text: str) -> str:
        return f"{text} {self.playbook.texts.follow_up}".strip()
