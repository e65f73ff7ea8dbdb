"""The kinds of agents: each is a folder of `ci_evals/agents`, registered here in one line.

A folder has these modules, and only itself, its line here and its page in the docs name the kind:

- `kind`: `KIND`, an `AgentKind` with all facts that other parts of the program ask for;
- `options`: the form of `adapterOptions`, if there are any;
- `agent` and `wire`: when to call an agent; what to send, and what the answer means;
- `starter.yaml.j2`: what a starter suite says of the agent.

Kinds are imported by name when they are asked for, so that layers below the agents know them, and a run
imports only those of its suites.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ci_evals.domain.agents import program_of

if TYPE_CHECKING:  # the help imports this module, and must not wait for pydantic
    from ci_evals.domain.base import Model
    from ci_evals.ports import Agent

FOLDERS = {
    "aui": "aui",
    "demo": "demo",
    "openai": "chat",
    "http": "http",
    "langgraph": "langgraph",
    "ag-ui": "ag_ui",
    "a2a": "a2a",
    "adk": "adk",
    "rasa": "rasa",
}
"""The folder of each adapter with a name, in the order in which they are listed to users."""

PROGRAM_FOLDERS = {"python": "python", "command": "command"}
"""The folders of adapters whose names say which code to run, by what comes before the colon."""


class KeyNeed(StrEnum):
    """When an agent cannot be reached without a key."""

    ALWAYS = "always"
    DEFAULT_ADDRESS = "default address"
    """Only at the default address: at another one there may be no key."""
    NEVER = "never"
    """Unless options name it: `{{key}}`."""


@dataclass(frozen=True)
class AgentKind:
    """The facts about one kind of agent."""

    about: str
    """The agent in a few words, in the tables of the docs and the first line of a starter suite."""
    page: str
    """Its page in `docs/`."""
    agent: str = ""
    """Module and class of its agents behind servers, such as `http.agent:HttpAgent`."""
    builder: str = ""
    """Module and function that build its agents, if they are code: `command.agent:build`."""
    apis: Mapping[str, str] = field(default_factory=dict)
    """The same by the option `api`, where that chooses other ones."""
    options: "type[Model] | None" = None
    """The form of `adapterOptions`; None if there are none."""
    address: str = ""
    """The default address; empty if only the user knows it."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Fields of a suite that must be set, beside the key, each with the message for a suite without it."""
    own_server: bool = True
    """True for a server of the user's own, whose address the workflow takes from a variable."""
    embedded: bool = False
    """True if ci-evals itself serves the agent."""

    key: KeyNeed = KeyNeed.NEVER
    keyed: bool = False
    """True if its servers usually want a key."""
    filled_options: tuple[str, ...] | None = None
    """The options in which `{{names}}` are replaced; None for all of them."""
    unsent: Mapping[str, str] = field(default_factory=dict)
    """Fields of a suite that its agents never get, each with the reason."""
    sends_user_info: bool = True
    """True if an agent gets a test's `userInfo` anyway; else only where options name it."""
    id_is_model: bool = False
    """True if `agentId` names a model, as `model` does."""

    takes_history: bool = True
    """True if an agent can be given messages from before a test."""
    history_names: frozenset[str] = frozenset()
    """Placeholders of which options must hold one, for an agent to be given them; empty if it always is."""
    no_history: str = ""
    """Why an agent is not given a history, if options hold none of them."""

    hand_over: str = ""
    """The option that makes hand-overs to a person known; empty if they are known without one."""
    reports_state: bool = False
    """True if there is a probe `agent_state`."""
    reports_arguments: bool | None = False
    """True if tool calls surely come with arguments; None if the suite's options decide. Of AUI's tools only
    the integrations have any, and which names are theirs is unknown."""
    evidence_paths: str = ""
    """The option that holds JSONPaths to evidence, if there is one."""
    path_conditions: frozenset[str] = frozenset()
    """The keys there that hold a condition on what a path finds, and no path."""

    example: str = ""
    """The name of code with which `init` begins, for an adapter that names code to run."""
    program: str = ""
    """The template of an agent to begin with, for such an adapter."""

    def agent_class(self, options: Mapping[str, Any]) -> "Callable[..., Agent]":
        """Return the class of agents behind servers with these options. Only its own module is imported."""
        return _imported(self.apis.get(str(options.get("api")), self.agent))

    @property
    def build(self) -> "Callable[..., Agent]":
        """The function that builds an agent that is code."""
        return _imported(self.builder)

    def paths_in(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Return the JSONPaths to evidence in options, by key."""
        paths = options.get(self.evidence_paths) if self.evidence_paths else None
        if not isinstance(paths, dict):
            return {}
        texts = {key: path for key, path in paths.items() if isinstance(path, str)}
        return {key: path for key, path in texts.items() if key not in self.path_conditions}

    @property
    def local_address(self) -> str | None:
        """The default address, if it is one of this machine."""
        return self.address if self.address.startswith("http://127.0.0.1:") else None


def _imported(path: str) -> "Callable[..., Agent]":
    module, _, name = path.partition(":")
    agent: Callable[..., Agent] = getattr(import_module(f"ci_evals.agents.{module}"), name)
    return agent


class _Kinds(Mapping[str, AgentKind]):
    """Kinds by the names of adapters, each imported when it is first asked for."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = folders

    def __getitem__(self, name: str) -> AgentKind:
        return _kind(self._folders[name])

    def __contains__(self, name: object) -> bool:
        return name in self._folders

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)


@cache
def _kind(folder: str) -> AgentKind:
    module: Any = import_module(f"ci_evals.agents.{folder}.kind")
    kind: AgentKind = module.KIND
    return kind


AGENT_KINDS: Mapping[str, AgentKind] = _Kinds(FOLDERS)
"""The built-in adapters."""

PROGRAM_KINDS: Mapping[str, AgentKind] = _Kinds(PROGRAM_FOLDERS)
"""Adapters for code of the user's."""


def kind_of_code(adapter: str) -> AgentKind:
    """Return the kind of an agent that is code. A plug-in of another package is Python too."""
    return PROGRAM_KINDS[program_of(adapter) or "python"]
