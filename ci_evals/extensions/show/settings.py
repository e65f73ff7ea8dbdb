"""The options of `show`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.shared import Run
from ci_evals.domain.options import Names, OptionSpec


@dataclass(frozen=True, kw_only=True)
class ShowSettings:
    """Options of `show`."""

    results: Run = Path("results")
    test: Annotated[
        list[str] | None,
        OptionSpec(
            "Only these tests: a whole name, or parts of names, separated by commas. Can be repeated.",
            names=Names.TEXT,
            metavar="NAME",
        ),
    ] = None
    trial: Annotated[int | None, OptionSpec("Only this trial of each test, counted from 1.", minimum=1)] = (
        None
    )
    failed: Annotated[bool, OptionSpec("Only tests and trials that did not pass.")] = False
