"""Reading the answers of any JSON endpoint by the paths in its options. Pure.

A value without a path, or not at its path, is unknown (null). Only a value that is there and empty is
evidence that nothing happened.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from ci_evals.adapters import tool_calls
from ci_evals.adapters.call_pieces import NAME_KEYS
from ci_evals.adapters.hand_over import hands_over, with_tools
from ci_evals.adapters.transport.streams import Event
from ci_evals.agents import chat_messages
from ci_evals.agents.chat_thread import Seen, Thread
from ci_evals.domain.actions import CallViews, views_of
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import UNREAD_WORDS, Reply, ToolCall
from ci_evals.extension_support.missing_values import why_not_found
from ci_evals.extensions.http import values
from ci_evals.extensions.http.options import NOT_PATHS, HttpReply
from ci_evals.extensions.http.values import NAMES, Matches
from ci_evals.support import payload
from ci_evals.support.json_path import JsonPath
from ci_evals.support.redaction import Redactor

_EVIDENCE: Mapping[str, Callable[[Reply], object]] = {
    "tool_calls": lambda reply: reply.tool_calls,
    "workflows": lambda reply: reply.workflows,
    "params": lambda reply: reply.params,
    "rules": lambda reply: reply.rules,
    "integrations": lambda reply: reply.integrations,
    "escalated": lambda reply: reply.handed_over,
    "error": lambda reply: reply.error_response,
}
"""Paths to what checks rest on, and that part of a reply, which is null where one finds nothing."""
_LISTS = ("tool_calls", "workflows", "params", "rules", "integrations")
"""Paths to lists, of which every entry must be readable."""
_ENTRY_NAMES = frozenset({*NAMES, *NAME_KEYS})
_UNREADABLE = {"tool_calls": f"Each call there needs its name under {tool_calls.NAMES}"}
"""The advice if a path finds something else."""


class _Said(NamedTuple):
    """The words and calls of an answer."""

    text: str | None
    calls: tuple[ToolCall, ...] | None
    doubt: str | None = None
    """Why there may be other calls, if there may."""
    unread: str | None = None
    """Why there may be other words, if there may."""
    lacking: str = "text"
    """The name of what is missing if there are no words."""


class Reader:
    """Reads the answers of one agent."""

    def __init__(
        self,
        paths: HttpReply,
        until: str | None = None,
        *,
        streamed: bool = False,
        escalation_tools: Collection[str] = (),
    ) -> None:
        """With `streamed`, answers are lists of events, in which texts are parts of one text."""
        self._until = JsonPath(until) if until else None
        self._is_stream, self._joint = streamed, "" if streamed else "\n\n"
        self._paths = {name: JsonPath(text) for name, text in paths.paths.items()}
        self._escalated_when = paths.escalated_when
        self._escalation_tools = escalation_tools

    def reply(
        self,
        body: JsonValue,
        seconds: float,
        redactor: Redactor,
        *,
        thread: Thread | None = None,
        first_token_seconds: float | None = None,
        keep_raw: bool = False,
    ) -> Reply:
        """Read a reply; raise `AgentError` if it holds no text, or is too large for the paths."""
        matches = {name: self._find(name, body) for name in HttpReply.model_fields if name not in NOT_PATHS}
        for name in _LISTS:
            if name in self._paths and self._lacks_some(name, body, matches[name]):
                matches[name] = (None,)
        failed, detail = values.error(matches["error"], redactor)
        escalated = self._escalated(matches["escalated"], redactor)
        said = self._said(matches, thread or Thread())
        text, calls = said.text, said.calls
        if text is None:
            handed_over = escalated or hands_over((call.name for call in calls or ()), self._escalation_tools)
            if not (failed or handed_over):
                raise self._no_words(said.lacking, body, redactor)
            text = ""
        params, named_params = self._params(matches["params"])
        workflows = values.names_in(matches["workflows"])
        lacks_view = self._lacks("workflows", workflows) or self._lacks("params", params)
        reply = Reply(
            agent=text,
            latency_seconds=seconds,
            first_token_seconds=first_token_seconds,
            **self._views(calls, workflows, params),
            tool_calls_partial=calls is not None and lacks_view,
            handed_over=escalated,
            handed_over_apart="escalated" in self._paths or "workflows" not in self._paths,
            named_params=named_params,
            rules=values.names_in(matches["rules"]),
            integrations=values.integrations_in(matches["integrations"]),
            error_response=failed,
            error_detail=detail,
            input_tokens=values.tokens(matches["input_tokens"]),
            output_tokens=values.tokens(matches["output_tokens"]),
            trace=self._trace(matches["trace"]),
            raw=body if keep_raw else None,
        )
        not_found = self._not_found(reply, matches, body, redactor)
        unproven = self._unproven(matches, body)
        if said.doubt:
            not_found["toolCalls"] = said.doubt
            reply = reply.copy_with(tool_calls_partial=calls is not None)
        if said.unread:
            not_found[UNREAD_WORDS] = said.unread
        if not_found or unproven:
            reply = reply.copy_with(not_found=not_found, unproven=unproven)
        return with_tools(reply, self._escalation_tools, reported="escalated" in self._paths)

    def messages(self, body: JsonValue) -> list[Seen]:
        """Return the chat messages in an answer, as a thread keeps them."""
        return chat_messages.seen(values.items_of(self._find("messages", body) or ()))

    def _said(self, matches: dict[str, Matches], thread: Thread) -> _Said:
        """Return the words and calls of an answer; those of its messages where they have no path."""
        text, calls = self._text(matches["text"]), values.calls_in(matches["tool_calls"])
        if "messages" not in self._paths:
            return _Said(text, calls)
        try:
            answer = chat_messages.read(values.items_of(matches["messages"] or ()), thread)
        except ValueError as error:
            return _Said(text, calls, lacking=str(error))
        unread = None
        if "text" not in self._paths:
            text, unread = answer.text, answer.unread
        if "tool_calls" in self._paths:
            return _Said(text, calls, tool_calls.left_out(calls or (), answer.calls or ()), unread=unread)
        return _Said(text, answer.calls, answer.doubt, unread=unread)

    def _escalated(self, matches: Matches, redactor: Redactor) -> bool | None:
        """Return whether the agent hands over; raise `AgentError` for a value that is neither yes nor no."""
        try:
            return values.escalated(matches, self._escalated_when)
        except values.UnclearValueError as error:
            path, excerpt = self._paths["escalated"].text, shown(error.value, redactor)
            raise AgentError(
                f"adapterOptions.reply.escalated ({path}) finds {excerpt}, which is neither true nor false. "
                f"Say which value is a hand-over, as in `escalatedWhen: {{oneOf: [handoff, human]}}` next to "
                f"`escalated: {path}`, or let `escalated` be the path of true or false"
            ) from None

    def _no_words(self, lacking: str, body: JsonValue, redactor: Redactor) -> AgentError:
        key = "text" if "text" in self._paths else "messages"
        return AgentError(
            f"the agent's answer has no {lacking} at {self._paths[key].text}: {shown(body, redactor)} "
            f"(see adapterOptions.reply.{key})"
        )

    def _not_found(
        self, reply: Reply, matches: dict[str, Matches], body: JsonValue, redactor: Redactor
    ) -> dict[str, str]:
        """Return why evidence is unknown that has a path, by the path's key."""
        not_found = {}
        for name, evidence in _EVIDENCE.items():
            if name in self._paths and evidence(reply) is None:
                key, path = to_camel(name), self._paths[name].text
                hint = "" if matches[name] is None else _UNREADABLE.get(name, "Correct the path")
                not_found[key] = why_not_found(path, f"reply.{key}", body, redactor, hint)
        return not_found

    def _unproven(self, matches: dict[str, Matches], body: JsonValue) -> dict[str, str]:
        """Return the paths of evidence that reject all they could choose from, by their keys."""
        return {
            to_camel(name): self._paths[name].text
            for name in _EVIDENCE
            if matches[name] == () and self._paths[name].rejects_all(body)
        }

    def _views(
        self,
        calls: tuple[ToolCall, ...] | None,
        workflows: tuple[str, ...] | None,
        params: dict[str, JsonValue] | None,
    ) -> CallViews:
        """Return the calls and what follows from them, but for what has a path of its own and is unknown."""
        views = views_of(calls, workflows, params)
        if self._lacks("workflows", workflows):
            views["workflows"] = None
        if self._lacks("params", params):
            views["params"] = None
        return views

    def _lacks(self, name: str, value: object) -> bool:
        """Return whether a value that has a path of its own is unknown."""
        return name in self._paths and value is None

    def is_last(self, event: Event) -> bool:
        """Return whether an event completes a streamed answer, by the path in `until`."""
        value = event_of(event)
        if self._until is None or self._until.finds_none_in_list_of(value):
            return False
        return any(map(values.is_true, values.items_of(self._search(self._until, [value]) or ())))

    def first_token(self, events: Iterable[Event]) -> float | None:
        """Return the seconds after which the first words of a streamed answer came."""
        for event in events:
            if (self._text(self._find("text", [event_of(event)])) or "").strip():
                return event.seconds
        return None

    def check_message(self, body: JsonValue, message_id: str, redactor: Redactor) -> None:
        """Raise `AgentError` if there is a path to message ids and the answer has another one there."""
        if "message_id" not in self._paths:
            return
        ids = self._find("message_id", body)
        if not ids:
            raise AgentError(
                f"the agent's answer has no message id at {self._paths['message_id'].text}: "
                f"{shown(body, redactor)} (see adapterOptions.reply.messageId)"
            )
        if ids != (message_id,):
            raise AgentError(
                f"the agent answered another message: the answer has the id {shown([*ids], redactor)}, "
                f'the message "{message_id}"'
            )

    def _find(self, name: str, body: JsonValue) -> Matches:
        return self._search(self._paths.get(name), body)

    def _search(self, path: JsonPath | None, body: JsonValue) -> Matches:
        if path is None:
            return None
        try:
            return path.find(body)
        except ValueError as error:
            raise AgentError(f"the agent's answer {error} for the path {path.text}") from None

    def _lacks_some(self, name: str, body: JsonValue, matches: Matches) -> bool:
        """Return whether an entry is null or lacks its name: it may be the one that matters.

        In a stream nulls are usual: most events say nothing of most things.
        """
        if matches is None:
            return False
        holes = any(value is None for value in matches if not self._is_stream)
        holes |= any(item is None for value in matches if isinstance(value, list) for item in value)
        return holes or self._paths[name].skips_some(body, _ENTRY_NAMES)

    def _text(self, matches: Matches) -> str | None:
        items = values.known_items(values.with_texts_of_parts(matches))
        if items is None:
            return None
        texts = [item if isinstance(item, str) else values.number_text(item) for item in items]
        known = [text for text in texts if text is not None]
        if items and not known:
            return None
        if len(known) > 1 and self._joint:
            known = [text for text in known if text.strip()]
        return self._joint.join(known)

    def _params(self, matches: Matches) -> tuple[dict[str, JsonValue] | None, tuple[str, ...]]:
        """Return parameters by name, and the names of those without a value."""
        if matches is None or matches == (None,):
            return None, ()
        if self._paths["params"].single and isinstance(matches[0], dict):
            return dict(matches[0]), ()
        items = values.items_of(matches)
        params: dict[str, JsonValue] = {}
        bare: list[str] = []
        for item in items:
            name = payload.name(item, NAMES)
            if not isinstance(item, dict):
                if name is None:
                    return None, ()
                bare.append(name)
            elif name is not None and "value" not in item and len(item) > 1:
                return None, ()  # a name whose value is elsewhere, or parameters of which one is called so
            elif name is None:
                params |= item
            elif "value" in item:
                params[name] = item["value"]
            else:
                bare.append(name)
        if items and not params and not bare:
            return None, ()
        return params, tuple(name for name in dict.fromkeys(bare) if name not in params)

    def _trace(self, matches: Matches) -> JsonValue:
        if matches is None:
            return None
        return matches[0] if self._paths["trace"].single else [*matches]


def event_of(event: Event) -> JsonValue:
    """Return an event as the paths see it: its value, or `{event, data}` if it has a name."""
    return {"event": event.type, "data": event.value} if event.type else event.value


def session_of(body: JsonValue, path: JsonPath, redactor: Redactor) -> str:
    """Return the id of the conversation that was opened; raise `AgentError` if there is none."""
    try:
        matches = path.find(body)
    except ValueError as error:
        raise AgentError(f"the agent's answer {error} for the path {path.text}") from None
    for value in matches or ():
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    raise AgentError(
        f"the agent opened a conversation without an id at {path.text}: {shown(body, redactor)} "
        "(see adapterOptions.open.session)"
    )


def shown(body: JsonValue, redactor: Redactor) -> str:
    """Return an excerpt of an answer. Secrets are removed before it is shortened."""
    return payload.shorten(json.dumps(redactor.json(body), ensure_ascii=False))
