"""promptfoo's assertions as evaluations of ours, if both mean the same."""

import json
from dataclasses import dataclass
from typing import Any

import regex

from ci_evals.domain.checks.evaluation import STRICT_KINDS
from ci_evals.domain.checks.strict_check import PositiveCheck
from ci_evals.domain.errors import SuiteError
from ci_evals.extensions.importers.promptfoo import trajectories
from ci_evals.extensions.importers.promptfoo.values import (
    UnmappedError,
    list_of,
    number_of,
    templates_in,
    text_of,
    texts_of,
)
from ci_evals.planning.documents.reader import read
from ci_evals.support import json_schema
from ci_evals.support.json_text import JsonObject

NOT = "not-"


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
    """Map an assertion, whose texts have been filled in; an `UnmappedError` if it has no counterpart."""
    kind = str(assertion.get("type", ""))
    base, value, threshold = kind.removeprefix(NOT), assertion.get("value"), assertion.get("threshold")
    evaluations = _evaluations(base, value, threshold, negated=kind.startswith(NOT))
    for item in evaluations:
        check = STRICT_KINDS.get(str(item.get("strict")))
        if check is not None and check.chooses_reply():
            turn = selector.positive if issubclass(check, PositiveCheck) else selector.negative
            item.update({} if turn == "last" else {"turn": turn})
    metric = _metric(assertion.get("metric"))
    share = number_of(assertion.get("weight", 1), 0, 1_000_000, "weight") / len(evaluations)
    for item in evaluations:
        item.update({} if share == 1 else {"weight": share})
        item.update({"category": metric} if metric else {})
    known = _READ | ({"threshold"} if threshold is None or base in _WITH_THRESHOLD else set())
    return MappedAssertion(evaluations, sorted(set(assertion) - known))


def _metric(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise UnmappedError("its metric is not a string")
    return value.strip()


_READ = {"type", "value", "weight", "metric"}
_WITH_THRESHOLD = {"latency", "similar"}


def _evaluations(kind: str, value: Any, threshold: Any, *, negated: bool) -> list[JsonObject]:
    if kind in _JUDGED or kind in _FIXED_CRITERIA:
        return _judged(kind, value, negated=negated)
    if read := trajectories.READERS.get(kind):
        return read(value, negated=negated)
    if kind == "is-json" and not negated:
        return [{"criterion": "The reply is JSON", "strict": "json_schema", "schema": _schema(value)}]
    if kind == "cost":
        raise UnmappedError("has no counterpart: what the agent costs is not known here")
    if kind == "similar" and not negated:
        return _similar(value, threshold)
    if kind == "latency" and not negated:
        most = number_of(threshold, 1, 86_400_000, "threshold") / 1000
        return [{"criterion": f"Replies come within {most:g} s", "strict": "max_latency", "seconds": most}]
    return _on_text(kind, value, negated=negated)


def _on_text(kind: str, value: Any, *, negated: bool) -> list[JsonObject]:
    fold = "(?i)" if kind.startswith("i") else ""
    match kind:
        case "contains":
            text, strict = text_of(value), "not_contains" if negated else "contains"
            return [{"criterion": _says("contains", text, negated=negated), "strict": strict, "text": text}]
        case "equals" if not negated:
            expected: JsonObject = {"strict": "answer_matches", "expected": text_of(value), "match": "exact"}
            return [{"criterion": _says("is", text_of(value), negated=False)} | expected]
        case "contains-all" | "icontains-all" if not negated:
            each = kind.removesuffix("-all")
            return [item for text in list_of(value) for item in _on_text(each, text, negated=False)]
        case "contains-any" | "icontains-any":
            texts = list_of(value)
            verb, text, pattern = "contains one of", ", ".join(texts), "|".join(map(_quoted, texts))
        case "icontains":
            verb, text, pattern = "contains", text_of(value), _quoted(text_of(value))
        case "starts-with":
            verb, text, pattern = "begins with", text_of(value), rf"\A{_quoted(text_of(value))}"
        case "equals":
            verb, text, pattern = "is", text_of(value), rf"\A\s*{_quoted(text_of(value))}\s*\Z"
        case "regex":
            verb, text, pattern = "matches", text_of(value), text_of(value)
        case _:
            raise UnmappedError("has no counterpart")
    return [_pattern(_says(verb, text, negated=negated), fold + pattern, negated=negated)]


def _pattern(criterion: str, pattern: str, *, negated: bool) -> JsonObject:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise UnmappedError(f"is not a regular expression in Python's syntax ({error})") from error
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
    return [{"criterion": form.replace("{}", text.strip())} for text in texts_of(value)]


def _similar(value: Any, threshold: Any) -> list[JsonObject]:
    expected = texts_of(value)
    return [
        {
            "criterion": _says("means the same as", ", or ".join(expected), negated=False),
            "strict": "answer_matches",
            "expected": expected[0] if len(expected) == 1 else expected,
            "match": "semantic",
            "threshold": _DEFAULT_SIMILARITY
            if threshold is None
            else number_of(threshold, 0, 1, "threshold"),
        }
    ]


_DEFAULT_SIMILARITY = 0.75
"""promptfoo's."""


def _schema(value: Any) -> JsonObject:
    """The schema of `is-json`; without one any JSON will do."""
    if isinstance(value, str) and value.strip():
        try:
            value = read(text_of(value), "schema.yaml").value
        except SuiteError as error:
            raise UnmappedError(f"has a schema that cannot be read ({error.problems[0].message})") from None
    match value:
        case None | True | "":
            return {}
        case dict():
            if "{{" in (written := json.dumps(value)):
                raise UnmappedError(f"holds a template that cannot be filled: {templates_in(written)}")
            if fault := json_schema.fault(value):
                raise UnmappedError(f"has a schema that ci-evals does not accept ({fault})")
            return value
    raise UnmappedError("has a value that ci-evals does not support")
