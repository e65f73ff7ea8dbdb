"""The kinds of agents: those of the core, and those that extensions add.

The facts about a kind are an `AgentKind`: in `ci_evals/agents/agent_kinds` for the core, in the part
`agent_kinds` of an extension. Only they, its folder and its page in the docs name the kind. In a folder:

- `options`: the form of `adapterOptions`, if there are any;
- `agent` and `wire`: when to call an agent; what to send, and what the answer means;
- `starter.yaml.j2`: what a starter suite says of the agent.

Facts name these modules, which are imported when they are asked for. So layers below the agents know all
facts, and a run imports only the agents of its suites.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self

from ci_evals.domain.agents import program_of
from ci_evals.domain.errors import UsageError
from ci_evals.extension_registry import installed

if TYPE_CHECKING:  # no fact needs them
    from ci_evals.domain.base import Model
    from ci_evals.ports import Agent

_CORE = "ci_evals.agents.agent_kinds"


class KeyNeed(StrEnum):
    """When an agent cannot be reached without a key."""

    ALWAYS = "always"
    DEFAULT_ADDRESS = "default address"
    """Only at the default address: at another one there may be no key."""
    NEVER = "never"
    """Unless options name it: `{{key}}`."""


class EmbeddedServer(Protocol):
    """A server that a run starts for its agents: it serves while it is entered."""

    key: str
    """The key that it takes."""

    @property
    def base_url(self) -> str:
        """The address to call it at."""
        ...

    def __enter__(self) -> Self:
        """Serve."""
        ...

    def __exit__(self, *exc_info: object) -> None:
        """End."""
        ...


@dataclass(frozen=True)
class AgentKind:
    """The facts about one kind of agent."""

    about: str
    """The agent in a few words, in the tables of the docs and the first line of a starter suite."""
    page: str = ""
    """Its page in `docs/`; empty for the kind of a private extension."""
    rank: int = 100
    """Its place where all adapters are listed: the lowest comes first."""
    agent: str = ""
    """Module and class of its agents behind servers, such as `ci_evals.agents.aui.agent:AuiAgent`."""
    builder: str = ""
    """Module and function that build its agents, if they are code: `ci_evals.agents.command.agent:build`."""
    apis: Mapping[str, str] = field(default_factory=dict)
    """The same as `agent` by the option `api`, where that chooses other ones."""
    options: str = ""
    """Module and class of the form of `adapterOptions`; empty if there are none."""
    address: str = ""
    """The default address; empty if only the user knows it."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Fields of a suite that must be set, beside the key, each with the message for a suite without it."""
    own_server: bool = True
    """True for a server of the user's own, whose address the workflow takes from a variable."""
    server: str = ""
    """Module and class of the server that a run itself starts for such agents, an `EmbeddedServer`."""

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

    starter: str = ""
    """The template of what a starter suite says of the agent; empty if `init` writes none for it."""
    example: str = ""
    """The name of code with which `init` begins, for an adapter that names code to run."""
    program: str = ""
    """The template of an agent to begin with, for such an adapter."""

    def agent_class(self, options: Mapping[str, Any]) -> "Callable[..., Agent]":
        """Return the class of agents behind servers with these options. Only its own module is imported."""
        agent: Callable[..., Agent] = _imported(self.apis.get(str(options.get("api")), self.agent))
        return agent

    @property
    def embedded(self) -> bool:
        """True if a run serves the agent itself."""
        return bool(self.server)

    def embedded_server(self) -> "EmbeddedServer":
        """Return a new server of the agent, to be entered."""
        server: EmbeddedServer = _imported(self.server)()
        return server

    @property
    def build(self) -> "Callable[..., Agent]":
        """The function that builds an agent that is code."""
        builder: Callable[..., Agent] = _imported(self.builder)
        return builder

    @property
    def options_form(self) -> "type[Model] | None":
        """The form of `adapterOptions`; None if there are none."""
        if not self.options:
            return None
        form: type[Model] = _imported(self.options)
        return form

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


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class _Kinds(Mapping[str, AgentKind]):
    """Kinds by the names of adapters, in the order of their ranks. Found when they are first asked for."""

    def __init__(self, find: Callable[[], Mapping[str, AgentKind]]) -> None:
        self._find = find

    def __getitem__(self, name: str) -> AgentKind:
        return self._find()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._find())

    def __len__(self) -> int:
        return len(self._find())


@cache
def _named_kinds() -> Mapping[str, AgentKind]:
    """Return the kinds of the core and of all extensions.

    Raises:
        UsageError: a name stands for more than one.
    """
    kinds: dict[str, AgentKind] = {}
    sources: dict[str, str] = {}
    for module in (import_module(_CORE), *installed().parts("agent_kinds")):
        for name, kind in module.KINDS.items():
            source = module.__package__
            if name in sources:
                raise UsageError(
                    f"the adapter {name!r} is in {sources[name]} and in {source}: uninstall one of them"
                )
            kinds[name] = kind
            sources[name] = source
    return dict(sorted(kinds.items(), key=lambda item: item[1].rank))


def _program_kinds() -> Mapping[str, AgentKind]:
    kinds: Mapping[str, AgentKind] = import_module(_CORE).PROGRAM_KINDS
    return kinds


AGENT_KINDS: Mapping[str, AgentKind] = _Kinds(_named_kinds)
"""The kinds of installed adapters, by their names."""

PROGRAM_KINDS: Mapping[str, AgentKind] = _Kinds(_program_kinds)
"""Adapters whose names say which code of the user's to run, by what comes before the colon."""


def kind_of_code(adapter: str) -> AgentKind:
    """Return the kind of an agent that is code. A plug-in of another package is Python too."""
    return PROGRAM_KINDS[program_of(adapter) or "python"]
