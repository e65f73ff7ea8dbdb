"""Agents that are code: a function or object, a program, a plug-in."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.adapters.code import loading
from ci_evals.adapters.code.agent_settings import AgentSettings
from ci_evals.adapters.code.command_agent import CommandAgent
from ci_evals.adapters.code.hosting.host import Host
from ci_evals.adapters.transport import connections
from ci_evals.domain.agents import COMMAND, PYTHON
from ci_evals.domain.errors import UsageError
from ci_evals.ports import Agent
from ci_evals.reports import sanitize
from ci_evals.support.redaction import Redactor


def agent(
    adapter: str,
    settings: AgentSettings,
    redactor: Redactor,
    host: Callable[[], Host] | None,
    environ: Mapping[str, str],
) -> Agent:
    """The agent that the name of an adapter says where to find.

    Python runs in the process of `host`, and is loaded when that starts; without one it runs in this process.

    Raises:
        UsageError: a module, a program or a plug-in cannot be used.
    """
    if adapter.startswith(COMMAND):
        return CommandAgent(adapter, settings, environ, redactor=redactor)
    if host:
        return host().agent(adapter, settings)
    if adapter.startswith(PYTHON):
        _import_late_packages()
    return loading.load(adapter, settings, Path.cwd(), redactor)


def write_log(host: Host, path: Path) -> None:
    """Write what the agents of a host have printed, if they have: without secrets and workflow commands."""
    printed = sanitize.log(host.redactor.text(host.printed()))
    with suppress(UsageError, OSError):  # the reports tell of a disk that is full
        if printed.strip():
            files.write(path, f"{printed}\n")
        else:
            path.unlink(missing_ok=True)  # an earlier run's


def _import_late_packages() -> None:
    """Once a folder of the user's is on the path, a `tabulate.py` in there would be taken for the package."""
    connections.load()
    for name in ("jinja2", "junit_xml", "rapidfuzz.distance", "svg", "tabulate", "yaml"):
        import_module(name)
