"""Faults of the agent's own logic: rules and extracted parameters."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ci_evals.domain.actions import own_calls, params_are_arguments
from ci_evals.domain.transcript import Integration, ToolCall, Transcript, Turn, is_empty
from ci_evals.extensions.mutate.faults.calls import with_calls_of
from ci_evals.extensions.mutate.faults.changed_values import changed
from ci_evals.extensions.mutate.faults.conversation import Conversation
from ci_evals.extensions.mutate.faults.end_state import with_effect_of_other


def rule_dropped(conversation: Conversation) -> Transcript | None:
    """Stand for an agent in which a rule no longer fires, and that speaks and acts as before."""
    fired = [rule for turn in conversation.turns for rule in turn.rules or ()]
    if not fired:
        return None
    turns = []
    for turn in conversation.turns:
        if turn.rules and fired[0] in turn.rules:
            rules = tuple(rule for rule in turn.rules if rule != fired[0])
            turns.append(turn.copy_with(rules=rules, trace=None, raw=None))
        else:
            turns.append(turn)
    return conversation.transcript.copy_with(turns=tuple(turns))


def param_changed(conversation: Conversation) -> Transcript | None:
    """Stand for an agent that understands a value wrongly: it keeps the wrong one, and calls with it."""
    for turn in conversation.turns:
        if turn.params is None or params_are_arguments(turn):
            continue
        for name, value in turn.params.items():
            other = None if is_empty(value) else changed(value)
            if other is not None:
                param = _WrongParam(name, value, other)
                turns = tuple(map(param.in_turn, conversation.turns))
                return param.with_effects(conversation, turns)
    return None


@dataclass(frozen=True)
class _WrongParam:
    """A parameter with another value, wherever the agent has the right one."""

    name: str
    value: JsonValue
    other: JsonValue

    def in_turn(self, turn: Turn) -> Turn:
        """Return the turn with the other value, also where a call has it."""
        if turn.params is None or turn.params.get(self.name) != self.value:
            return turn
        calls: Sequence[ToolCall | Integration] | None = own_calls(turn)
        if calls is None:
            calls = turn.integrations
        if calls is not None:
            turn = with_calls_of(turn, tuple(map(self.in_call, calls)))
        params = (turn.params or {}) | {self.name: self.other}
        return turn.copy_with(params=params, trace=None, raw=None)

    def in_call(self, call: ToolCall | Integration) -> ToolCall | Integration:
        """Return the call with the other value."""
        if isinstance(call, ToolCall):
            return self._in_tool_call(call)
        tools = call.tools and tuple(map(self._in_tool_call, call.tools))
        return call.copy_with(tools=tools, arguments=self._in_arguments(call.arguments))

    def _in_tool_call(self, call: ToolCall) -> ToolCall:
        arguments = self._in_arguments(call.arguments)
        if arguments is call.arguments:
            return call
        return call.copy_with(arguments=arguments, result=None)

    def _in_arguments(self, arguments: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        """Return the arguments with the other value; the same object if they do not have the right one."""
        if arguments is None or self.name not in arguments or arguments[self.name] != self.value:
            return arguments
        return arguments | {self.name: self.other}

    def with_effects(self, conversation: Conversation, turns: tuple[Turn, ...]) -> Transcript:
        """Return the transcript with these turns, and the end state after calls with the other value."""
        transcript = conversation.transcript.copy_with(turns=turns)
        for turn in conversation.turns:
            for call in turn.tool_calls or ():
                other = self.in_call(call)
                if isinstance(other, ToolCall) and other != call:
                    transcript = with_effect_of_other(conversation, call, other, transcript)
        return transcript
