"""A conversation as a judge sees it: messages, expectations, agent actions, and why it ended."""

import json
from collections.abc import Sequence
from typing import Any

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
    shown: dict[str, JsonValue] = {"user_info": test.user_info, "guidelines": test.guidelines}
    if given := history(test.turns):
        shown[_GIVEN] = [*map(dict[str, JsonValue], given)]
    return shown


_GIVEN = "history_that_the_agent_was_given_and_that_is_not_to_be_judged"


def conversation(
    planned_turns: Sequence[PlannedTurn], transcript: Transcript, *, actions: bool = False
) -> list[dict[str, Any]]:
    """Return the turns, with the agent's actions on request, how they ended, and the state of the world then.

    Secrets are still there.
    """
    turns: list[dict[str, Any]] = []
    for turn in transcript.turns:
        shown: dict[str, Any] = {"turn": turn.index, "user": turn.user, "agent": turn.agent}
        if expectation := planned_turns[turn.index - 1].expectation:
            shown["expected"] = expectation
        if actions and (did := agent_actions(turn)):
            shown["did"] = did
        turns.append(shown)
    end: dict[str, Any] = {"end": END_REASONS[transcript.status]}
    if unsent := lines_never_sent(planned_turns, transcript):
        end["lines_never_sent"] = unsent
    if transcript.closing_remark:
        end["closing_remark_of_the_user"] = transcript.closing_remark
    if state := {name: _shown(one.value) for name, one in transcript.probes.items() if one.error is None}:
        end[_STATE] = state
    return [*turns, end]


def lines_never_sent(
    planned_turns: Sequence[PlannedTurn], transcript: Transcript
) -> list[dict[str, JsonValue]]:
    """Return the test's own lines that a conversation ended before, each with the number of its turn."""
    if transcript.status not in ENDED_BY_A_SPEAKER:
        return []
    numbered = (
        (line, planned_turns[line - 1]) for line in unsent_lines(planned_turns, len(transcript.turns))
    )
    return [{"turn": line, "user": planned.user} for line, planned in numbered if planned.fixed]


_STATE = "state_of_the_systems_after_the_conversation"
_MOST_OF_STATE = 10_000
"""Characters of a probe's result: a judge can make little of more."""


def _shown(value: JsonValue) -> JsonValue:
    length = len(written(value))
    return value if length <= _MOST_OF_STATE else f"(not shown: {length:,} characters)"


def texts_by_turn(shown: Sequence[dict[str, Any]]) -> dict[int, list[str]]:
    """Return the texts of each turn that a judge may quote; what comes after the last turn counts to that.

    Actions and state may be quoted as they stand in the prompt, or on one line.
    """
    *turns, end = shown
    texts = {turn["turn"]: [turn["user"], turn["agent"]] for turn in turns}
    for turn in turns:
        if did := turn.get("did"):
            texts[turn["turn"]] += (
                json.dumps(did, ensure_ascii=False, indent=indent) for indent in (1, None)
            )
    if texts and "closing_remark_of_the_user" in end:
        texts[max(texts)].append(end["closing_remark_of_the_user"])
    if texts and _STATE in end:
        texts[max(texts)] += (
            json.dumps(end[_STATE], ensure_ascii=False, indent=indent) for indent in (1, None)
        )
    return texts


def agent_actions(reply: Reply) -> dict[str, Any] | None:
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
