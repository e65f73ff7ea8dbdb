"""Agents that are code: a function or object, a program, a plug-in."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.python import loading
from ci_evals.agents.python.hosting.host import Host
from ci_evals.agents.settings import AgentSettings
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
    """The agent that the name of an adapter says where to find; raise `UsageError` if it cannot be used.

    Python runs in the process of `host`, and is loaded when that starts; without one it runs in this process.
    """
    if adapter.startswith(COMMAND):
        return CommandAgent(adapter, settings, environ, redactor=redactor)
    if host:
        return host().agent(adapter, settings)
    if adapter.startswith(PYTHON):
        _import_late_packages()
    return loading.load(adapter, settings, Path.cwd(), redactor)


def write_log(printed: Mapping[str, str], path: Path) -> None:
    """Write what agents have printed, if they have, by who it was: without workflow commands."""
    texts = {who: text for who, text in printed.items() if text.strip()}
    parts = [f"==> {who} <==\n{text}" if len(texts) > 1 else text for who, text in texts.items()]
    with suppress(UsageError, OSError):  # the reports tell of a disk that is full
        if parts:
            files.write(path, "\n".join(sanitize.log(part) for part in parts) + "\n")
        else:
            path.unlink(missing_ok=True)  # an earlier run's


def _import_late_packages() -> None:
    """Once a folder of the user's is on the path, a `tabulate.py` in there would be taken for the package."""
    for name in ("aiohttp", "jinja2", "junit_xml", "rapidfuzz.distance", "svg", "tabulate", "yaml"):
        import_module(name)
