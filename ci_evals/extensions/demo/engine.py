"""Plays a playbook: the state of a conversation and a message in, the agent's reply out.

Pure: the same state, message and variables give the same reply. It knows nothing of HTTP or of any domain.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, assert_never

from pydantic import JsonValue

from ci_evals.extensions.demo import extraction, knowledge
from ci_evals.extensions.demo.playbook import (
    PLACEHOLDER,
    AnswerStep,
    AskStep,
    Booking,
    CallStep,
    ComputeStep,
    Condition,
    ConfirmStep,
    EscalateStep,
    Phrases,
    Playbook,
    RestIntegration,
    RuleStep,
    Step,
    Workflow,
)
from ci_evals.extensions.demo.reply import (
    Change,
    ConfirmationRequest,
    Decision,
    DemoReply,
    IntegrationCall,
    Move,
    ParametersChecked,
    ResponseType,
    RuleEvaluation,
    RuleFired,
    RulePart,
    State,
    WorkflowAnswer,
    WorkflowStarted,
)

FORWARDING = "CONVERSATION_FORWARDING"
Omits = Callable[[Workflow, RuleStep | CallStep | ConfirmStep], bool]
"""Return whether a workflow is played without that step."""
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d\u2013", "''\"\"-")


def respond(
    playbook: Playbook,
    state: State,
    message: str,
    variables: Mapping[str, JsonValue],
    omits: Omits = lambda _workflow, _step: False,
) -> Move:
    """Return the agent's move after `message`. `variables` are the agent variables as they were sent.

    A rule that is its workflow's last step keeps its effect, even if it is omitted: some reply must come.
    """
    return _Responder(playbook, state, message, variables, omits).move()


class _Responder:
    """Answers one message, and collects what happens on the way to the reply."""

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
        self.message = " ".join(message.translate(_QUOTES).split())
        self.variables = {**playbook.variables, **knowledge.from_variables(variables)}
        self.omits = omits
        self.decisions: list[Decision] = []
        self.evaluations: list[RuleEvaluation] = []
        self.notes: list[str] = []
        self.workflow = playbook.workflow(state.workflow) if state.workflow else None

    def move(self) -> Move:
        """Choose what to do, from the most to the least urgent."""
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
        return self._continue(self.workflow) if self.workflow else self._begin()

    def _continue(self, workflow: Workflow) -> Move:
        before, params = self.state, self._extract(workflow)
        corrected = any(before.params.get(code, value) != value for code, value in params.items())
        self.state = replace(
            before, asked_for=None, confirming=False, lost=0, params={**before.params, **params}
        )
        if corrected:
            self.state = replace(self.state, facts={})
            return self._play(0)
        other = self._intent()
        leaves = other is not None and other is not workflow
        if before.confirming:
            return self._confirmation_received(before, leaves=leaves)
        return self._answer_received(before, params, leaves=leaves)

    def _confirmation_received(self, before: State, *, leaves: bool) -> Move:
        language = self.playbook.language
        if not self._matches(language.decline) and self._matches(language.agree):
            return self._play(before.step + 1)
        if leaves:
            return self._begin()
        return self._decline(before.step) if self._matches(language.decline) else self._stuck(before)

    def _answer_received(self, before: State, params: Mapping[str, JsonValue], *, leaves: bool) -> Move:
        if before.asked_for in params:
            return self._play(before.step)
        if leaves:
            return self._begin()
        asked_for = before.asked_for or ""
        if (value := extraction.answer(self.playbook.parameters[asked_for], self.message)) is not None:
            self.state = replace(self.state, params={**self.state.params, asked_for: value})
            return self._play(before.step)
        return self._play(before.step) if params.keys() - before.params.keys() else self._stuck(before)

    def _begin(self) -> Move:
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
        params = {**self.state.params, **self._extract(workflow)}
        self.state = replace(self.state, workflow=workflow.code, params=params, lost=0)
        self.decisions.append(
            WorkflowStarted(workflow.code, "intent_classification", f"the user speaks of {workflow.title}")
        )
        return self._play(0)

    def _stuck(self, before: State) -> Move:
        """Ask the same again, until patience runs out: the message was no answer."""
        lost = before.lost + 1
        if lost >= self.playbook.patience:
            return self._forward(self.playbook.texts.lost, "could not be understood")
        self.notes.append(self.playbook.texts.again)
        move = self._play(before.step)
        return replace(move, state=replace(move.state, lost=lost))

    def _decline(self, step: int) -> Move:
        confirm = self._current().steps[step]
        text = confirm.declined if isinstance(confirm, ConfirmStep) else ""
        return self._reply(self._with_follow_up(text), ResponseType.ANSWER, self._over())

    def _play(self, start: int) -> Move:
        workflow = self._current()
        for index in range(start, len(workflow.steps)):
            move = self._step(workflow, index)
            if move is not None:
                return move
        raise AssertionError("a playbook's last step always replies")

    def _step(self, workflow: Workflow, index: int) -> Move | None:
        """Take one step, if it applies; None if the next one follows."""
        step = workflow.steps[index]
        if isinstance(step, RuleStep | CallStep | ConfirmStep) and self.omits(workflow, step):
            last = step is workflow.steps[-1]
            return self._effect(step, index) if isinstance(step, RuleStep) and last else None
        applies = knowledge.holds(step.when, self._known())
        if isinstance(step, RuleStep) or (isinstance(step, ConfirmStep) and step.rule):
            self._record_evaluation(step.rule or "", step.when, applies)
        return self._take(step, index) if applies else None

    def _take(self, step: Step, index: int) -> Move | None:  # noqa: PLR0911  # one for each kind of step
        match step:
            case AskStep():
                return self._ask(step.ask, index)
            case RuleStep():
                return self._fire(step, index)
            case CallStep():
                return self._call(step.call, step.books)
            case ComputeStep():
                left, operation, right = step.of
                self._learn({step.compute: knowledge.compute(left, operation, right, self._known())})
                return None
            case ConfirmStep():
                return self._confirm(step, index)
            case AnswerStep():
                return self._answer(step.answer)
            case EscalateStep():
                return self._forward(step.escalate, "a step of the workflow", trigger="rule")
            case _:
                assert_never(step)

    def _ask(self, codes: tuple[str, ...], index: int, *, by_rule: bool = False) -> Move | None:
        missing = tuple(code for code in codes if code not in self.state.params)
        self.decisions.append(ParametersChecked(self._current().code, missing))
        if not missing:
            return None
        state = replace(self.state, step=index, asked_for=missing[0])
        question = self.playbook.parameters[missing[0]].ask
        return self._reply(
            question, ResponseType.QUESTION, state, asking_for=missing[:1], because_of_rule=by_rule
        )

    def _fire(self, rule: RuleStep, index: int) -> Move | None:
        tool = self._current().code
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

    def _effect(self, rule: RuleStep, index: int) -> Move | None:
        tool = self._current().code
        if rule.answer is not None:
            return self._answer(rule.answer)
        if rule.block is not None:
            self.decisions.append(WorkflowAnswer(tool, self._fill(rule.block), failed=True))
            return self._reply(self._with_follow_up(rule.block), ResponseType.BLOCKED, self._over())
        if rule.escalate is not None:
            return self._forward(rule.escalate, rule.reason, trigger="rule")
        if rule.note is not None:
            self.notes.append(self._fill(rule.note))
        return self._ask((rule.ask,), index, by_rule=True) if rule.ask else None

    def _moment(self, index: int) -> Literal["init", "pre-integration"] | None:
        """Return when a rule is evaluated: before anything is asked for, or before the next call."""
        steps = self._current().steps
        if not any(isinstance(step, AskStep | CallStep) for step in steps[:index]):
            return "init"
        return "pre-integration" if any(isinstance(step, CallStep) for step in steps[index:]) else None

    def _call(self, code: str, books: Booking | None) -> Move | None:
        tool, integration = self._current().code, self.playbook.integrations[code]
        if not isinstance(integration, RestIntegration):
            self.decisions.append(IntegrationCall(tool, code, integration, self.state.params))
            return None
        facts = self._known()
        failure = next((item for item in integration.failures if knowledge.holds(item.when, facts)), None)
        status, error = (failure.status, failure.message) if failure else (200, None)
        url = self._fill(integration.url)
        change = self._change(books) if books and not failure else None
        arguments = self.state.params
        self.decisions.append(IntegrationCall(tool, code, integration, arguments, url, status, error, change))
        self._learn({code: status})
        if status < 500:
            return None
        text = self.playbook.texts.error
        self.decisions.append(WorkflowAnswer(tool, self._fill(text), failed=True))
        return self._reply(text, ResponseType.ERROR, self._over(), error="integration_failed")

    def _change(self, booking: Booking) -> Change:
        def value(text: str) -> JsonValue:
            name = PLACEHOLDER.fullmatch(text)
            return self._known().get(name[1]) if name else self._fill(text)

        values = {key: value(text) for key, text in booking.values.items()}
        return Change(booking.table, self._fill(booking.row), values)

    def _confirm(self, step: ConfirmStep, index: int) -> Move:
        tool = self._current().code
        if step.rule:
            self.decisions.append(
                RuleFired(tool, step.rule, "confirmation", "ASK_FOR_CONFIRMATION", "cannot be undone")
            )
        self.decisions.append(ConfirmationRequest(tool, self._fill(step.confirm)))
        state = replace(self.state, step=index, confirming=True)
        return self._reply(step.confirm, ResponseType.CONFIRMATION, state)

    def _answer(self, text: str) -> Move:
        workflow = self._current()
        self.decisions.append(WorkflowAnswer(workflow.code, self._fill(text)))
        return self._reply(
            self._with_follow_up(text), ResponseType.ANSWER, self._over(), suggestions=workflow.suggestions
        )

    def _forward(
        self,
        text: str,
        reason: str,
        trigger: Literal["intent_classification", "rule"] = "intent_classification",
    ) -> Move:
        self.decisions.append(WorkflowStarted(FORWARDING, trigger, reason))
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
        # Guardrails answer before any workflow is reached, so none has run.
        workflow = self.workflow if refusal is None else None
        workflows = (workflow.code,) if workflow else ()
        # Texts are filled here and nowhere before: filled twice, a user's "{name}" would be filled too.
        text = " ".join(part for part in (*self.notes, self._fill(text)) if part)
        if workflow and kind in {ResponseType.ANSWER, ResponseType.BLOCKED}:
            state = replace(state, last=text)
            text = f"{self.playbook.texts.repeated} {text}" if text == self.state.last else text
        reply = DemoReply(
            text=text,
            type=kind,
            intents=(workflow.title,) if workflow else (),
            params=self._extracted(workflow, asking_for) if workflow else {},
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
        """Return the workflow's parameters so far. AUI shows a requested one as `undefined`."""
        params = self.state.params
        return {
            code: params.get(code, "undefined")
            for code in workflow.parameters
            if code in params or code in asking_for
        }

    def _over(self) -> State:
        """Return the state after the current workflow has ended or was left."""
        kept = {
            code: value for code, value in self.state.params.items() if self.playbook.parameters[code].keep
        }
        return State(
            params=kept, angry=self.state.angry, forwarded=self.state.forwarded, last=self.state.last
        )

    def _extract(self, workflow: Workflow) -> dict[str, JsonValue]:
        """Return the workflow's parameters in the message, or else in the agent variables."""
        params: dict[str, JsonValue] = {}
        for code in workflow.parameters:
            parameter = self.playbook.parameters[code]
            value = extraction.value(parameter, self.message)
            if value is None and parameter.variable and code not in self.state.params:
                value = self.variables.get(parameter.variable) or None
            if value is not None:
                params[code] = value
        return params

    def _record_evaluation(self, code: str, condition: Condition, applies: bool) -> None:
        facts = self._known()
        parts = tuple(
            RulePart(*part, of_call=name in self.playbook.integrations)
            for name, expected in condition.items()
            for part in knowledge.parts(name, expected, facts)
        )
        self.evaluations.append(RuleEvaluation(code, applies, parts))

    def _intent(self) -> Workflow | None:
        return next((item for item in self.playbook.workflows if self._matches(item.intents)), None)

    def _current(self) -> Workflow:
        assert self.workflow is not None  # noqa: S101  # every caller has a current workflow
        return self.workflow

    def _matches(self, phrases: Phrases) -> bool:
        return any(phrase.search(self.message) for phrase in phrases)

    def _learn(self, facts: Mapping[str, JsonValue]) -> None:
        self.state = replace(self.state, facts={**self.state.facts, **facts})

    def _known(self) -> knowledge.Knowledge:
        return {**self.variables, **self.state.params, **self.state.facts}

    def _fill(self, text: str) -> str:
        return knowledge.fill(text, self._known())

    def _with_follow_up(self, text: str) -> str:
        return f"{text} {self.playbook.texts.follow_up}".strip()
