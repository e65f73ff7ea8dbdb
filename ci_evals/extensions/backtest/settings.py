"""The options of `backtest`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.gate_rules import settings_class
from ci_evals.cli.settings.shared import GitHubSettings, Quiet
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.extensions.backtest.gates import backtest_options

_GateOptions = settings_class("_GateOptions", backtest_options())
MOST_DOWNLOADED = 500
"""The most runs that are downloaded."""


@dataclass(frozen=True, kw_only=True)
class BacktestSettings(GitHubSettings, _GateOptions):  # type: ignore[misc, valid-type]  # its fields are what the rules declare
    """The options of `backtest`. Those of the gate stand instead of the runs' own."""

    folder: Annotated[
        Path,
        OptionSpec(
            "Folder of stored runs: unpacked artifacts, or the output folder of local runs.\n\n"
            "With `--from-github` the folder to download to.",
            names=Names.SUBJECT,
            metavar="FOLDER",
            argument=True,
        ),
    ]
    settings: Annotated[
        Path | None,
        OptionSpec(
            "YAML file of other gates to compare with this one.\n\n"
            "It names each gate and its options, spelled as on the command line without dashes in front: "
            "`strict: {min-score: 90, max-drop: 2}`. All gates decide the same runs.",
            names=Names.SUBJECT,
            metavar="FILE",
        ),
    ] = None
    branch: Annotated[
        str | None,
        OptionSpec(
            "Branch whose runs are compared. Default: the one with most runs; with `--from-github` main.",
            names=Names.TEXT,
            metavar="BRANCH",
        ),
    ] = None
    history: Annotated[
        int | None,
        OptionSpec(
            "Number of earlier runs to compare each run with. Default: the run's own --history.",
            group=Group.BASELINE,
            metavar="N",
            minimum=0,
            maximum=100,
        ),
    ] = None
    from_github: Annotated[
        str | None,
        OptionSpec(
            "Download the runs of a repository's branch first.\n\n"
            "Reads the artifacts `ci-evals-results-KEY` (see `--comment-key`), the newest ones first. What "
            "is in the folder already is not downloaded again, so an interrupted download resumes.",
            group=Group.GITHUB,
            names=Names.TEXT,
            metavar="OWNER/NAME",
        ),
    ] = None
    last: Annotated[
        int,
        OptionSpec(
            "Maximum number of runs to download.",
            group=Group.GITHUB,
            minimum=2,
            maximum=MOST_DOWNLOADED,
        ),
    ] = 100
    output_dir: Annotated[
        Path | None,
        OptionSpec(
            "Folder for the reports. Default: the folder of runs.",
            group=Group.OUTPUT,
            names=Names.OUTPUT,
            metavar="DIR",
        ),
    ] = None
    quiet: Quiet = False
