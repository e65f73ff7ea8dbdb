"""`label`: the sheet on which people say what the judge should have said: a table, a page, and guidelines."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from ci_evals.adapters import files as output_files
from ci_evals.cli.files.output_paths import check_output
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.calibration import sheet_reading
from ci_evals.extensions.calibration.items import Item, Part, items, sample
from ci_evals.extensions.calibration.settings import LabelSettings
from ci_evals.extensions.calibration.spot_check_runs import SpotCheckRuns
from ci_evals.library.runs import results_file
from ci_evals.reports import sanitize
from ci_evals.reports.content_policy import policy_of
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


def write_sheet(results: Path, output: Path, most: int, seed: int, context: RunContext) -> None:
    """Write a sheet of at most `size` items, its page, and the guidelines.

    Raises:
        UsageError: the run cannot be read or holds nothing to label, or a sheet is there that holds labels;
            nothing is written then.
    """
    file = results_file(results)
    for name in (SHEET, PAGE):
        check_output("`output=`", output / name, {"RESULTS": file})
    run = SavedRun.open(file, context.hide())
    _check_unlabeled(output / SHEET)
    available = items(run.results)
    if not available:
        raise UsageError(
            f"{file}: no judge has decided anything in it, so there is nothing to label. Run the suites with "
            "a judge (`provider=`)"
        )
    drawn = sample(available, most, seed)
    output_files.write_all(output, files_of(drawn))
    some = f"{len(drawn)} of " if len(drawn) < len(available) else ""
    context.show(
        sanitize.log_line(
            f"{some}{numbers.count(len(available), 'verdict')} to label in {output}: open {PAGE}, or fill in "
            f"{SHEET}. Then: ci-evals calibrate LABELS --results={results}"
        )
    )


def write_spot_check(settings: LabelSettings, base: Path, context: RunContext) -> None:
    """Write a sheet of verdicts on a run and on its baseline. Nothing on it tells whose they are.

    Raises:
        UsageError: as for `write_sheet`, or the runs cannot be compared.
    """
    file, output = results_file(settings.results), settings.output
    for name in (SHEET, PAGE):
        check_output("`output=`", output / name, {"RESULTS": file, "`spot_check=`": results_file(base)})
    each = settings.items // 2
    runs = SpotCheckRuns.read(settings.results, base, each, settings.seed, context.hide())
    _check_unlabeled(output / SHEET)
    output_files.write_all(output, files_of(runs.sheet))
    also = "" if settings.items == LabelSettings.items else f" --items={settings.items}"
    also += f" --seed={settings.seed}" if settings.seed else ""
    verdicts = " + ".join(str(len(side)) for side in runs.drawn)
    told = (
        f"{verdicts} verdicts to label in {output}: open {PAGE}, or fill in {SHEET}. Then: "
        f"ci-evals calibrate LABELS --results={settings.results} --spot-check={base}{also}"
    )
    context.show(sanitize.log_line(told, 1_000))


def _check_unlabeled(file: Path) -> None:
    """Make sure that no labels are overwritten, nor anything else."""
    elsewhere = "is not overwritten; name another folder with `output=`"
    try:
        labels = sheet_reading.count_labels(file)
    except UsageError as error:
        raise UsageError(f"{file}: another file is there, and {elsewhere}: {error}") from error
    if labels:
        raise UsageError(f"{file}: it holds {numbers.count(labels, 'label')}, and {elsewhere}")


def files_of(drawn: Sequence[Item]) -> dict[str, str]:
    """The files of a sheet, by their names. None tells what the judge said."""
    guidelines = render("extensions/calibration/templates/guidelines.md.j2", page=PAGE, sheet=SHEET)
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
    cut = text if len(text) <= MOST_IN_CELL else text[:MOST_IN_CELL].rstrip() + _CUT
    return _FORMULA.sub(r"\1\2'", cut)


def page(drawn: Sequence[Item], guidelines: str) -> str:
    """The page: shows one item at a time, and saves the filled table. It asks nobody for anything."""
    style, script = _asset("sheet.css"), _asset("sheet.js")
    data = {
        "columns": COLUMNS,
        "formula": FORMULA,
        "mostInCell": MOST_IN_CELL,
        "cut": _CUT,
        "sheet": hashlib.sha256("".join(item.id for item in drawn).encode()).hexdigest()[:16],
        "items": [{"item": item.id, "criterion": item.criterion, "parts": item.parts} for item in drawn],
    }
    return render(
        "extensions/calibration/templates/sheet.html.j2",
        policy=policy_of(style, script),
        style=style,
        script=script,
        data=json.dumps(data).replace("<", "\\u003c"),
        guidelines=[line.removeprefix("- ") for line in guidelines.splitlines() if line.startswith("- ")],
        count=len(drawn),
    )


def _asset(name: str) -> str:
    return files("ci_evals").joinpath(f"extensions/calibration/assets/{name}").read_text(encoding="utf-8")
