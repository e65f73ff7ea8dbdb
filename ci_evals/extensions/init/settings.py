"""The options of `init`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from ci_evals.agent_registry import AGENT_KINDS, PROGRAM_KINDS
from ci_evals.domain.options import Group, Names, OptionSpec


class StarterProvider(StrEnum):
    """Who plays the user and judges in a starter workflow."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    OFFLINE = "offline"

    @property
    def key(self) -> str:
        """The variable that holds its key; empty if it needs none."""
        return "" if self is StarterProvider.OFFLINE else f"{self.upper()}_API_KEY"


@dataclass(frozen=True)
class InitSettings:
    """Options of `init`."""

    folder: Annotated[
        Path, OptionSpec("The repository, or a folder in it.", names=Names.OUTPUT, argument=True)
    ] = Path()
    adapter: Annotated[
        str | None,
        OptionSpec(
            "How to call your agent, such as openai, http or python.\n\n"
            "Default: the adapter of existing suites, otherwise aui. `demo` is for a first look. Known are "
            f"{', '.join([*AGENT_KINDS, *PROGRAM_KINDS])}.",
            group=Group.AGENT,
            names=Names.TEXT,
            metavar="ADAPTER",
        ),
    ] = None
    provider: Annotated[
        StarterProvider,
        OptionSpec(
            "Who plays the user and judges on pull requests.\n\n"
            "offline needs no key: strict checks alone decide.",
            group=Group.MODELS,
        ),
    ] = StarterProvider.OPENAI
    start: Annotated[
        str | None,
        OptionSpec(
            "Command that serves your agent, such as 'python3 agent.py'. Runs start it, so that a pull "
            "request's own code is tested.\n\nDefault: the agent is deployed somewhere.",
            group=Group.AGENT,
            names=Names.TEXT,
            metavar="COMMAND",
        ),
    ] = None
