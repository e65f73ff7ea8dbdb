"""The options of `compare`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.gate_rules import ChangeSettings
from ci_evals.cli.settings.shared import (
    TrustSuites,
)
from ci_evals.domain.options import Group, Names, OptionSpec


class ComparisonFormat(StrEnum):
    """The formats of a comparison."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"


@dataclass(frozen=True, kw_only=True)
class CompareSettings(ChangeSettings):
    """Options of `compare`."""

    head: Annotated[
        Path,
        OptionSpec(
            "The run: its _results.json, or the folder of that file.", names=Names.EVIDENCE, argument=True
        ),
    ]
    base: Annotated[Path, OptionSpec("The earlier run to compare it with.", names=Names.INPUT, argument=True)]
    trust_suites: TrustSuites = SuiteTrust.AUTO
    format: Annotated[ComparisonFormat, OptionSpec("Format to print.", group=Group.OUTPUT)] = (
        ComparisonFormat.TEXT
    )
