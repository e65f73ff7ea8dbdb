"""The options of `chat`."""

from dataclasses import dataclass, field, fields
from typing import Annotated

from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.shared import (
    Adapter,
    AdapterOptions,
    AgentApiSettings,
    AgentId,
    AgentKey,
    BaseUrl,
    LlmKey,
    SuiteSettings,
    TrustSuites,
)
from ci_evals.domain.options import Group, Names, OptionSpec
from ci_evals.domain.providers import OPENAI
from ci_evals.extension_registry import providers


@dataclass(frozen=True)
class ChatSettings(AgentApiSettings):
    """Options of `chat`."""

    suite: Annotated[
        str | None,
        OptionSpec(
            "Suite whose agent to talk to, a file or a bundled suite such as demo:hr.",
            group=Group.SUITES,
            names=Names.SUITES,
            metavar="SUITE",
            argument=True,
        ),
    ] = None
    adapter: Adapter = None
    adapter_options: AdapterOptions = None
    agent_id: AgentId = None
    agent_key: AgentKey = field(default=None, repr=False)
    base_url: BaseUrl = None
    trust_suites: TrustSuites = SuiteTrust.AUTO
    test: Annotated[
        str | None,
        OptionSpec(
            "Test to begin with: its user data, world and earlier messages.\n\n"
            "Its whole name, or a part that no other test has.",
            group=Group.SUITES,
            names=Names.TEXT,
            metavar="NAME",
        ),
    ] = None
    provider: Annotated[
        str,
        OptionSpec(
            "Model provider of the judge of `/evaluate`.",
            group=Group.MODELS,
            metavar="NAME",
            words=providers,
        ),
    ] = OPENAI.name
    llm_key: LlmKey = field(default=None, repr=False)
    judge_model: Annotated[
        str | None,
        OptionSpec(
            "Judge model of `/evaluate`, instead of the suite's `judgeModel`.",
            group=Group.MODELS,
            names=Names.TEXT,
            metavar="MODEL",
        ),
    ] = None
    agent_in_process: Annotated[
        bool,
        OptionSpec("Run a Python agent inside this process, for a debugger.", group=Group.AGENT),
    ] = False


@dataclass(frozen=True)
class ChosenSuite(AgentApiSettings, SuiteSettings):
    """The same options as those of a suite and its agent."""

    @classmethod
    def of(cls, settings: ChatSettings) -> "ChosenSuite":
        """Return the options of `chat` that say which suite and agent."""
        names = {one.name for one in fields(cls)} - {"suites"}
        given = {name: getattr(settings, name) for name in names}
        return cls(suites=[settings.suite] if settings.suite else [], **given)
