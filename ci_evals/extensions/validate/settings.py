"""The options of `validate`."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.shared import SuiteSettings
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.extension_registry import providers


class ValidateFormat(StrEnum):
    """The formats of findings."""

    TEXT = "text"
    SARIF = "sarif"


@dataclass(frozen=True)
class ValidateSettings(SuiteSettings):
    """Options of `validate`."""

    strict: Annotated[
        bool, OptionSpec("Also warn about weak spots of a suite; the exit code stays 0.", group=Group.SUITES)
    ] = False

    format: Annotated[
        ValidateFormat,
        OptionSpec(
            "Format to print.\n\n"
            "With `sarif`, standard output has SARIF 2.1.0 for code scanning, and all else goes to standard "
            "error.",
            group=Group.OUTPUT,
        ),
    ] = ValidateFormat.TEXT
    probe: Annotated[
        Path | None,
        OptionSpec(
            "Find criteria that pass in conversations of other tests.\n\n"
            "The judge checks each judged criterion against conversations of other tests in this run. One "
            "that passes there too measures nothing, and is named.",
            names=Names.SUBJECT,
            metavar="RESULTS",
        ),
    ] = None
    provider: Annotated[
        str | None,
        OptionSpec("--probe: judge's provider. Default: the run's.", group=Group.MODELS, words=providers),
    ] = None
    llm_key: Annotated[
        str | None,
        OptionSpec(
            "--probe: API key of the model provider.", group=Group.MODELS, names=Names.TEXT, metavar="KEY"
        ),
    ] = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        OptionSpec(
            "--probe: judge model. Default: the run's.", group=Group.MODELS, names=Names.TEXT, metavar="MODEL"
        ),
    ] = None
    probe_with: Annotated[
        int, OptionSpec("--probe: maximum conversations for each criterion.", minimum=3, maximum=100)
    ] = 5
    parallel: Annotated[
        int,
        OptionSpec(
            "--probe: concurrent questions to the judge.", group=Group.LIMITS, minimum=1, maximum=10_000
        ),
    ] = 10
    quiet: Annotated[bool, OptionSpec("--probe: show no progress.", group=Group.OUTPUT)] = False
