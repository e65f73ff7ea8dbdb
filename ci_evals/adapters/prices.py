"""Reads prices of models: the bundled table, or a file of the user."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.adapters.suites import read_text
from ci_evals.domain.errors import Problem, UsageError
from ci_evals.domain.prices import PriceTable
from ci_evals.planning.documents.document import Document
from ci_evals.planning.documents.reader import read as read_document

_FORM = "a price file has the form  models: {MODEL: {input: 1, output: 5}}, in US dollars per million tokens"


@cache
def bundled() -> PriceTable:
    """Return the bundled prices, with their date."""
    name = "prices.yaml"
    return _parse(files("ci_evals.adapters").joinpath(name).read_text(encoding="utf-8"), name)


def read(path: Path) -> PriceTable:
    """Return the prices in a YAML or JSON file, which replace the bundled ones.

    Raises:
        UsageError: it cannot be read, or is no table of prices; with every problem and its position.
    """
    name = path.as_posix()
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"{name}: the name of a price file ends in {', '.join(ENDINGS)}")
    return _parse(read_text(path, name), name)


def _parse(text: str, name: str) -> PriceTable:
    document = read_document(text, name)
    problems = list(document.problems)
    try:
        table = PriceTable.model_validate_json(
            json.dumps(document.value), strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        problems += _faults(document, error)
    if problems:
        raise UsageError("\n".join([*map(str, problems), f"{name}: {_FORM}"]))
    return table


def _faults(document: Document, error: ValidationError) -> Iterator[Problem]:
    for detail in error.errors(include_url=False):
        problem = detail["msg"].removeprefix("Input ")
        message = {
            "missing": "is missing",
            "extra_forbidden": "unknown key",
            "model_type": "should be an object",
        }.get(detail["type"], f"{problem[0].lower()}{problem[1:]}, found {json.dumps(detail['input'])[:60]}")
        path = tuple(step for step in detail["loc"] if step != "[key]")
        yield document.problem(path, message, at_key=detail["type"] == "extra_forbidden")
