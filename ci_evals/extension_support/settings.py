"""The options of the commands that look into the judge and the simulated user of a saved run."""

from dataclasses import dataclass, field
from typing import Annotated

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.shared import LlmKey, LlmTimeout, Prices, Quiet, TrustSuites
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.extension_registry import providers


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """The options for the judge. Defaults are those of the saved run."""

    provider: Annotated[
        str | None,
        OptionSpec("Judge's provider. Default: the run's.", group=Group.MODELS, words=providers),
    ] = None
    llm_key: LlmKey = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        OptionSpec(
            "Judge model. Default: the run's or the provider's.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    judge_votes: Annotated[
        int | None,
        OptionSpec("Votes on each criterion. Default: the run's.", group=Group.MODELS, minimum=1, maximum=99),
    ] = None
    judge_panel: Annotated[
        str | None,
        OptionSpec(
            "Models that vote in turn. Default: the run's.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL,...",
        ),
    ] = None
    llm_timeout: LlmTimeout = 120
    parallel: Annotated[
        int, OptionSpec("Concurrent questions to the judge.", group=Group.LIMITS, minimum=1, maximum=10_000)
    ] = 10
    prices: Prices = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(JudgeOptions):
    """The same for a study of a sample."""

    seed: Annotated[int, OptionSpec("Seed of the sample: the same seed, the same sample.")] = 0
