"""Reading the answers of any JSON endpoint by the paths in its options. Pure.

A value without a path, or not at its path, is unknown (null). Only a value that is there and empty is
evidence that nothing happened.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from ci_evals.adapters import chat_messages, tool_calls
from ci_evals.adapters.endpoints import aui_trace
from ci_evals.adapters.transport import payload
from ci_evals.adapters.transport.streams import Event
from ci_evals.domain.actions import views_of
from ci_evals.domain.agents import HttpReply
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import Integration, Reply, ToolCall
from ci_evals.support.json_path import JsonPath
from ci_evals.support.redaction import Redactor

_NAMES = ("name", "code", "key")
_MAX_TOKENS = 10**12
_NO = frozenset({"", "false", "no", "0", "none", "null"})
"""Texts that mean no, in lower case."""

_EVIDENCE = {
    "tool_calls": "tool_calls",
    "workflows": "workflows",
    "params": "params",
    "rules": "rules",
    "integrations": "integrations",
    "escalated": "handed_over",
    "error": "error_response",
}
"""Paths to what checks rest on, and the fields of a reply that are null where one finds nothing."""
_LISTS = ("tool_calls", "workflows", "params", "rules", "integrations")
"""Paths to lists, of which every entry must be readable."""
_ENTRY_NAMES = frozenset({*_NAMES, *tool_calls.NAME_KEYS})
_UNREADABLE = {"tool_calls": f"Each call there needs its name under {tool_calls.NAMES}"}
"""The advice if a path finds something else."""

Matches = tuple[JsonValue, ...] | None
"""The values at a path; None if there is no path, or nothing at it."""


class Reader:
    """Reads the answers of one agent."""

    def __init__(self, paths: HttpReply, until: str | None = None, *, streamed: bool = False) -> None:
        """With `streamed`, answers are lists of events, in which texts are parts of one text."""
        self._until = JsonPath(until) if until else None
        self._is_stream, self._joint = streamed, "" if streamed else "\n\n"
        self._paths = {name: JsonPath(text) for name, text in paths.model_dump(exclude_none=True).items()}

    def reply(
        self,
        body: JsonValue,
        seconds: float,
        redactor: Redactor,
        *,
        first_token_seconds: float | None = None,
        keep_raw: bool = False,
    ) -> Reply:
        """Read a reply; raise `AgentError` if it holds no text, or is too large for the paths."""
        matches = {name: self._find(name, body) for name in HttpReply.model_fields}
        for name in _LISTS:
            if name in self._paths and self._lacks_some(name, body, matches[name]):
                matches[name] = (None,)
        failed, detail = _error(matches["error"], redactor)
        escalated = _escalated(matches["escalated"])
        text, calls = self._text(matches["text"]), _calls(matches["tool_calls"])
        reason = "text"
        if "messages" in self._paths:
            try:
                answer = chat_messages.read(_items(matches["messages"] or ()))
            except ValueError as error:
                reason = str(error)
            else:
                text = answer.text if "text" not in self._paths else text
                calls = answer.calls if "tool_calls" not in self._paths else calls
        if text is None:
            if not (failed or escalated):
                key = "text" if "text" in self._paths else "messages"
                raise AgentError(
                    f"the agent's answer has no {reason} at {self._paths[key].text}: {shown(body, redactor)} "
                    f"(see adapterOptions.reply.{key})"
                )
            text = ""
        params, named_params = self._params(matches["params"])
        reply = Reply(
            agent=text,
            latency_seconds=seconds,
            first_token_seconds=first_token_seconds,
            **self._views(calls, _names(matches["workflows"]), params),
            handed_over=escalated,
            handed_over_apart="escalated" in self._paths or "workflows" not in self._paths,
            named_params=named_params,
            rules=_names(matches["rules"]),
            integrations=_integrations(matches["integrations"]),
            error_response=failed,
            error_detail=detail,
            input_tokens=_tokens(matches["input_tokens"]),
            output_tokens=_tokens(matches["output_tokens"]),
            trace=self._trace(matches["trace"]),
            raw=body if keep_raw else None,
        )
        not_found = {}
        for name, field in _EVIDENCE.items():
            if name in self._paths and getattr(reply, field) is None:
                key, path = to_camel(name), self._paths[name].text
                hint = "" if matches[name] is None else _UNREADABLE.get(name, "Correct the path")
                not_found[key] = payload.why_not_found(path, f"reply.{key}", body, redactor, hint)
        return reply.model_copy(update={"not_found": not_found}) if not_found else reply

    def _views(
        self,
        calls: tuple[ToolCall, ...] | None,
        workflows: tuple[str, ...] | None,
        params: dict[str, JsonValue] | None,
    ) -> dict[str, Any]:
        """Return the calls and what follows from them, but for what has a path of its own and is unknown."""
        lacking = {
            name: None
            for name, value in (("workflows", workflows), ("params", params))
            if name in self._paths and value is None
        }
        return {
            **views_of(calls, workflows, params),
            **lacking,
            "tool_calls_partial": bool(calls is not None and lacking),
        }

    def is_last(self, event: Event) -> bool:
        """Return whether an event completes a streamed answer, by the path in `until`."""
        value = event_of(event)
        if self._until is None or self._until.finds_none_in_list_of(value):
            return False
        return any(map(_is_true, _items(self._search(self._until, [value]) or ())))

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
        items = _known(_with_texts_of_parts(matches))
        if items is None:
            return None
        texts = [item if isinstance(item, str) else _number(item) for item in items]
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
        items = _items(matches)
        params: dict[str, JsonValue] = {}
        bare: list[str] = []
        for item in items:
            name = payload.name(item, _NAMES)
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


def _items(matches: Sequence[JsonValue]) -> list[JsonValue]:
    """Return the matches and the items of lists among them, without nulls."""
    items: list[JsonValue] = []
    for value in matches:
        items += value if isinstance(value, list) else [value]
    return [item for item in items if item is not None]


def _with_texts_of_parts(matches: Matches) -> Matches:
    """Return the matches with the text of each part of a list: `{"type": "text", "text": …}`."""
    if matches is None:
        return None
    return tuple(
        [part.get("text") if isinstance(part, dict) else part for part in match]
        if isinstance(match, list)
        else match
        for match in matches
    )


def _known(matches: Matches) -> list[JsonValue] | None:
    """Return the items; None if all matches are null, by which servers mean that they do not know."""
    if matches is None:
        return None
    items = _items(matches)
    empty = not items and (not matches or [] in matches)
    return items if items or empty else None


def _number(item: JsonValue) -> str | None:
    return str(item) if isinstance(item, int | float) and not isinstance(item, bool) else None


def _names(matches: Matches) -> tuple[str, ...] | None:
    items = _known(matches)
    if items is None:
        return None
    names = tuple(name for item in items if (name := payload.name(item, _NAMES)))
    # An unreadable one may be the one that matters.
    return names if len(names) == len(items) else None


def _calls(matches: Matches) -> tuple[ToolCall, ...] | None:
    items = _known(matches)
    return None if items is None else tool_calls.read_all(items)


def _integrations(matches: Matches) -> tuple[Integration, ...] | None:
    items = _known(matches)
    if items is None:
        return None
    calls = tuple(call for item in items if (call := _integration(item)))
    return calls if len(calls) == len(items) else None


def _integration(item: JsonValue) -> Integration | None:
    code = payload.name(item, ("code", "name"))
    if code is None:
        return None
    statuses = (payload.member(item, key) for key in ("status", "statusCode", "status_code"))
    error = payload.member(item, "error")
    return Integration(
        code=code,
        status=next((s for value in statuses if (s := aui_trace.status_of(value)) is not None), None),
        type=payload.name(payload.member(item, "type")),
        error=payload.explain(error) if error else None,
    )


def _escalated(matches: Matches) -> bool | None:
    items = _known(matches)
    return None if items is None else any(map(_is_true, items))


def _error(matches: Matches, redactor: Redactor) -> tuple[bool | None, str | None]:
    """Return whether there was an error, and its text. Null instead of an error means none."""
    if matches is None:
        return None, None
    errors: Iterable[Any] = [item for item in _items(matches) if _is_true(item)]
    texts = [text for error in errors if (text := payload.explain(redactor.json(error)))]
    return bool(errors), payload.shorten("; ".join(texts)) if texts else None


def _is_true(value: JsonValue) -> bool:
    return value.strip().lower() not in _NO if isinstance(value, str) else bool(value)


def _tokens(matches: Matches) -> int | None:
    """Return the sum of the counts; None if there is none."""
    counts = [
        int(item)
        for item in _items(matches or ())
        if isinstance(item, int | float) and not isinstance(item, bool) and 0 <= item == int(item)
    ]
    return min(sum(counts), _MAX_TOKENS) if counts else None
