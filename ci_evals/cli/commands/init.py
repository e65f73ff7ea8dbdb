"""`init`: writes a starter suite and its workflow for a repository."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.adapters.git import repository
from ci_evals.adapters.git.repository import Repository
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.result_commands import InitSettings
from ci_evals.domain.agents import COMMAND, PYTHON
from ci_evals.domain.built_in_agents import BUILT_IN, BuiltInAgent
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.planning.adapter_options import complaint
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.documents.writing import write
from ci_evals.planning.parse import load
from ci_evals.reports import sanitize
from ci_evals.support.templates import render

WORKFLOW = ".github/workflows/evals.yml"
AGENT = "agent_under_test.py"
_SUITE = "starter.yaml"

_SHORT = {"python": "python:agent_under_test:reply", "command": f"command: python3 {AGENT}"}
"""Adapters of the programs that `init` writes itself."""

_ABOUT_CODE = {
    "python": "A Python function or a framework's agent, found from the folder that ci-evals is started in.",
    "command": "A program that answers JSON lines, started in the folder that ci-evals is started in.",
}


@dataclass(frozen=True)
class Starter:
    """The files to be written."""

    kind: str
    """The adapter, without what of it is to be run."""
    adapter: str
    repository: Repository

    @property
    def agent(self) -> BuiltInAgent:
        """The facts about the adapter."""
        return BUILT_IN.get(self.kind) or BuiltInAgent(_ABOUT_CODE[self.kind], own_server=False)

    @property
    def suite(self) -> str:
        """The path of the suite."""
        return "/".join(part for part in (self.repository.home, _SUITE) if part != ".")

    @property
    def writes_agent(self) -> bool:
        """True if an agent to begin with is written as well."""
        return self.adapter == _SHORT.get(self.kind)

    @property
    def plays_at_once(self) -> bool:
        """True if it runs without anything of the user's."""
        return self.kind == "demo" or self.writes_agent

    def files(self) -> dict[str, str]:
        """Path and text of each file."""
        written = {self.suite: self._suite_text(), WORKFLOW: self._workflow()}
        if self.writes_agent:
            template = "agent" if self.kind == "python" else "program"
            written[AGENT] = render(f"cli/starter/{template}.py.j2")
        return written

    def _suite_text(self) -> str:
        hand_over = self.agent.hand_over
        if self.kind == "python" and not self.writes_agent:
            hand_over = "adapterOptions.escalationTools, or escalated of a function"
        return render(
            "cli/starter/suite.yaml.j2",
            kind=self.kind,
            adapter=write({"adapter": self.adapter}, _SUITE).strip(),
            about=self.agent.about,
            file=self.suite,
            offline=self.plays_at_once,
            order="HL-30771" if self.kind == "demo" else "A-1001",
            handing_over=hand_over,
        )

    def _workflow(self) -> str:
        branch = self.repository.branch
        return render(
            "cli/starter/workflow.yml.j2",
            kind=self.kind,
            server=self.agent.own_server,
            keyed=self.agent.keyed,
            branch=branch if re.fullmatch(r"[A-Za-z_][\w./-]*", branch) else json.dumps(branch),
            suites=[f"{self.repository.home}/", *self.repository.others],
            offline=self.kind == "demo",
        )


def init(settings: InitSettings, context: RunContext) -> None:
    """Write the files, all or none, and print the next steps.

    Raises:
        UsageError: one of them is there already, or cannot be written.
    """
    if not files.is_folder(settings.folder):
        raise UsageError(f"{str(settings.folder)!r} is not a folder. Name the repository or a folder in it.")
    found = repository.look(settings.folder)
    starter = plan(found, settings.adapter)
    written = starter.files()
    try:
        load(written[starter.suite], starter.suite, Reading())
    except SuiteError as error:
        raise UsageError(f"--adapter: {error.problems[0].message}") from error
    files.write_new(found.root, written)
    context.show(sanitize.log(f"Written to {found.root}:\n" + "\n".join(f"  {name}" for name in written)))
    context.show(sanitize.log(_next(starter)))


def plan(found: Repository, option: str | None) -> Starter:
    """Choose the files for the adapter that the option or the repository's suites name, or for AUI.

    Raises:
        UsageError: there is no such adapter, or the action cannot run it.
    """
    adapter = option or found.adapter or "aui"
    adapter = _SHORT.get(adapter, adapter)
    for prefix, kind in ((PYTHON, "python"), (COMMAND, "command")):
        if adapter.startswith(prefix):
            return Starter(kind, adapter, found)
    if adapter not in BUILT_IN:
        supported = [*BUILT_IN, *_SHORT]
        reason = complaint(adapter, ()) if option else "is a plug-in, which the action does not contain"
        raise UsageError(f"--adapter: {adapter!r} {reason}. init supports {', '.join(supported)}.")
    return Starter(adapter, adapter, found)


def _next(starter: Starter) -> str:
    """Return the three steps that are left to the user."""
    own_server, keyed = starter.agent.own_server, starter.agent.keyed
    run = f"ci-evals run {starter.suite}"
    check = f"make the tests yours, and check them:  ci-evals validate --strict {starter.suite}"
    if own_server or keyed:
        keys = f"{'AGENT_KEY, and ' if not own_server else ''}OPENAI_API_KEY for judge and user"
        fields = dict.fromkeys([*starter.agent.needs, *(["baseUrl"] if own_server else [])])
        agent = " and ".join(fields)
        if keyed and own_server:
            agent += " (if it needs a key, also apiKey, and export AGENT_KEY)"
        first = f"In {starter.suite}, set {agent}, {check}"
        second = f"Export {keys}, then:  {run}\n     Without a model:  {run} --provider=offline"
    else:
        offline = f"{run} --provider=offline"
        first = f"Play it:  {offline}"
        if not starter.plays_at_once:
            first = (
                f"Export OPENAI_API_KEY for judge and user, then:  {run}\n     Without a model:  {offline}"
            )
        second = check[0].upper() + check[1:]
        second = f"Put your agent into {AGENT}, {check}" if starter.writes_agent else second
    kept = [*(["AGENT_KEY"] if keyed else []), *([] if starter.kind == "demo" else ["OPENAI_API_KEY"])]
    if keyed and own_server:
        kept[0] += " (if there is a key)"
    third = [
        f"Add the secret{'s' * (len(kept) > 1)} {' and '.join(kept)} to the repository." if kept else "",
        "Add the variable AGENT_URL to the repository, or let the workflow start the agent."
        if own_server
        else "",
        f"In {WORKFLOW}, name the repository of the action. Add results/ to .gitignore.",
        "Then open a pull request with all of it.",
    ]
    steps = enumerate((first, second, "\n     ".join(filter(None, third))), start=1)
    root = starter.repository.root
    where = "" if root.resolve() == Path.cwd() else f", in {root}"
    return f"\nNext{where}:\n" + "\n".join(f"  {number}. {step}" for number, step in steps)
