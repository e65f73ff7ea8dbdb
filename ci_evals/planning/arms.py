"""Several agents in one plan: the suites again, with the agent of each other arm."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import BASE, HEAD, Plan, PlannedSuite
from ci_evals.planning.adapter_options import OptionsFile
from ci_evals.planning.agent_choice import AgentChoice, chosen_agent
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
"""The options that `--against` takes."""


@dataclass(frozen=True)
class Arm:
    """An agent beside the first one: its name, and the options in which it differs."""

    name: str
    choice: AgentChoice
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    """None for those of the first agent."""
    model: str | None = None
    """None for the suite's own."""

    @property
    def secrets(self) -> frozenset[str]:
        """Values that nobody else should see."""
        headers = (self.headers or {}).values()
        parts = {part for value in headers for part in (value, *value.split())}
        addresses = (url for url in (self.choice.base_url, self.choice.wait_for) if url)
        parts |= {part for url in addresses for part in in_addresses(url)}
        key = {self.choice.agent_key} if self.choice.agent_key else set()
        options = self.choice.options.secrets if self.choice.options else frozenset()
        return frozenset(parts | key | options)


ReadOptions = Callable[[str], OptionsFile]
"""Reads the file with an adapter's options."""
ReadHeaders = Callable[[str], dict[str, str]]


def read_against(
    text: str, read_options: ReadOptions, read_headers: ReadHeaders, plugins: frozenset[str]
) -> Arm:
    """Read `--against`: lines of the form `OPTION=VALUE`, about the base agent.

    Raises:
        UsageError: a line is none, or an option is unknown or given twice.
    """
    given: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = (part.strip() for part in line.partition("="))
        name = name.removeprefix("--")
        if not equals or not value:
            raise UsageError(f"--against: {name[:60]!r} is not of the form OPTION=VALUE. Write one per line.")
        if name not in KEYS:
            raise UsageError(f"--against: {name[:60]!r} is unknown. Options: {', '.join(KEYS)}.")
        if name in given and name != _HEADERS:
            raise UsageError(f"--against: {name} is given twice.")
        given[name] = f"{given[name]}\n{value}" if name in given else value
    if not given:
        raise UsageError(
            "--against: it names no agent. Write lines such as base-url=https://staging.example.com."
        )
    try:
        return arm_of(BASE, given, read_options, read_headers, plugins)
    except UsageError as error:
        raise UsageError(f"--against: {error}") from None


def arm_of(
    name: str,
    given: Mapping[str, str],
    read_options: ReadOptions,
    read_headers: ReadHeaders,
    plugins: frozenset[str],
) -> Arm:
    """The arm that these options describe; raise `UsageError` if a file or a header cannot be read."""
    texts = {field: given[option] for option, field in _TEXTS.items() if option in given}
    return Arm(
        name,
        AgentChoice(
            options=read_options(given[_OPTIONS]) if _OPTIONS in given else None, plugins=plugins, **texts
        ),
        headers=read_headers(given[_HEADERS]) if _HEADERS in given else None,
        model=given.get(_MODEL),
    )


def with_arms(plan: Plan, arms: tuple[Arm, ...], *, first: str = HEAD, unasked: bool = False) -> Plan:
    """The plan with the same tests for each of these agents too.

    `unasked` is for agents that nobody will reach, as in a replay.

    Raises:
        UsageError: an agent lacks what its adapter needs; the message names the arm.
    """
    others = tuple(_with_agent(planned, arm, unasked=unasked) for arm in arms for planned in plan.suites)
    return replace(plan, suites=plan.suites + others, arms=(first, *(arm.name for arm in arms)))


def _with_agent(planned: PlannedSuite, arm: Arm, *, unasked: bool) -> PlannedSuite:
    try:
        suite = chosen_agent(planned.suite, planned.file, arm.choice, unasked=unasked)
    except UsageError as error:
        option = "--against" if arm.name == BASE else f"--arms: {arm.name}"
        raise UsageError(f"{option}: {error}") from None
    if arm.model:
        suite = suite.model_copy(update={"model": arm.model})
    return replace(planned, suite=suite, agent_headers=arm.headers)
