"""Evaluations added to the text of a suite. Its comments and its layout stay."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.extension_support.suite_writing import is_yaml
from ci_evals.extensions.mutate.result import Suggestion
from ci_evals.planning.documents.document import Document
from ci_evals.planning.documents.json_document import span_of
from ci_evals.planning.documents.reader import read
from ci_evals.planning.documents.yaml_document import Loader
from ci_evals.support.json_text import JsonObject

_NO_WRAP = 10**6


def with_evaluations(text: str, file: str, suggestions: Sequence[Suggestion]) -> str:
    """Return a suite's text with the evaluations of these suggestions at the end of their tests' lists.

    Raises:
        UsageError: the text is laid out so that they cannot be added.
    """
    expected = read(text, file).value
    try:
        for suggestion in suggestions:
            place = _place_of(suggestion.test, expected)
            text = _with_evaluation(text, file, place, suggestion.evaluation)
            expected["tests"][place]["evaluations"].append(suggestion.evaluation)
        if read(text, file).value == expected:
            return text
    except (SuiteError, yaml.YAMLError):  # aliases, which lead to the lines of another test
        pass
    raise UsageError(f"{file}: the checks cannot be added to this layout. Add suggestions.yaml by hand.")


def written_tests(text: str, file: str) -> frozenset[str]:
    """Return the names of the tests in a suite's text, without those that a persona or a pack adds."""
    return frozenset(test["name"] for test in read(text, file).value.get("tests", ()))


def _with_evaluation(text: str, file: str, place: int, evaluation: JsonObject) -> str:
    if is_yaml(file):
        return _with_yaml(text, place, evaluation)
    return _with_json(text, read(text, file), place, evaluation)


def _place_of(name: str, suite: Any) -> int:
    return next(place for place, test in enumerate(suite["tests"]) if test["name"] == name)


def _with_json(text: str, document: Document, place: int, evaluation: JsonObject) -> str:
    last = len(document.value["tests"][place]["evaluations"]) - 1
    start, end = span_of(("tests", place, "evaluations", last), document, text)
    old = text[start:end]
    line = text[text.rfind("\n", 0, start) + 1 : start]
    indent = line[: len(line) - len(line.lstrip())]
    if "\n" in old:
        written = json.dumps(evaluation, indent=2, ensure_ascii=False).replace("\n", f"\n{indent}")
    else:
        written = json.dumps(evaluation, ensure_ascii=False)
        if old.startswith("{ "):
            written = f"{{ {written[1:-1]} }}"
    return f"{text[:end]},\n{indent}{written}{text[end:]}"


def _with_yaml(text: str, place: int, evaluation: JsonObject) -> str:
    root: Any = yaml.compose(text, Loader)
    sequence = _value(_value(root, "tests").value[place], "evaluations")
    last = sequence.value[-1]
    if sequence.flow_style:
        end = last.end_mark.index
        return f"{text[:end]}, {json.dumps(evaluation, ensure_ascii=False)}{text[end:]}"
    end = _end_of_block(text, last)
    indent = " " * sequence.start_mark.column
    item = yaml.safe_dump([evaluation], sort_keys=False, allow_unicode=True, width=_NO_WRAP)
    written = "".join(f"{indent}{line}\n" for line in item.splitlines())
    before = text[:end]
    if not before.endswith("\n"):
        before += "\n"
    return before + written + text[end:]


def _value(mapping: Any, key: str) -> Any:
    for name, value in mapping.value:
        if name.value == key:
            return value
    raise KeyError(key)


def _end_of_block(text: str, node: yaml.Node) -> int:
    """Return where the line after a node of block style begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    end: int = node.end_mark.index
    if node.end_mark.column == 0:  # a text of several lines, which ends with its last line
        return end
    line_end = text.find("\n", end)
    return len(text) if line_end < 0 else line_end + 1
