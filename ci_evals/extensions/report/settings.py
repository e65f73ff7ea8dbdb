"""The options of `report`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.domain.options import Group, Names, OptionSpec


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """Options of `report`."""

    results: Annotated[
        list[Path],
        OptionSpec(
            "The run to show: its _results.json or folder, or a folder of runs for the newest. "
            "Then runs to compare it with.",
            names=Names.SUBJECT,
            metavar="RESULTS",
            argument=True,
        ),
    ]
    baseline: Annotated[
        str | None,
        OptionSpec(
            "Run that this one was compared with.\n\n"
            "The page shows its conversations; nothing is compared again, and other runs are refused. "
            "Default: `auto`, the one among the given runs.",
            group=Group.BASELINE,
            names=Names.SUBJECT,
            metavar="auto|none|PATH",
        ),
    ] = None
    format: Annotated[
        str | None,
        OptionSpec(
            "Reports to write, see above. Default: all but badge, csv and what extensions write.",
            group=Group.OUTPUT,
            names=Names.TEXT,
            metavar="FORMAT,...",
        ),
    ] = None
    open: Annotated[
        bool, OptionSpec("Open report.html in the browser; in CI print its path.", group=Group.OUTPUT)
    ] = False
