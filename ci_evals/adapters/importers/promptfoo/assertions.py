"""promptfoo's assertions as evaluations of ours, if both mean the same."""

from dataclasses import dataclass
from typing import Any

import regex

from ci_evals.adapters.importers.imported import JsonObject

NOT = "not-"


class UnmappedError(Exception):
    """The assertion has no counterpart here; the text says why."""


@dataclass(frozen=True)
class ReplySelector:
    """The replies that promptfoo's output stands for: any, the last one, or one by its number."""

    positive: int | str
    negative: int | str
    """For text that must not occur: in any reply it is one too many."""


@dataclass(frozen=True)
class MappedAssertion:
    """The evaluations with the same meaning, and the keys of the assertion that they leave out."""

    evaluations: list[JsonObject]
    left: list[str]


def map_assertion(assertion: JsonObject, selector: ReplySelector) -> MappedAssertion:
    """Map an assertion, whose texts have been filled in, to evaluations.

    Raises:
        UnmappedError: none does.
    """
    kind = str(assertion.get("type", ""))
    base, value, threshold = kind.removeprefix(NOT), assertion.get("value"), assertion.get("threshold")
    evaluations = _evaluations(base, value, threshold, negated=kind.startswith(NOT))
    for item in evaluations:
        if item.get("strict") in _ON_TEXT:
            turn = selector.negative if item["strict"].startswith("not_") else selector.positive
            item.update({} if turn == "last" else {"turn": turn})
    share = _number(assertion.get("weight", 1), 0, 1_000_000, "weight") / len(evaluations)
    for item in evaluations:
        item.update({} if share == 1 else {"weight": share})
        if isinstance(metric := assertion.get("metric"), str) and metric.strip():
            item["category"] = metric.strip()
    known = _READ | ({"threshold"} if threshold is None or base in _WITH_THRESHOLD else set())
    return MappedAssertion(evaluations, sorted(set(assertion) - known))


_READ = {"type", "value", "weight", "metric"}
_WITH_THRESHOLD = {"latency", "similar"}
_ON_TEXT = ("contains", "not_contains", "regex", "not_regex", "answer_matches")


def _evaluations(kind: str, value: Any, threshold: Any, *, negated: bool) -> list[JsonObject]:
    if kind in _JUDGED or kind in _FIXED_CRITERIA:
        return _judged(kind, value, negated=negated)
    if kind == "trajectory:tool-used":
        return _tools(value, negated=negated)
    if kind == "similar" and not negated:
        return _similar(value, threshold)
    if kind == "latency" and not negated:
        most = _number(threshold, 1, 86_400_000, "threshold") / 1000
        return [{"criterion": f"Replies come within {most:g} s", "strict": "max_latency", "seconds": most}]
    return _on_text(kind, value, negated=negated)


def _on_text(kind: str, value: Any, *, negated: bool) -> list[JsonObject]:
    fold = "(?i)" if kind.startswith("i") else ""
    match kind:
        case "contains":
            text, strict = _text(value), "not_contains" if negated else "contains"
            return [{"criterion": _says("contains", text, negated=negated), "strict": strict, "text": text}]
        case "equals" if not negated:
            expected: JsonObject = {"strict": "answer_matches", "expected": _text(value), "match": "exact"}
            return [{"criterion": _says("is", _text(value), negated=False)} | expected]
        case "contains-all" | "icontains-all" if not negated:
            each = kind.removesuffix("-all")
            return [item for text in _texts(value) for item in _on_text(each, text, negated=False)]
        case "contains-any" | "icontains-any":
            verb, text, pattern = (
                "contains one of",
                ", ".join(_texts(value)),
                "|".join(map(_quoted, _texts(value))),
            )
        case "icontains":
            verb, text, pattern = "contains", _text(value), _quoted(_text(value))
        case "starts-with":
            verb, text, pattern = "begins with", _text(value), rf"\A{_quoted(_text(value))}"
        case "equals":
            verb, text, pattern = "is", _text(value), rf"\A\s*{_quoted(_text(value))}\s*\Z"
        case "regex":
            verb, text, pattern = "matches", _text(value), _text(value)
        case _:
            raise UnmappedError("has no counterpart")
    return [_pattern(_says(verb, text, negated=negated), fold + pattern, negated=negated)]


def _pattern(criterion: str, pattern: str, *, negated: bool) -> JsonObject:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise UnmappedError(f"is no regular expression in Python's syntax ({error})") from error
    return {"criterion": criterion, "strict": "not_regex" if negated else "regex", "pattern": pattern}


def _quoted(text: str) -> str:
    return regex.escape(text, special_only=True, literal_spaces=True)


def _says(verb: str, text: str, *, negated: bool) -> str:
    shown = text if len(text) <= 60 else text[:59] + "…"
    return f"No reply {verb} {shown!r}" if negated else f"The reply {verb} {shown!r}"


_JUDGED = {
    "llm-rubric": "{}",
    "agent-rubric": "{}",
    "search-rubric": "{}",
    "g-eval": "{}",
    "model-graded-closedqa": "{}",
    "factuality": "What the agent says agrees with these facts: {}",
    "model-graded-factuality": "What the agent says agrees with these facts: {}",
    "trajectory:goal-success": "The user reaches this goal: {}",
}
_FIXED_CRITERIA = {
    "is-refusal": ("The agent refuses what the user asks", "The agent does not refuse what the user asks"),
    "answer-relevance": ("The agent's answer is about what the user asks", None),
    "conversation-relevance": ("Each reply of the agent is about what was said before", None),
}


def _judged(kind: str, value: Any, *, negated: bool) -> list[JsonObject]:
    """Criteria for the judge, which passes or fails them; promptfoo's gives a grade."""
    if kind in _FIXED_CRITERIA:
        if criterion := _FIXED_CRITERIA[kind][negated]:
            return [{"criterion": criterion}]
        raise UnmappedError("has no counterpart")
    form = f"It is not so that: {_JUDGED[kind]}" if negated else _JUDGED[kind]
    return [{"criterion": form.replace("{}", text.strip())} for text in _texts(value)]


def _similar(value: Any, threshold: Any) -> list[JsonObject]:
    expected = _texts(value)
    return [
        {
            "criterion": _says("means the same as", ", or ".join(expected), negated=False),
            "strict": "answer_matches",
            "expected": expected[0] if len(expected) == 1 else expected,
            "match": "semantic",
            "threshold": _DEFAULT_SIMILARITY if threshold is None else _number(threshold, 0, 1, "threshold"),
        }
    ]


_DEFAULT_SIMILARITY = 0.75
"""promptfoo's."""


def _tools(value: Any, *, negated: bool) -> list[JsonObject]:
    strict, ending = ("tool_not_used", "is not used") if negated else ("tool_used", "is used")
    return [{"criterion": f"{name} {ending}", "strict": strict, "toolName": name} for name in _texts(value)]


def _text(value: Any) -> str:
    match value:
        case str() if value.startswith(("file://", "package:")):
            raise UnmappedError("names a file, which is not read")
        case str() if "{{" in value or "{%" in value:
            raise UnmappedError("holds a template that cannot be filled")
        case str() if value.strip():
            return value
        case int() | float() if not isinstance(value, bool):
            return str(value)
    raise UnmappedError("has a value that means nothing here")


def _texts(value: Any) -> list[str]:
    texts = [_text(item) for item in (value if isinstance(value, list) else [value])]
    if not texts:
        raise UnmappedError("has no value")
    return texts


def _number(value: Any, least: float, most: float, name: str) -> float:
    if type(value) not in {int, float} or not least <= value <= most:  # NaN is within nothing
        raise UnmappedError(f"its {name} is no number from {least:g} to {most:g}")
    return float(value)
