"""The options of `rejudge`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.choices import (
    SuiteTrust,
)
from ci_evals.cli.settings.gate_rules import GateSettings
from ci_evals.cli.settings.shared import (
    BaselineSettings,
    JudgeCheckMode,
    JudgePanel,
    JunitFile,
    LlmKey,
    LlmTimeout,
    Prices,
    Quiet,
    TrustSuites,
)
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.domain.providers import OPENAI
from ci_evals.extension_registry import judging_providers, providers


@dataclass(frozen=True, kw_only=True)
class RejudgeSettings(BaselineSettings, GateSettings):
    """Options of `rejudge`."""

    results: Annotated[
        Path,
        OptionSpec(
            "The run, or one of its suites: its _results.json, or the folder of that file.",
            names=Names.EVIDENCE,
            metavar="RESULTS",
            argument=True,
        ),
    ]
    provider: Annotated[
        str,
        OptionSpec(
            f"Judge's provider: {', '.join(judging_providers())}.",
            group=Group.MODELS,
            metavar="NAME",
            words=providers,
        ),
    ] = OPENAI.name
    llm_key: LlmKey = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        OptionSpec(
            "Judge model.\n\n"
            "Default: the run's judge if the provider is the same, otherwise the provider's default.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    judge_votes: Annotated[
        int | None,
        OptionSpec(
            "Votes on each criterion, an odd number. Default: the run's.\n\n"
            "With `--judge-panel` at least as many as the panel has models.",
            group=Group.MODELS,
            minimum=1,
            maximum=99,
        ),
    ] = None
    judge_panel: JudgePanel = None
    prices: Prices = None
    parallel: Annotated[
        int, OptionSpec("Trials judged concurrently.", group=Group.LIMITS, minimum=1, maximum=10_000)
    ] = 10
    judge_check: JudgeCheckMode = CheckMode.AUTO
    llm_timeout: LlmTimeout = 120
    judge_cache: Annotated[
        str,
        OptionSpec(
            "Folder that keeps the judge's answers.\n\n"
            "Separate from the cache of runs. Off by default: the judge is asked again.",
            group=Group.MODELS,
            names=Names.CACHE,
            metavar="auto|off|DIR",
        ),
    ] = "off"
    trust_suites: TrustSuites = SuiteTrust.AUTO
    output_dir: Annotated[
        Path | None,
        OptionSpec(
            "Folder for reports. Default: `rejudged` in the folder of the run.",
            group=Group.OUTPUT,
            names=Names.OUTPUT,
            metavar="DIR",
        ),
    ] = None
    junit: JunitFile = None
    quiet: Quiet = False
    verbose: Annotated[
        bool, OptionSpec("Print every changed verdict and every failed criterion.", group=Group.OUTPUT)
    ] = False
