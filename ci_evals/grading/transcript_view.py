"""A conversation as a judge sees it: messages, expectations, agent actions, and why it ended."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NotRequired, TypedDict

from pydantic import JsonValue

from ci_evals.domain.actions import (
    AgentAction,
    LogicKind,
    actions_of,
    other_workflows,
    own_calls,
    params_are_arguments,
)
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.suite import PlannedTurn, Test, history, unsent_lines
from ci_evals.domain.transcript import END_REASONS, ENDED_BY_A_SPEAKER, Reply, Transcript
from ci_evals.support.json_text import written


def background(test: Test | TestResult) -> dict[str, JsonValue]:
    """Return what a judge is told of a test beside its conversation. Secrets are still there."""
    facts: dict[str, JsonValue] = {"user_info": test.user_info, "guidelines": test.guidelines}
    if given := history(test.turns):
        facts[_GIVEN] = [*given]
    return facts


_GIVEN = "history_that_the_agent_was_given_and_that_is_not_to_be_judged"


class TurnView(TypedDict):
    """A turn as a judge is shown it; its keys are those in the prompt."""

    turn: int
    user: str
    agent: str
    expected: NotRequired[str]
    did: NotRequired[dict[str, object]]


class UnsentLine(TypedDict):
    """A line of the test that was never sent."""

    turn: int
    user: str


class EndView(TypedDict):
    """The end of a conversation as a judge is shown it."""

    end: str
    lines_never_sent: NotRequired[list[UnsentLine]]
    closing_remark_of_the_user: NotRequired[str]
    state_of_the_systems_after_the_conversation: NotRequired[dict[str, JsonValue]]


class ConversationView(NamedTuple):
    """A conversation as a judge is shown it."""

    turns: list[TurnView]
    end: EndView

    def listed(self) -> list[TurnView | EndView]:
        """Return the turns and the end as the one list that the prompt has."""
        return [*self.turns, self.end]


def conversation(
    planned_turns: Sequence[PlannedTurn], transcript: Transcript, *, actions: bool = False
) -> ConversationView:
    """Return the turns, with the agent's actions on request, how they ended, and the state of the world then.

    Secrets are still there.
    """
    turns: list[TurnView] = []
    for turn in transcript.turns:
        view = TurnView(turn=turn.index, user=turn.user, agent=turn.agent)
        if expectation := planned_turns[turn.index - 1].expectation:
            view["expected"] = expectation
        if actions and (did := agent_actions(turn)):
            view["did"] = did
        turns.append(view)
    end = EndView(end=END_REASONS[transcript.status])
    if unsent := lines_never_sent(planned_turns, transcript):
        end["lines_never_sent"] = unsent
    if transcript.closing_remark:
        end["closing_remark_of_the_user"] = transcript.closing_remark
    probed = {name: probe.value for name, probe in transcript.probes.items() if probe.error is None}
    if probed:
        end["state_of_the_systems_after_the_conversation"] = {
            name: _bounded(value) for name, value in probed.items()
        }
    return ConversationView(turns, end)


def lines_never_sent(planned_turns: Sequence[PlannedTurn], transcript: Transcript) -> list[UnsentLine]:
    """Return the test's own lines that a conversation ended before, each with the number of its turn."""
    if transcript.status not in ENDED_BY_A_SPEAKER:
        return []
    lines = []
    for number in unsent_lines(planned_turns, len(transcript.turns)):
        planned = planned_turns[number - 1]
        if planned.fixed:
            lines.append(UnsentLine(turn=number, user=planned.user))
    return lines


_MOST_OF_STATE = 10_000
"""Characters of a probe's result: a judge can make little of more."""


def _bounded(value: JsonValue) -> JsonValue:
    length = len(written(value))
    return value if length <= _MOST_OF_STATE else f"(not shown: {length:,} characters)"


def texts_by_turn(view: ConversationView) -> dict[int, list[str]]:
    """Return the texts of each turn that a judge may quote; what comes after the last turn counts to that.

    Actions and state may be quoted as they stand in the prompt, or on one line.
    """
    texts: dict[int, list[str]] = {}
    for turn in view.turns:
        texts[turn["turn"]] = [turn["user"], turn["agent"]]
        if did := turn.get("did"):
            texts[turn["turn"]] += _as_quoted(did)
    if texts:
        last = texts[max(texts)]
        if "closing_remark_of_the_user" in view.end:
            last.append(view.end["closing_remark_of_the_user"])
        if state := view.end.get("state_of_the_systems_after_the_conversation"):
            last += _as_quoted(state)
    return texts


def _as_quoted(value: Mapping[str, object]) -> list[str]:
    """Return JSON in both forms in which a judge may quote it."""
    return [json.dumps(value, ensure_ascii=False, indent=indent) for indent in (1, None)]


def agent_actions(reply: Reply) -> dict[str, object] | None:
    """Return the actions that a reply reports, in the words of the prompt; None if it reports none.

    Unknown kinds of action are left out, so that it does not look as if nothing had happened.
    """
    actions = actions_of(reply)
    calls, integrations = own_calls(reply), actions[LogicKind.INTEGRATION]
    parameters = actions[LogicKind.PARAMETER] or ()
    reported = {
        "tool_calls": None
        if calls is None
        else [call.model_dump(include=_SHOWN, exclude_none=True) for call in calls],
        "workflows": other_workflows(reply),
        "parameters": None
        if reply.params is None or params_are_arguments(reply)
        else {action.name: action.value for action in parameters if action.value_reported},
        "parameters_without_value": _names([a for a in parameters if not a.value_reported] or None),
        "rules": _names(actions[LogicKind.RULE]),
        "integrations": None
        if integrations is None
        else [action.call.model_dump(exclude_none=True) for action in integrations if action.call],
    }
    return {name: value for name, value in reported.items() if value is not None} or None


_SHOWN = {"name", "arguments", "result", "status", "agent"}


def _names(actions: Sequence[AgentAction] | None) -> list[str] | None:
    return None if actions is None else [action.name for action in actions]
