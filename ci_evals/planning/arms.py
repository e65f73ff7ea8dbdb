"""Several agents in one plan: the suites again, with the agent of each other arm."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import BASE, HEAD, Plan, PlannedSuite
from ci_evals.planning.adapter_options import OptionsFile
from ci_evals.planning.agent_choice import AgentChoice, chosen_agent
from ci_evals.planning.documents.document import Document
from ci_evals.planning.documents.interpolate import Reading, interpolate
from ci_evals.planning.documents.reader import read
from ci_evals.support.redaction import Redactor
from ci_evals.support.secrets import in_addresses

_TEXTS = {
    "adapter": "adapter",
    "agent-id": "agent_id",
    "agent-key": "agent_key",
    "base-url": "base_url",
    "start": "start",
    "wait-for": "wait_for",
}
"""Options that are plain texts, and their fields in `AgentChoice`."""
_HEADERS, _OPTIONS, _MODEL = "agent-headers", "adapter-options", "model"
KEYS = (*_TEXTS, _OPTIONS, _HEADERS)
"""The options that `against` takes."""
ARM_KEYS = (*KEYS, _MODEL)
"""Those of an agent in the file of `arms`."""
_MOST_NAME = 60


@dataclass(frozen=True)
class Arm:
    """An agent beside the first one: its name, and the options in which it differs."""

    name: str
    choice: AgentChoice
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    """None for those of the first agent."""
    model: str | None = None
    """None for the suite's own."""
    values: frozenset[str] = field(default=frozenset(), repr=False)
    """Values that came from the environment."""

    @property
    def secrets(self) -> frozenset[str]:
        """Values that nobody else should see."""
        headers = (self.headers or {}).values()
        parts = {part for value in headers for part in (value, *value.split())}
        addresses = (url for url in (self.choice.base_url, self.choice.wait_for) if url)
        parts |= {part for url in addresses for part in in_addresses(url)}
        key = {self.choice.agent_key} if self.choice.agent_key else set()
        options = self.choice.options.secrets if self.choice.options else frozenset()
        return frozenset(parts | key | options | self.values)


@dataclass(frozen=True)
class ArmReader:
    """Reads agents from options and files."""

    environ: Mapping[str, str]
    options: Callable[[str], OptionsFile]
    """Reads the file with an adapter's options."""
    headers: Callable[[str], dict[str, str]]
    """Reads headers, one per line."""
    check: Callable[[str, str], None]
    """Refuses an option that names code or a file which is not trusted, by raising `UsageError`."""
    plugins: frozenset[str]
    masked: bool = False
    """True to read no secret, as for a replay."""

    def against(self, text: str) -> Arm:
        """Read the option `against`: lines of the form `OPTION=VALUE`, about the base agent.

        Raises:
            UsageError: a line is none, or an option is unknown or given twice.
        """
        given: dict[str, str] = {}
        for line in filter(None, map(str.strip, text.splitlines())):
            name, equals, value = (part.strip() for part in line.partition("="))
            name = name.removeprefix("--")
            if not equals or not value:
                shown = repr(name[:60])
                raise UsageError(f"`against=`: {shown} is not of the form OPTION=VALUE. Write one per line.")
            if name not in KEYS:
                raise UsageError(f"`against=`: {name[:60]!r} is unknown. Options: {', '.join(KEYS)}.")
            if name in given and name != _HEADERS:
                raise UsageError(f"`against=`: {name} is given twice.")
            given[name] = f"{given[name]}\n{value}" if name in given else value
        if not given:
            raise UsageError(
                "`against=`: it names no agent. Write lines such as base-url=https://staging.example.com."
            )
        try:
            return self._arm(BASE, given)
        except UsageError as error:
            raise UsageError(f"`against=`: {error}") from None

    def file(self, text: str, file: str) -> tuple[Arm, ...]:
        """Read a file of arms, YAML or JSON: by name the options in which each agent differs.

        `${NAME}` is read from the environment as in a suite.

        Raises:
            UsageError: it is no such file, or an agent's options cannot be used.
        """
        document = read(text, file)
        filled = interpolate(document, Reading(environ=self.environ, masked=self.masked))
        if problems := [*document.problems, *filled.problems]:
            redactor = Redactor(values=filled.secrets)
            raise UsageError("\n".join(redactor.text(str(problem)) for problem in problems))
        if not isinstance(filled.value, dict) or len(filled.value) < 2:
            raise UsageError(
                f"{file}: name at least two agents, each as  NAME: {{OPTION: VALUE}}. The others are "
                "compared with the first."
            )
        arms = (self._named(file, name, options) for name, options in filled.value.items())
        named: dict[str, Arm] = {}
        for arm in arms:
            if arm.name in named:
                raise UsageError(f"{file}: {arm.name!r}: two agents have this name. Rename one.")
            named[arm.name] = replace(arm, values=frozenset(filled.secrets))
        return tuple(named.values())

    def _named(self, file: str, name: str, options: object) -> Arm:
        name = " ".join(name.split())
        if not name or len(name) > _MOST_NAME or name in {HEAD, BASE}:
            raise UsageError(
                f"{file}: {name[:80]!r} cannot be an agent's name. Write another one of up to {_MOST_NAME} "
                "characters."
            )
        given = {} if options is None else options
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise UsageError(
                f"{file}: {name!r}: write its options as  OPTION: VALUE, with strings as values."
            )
        if unknown := [option for option in given if option not in ARM_KEYS]:
            known = ", ".join(ARM_KEYS)
            raise UsageError(f"{file}: {name!r}: {unknown[0][:60]!r} is unknown. Options: {known}.")
        try:
            return self._arm(name, given)
        except UsageError as error:
            raise UsageError(f"{file}: {name!r}: {error}") from None

    def _arm(self, name: str, given: Mapping[str, str]) -> Arm:
        for option, value in given.items():
            self.check(option, value)
        texts = {field: given[option] for option, field in _TEXTS.items() if option in given}
        options = self.options(given[_OPTIONS]) if _OPTIONS in given else None
        return Arm(
            name,
            AgentChoice(options=options, plugins=self.plugins, **texts),
            headers=self.headers(given[_HEADERS]) if _HEADERS in given else None,
            model=given.get(_MODEL),
        )


def with_arms(plan: Plan, arms: Sequence[Arm], *, unasked: bool = False) -> Plan:
    """The plan with the same tests for each of these agents too.

    `unasked` is for agents that nobody will reach, as in a replay.

    Raises:
        UsageError: an agent lacks what its adapter needs; the message names the arm.
    """
    others = tuple(_with_agent(planned, arm, unasked=unasked) for arm in arms for planned in plan.suites)
    return replace(plan, suites=plan.suites + others, arms=(*plan.arms, *(arm.name for arm in arms)))


def with_arms_alone(plan: Plan, arms: Sequence[Arm], *, unasked: bool = False) -> Plan:
    """The plan with these agents instead of the suites' own; the first is tested. May raise `UsageError`."""
    played = with_arms(plan, arms, unasked=unasked)
    return replace(played, suites=played.suites[len(plan.suites) :], arms=played.arms[len(plan.arms) :])


def _with_agent(planned: PlannedSuite, arm: Arm, *, unasked: bool) -> PlannedSuite:
    try:
        suite = chosen_agent(planned.suite, Document(planned.file), arm.choice, unasked=unasked)
    except UsageError as error:
        option = "`against=`" if arm.name == BASE else f"`arms=`: {arm.name}"
        raise UsageError(f"{option}: {error}") from None
    if arm.model:
        suite = suite.copy_with(model=arm.model)
    return replace(
        planned,
        suite=suite,
        agent_headers=arm.headers,
        start_folder=arm.choice.start_folder(planned.start_folder),
    )
