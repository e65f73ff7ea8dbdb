"""`init`: writes a starter suite and its workflow for a repository."""

import json
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.agent_registry import AGENT_KINDS, PROGRAM_KINDS, AgentKind
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.agents import DEFAULT_ADAPTER, program_of
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.extension_support.start_command import moved
from ci_evals.extension_support.suite_writing import literal, write
from ci_evals.extensions.init import repository
from ci_evals.extensions.init.repository import Repository
from ci_evals.extensions.init.settings import InitSettings, StarterProvider
from ci_evals.planning.adapter_options import complaint
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import load
from ci_evals.planning.suite_keys import schema_with_added_keys
from ci_evals.reports import sanitize
from ci_evals.support.documentation import REPOSITORY, address
from ci_evals.support.templates import render

WORKFLOW = ".github/workflows/evals.yml"
AGENT = "agent_under_test.py"
_SUITE = "starter.yaml"
_SCHEMA = ".ci-evals.schema.json"
"""Hidden: what looks for suites passes it over."""


@dataclass(frozen=True)
class Starter:
    """The files to be written."""

    kind: str
    """The adapter, without what of it is to be run."""
    adapter: str
    repository: Repository
    provider: StarterProvider = StarterProvider.OPENAI
    start: str | None = None
    """The command that serves the agent, if runs start it."""

    @property
    def agent(self) -> AgentKind:
        """The facts about the adapter."""
        return PROGRAM_KINDS[self.kind] if self.kind in PROGRAM_KINDS else AGENT_KINDS[self.kind]

    @property
    def suite(self) -> str:
        """The path of the suite."""
        return "/".join(part for part in (self.repository.home, _SUITE) if part != ".")

    @property
    def schema(self) -> str:
        """The path of the JSON Schema of suites, which the suite names for editors."""
        return "/".join(part for part in (self.repository.home, _SCHEMA) if part != ".")

    @property
    def writes_agent(self) -> bool:
        """True if an agent to begin with is written as well."""
        return self.adapter == self.agent.example

    @property
    def plays_at_once(self) -> bool:
        """True if it runs without anything of the user's."""
        return self.agent.embedded or self.writes_agent

    @property
    def is_deployed(self) -> bool:
        """True if a suite may test an agent that runs elsewhere: the written one, or one that was there."""
        return self.start is None or self.repository.has_suites

    @property
    def provider_option(self) -> str:
        """The option that chooses the provider, after a space; empty for the default."""
        return "" if self.provider is StarterProvider.OPENAI else f" --provider={self.provider}"

    def files(self) -> dict[str, str]:
        """Path and text of each file."""
        written = {self.suite: self._suite_text(), WORKFLOW: self._workflow()}
        if not (self.repository.root / self.schema).exists():
            written[self.schema] = json.dumps(schema_with_added_keys(), indent=2) + "\n"
        if self.writes_agent:
            written[AGENT] = render(self.agent.program)
        return written

    def _suite_text(self) -> str:
        agent = self.agent
        about = f"{agent.about[0].upper()}{agent.about[1:]}"
        if agent.own_server:
            about += f" ({address(agent.page.removesuffix('.md'))})"
        return render(
            "extensions/init/suite.yaml.j2",
            agent=agent,
            lines=agent.starter,
            adapter=write({"adapter": self.adapter}, _SUITE).strip(),
            about=f"{about}.",
            file=self.suite,
            schema=_SCHEMA,
            offline=self.plays_at_once or not self.provider.key,
            start=self._start_line(self.start) if self.start else "",
            start_line=self._start_line,
            provider=" --provider=offline" if self.plays_at_once else self.provider_option,
            order="HL-30771" if agent.embedded else "A-1001",
            handing_over="" if self.writes_agent else agent.hand_over,
        )

    def _start_line(self, command: str) -> str:
        """Return the suite's line for a command that is run in the repository's root."""
        root = self.repository.root
        start = moved(command, root, root / self.repository.home)
        return write(literal({"start": start}), _SUITE).strip()

    def _workflow(self) -> str:
        branch = self.repository.branch
        return render(
            "extensions/init/workflow.yml.j2",
            runs_inside=self.kind in PROGRAM_KINDS,
            server=self.agent.own_server and self.is_deployed,
            keyed=self.agent.keyed and self.is_deployed,
            started=self.start is not None,
            packages=self.start is not None and (self.repository.root / "requirements.txt").is_file(),
            branch=branch if re.fullmatch(r"[A-Za-z_][\w./-]*", branch) else json.dumps(branch),
            suites=[f"{self.repository.home}/", *self.repository.others],
            action=REPOSITORY,
            provider=self.provider,
        )


def init(settings: InitSettings, context: RunContext) -> None:
    """Write the files, all or none, and print the next steps.

    Raises:
        UsageError: one of them is there already, or cannot be written.
    """
    if not files.is_folder(settings.folder):
        raise UsageError(f"{str(settings.folder)!r} is not a folder. Name the repository or a folder in it.")
    found = repository.look(settings.folder)
    starter = plan(found, settings)
    written = starter.files()
    try:
        load(written[starter.suite], starter.suite, Reading())
    except SuiteError as error:
        raise UsageError(f"`adapter=`: {error.problems[0].message}") from error
    files.write_new(found.root, written)
    context.show(sanitize.log(f"Written to {found.root}:\n" + "\n".join(f"  {name}" for name in written)))
    context.show(sanitize.log(_next(starter)))


def plan(found: Repository, settings: InitSettings) -> Starter:
    """Choose the files for the adapter that the option or the repository's suites name, or for AUI.

    Raises:
        UsageError: there is no such adapter, the action cannot run it, or it has no server to start.
    """
    adapter = settings.adapter or found.adapter or DEFAULT_ADAPTER
    if adapter in PROGRAM_KINDS:
        adapter = PROGRAM_KINDS[adapter].example
    kind = program_of(adapter) or adapter
    kinds = {**AGENT_KINDS, **PROGRAM_KINDS}
    supported = [name for name, agent in kinds.items() if agent.starter]
    if kind not in supported:
        reason = "is a plug-in, which the action does not contain"
        if settings.adapter:
            reason = complaint(adapter, ()) or "has no starter suite"
        raise UsageError(f"`adapter=`: {adapter!r} {reason}. init supports {', '.join(supported)}.")
    starter = Starter(kind, adapter, found, settings.provider, settings.start)
    if starter.agent.embedded:
        starter = replace(starter, provider=StarterProvider.OFFLINE)
    if settings.start is not None and not settings.start.isprintable():
        raise UsageError("`start=` has more than one line. Put the commands in a script, and give that.")
    if settings.start is not None and not starter.agent.own_server:
        servers = ", ".join(name for name, agent in AGENT_KINDS.items() if agent.own_server)
        raise UsageError(f"`start=`: {kind} has no server to start. These have: {servers}.")
    if settings.start is not None and not settings.start.strip():
        raise UsageError(
            "`start=` is empty. Give the command that serves your agent, or leave the option out."
        )
    return starter


def _next(starter: Starter) -> str:
    """Return the three steps that are left to the user."""
    if starter.agent.own_server or starter.agent.keyed:
        first, second = _steps_of_server(starter)
    else:
        first, second = _steps_of_code(starter)
    steps = enumerate((first, second, _last_step(starter)), start=1)
    root = starter.repository.root
    where = "" if root.resolve() == Path.cwd() else f", in {root}"
    return f"\nNext{where}:\n" + "\n".join(f"  {number}. {step}" for number, step in steps)


def _steps_of_server(starter: Starter) -> tuple[str, str]:
    agent = starter.agent
    fields = dict.fromkeys(agent.needs)
    if agent.own_server:
        fields["baseUrl"] = None
    named = " and ".join(fields)
    if agent.keyed and agent.own_server:
        named += " (if it needs a key, also apiKey, and export AGENT_KEY)"
    return f"In {starter.suite}, set {named}, {_check(starter)}", _run(
        starter, agent_key=not agent.own_server
    )


def _steps_of_code(starter: Starter) -> tuple[str, str]:
    check = _check(starter)
    if note := _other_environment(starter):
        check = f"{check}\n     {note}"
    second = (
        f"Put your agent into {AGENT}, {check}" if starter.writes_agent else f"{check[0].upper()}{check[1:]}"
    )
    if starter.plays_at_once:
        return f"Run it:  {_command(starter)} --provider=offline", second
    return _run(starter), second


def _other_environment(starter: Starter) -> str | None:
    """Return what to do if the repository has a Python environment that ci-evals is not in."""
    theirs = starter.repository.environment
    if starter.kind != "python" or theirs is None or theirs.resolve() == Path(sys.prefix).resolve():
        return None
    return (
        f"If the agent needs packages of {theirs.name}, install ci-evals there too, and call it from there: "
        f"this one sees those of {sys.prefix}. {address('get-started#1-install')}"
    )


def _check(starter: Starter) -> str:
    return f"make the tests yours, and check them:  ci-evals validate --strict {starter.suite}"


def _command(starter: Starter) -> str:
    return f"ci-evals run {starter.suite}"


def _run(starter: Starter, *, agent_key: bool = False) -> str:
    """Return the step that runs the suite, with the keys that it takes, and without a model."""
    command, provider = _command(starter), starter.provider
    keys = ["AGENT_KEY"] if agent_key else []
    if provider.key:
        keys.append(f"{provider.key} for judge and user")
    run = f"{command}{starter.provider_option}"
    step = f"Export {', and '.join(keys)}, then:  {run}" if keys else f"Run it:  {run}"
    return step if not provider.key else f"{step}\n     Without a model:  {command} --provider=offline"


def _last_step(starter: Starter) -> str:
    own_server = starter.agent.own_server
    keys = [starter.provider.key] if starter.provider.key else []
    if starter.agent.keyed and starter.is_deployed:
        keys.insert(0, "AGENT_KEY (if there is a key)" if own_server else "AGENT_KEY")
    lines = []
    if keys:
        lines.append(f"Add the secret{'s' * (len(keys) > 1)} {' and '.join(keys)} to the repository.")
    if own_server and starter.is_deployed:
        lines.append("Add the variable AGENT_URL, the agent's public address, to the repository.")
        if not starter.start:
            lines.append("To test the code of each pull request instead, run init with --start=COMMAND.")
    lines += [
        f"In {WORKFLOW}, replace {REPOSITORY} with the action's repository.",
        "Add results/ to .gitignore. Then open a pull request with all of it.",
    ]
    return "\n     ".join(lines)
