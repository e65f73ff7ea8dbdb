"""promptfoo's assertions on the tools that an agent calls, as strict checks.

They are read as promptfoo's `src/assertions/trajectory.ts` reads them: a tool is named by a text, or by an
object with a `name` or a `pattern`, in which `*` and `?` stand for other characters.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from ci_evals.extensions.importers.promptfoo.values import UnmappedError, number_of, templates_in, text_of
from ci_evals.support.json_text import JsonObject

_MOST = 1_000_000


def _tool_used(value: Any, *, negated: bool) -> list[JsonObject]:
    if isinstance(value, dict):
        return [_counted(value, negated=negated)]
    strict, ending = ("tool_not_used", "is not used") if negated else ("tool_used", "is used")
    names = [_name(item) for item in (value if isinstance(value, list) else [value])]
    if not names:
        raise UnmappedError("has no value")
    return [{"criterion": f"{name} {ending}", "strict": strict, "toolName": name} for name in names]


def _counted(value: JsonObject, *, negated: bool) -> JsonObject:
    name, low, high = _name(value), _count(value, "min"), _count(value, "max")
    low = 1 if low is None else low
    if negated and high is not None and low > 0:
        raise UnmappedError("forbids a range of counts, which has no counterpart")
    if negated:
        low, high = (0, low - 1) if high is None else (high + 1, None)
    if high is None and low == 0:
        raise UnmappedError("is met by any number of calls")
    times = {"min": low} if high is None else {"min": low, "max": high}
    wanted = f"at least {low} times" if high is None else f"{low} to {high} times"
    return {
        "criterion": f"{name} is called {wanted}",
        "strict": "tool_called",
        "toolName": name,
        "times": times,
    }


def _sequence(value: Any, *, negated: bool) -> list[JsonObject]:
    fields = value if isinstance(value, dict) else {"steps": value}
    mode, steps = str(fields.get("mode") or "in_order"), fields.get("steps")
    if negated or mode not in _MODES:
        raise UnmappedError("has no counterpart")
    if not isinstance(steps, list) or not steps:
        raise UnmappedError("has no steps")
    names = [_name(step) for step in steps]
    return [
        {
            "criterion": f"Calls {', '.join(names)} in this order",
            "strict": "tool_sequence",
            "tools": names,
            **_MODES[mode],
        }
    ]


_MODES: Mapping[str, JsonObject] = {"in_order": {}, "exact": {"mode": "strict"}}


def _args_match(value: Any, *, negated: bool) -> list[JsonObject]:
    if not isinstance(value, dict):
        raise UnmappedError("has a value that ci-evals does not support")
    name, mode = _name(value), value.get("mode") or "partial"
    args = value["args"] if "args" in value else value.get("arguments")
    if not isinstance(args, dict) or mode not in ("partial", "exact"):
        raise UnmappedError("has a value that ci-evals does not support")
    ignored = _ignored(value, args, exact=mode == "exact")
    wanted = {key: _matcher(item, exact=mode == "exact") for key, item in args.items() if key not in ignored}
    if "{{" in (written := json.dumps(wanted)):
        raise UnmappedError(f"holds a template that cannot be filled: {templates_in(written)}")
    shown = json.dumps(args, ensure_ascii=False)
    shown = shown if len(shown) <= 60 else shown[:59] + "…"
    called = "not called" if negated else "called"
    check: JsonObject = {
        "criterion": f"{name} is {called} with {shown}",
        "strict": "tool_called",
        "toolName": name,
        "args": wanted,
    }
    check |= {"argsMode": "exact"} if mode == "exact" else {}
    return [check | ({"times": 0} if negated else {})]


def _ignored(value: JsonObject, args: JsonObject, *, exact: bool) -> list[str]:
    """The arguments that are not compared. They must be named, and others must be allowed."""
    ignore, defaults = value.get("ignore") or [], value.get("defaults") or {}
    names = [ignore] if isinstance(ignore, str) else ignore
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnmappedError("has a value that ci-evals does not support")
    as_default = not isinstance(defaults, dict) or bool(defaults.keys() & args.keys())
    if ((names or defaults) and exact) or as_default or any("*" in name or "?" in name for name in names):
        raise UnmappedError("leaves arguments out in a way that has no counterpart")
    return names


def _matcher(value: Any, *, exact: bool) -> Any:
    """The matcher of one argument; in part means that objects may hold more, on every level."""
    if not isinstance(value, dict | list):
        return value
    inner = value.values() if isinstance(value, dict) else value
    if not exact and any(_holds_object(item) for item in inner):
        raise UnmappedError("compares objects within an argument in part, which has no counterpart")
    return {"equals": value} if exact or isinstance(value, list) else {"contains": value}


def _holds_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_holds_object, value)))


def _step_count(value: Any, *, negated: bool) -> list[JsonObject]:
    if negated or not isinstance(value, dict):
        raise UnmappedError("has no counterpart")
    if value.get("type") not in ("tool", ["tool"]):
        raise UnmappedError("counts steps that are not tool calls, which has no counterpart")
    named = value.get("name") or value.get("pattern")
    if named not in (None, "*"):
        return [_counted({"min": 0, **value}, negated=False)]
    low, high = _count(value, "min"), _count(value, "max")
    if high is None or low:
        raise UnmappedError("asks for a minimum of calls of any tool, which has no counterpart")
    criterion = f"At most {high} tool calls"
    return [{"criterion": criterion, "strict": "max_tool_calls", "calls": high}]


def _name(value: Any) -> str:
    """The one tool that is named."""
    if isinstance(value, dict):
        if value.get("type") not in (None, "tool", ["tool"]):
            raise UnmappedError("is about steps that are not tool calls, which has no counterpart")
        value = value.get("pattern") or value.get("name")
    name = text_of(value)
    if "*" in name or "?" in name:
        raise UnmappedError("names tools by a pattern, which has no counterpart")
    return name


def _count(value: JsonObject, key: str) -> int | None:
    given = value.get(key)
    return None if given is None else int(number_of(given, 0, _MOST, key))


READERS: Mapping[str, Callable[..., list[JsonObject]]] = {
    "trajectory:tool-used": _tool_used,
    "trajectory:tool-sequence": _sequence,
    "trajectory:tool-args-match": _args_match,
    "trajectory:step-count": _step_count,
}
"""By the assertion's type: its value as evaluations. Each raises `UnmappedError` if it has no counterpart."""
