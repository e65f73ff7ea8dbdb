"""A row of a table of promptfoo tests as a test case.

The columns are those that promptfoo documents: `__expected`, `__description` and the like. Any other one is a
variable.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from ci_evals.extensions.importers.promptfoo.values import UnmappedError, number_in, split_at_commas
from ci_evals.support.json_text import JsonObject

_TYPES = (
    "agent-rubric|answer-relevance|bleu|classifier|contains|contains-all|contains-any|contains-html|contains-json|"
    "contains-sql|contains-xml|context-faithfulness|context-recall|context-relevance|conversation-relevance|cost|"
    "equals|factuality|finish-reason|g-eval|gleu|guardrails|icontains|icontains-all|icontains-any|is-html|is-json|"
    "is-refusal|is-sql|is-valid-function-call|is-valid-openai-function-call|is-valid-openai-tools-call|is-xml|"
    "javascript|latency|levenshtein|llm-rubric|meteor|model-graded-closedqa|model-graded-factuality|moderation|"
    "perplexity|perplexity-score|pi|python|regex|rouge-n|ruby|search-rubric|similar|similar:cosine|similar:dot|"
    "similar:euclidean|skill-used|starts-with|tool-call-f1|trace-error-spans|trace-span-count|trace-span-duration|"
    "trajectory:goal-success|trajectory:step-count|trajectory:tool-args-match|trajectory:tool-sequence|"
    "trajectory:tool-used|webhook|word-count"
)
"""The types of assertions that promptfoo 0.121 reads from a cell; any other text is the expected output."""
_OF_TYPE = re.compile(
    rf"(?P<type>(not-)?({_TYPES}))(\((?P<threshold>\d+(\.\d+)?)\))?(:(?P<value>.*))?", re.DOTALL
)
_LISTS = {"contains-all", "contains-any", "icontains-all", "icontains-any"}
_WITH_THRESHOLD = {"answer-relevance", "latency", "similar", "cost"}
_DEFAULT_THRESHOLDS = {"similar": 0.8}
_DEFAULT_THRESHOLD = 0.75
_CODE = {"javascript:": "javascript", "fn:": "javascript", "eval:": "javascript", "python:": "python"}
_RUBRIC = ("grade:", "llm-rubric:")
_FIELDS = {
    "__description": ("", "description"),
    "__providerOutput": ("", "providerOutput"),
    "__threshold": ("", "threshold"),
    "__prefix": ("options", "prefix"),
    "__suffix": ("options", "suffix"),
}
"""Columns, and the field of a test that each is: in one of its parts, or in the test itself."""
_METRIC = "__metric"
_OF_TEST = {"vars", "assert", "options", "metadata", "provider", "providerOutput", "threshold", "description"}
_METADATA = "__metadata:"
_CONFIG = re.compile(r"__config:__expected(\d*):threshold")
_EXPECTED = "__expected"
_MISTAKEN = re.compile(r"_(expected|threshold|metric|config|metadata)|__(config|metadata)(?!:)|__config:")
"""Columns that were meant as another, which has a part in the test's checks."""


def is_row(item: JsonObject) -> bool:
    """Return whether an object is a row: promptfoo takes none for a test that has no key of one."""
    return bool(item) and not _OF_TEST & set(item)


def case_of(row: JsonObject) -> JsonObject:
    """Return the test case of a row.

    Raises:
        ValueError: a cell is not what its column says.
    """
    parts: dict[str, JsonObject] = {"": {}, "vars": {}, "options": {}, "metadata": {}}
    asserts: list[JsonObject] = []
    thresholds: dict[int, float] = {}
    for name, value in row.items():
        key, text = str(name).strip(), _text(value)
        if key == _METRIC or (key.startswith("__") and not text):
            continue
        if key.startswith(_EXPECTED):
            asserts.append(_assertion(text))
        elif key in _FIELDS:
            part, field = _FIELDS[key]
            parts[part][field] = text
        elif key.startswith(_METADATA):
            parts["metadata"] |= _metadata(key.removeprefix(_METADATA), text)
        elif config := _CONFIG.fullmatch(key):
            thresholds[int(config[1] or 1)] = number_in(text, key)
        elif text and _MISTAKEN.match(key):
            raise ValueError(f"promptfoo does not read the column {key!r}, and a check may be meant")
        else:
            parts["vars"][key] = value
    case = parts.pop("")
    if "threshold" in case:
        case["threshold"] = number_in(case["threshold"], "__threshold")
    _complete(asserts, thresholds, str(row.get(_METRIC) or "").strip())
    case |= {key: part for key, part in parts.items() if part}
    return case | ({"assert": asserts} if asserts else {})


def _text(value: Any) -> str:
    """Return a cell as a text; in a row of JSON it may be anything."""
    if isinstance(value, str):
        return value.strip()
    return "" if value is None else json.dumps(value)


def _complete(asserts: list[JsonObject], thresholds: Mapping[int, float], metric: str) -> None:
    """Give the assertions what further columns say of them."""
    for number, threshold in thresholds.items():
        if not 0 < number <= len(asserts):
            raise ValueError(f"it has a threshold for __expected{number}, which it does not have")
        asserts[number - 1]["threshold"] = threshold
    if metric:
        for assertion in asserts:
            assertion["metric"] = metric


def _metadata(key: str, text: str) -> JsonObject:
    if not key.endswith("[]"):
        return {key: text}
    return {
        key.removesuffix("[]"): [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", text)]
    }


def _assertion(text: str) -> JsonObject:
    """Return the assertion that a cell holds in short: `icontains: hello`, or the expected output."""
    for prefix, kind in _CODE.items():
        if text.startswith(prefix):
            return {"type": kind, "value": text.removeprefix(prefix).strip()}
    for prefix in _RUBRIC:
        if text.startswith(prefix):
            return {"type": "llm-rubric", "value": text.removeprefix(prefix).strip()}
    found = _OF_TYPE.fullmatch(text)
    if found is None:
        return {"type": "equals", "value": text}
    kind, base = found["type"], found["type"].removeprefix("not-")
    value: Any = (found["value"] or "").strip()
    if base in _LISTS:
        try:
            value = split_at_commas(value)
        except UnmappedError as error:
            raise ValueError(f"its {kind} {error}") from None
    assertion: JsonObject = {"type": kind} | ({"value": value} if value else {})
    if base in _WITH_THRESHOLD:
        assertion["threshold"] = float(
            found["threshold"] or _DEFAULT_THRESHOLDS.get(base, _DEFAULT_THRESHOLD)
        )
    elif found["threshold"]:
        assertion["threshold"] = float(found["threshold"])
    return assertion
