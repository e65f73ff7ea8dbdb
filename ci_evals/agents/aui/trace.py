"""Reading the trace of AUI's task API. Pure.

Each function returns None if the trace lacks the part that would show it: no evidence, which is not evidence
that nothing happened.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from pydantic import JsonValue

from ci_evals.adapters import tool_calls
from ci_evals.domain.transcript import Integration
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

Trace = dict[str, JsonValue]

_PARAM_KEYS = ("extracted_params", "extractedParams", "parameters_extracted", "parametersExtracted")
_PARAM_NAMES = ("code", "param", "name", "key")
_PARAM_NOTES = frozenset({*_PARAM_NAMES, "value", "title", "type", "scope"})
_ACTIVATES = ("activate_tool", "activate_sub_tool")
_POSITIVE = frozenset({"true", "triggered", "fired"})


def params(trace: Trace) -> dict[str, JsonValue] | None:
    """Return extracted parameters by code."""
    values = list(_param_values(trace))
    readable = [value for value in values if isinstance(value, dict | list)]
    if not readable:
        return {} if not values and isinstance(trace.get("understanding"), dict) else None
    read: dict[str, JsonValue] = {}
    for value in readable:
        if isinstance(value, dict):
            read |= {code: _unwrapped(item) for code, item in value.items()}
        elif not all(payload.name(item, _PARAM_NAMES) for item in value if item is not None):
            return None  # an unreadable one may be the one that matters
        else:
            for item in value:
                name = payload.name(item, _PARAM_NAMES)
                if name and isinstance(item, dict) and "value" in item:
                    read[name] = item["value"]
    return read


def named_params(trace: Trace) -> tuple[str, ...]:
    """Return the parameters that are named without a value."""
    lists = [value for value in _param_values(trace) if isinstance(value, list)]
    if isinstance(computed := trace.get("computed_parameters"), list):
        lists.append(computed)
    items = chain.from_iterable(lists)
    bare = [item for item in items if not (isinstance(item, dict) and "value" in item)]
    return _unique(filter(None, (payload.name(item, _PARAM_NAMES) for item in bare)))


def activated(trace: Trace) -> tuple[str, ...] | None:
    """Return the activated tools, which replace workflows if the reply names none."""
    decisions = _decisions(trace)
    if decisions is None:
        return None
    made = [decision for decision in decisions if decision.get("type") in _ACTIVATES]
    return _unique(filter(None, (payload.name(decision.get("tool")) for decision in made)))


def rules(trace: Trace) -> tuple[str, ...] | None:
    """Return the codes of the rules that fired. `rules_evaluations` also lists others, and is never read."""
    holders = (trace, payload.filled(trace.get("understanding")))
    lists = [holder.get("rules_evaluated") for holder in holders if holder]
    evaluated = [value for value in lists if isinstance(value, list)]
    decisions = _decisions(trace)
    if decisions is None and not evaluated:
        return None
    fired = [*_fired_in_decisions(decisions or ())]
    for items in evaluated:
        fired += [code for code, positive in _results(items) if positive]
    return _unique(fired)


def integrations(trace: Trace) -> tuple[Integration, ...] | None:
    """Return the calls of external systems."""
    decisions = _decisions(trace)
    if decisions is None:
        return None
    calls = []
    for decision in decisions:
        call = payload.filled(decision.get("integration"))
        if call and (code := payload.name(call, ("code", "name"))):
            calls.append(_integration(call, code))
    return tuple(calls)


def error_response(trace: Trace) -> bool | None:
    """Return whether the agent marks its reply as an error."""
    kind = payload.member(trace.get("response"), "type")
    return kind == "error" if isinstance(kind, str) else None


def error_detail(trace: Trace, redactor: Redactor) -> str | None:
    """Return the agent's error on one line. Secrets are removed before it is shortened."""
    error = redactor.json(payload.member(trace.get("response"), "error"))
    return payload.shorten(payload.explain(error) or str(error)) if error else None


def status_of(value: JsonValue) -> int | None:
    """Read an HTTP status, given as a number or as text."""
    match value:
        case bool():
            return None
        case int() | float() if value == int(value) and 0 <= value <= 999:
            return int(value)
        case str() if value.strip().isascii() and value.strip().isdigit() and len(value.strip()) <= 3:
            return int(value)
        case _:
            return None


def _param_values(trace: Trace) -> Iterator[JsonValue]:
    for holder in (payload.filled(trace.get("understanding")), trace):
        for key in _PARAM_KEYS:
            if holder and holder.get(key) is not None:
                yield holder[key]


def _unwrapped(value: JsonValue) -> JsonValue:
    """Return the value of `{"value": …}`; an object with other keys is itself the value."""
    if isinstance(value, dict) and "value" in value and _PARAM_NOTES.issuperset(value):
        return value["value"]
    return value


def _decisions(trace: Trace) -> tuple[dict[str, JsonValue], ...] | None:
    """Return the agent's decisions. A trace with an `understanding` leaves them out if there were none."""
    decisions = trace.get("decisions")
    if isinstance(decisions, list):
        known = [item for item in decisions if item is not None]
        objects = tuple(item for item in known if isinstance(item, dict))
        # An unreadable one may be the one that matters.
        return objects if len(objects) == len(known) else None
    return () if decisions is None and isinstance(trace.get("understanding"), dict) else None


def _fired_in_decisions(decisions: Iterable[dict[str, JsonValue]]) -> Iterator[str]:
    for decision in decisions:
        if code := payload.name(payload.member(decision.get("rule"), "code")):
            yield code
        elif isinstance(listed := decision.get("rules"), list):
            # A rule in a decision has fired unless its entry says otherwise.
            yield from (code for code, positive in _results(listed) if positive is not False)
        yield from (code for code, positive in _results(decision.get("rules_evaluated")) if positive)


def _results(items: JsonValue) -> Iterator[tuple[str, bool | None]]:
    """Yield each rule's code and whether it fired; None if the entry does not say."""
    for item in items if isinstance(items, list) else ():
        if not (code := payload.name(item, ("code", "rule_id", "ruleId", "id"))):
            continue
        fields = item if isinstance(item, dict) else {}
        results = [fields[key] for key in ("triggered", "result", "fired") if key in fields]
        positive = any(str(value).strip().lower() in _POSITIVE for value in results)
        yield code, positive if results else None


def _integration(call: dict[str, JsonValue], code: str) -> Integration:
    status = status_of(call.get("status_code"))
    if status is None:
        status = status_of(call.get("statusCode"))
    error = call.get("error_message") or call.get("errorMessage")
    return Integration(
        code=code,
        status=status,
        type=payload.name(call.get("type")),
        error=payload.explain(error) if error else _tool_error(call),
        arguments=_arguments(call),
        tools=tool_calls.read_all(_tools(call)) or None,
    )


def _arguments(call: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Return the parameters of all requests of a call, or the question of a search; None without a report."""
    if isinstance(question := payload.member(call.get("request"), "question"), str):
        return {"question": question}
    requests = call.get("requests")
    params = [payload.member(each, "params") for each in requests] if isinstance(requests, list) else []
    known = [each for each in params if isinstance(each, dict)]
    if not known or len(known) < len(params):
        return None
    return {name: value for each in known for name, value in each.items()}


def _tools(call: dict[str, JsonValue]) -> list[JsonValue]:
    listed = call.get("tool_calls") or call.get("toolCalls")
    return listed if isinstance(listed, list) else []


def _tool_error(call: dict[str, JsonValue]) -> str | None:
    """Return an error if all tools of a call over MCP failed; such a call has no status."""
    tools = [tool for tool in _tools(call) if isinstance(tool, dict)]
    failed = [tool for tool in tools if tool.get("is_error") is True or tool.get("isError") is True]
    return "every tool that it called answered with an error" if failed and failed == tools else None


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
