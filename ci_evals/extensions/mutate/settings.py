"""The options of `mutate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.gate_rules import odds_options, settings_class
from ci_evals.cli.settings.shared import Quiet, Run, TrustSuites
from ci_evals.domain.options import Group, Names, OptionSpec

_GateOptions = settings_class("_GateOptions", odds_options())


@dataclass(frozen=True, kw_only=True)
class MutateSettings(_GateOptions):  # type: ignore[misc, valid-type]  # its fields are what the rules declare
    """The options of `mutate`. Those of the gate stand instead of the saved run's."""

    results: Run
    suites: Annotated[
        list[str] | None,
        OptionSpec(
            "A suite of the run, if it has moved.\n\nGive the option once for each of the run's suites.",
            group=Group.SUITES,
            names=Names.SUITES,
            metavar="SUITE",
            flag="--suite",
        ),
    ] = None
    faults: Annotated[
        str | None,
        OptionSpec("Kinds of faults to plant. Default: all.", names=Names.TEXT, metavar="KIND,..."),
    ] = None
    shares: Annotated[
        str,
        OptionSpec(
            "Shares of conversations with a fault, in percent.\n\n"
            "The report names the smallest at which the gate fails in at least 80 % of 200 drawn runs.",
            names=Names.TEXT,
            metavar="PERCENT,...",
        ),
    ] = "5,10,25,50"
    min_noticed: Annotated[
        float | None,
        OptionSpec(
            "Minimum share of noticed faults, in percent; below it exit with 1.",
            metavar="PERCENT",
            minimum=0,
            maximum=100,
        ),
    ] = None
    apply: Annotated[
        Path | None,
        OptionSpec(
            "Add the suggested checks to this suite of the run.\n\n"
            "Shows the difference, then writes the file. Comments and layout stay.",
            group=Group.OUTPUT,
            names=Names.OUTPUT,
            metavar="SUITE",
        ),
    ] = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    quiet: Quiet = False
