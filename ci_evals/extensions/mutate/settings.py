"""The options of `mutate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.gate_rules import odds_options, settings_class
from ci_evals.cli.settings.shared import Run
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.extension_support.settings import JudgeOptions

_GateOptions = settings_class("_GateOptions", odds_options())


@dataclass(frozen=True, kw_only=True)
class MutateSettings(JudgeOptions, _GateOptions):  # type: ignore[misc, valid-type]  # its fields are what the rules declare
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
    judge: Annotated[
        bool,
        OptionSpec(
            "Ask the judge too, about faults that no strict check notices.\n\n"
            "Without it criteria that need a judge are not asked, and counted apart. "
            "The other options of models apply only with it.",
            group=Group.MODELS,
        ),
    ] = False
    judge_cache: Annotated[
        str,
        OptionSpec(
            "Folder that keeps the judge's answers.\n\n"
            "The same faults in the same run are not asked about twice.",
            group=Group.MODELS,
            names=Names.CACHE,
            metavar="auto|off|DIR",
        ),
    ] = "auto"
    max_cost: Annotated[
        float | None,
        OptionSpec(
            "Maximum cost of the judge in US dollars; no new questions start near it.\n\n"
            "Criteria that are left then are not asked.",
            group=Group.LIMITS,
            metavar="USD",
            minimum=0,
        ),
    ] = None
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
