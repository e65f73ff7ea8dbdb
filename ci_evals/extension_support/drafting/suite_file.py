"""Writes a drafted test to a suite: a new file, or one that is there and keeps its text."""

import json
from collections.abc import Iterator, Mapping

import yaml

from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.extension_support.suite_writing import is_yaml, with_notes, write
from ci_evals.planning.documents.document import Document, Path
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.documents.json_document import span_of
from ci_evals.planning.documents.reader import read
from ci_evals.planning.documents.yaml_document import Loader
from ci_evals.planning.parse import load
from ci_evals.support.json_text import JsonObject

_MOST_PROBLEMS = 5


def new_suite(head: JsonObject, test: JsonObject, file: str, notes: Mapping[Path, str]) -> str:
    """Return the text of a suite with one test.

    Args:
        head: The suite without tests, as a suite's file has it: `${NAME}` in it stands for a variable.
        test: The test, likewise.
        file: The name of the file.
        notes: On the test, by their path within it.

    Raises:
        UsageError: the test is not valid.
    """
    check_test(test)
    return write(head | {"tests": [test]}, file, notes=_in_suite(notes, 0))


def with_test(text: str, file: str, test: JsonObject, notes: Mapping[Path, str]) -> str:
    """Return the text of a suite with one more test at its end; all else in it stays as it is.

    Raises:
        UsageError: the test is not valid, its name is taken, or the text is no suite to which one can be
            added.
    """
    check_test(test)
    document = read(text, file)
    tests = document.value.get("tests") if isinstance(document.value, dict) else None
    if not isinstance(tests, list) or not tests:
        raise UsageError(f"{file}: is no suite with tests. Name a new file.")
    taken = {one.get("name") for one in tests if isinstance(one, dict)}
    if test["name"] in taken:
        raise UsageError(f"{file}: has a test named {test['name']!r} already. Give another name.")
    added = test
    if is_yaml(file):
        ways = _in_yaml(text, file, test, notes)
    else:
        added = with_notes(test, notes)
        ways = _in_json(text, document, added)
    for longer in ways:
        if _adds(longer, document, added, file):
            return longer
    raise UsageError(f"{file}: a test cannot be added to its text as it is written. Name a new file.")


def check_test(test: JsonObject) -> None:
    """Make sure that our reader takes the test.

    Raises:
        UsageError: with its problems.
    """
    try:
        suite = write({"name": "-", "tests": [test]}, "test.json")
        load(suite, "test.json", Reading(masked=True))
    except SuiteError as error:
        problems = error.problems[:_MOST_PROBLEMS]
        listed = "\n".join(f"  {problem.path}: {problem.message}" for problem in problems)
        raise UsageError(f"This cannot be written as a test:\n{listed}") from error


def _in_suite(notes: Mapping[Path, str], index: int) -> dict[Path, str]:
    return {("tests", index, *path): note for path, note in notes.items()}


def _adds(longer: str, document: Document, test: JsonObject, file: str) -> bool:
    """Return whether a text reads as the suite with the test, and nothing else."""
    try:
        value = read(longer, file).value
    except SuiteError:
        return False
    expected = document.value | {"tests": [*document.value["tests"], test]}
    return bool(value == expected)


def _in_yaml(text: str, file: str, test: JsonObject, notes: Mapping[Path, str]) -> Iterator[str]:
    """Yield ways to write the test: after the last one, before comments that follow it or after them."""
    node = _tests_in_yaml(text)
    if node is None or node.flow_style:
        return
    newline = "\r\n" if "\r\n" in text else "\n"
    written = write({"tests": [test]}, file, notes=_in_suite(notes, 0))
    indent = " " * node.start_mark.column
    item = [f"{indent}{line}" if line else line for line in written.splitlines()[1:]]
    lines = text.splitlines()
    end = min(node.value[-1].end_mark.line + (node.value[-1].end_mark.column > 0), len(lines))
    before_comments = end
    while before_comments and not lines[before_comments - 1].partition("#")[0].strip():
        before_comments -= 1
    for place in dict.fromkeys((before_comments, end)):
        yield newline.join([*lines[:place], *item, *lines[place:]]) + newline


def _tests_in_yaml(text: str) -> yaml.SequenceNode | None:
    root = yaml.compose(text, Loader=Loader)
    if isinstance(root, yaml.MappingNode):
        for key, value in root.value:
            if key.value == "tests" and isinstance(value, yaml.SequenceNode):
                return value
    return None


def _in_json(text: str, document: Document, test: JsonObject) -> Iterator[str]:
    """Yield the text with the test after the last one."""
    last = len(document.value["tests"]) - 1
    start, end = span_of(("tests", last), document, text)
    indent = " " * (start - text.rfind("\n", 0, start) - 1)
    written = json.dumps(test, ensure_ascii=False, indent=2).replace("\n", f"\n{indent}")
    yield f"{text[:end]},\n{indent}{written}{text[end:]}"
