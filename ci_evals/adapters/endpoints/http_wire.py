"""What an answer of any JSON endpoint means, by the paths that its user gives. Pure.

What has no path, or is not where the path leads, is unknown (null). Only what is there and empty is evidence
that nothing happened.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import JsonValue

from ci_evals.adapters.endpoints import aui_trace
from ci_evals.adapters.transport import payload
from ci_evals.domain.agents import HttpReply
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import Integration, Reply
from ci_evals.support.json_path import JsonPath
from ci_evals.support.redaction import Redactor

_NAMES = ("name", "code", "key")
_MOST_TOKENS = 10**12
"""Of one reply: more is no count."""
_NO = frozenset({"", "false", "no", "0", "none", "null"})
"""Texts that say no, in small letters."""

Found = tuple[JsonValue, ...] | None


class Reader:
    """Reads the answers of one agent."""

    def __init__(self, paths: HttpReply) -> None:
        """Reads the paths."""
        named = paths.model_dump(exclude_none=True)
        self._paths = {name: JsonPath(text) for name, text in named.items()}

    def reply(self, body: JsonValue, seconds: float, redactor: Redactor, *, keep_raw: bool = False) -> Reply:
        """A reply in our words.

        Raises:
            AgentError: it holds no text, or is too large for the paths.
        """
        found = {name: self._find(name, body) for name in HttpReply.model_fields}
        failed, detail = _error(found["error"], redactor)
        escalated = _escalated(found["escalated"])
        text = _text(found["text"])
        if text is None:
            if not (failed or escalated):
                raise AgentError(
                    f"the agent's answer has no text at {self._paths['text'].text}: {shown(body, redactor)} "
                    "(see adapterOptions.reply.text)"
                )
            text = ""
        params, named_params = self._params(found["params"])
        return Reply(
            agent=text,
            latency_seconds=seconds,
            workflows=_names(found["workflows"]),
            handed_over=escalated,
            handed_over_apart="escalated" in self._paths,
            params=params,
            named_params=named_params,
            rules=_names(found["rules"]),
            integrations=_integrations(found["integrations"]),
            error_response=failed,
            error_detail=detail,
            input_tokens=_tokens(found["input_tokens"]),
            output_tokens=_tokens(found["output_tokens"]),
            trace=self._trace(found["trace"]),
            raw=body if keep_raw else None,
        )

    def check_message(self, body: JsonValue, message_id: str, redactor: Redactor) -> None:
        """Check that an answer belongs to a message, if there is a path to its id.

        Raises:
            AgentError: it belongs to another message, or does not say.
        """
        if "message_id" not in self._paths:
            return
        found = self._find("message_id", body)
        if not found:
            raise AgentError(
                f"the agent's answer has no message id at {self._paths['message_id'].text}: "
                f"{shown(body, redactor)} (see adapterOptions.reply.messageId)"
            )
        if found != (message_id,):
            raise AgentError(
                f"the agent answered another message: the answer has the id {shown([*found], redactor)}, "
                f'the message "{message_id}"'
            )

    def _find(self, name: str, body: JsonValue) -> Found:
        path = self._paths.get(name)
        if path is None:
            return None
        try:
            return path.find(body)
        except ValueError as error:
            raise AgentError(f"the agent's answer {error} for the path {path.text}") from None

    def _params(self, found: Found) -> tuple[dict[str, JsonValue] | None, tuple[str, ...]]:
        """Parameters by name, and the names of those whose value was not told."""
        if found is None or found == (None,):
            return None, ()
        if self._paths["params"].single and isinstance(found[0], dict):
            return dict(found[0]), ()
        items = _items(found)
        params: dict[str, JsonValue] = {}
        bare: list[str] = []
        for item in items:
            name = payload.name(item, _NAMES)
            if not isinstance(item, dict):
                if name is None:
                    return None, ()
                bare.append(name)
            elif name is None or ("value" not in item and len(item) > 1):
                params |= item
            elif "value" in item:
                params[name] = item["value"]
            else:
                bare.append(name)
        if items and not params and not bare:
            return None, ()
        return params, tuple(name for name in dict.fromkeys(bare) if name not in params)

    def _trace(self, found: Found) -> JsonValue:
        if found is None:
            return None
        return found[0] if self._paths["trace"].single else [*found]


def session_of(body: JsonValue, path: JsonPath, redactor: Redactor) -> str:
    """The id of the conversation that was opened.

    Raises:
        AgentError: there is none.
    """
    try:
        found = path.find(body)
    except ValueError as error:
        raise AgentError(f"the agent's answer {error} for the path {path.text}") from None
    for value in found or ():
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
    raise AgentError(
        f"the agent opened a conversation without an id at {path.text}: {shown(body, redactor)} "
        "(see adapterOptions.open.session)"
    )


def shown(body: JsonValue, redactor: Redactor) -> str:
    """One short line of what an answer holds. Secrets go before anything is cut."""
    return payload.shorten(json.dumps(redactor.json(body), ensure_ascii=False))


def _items(found: Sequence[JsonValue]) -> list[JsonValue]:
    """What was found, lists among it taken apart."""
    items: list[JsonValue] = []
    for value in found:
        items += value if isinstance(value, list) else [value]
    return [item for item in items if item is not None]


def _known(found: Found) -> list[JsonValue] | None:
    """The items; none where nothing but null was found, which is how servers write that they do not tell."""
    if found is None:
        return None
    items = _items(found)
    empty = not items and (not found or [] in found)
    return items if items or empty else None


def _text(found: Found) -> str | None:
    items = _known(found)
    if items is None:
        return None
    texts = [item if isinstance(item, str) else _number(item) for item in items]
    known = [text for text in texts if text is not None]
    if items and not known:
        return None
    return known[0] if len(known) == 1 else "\n\n".join(text for text in known if text.strip())


def _number(item: JsonValue) -> str | None:
    return str(item) if isinstance(item, int | float) and not isinstance(item, bool) else None


def _names(found: Found) -> tuple[str, ...] | None:
    items = _known(found)
    if items is None:
        return None
    names = tuple(name for item in items if (name := payload.name(item, _NAMES)))
    # One that cannot be read may be the one that must not be there.
    return names if len(names) == len(items) else None


def _integrations(found: Found) -> tuple[Integration, ...] | None:
    items = _known(found)
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


def _escalated(found: Found) -> bool | None:
    items = _known(found)
    return None if items is None else any(_says_yes(item) for item in items)


def _error(found: Found, redactor: Redactor) -> tuple[bool | None, str | None]:
    """Whether something went wrong, and what. Null where an error would be says that nothing did."""
    if found is None:
        return None, None
    wrong: Iterable[Any] = [item for item in _items(found) if _says_yes(item)]
    told = [text for item in wrong if (text := payload.explain(redactor.json(item)))]
    return bool(wrong), payload.shorten("; ".join(told)) if told else None


def _says_yes(value: JsonValue) -> bool:
    return value.strip().lower() not in _NO if isinstance(value, str) else bool(value)


def _tokens(found: Found) -> int | None:
    """The sum of the counts; null where there is none."""
    counts = [
        int(item)
        for item in _items(found or ())
        if isinstance(item, int | float) and not isinstance(item, bool) and 0 <= item == int(item)
    ]
    return min(sum(counts), _MOST_TOKENS) if counts else None
