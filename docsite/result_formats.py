"""The tables of `docs/gate-files.md`: formats of other tools' results, as their readers describe them."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_evals.extensions.result_files.reading import readers
from docsite.markdown import replace_generated, row, table

PAGE = Path(__file__).parent.parent / "docs/gate-files.md"


def text() -> str:
    """Return the page with the tables that the code has now."""
    page = replace_generated(PAGE.read_text(), "formats", _formats())
    return replace_generated(page, "totals", _totals())


def _formats() -> Iterator[str]:
    yield from table("`--format` | files | tried with")
    for reader in readers().values():
        yield row(f"`{reader.format}`", reader.files, reader.tried_with)


def _totals() -> Iterable[str]:
    yield from table("format | what is compared with the rows")
    for reader in readers().values():
        if reader.compared:
            yield row(f"`{reader.format}`", reader.compared)
    yield row("JSON of any format", "a key that an object has twice")
