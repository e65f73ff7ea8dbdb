"""The options of `personas`."""

from dataclasses import dataclass, field
from typing import Annotated

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.shared import LlmKey, LlmTimeout, Prices, Quiet, Suites, TrustSuites
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.domain.providers import OPENAI
from ci_evals.extension_registry import providers

TRANSLATE = "translate"


@dataclass(frozen=True, kw_only=True)
class PersonasSettings:
    """The options of `personas`."""

    action: Annotated[
        str,
        OptionSpec(
            "`translate`: bring the lock files of the suites up to date.",
            names=Names.TEXT,
            metavar=TRANSLATE,
            argument=True,
            words=lambda: [TRANSLATE],
        ),
    ]
    suites: Suites
    provider: Annotated[
        str,
        OptionSpec("Provider of the model that translates.", group=Group.MODELS, words=providers),
    ] = OPENAI.name
    llm_key: LlmKey = field(default=None, repr=False)
    model: Annotated[
        str | None,
        OptionSpec(
            "Model that translates. Default: the provider's judge.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    llm_timeout: LlmTimeout = 120
    max_cost: Annotated[
        float | None,
        OptionSpec(
            "Maximum cost in US dollars; no new questions start near it.\n\n"
            "A suite whose lines are not all translated then keeps its lock file as it was.",
            group=Group.LIMITS,
            metavar="USD",
            minimum=0,
        ),
    ] = None
    prices: Prices = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    quiet: Quiet = False
