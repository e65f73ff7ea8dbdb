"""The options of `import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.domain.options import Group, Names, OptionSpec


@dataclass(frozen=True, kw_only=True)
class ImportSettings:
    """Options of `import`."""

    format: Annotated[
        str,
        OptionSpec(
            "Format of the file.", group=Group.OUTPUT, names=Names.TEXT, metavar="FORMAT", argument=True
        ),
    ]
    file: Annotated[Path, OptionSpec("File to import.", names=Names.SUBJECT, argument=True)]
    output: Annotated[
        Path | None,
        OptionSpec(
            "New .yaml or .json file for the suite. Default: print it.", names=Names.OUTPUT, metavar="SUITE"
        ),
    ] = None
