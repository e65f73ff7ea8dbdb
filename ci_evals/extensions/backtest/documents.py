"""The findings as files: for people, for programs, and for a terminal."""

from collections.abc import Mapping
from importlib.resources import files

from ci_evals.extensions.backtest import charts, wording
from ci_evals.extensions.backtest.figures import Backtest
from ci_evals.reports import columns, sanitize
from ci_evals.reports.content_policy import policy_of
from ci_evals.reports.markdown.sections import table_text
from ci_evals.reports.story.table import Table
from ci_evals.support import dataclass_json
from ci_evals.support.templates import render

DATA = "_backtest.json"
MARKDOWN = "backtest.md"
PAGE = "backtest.html"
_STYLES = ("page.css", "overview.css", "table.css", "charts.css", "print.css")


def files_of(found: Backtest) -> Mapping[str, str]:
    """Return the texts of all files by their names."""
    return {
        DATA: dataclass_json.to_json(found, indent=2) + "\n",
        MARKDOWN: _markdown(found),
        PAGE: _page(found),
    }


def summary(found: Backtest, width: int | None) -> str:
    """Return the findings for a terminal of this many columns."""
    tables = [wording.gate_table(found)]
    if found.settings:
        tables.append(wording.setting_table(found))
    if found.checks:
        tables.append(wording.check_table(found))
    sentences = _sentences(found)
    if found.left_out:
        sentences.append(f"Left out: {len(found.left_out):,} (see {MARKDOWN}).")
    parts = [_plain(table, width) for table in tables]
    parts.append("\n".join(map(sanitize.log_line, sentences)))
    return "\n\n".join(parts)


def _sentences(found: Backtest) -> list[str]:
    sentences = [
        wording.headline(found),
        wording.judgment(found),
        wording.prediction(found),
        wording.commits(found),
        wording.pull_requests(found),
    ]
    return [sentence for sentence in sentences if sentence]


def _plain(table: Table, width: int | None) -> str:
    cells = [[sanitize.log_line(cell, 200) for cell in row.cells] for row in table.rows]
    words = [at for at, heading in enumerate(table.headings) if not heading.words]
    return columns.table(table.titles, cells, width, right=words)


def _tables(found: Backtest) -> list[Table]:
    tables = [
        wording.gate_table(found),
        wording.setting_table(found),
        wording.check_table(found),
        wording.alarm_table(found),
    ]
    return [table for table in tables if table.rows]


def _markdown(found: Backtest) -> str:
    return render(
        "extensions/backtest/backtest.md.j2",
        sentences=[sanitize.sentence(sentence) for sentence in _sentences(found)],
        extent=sanitize.sentence(wording.extent(found)),
        tables=[(table.title, table_text(table)) for table in _tables(found)],
        left_out=[sanitize.sentence(line) for line in wording.left_out(found)],
    )


def _page(found: Backtest) -> str:
    style = _style()
    return render(
        "extensions/backtest/backtest.html.j2",
        policy=policy_of(style, ""),
        style=style,
        sentences=_sentences(found),
        extent=wording.extent(found),
        figures=charts.figures(found),
        tables=_tables(found),
        left_out=wording.left_out(found),
        line=sanitize.one_line,
    )


def _style() -> str:
    folder = files("ci_evals").joinpath("reports/page/assets")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _STYLES)
