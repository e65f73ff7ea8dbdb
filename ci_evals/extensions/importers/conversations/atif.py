"""ATIF: trajectories of agents, versions 1.0 to 1.7.

Source: the Agent Trajectory Interchange Format of Harbor (harborframework.com/docs/trajectory-format). A step
is of the user, of the agent or of the system; the agent's has its tool calls, and their results in its
observation. From 1.6 on a message may be a list of parts.
"""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from ci_evals.domain.errors import SuiteError
from ci_evals.extension_support.drafting.conversation import Kind, Part, RecordedConversation, assemble
from ci_evals.extensions.importers.conversations.recorded_file import LocatedValue, RecordedFile
from ci_evals.extensions.importers.records import MOST_TESTS, Remarks
from ci_evals.support import payload

_VERSION = re.compile(r"ATIF-v1\.([0-7])(?:\.\d+)?")
_SOURCES = {"user": Kind.USER, "agent": Kind.AGENT, "system": Kind.SYSTEM}

Object = dict[str, JsonValue]


def read(file: RecordedFile, remarks: Remarks) -> list[RecordedConversation]:
    """Read the trajectories of a file: one, a list of them, or one a line."""
    found = [item for one in file.values() for item in (one.items() or [one])]
    if len(found) > MOST_TESTS:
        raise found[MOST_TESTS].fault(f"more than {MOST_TESTS:,} trajectories. Split the file.")
    conversations: list[RecordedConversation] = []
    for one in found:
        try:
            conversation = _conversation(one)
        except SuiteError as error:
            if len(found) == 1:
                raise
            for problem in error.problems:
                remarks.leave_out(problem)
        else:
            conversations.append(conversation)
            _remark(one, remarks)
    return conversations


def _conversation(one: LocatedValue) -> RecordedConversation:
    value = one.value
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        raise one.fault("is no trajectory: it has no list of steps")
    version = value.get("schema_version")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        shown = payload.shorten(str(version))
        raise one.fault(f"schema_version is {shown!r}; read are ATIF-v1.0 to ATIF-v1.7")
    try:
        assembled = assemble(_parts(one.at("steps")), calls_known=True)
    except ValueError as error:
        raise one.fault(str(error)) from error
    if not assembled.turns:
        raise one.fault("the trajectory has no step of a user with one of the agent after it")
    return RecordedConversation(
        name=payload.name(value.get("trajectory_id")) or payload.name(value.get("session_id")) or "",
        place=one.place,
        turns=assembled.turns,
        notes=assembled.notes,
    )


def _remark(one: LocatedValue, remarks: Remarks) -> None:
    value = one.value if isinstance(one.value, dict) else {}
    if value.get("subagent_trajectories"):
        message = "subagent_trajectories: calls of sub-agents are not imported"
        remarks.note(one.document.problem(one.path, message))
    if value.get("continued_trajectory_ref"):
        message = "continued_trajectory_ref: the rest of the conversation is in another file"
        remarks.note(one.document.problem(one.path, message))


def _parts(steps: LocatedValue) -> Iterator[Part]:
    for step in steps.items():
        value = step.value
        if not isinstance(value, dict) or str(value.get("source")) not in _SOURCES:
            raise step.fault("is no step: its source is none of user, agent and system")
        if value.get("is_copied_context") is True:
            continue
        kind = _SOURCES[str(value["source"])]
        text = payload.joined(value.get("message"), "text").strip()
        if text:
            yield Part(kind, text)
        if kind is Kind.AGENT:
            yield from _actions(value)


def _actions(step: Object) -> Iterator[Part]:
    """Yield the calls of a step of the agent, and what they returned."""
    calls = step.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        item: Object = {
            "id": payload.member(call, "tool_call_id"),
            "name": payload.member(call, "function_name"),
            "arguments": payload.member(call, "arguments"),
        }
        yield Part(Kind.CALL, item=item)
    results = payload.member(step.get("observation"), "results")
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict):
            returned: Object = {
                "tool_call_id": result.get("source_call_id"),
                "content": result.get("content"),
            }
            yield Part(Kind.RESULT, item=returned)
