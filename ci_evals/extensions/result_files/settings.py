"""The options of `gate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.gate_rules import GateSettings
from ci_evals.cli.settings.shared import (
    BaselineSettings,
    CommentingSettings,
    JunitFile,
    OutputDir,
    Prices,
    TrustSuites,
)
from ci_evals.domain.options import Group, Names, OptionSpec


@dataclass(frozen=True, kw_only=True)
class GateFilesSettings(BaselineSettings, CommentingSettings, GateSettings):
    """Options of `gate`."""

    files: Annotated[
        list[str],
        OptionSpec(
            "Result files of another tool, or globs. In the action one per line.",
            group=Group.FILES,
            names=Names.EVIDENCE,
            metavar="FILE",
            argument=True,
        ),
    ]
    format: Annotated[
        str,
        OptionSpec(
            "Format of the files. Default: found by content.",
            group=Group.OUTPUT,
            names=Names.TEXT,
            metavar="FORMAT",
        ),
    ] = "auto"
    map: Annotated[
        Path | None,
        OptionSpec(
            "YAML file that maps fields to JSONPaths, for rows.\n\n"
            "Fields: test, trial, score, passed, error, reason, cost, tokens, seconds, group, cluster, "
            "suite, arm; `rows` is the path of the list in a JSON document.",
            group=Group.FILES,
            names=Names.INPUT,
            metavar="FILE",
        ),
    ] = None
    answers: Annotated[
        Path | None,
        OptionSpec(
            "File with the expected answers, for formats that lack them.",
            group=Group.FILES,
            names=Names.INPUT,
            metavar="FILE",
        ),
    ] = None
    arm: Annotated[
        str | None,
        OptionSpec(
            "Model, prompt or provider to gate, if the files have several.",
            group=Group.FILES,
            names=Names.TEXT,
            metavar="NAME",
        ),
    ] = None
    baseline_arm: Annotated[
        str | None,
        OptionSpec(
            "Arm of the same files to compare with, instead of `--baseline`.",
            group=Group.BASELINE,
            names=Names.TEXT,
            metavar="NAME",
        ),
    ] = None
    prices: Prices = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None
    verbose: Annotated[
        bool, OptionSpec("Print all failed criteria, checks and changes.", group=Group.OUTPUT)
    ] = False
