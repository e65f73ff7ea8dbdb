"""The options of `prefer`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.domain.options import Names, OptionSpec
from ci_evals.extension_support.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class PreferSettings(JudgeSettings):
    """The options of `prefer`."""

    head: Annotated[Path, OptionSpec("The run.", names=Names.SUBJECT, metavar="A", argument=True)]
    base: Annotated[
        Path, OptionSpec("The run to compare it with.", names=Names.SUBJECT, metavar="B", argument=True)
    ]
    pairs: Annotated[
        int, OptionSpec("Maximum number of pairs of conversations to compare.", minimum=1, maximum=10_000)
    ] = 100
