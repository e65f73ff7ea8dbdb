"""The options of `merge`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.choices import (
    SuiteTrust,
)
from ci_evals.cli.settings.gate_rules import GateSettings
from ci_evals.cli.settings.shared import (
    BaselineSettings,
    JunitFile,
    OutputDir,
    TrustSuites,
)
from ci_evals.domain.options import Names, OptionSpec


@dataclass(frozen=True, kw_only=True)
class MergeSettings(BaselineSettings, GateSettings):
    """Options of `merge`."""

    results: Annotated[
        list[Path],
        OptionSpec(
            "Results files, their folders, or folders of such folders, as from actions/download-artifact.",
            names=Names.EVIDENCE,
            metavar="RESULTS",
            argument=True,
        ),
    ]
    shards: Annotated[
        int | None,
        OptionSpec(
            "Required number of results; with fewer there is no verdict.\n\n"
            "Not needed for runs with `--shard`.",
            minimum=1,
        ),
    ] = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    output_dir: OutputDir = Path("results")
    junit: JunitFile = None
