"""The sheet on which people say what the judge should have said: a table, a page, and guidelines."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Sequence
from importlib.resources import files

from ci_evals.reports.content_policy import policy_of
from ci_evals.studies.calibration.items import Item, Part
from ci_evals.support.templates import render

SHEET, PAGE, GUIDELINES = "sheet.csv", "sheet.html", "guidelines.md"
COLUMNS = ("item", "criterion", "conversation", "label", "note", "labeller")
MOST_IN_CELL = 30_000
"""Characters: a cell of a spreadsheet holds 32,767."""
_CUT = "\n… (cut; sheet.html has it whole)"
FORMULA = r"""(^|[;\t\n])([\s"']*)(?=[=+\-@＝＋－＠])"""
"""The places where a spreadsheet may take text for a formula: where a cell begins, or what it takes for one
when it cuts a table by semicolons, tabs or lines. Scripts read it too."""
_FORMULA = re.compile(FORMULA)


def files_of(drawn: Sequence[Item]) -> dict[str, str]:
    """The files of a sheet, by their names. None tells what the judge said."""
    guidelines = render("studies/calibration/templates/guidelines.md.j2", page=PAGE, sheet=SHEET)
    return {SHEET: table(drawn), PAGE: page(drawn, guidelines), GUIDELINES: guidelines}


def table(drawn: Sequence[Item]) -> str:
    """The items as CSV, with empty labels; the mark at its beginning tells spreadsheets that it is UTF-8."""
    text = io.StringIO()
    rows = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    rows.writerow(COLUMNS)
    for item in drawn:
        rows.writerow([item.id, *(cell(one) for one in (item.criterion, readable(item.parts))), "", "", ""])
    return "\ufeff" + text.getvalue()


def readable(parts: Sequence[Part]) -> str:
    """A conversation as text, each of its lines marked, so that none looks like one of ours."""
    return "\n".join(
        line for part in parts for line in (f"{part.head}:", *(f"> {line}" for line in part.text.split("\n")))
    )


def cell(text: str) -> str:
    """`text` as a spreadsheet can hold it, and never takes it for a formula."""
    told = text if len(text) <= MOST_IN_CELL else text[:MOST_IN_CELL].rstrip() + _CUT
    return _FORMULA.sub(r"\1\2'", told)


def page(drawn: Sequence[Item], guidelines: str) -> str:
    """The page: shows one item at a time, and saves the filled table. It asks nobody for anything."""
    style, script = _asset("sheet.css"), _asset("sheet.js")
    told = {
        "columns": COLUMNS,
        "formula": FORMULA,
        "mostInCell": MOST_IN_CELL,
        "cut": _CUT,
        "sheet": hashlib.sha256("".join(item.id for item in drawn).encode()).hexdigest()[:16],
        "items": [{"item": item.id, "criterion": item.criterion, "parts": item.parts} for item in drawn],
    }
    return render(
        "studies/calibration/templates/sheet.html.j2",
        policy=policy_of(style, script),
        style=style,
        script=script,
        data=json.dumps(told).replace("<", "\\u003c"),
        guidelines=_sections(guidelines),
        count=len(drawn),
    )


def _sections(guidelines: str) -> list[str]:
    """The rules of the guidelines, as a page lists them."""
    return [line.removeprefix("- ") for line in guidelines.splitlines() if line.startswith("- ")]


def _asset(name: str) -> str:
    return files("ci_evals").joinpath(f"studies/calibration/assets/{name}").read_text(encoding="utf-8")
