"""The options of `attack`."""

from dataclasses import dataclass
from typing import Annotated

from ci_evals.cli.settings.shared import Run
from ci_evals.domain.options import OptionSpec
from ci_evals.extension_support.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class AttackSettings(JudgeSettings):
    """The options of `attack`."""

    results: Run
    verdicts: Annotated[
        int, OptionSpec("Maximum failed verdicts to attack, for each attack.", minimum=1, maximum=1_000)
    ] = 10
