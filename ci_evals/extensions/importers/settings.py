"""The options of `import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.domain.options import Names


@dataclass(frozen=True, kw_only=True)
class ImportSettings:
    """Options of `import`."""

    format: Annotated[str, Names.TEXT, typer.Argument(metavar="FORMAT", help="Format of the file.")]
    file: Annotated[Path, Names.SUBJECT, typer.Argument(help="File to import.")]
    output: Annotated[
        Path | None,
        Names.OUTPUT,
        typer.Option(metavar="SUITE", help="New .yaml or .json file for the suite. Default: print it."),
    ] = None
