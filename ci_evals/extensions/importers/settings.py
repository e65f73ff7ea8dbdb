"""The options of `import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.shared import OutputDir
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
    keep_personal_data: Annotated[
        bool,
        OptionSpec(
            "Real conversations: keep e-mail addresses, phone numbers, cards, IBANs and names.\n\n"
            "By default stand-ins take their place, which are listed for review."
        ),
    ] = False
    as_run: Annotated[
        bool,
        OptionSpec(
            "Real conversations: write them as a run, without playing anything.\n\n"
            "_results.json in the output folder holds each conversation with its drafted checks, for "
            "`report`, `gate` and other commands about saved runs.",
            group=Group.OUTPUT,
        ),
    ] = False
    output_dir: OutputDir = Path("results")
