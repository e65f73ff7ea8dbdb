"""Builds agents in Python: those of `python:module:attribute`, and plug-ins."""

from importlib import import_module
from pathlib import Path

from ci_evals.agents.python import loading
from ci_evals.agents.settings import AgentSettings, CodeEnvironment
from ci_evals.domain.agents import PYTHON
from ci_evals.ports import Agent
from ci_evals.support.redaction import Redactor


def build(adapter: str, settings: AgentSettings, redactor: Redactor, where: CodeEnvironment) -> Agent:
    """Return the agent of that name, loaded now, or when the process for agents in Python starts.

    Raises:
        UsageError: there is no such agent, or it cannot be used.
    """
    if where.host:
        return where.host().agent(adapter, settings)
    if adapter.startswith(PYTHON):
        _import_late_packages()
    return loading.load(adapter, settings, Path.cwd(), redactor)


def _import_late_packages() -> None:
    """Once a folder of the user's is on the path, a `tabulate.py` in there would be taken for the package."""
    for name in ("aiohttp", "jinja2", "junit_xml", "rapidfuzz.distance", "svg", "tabulate", "yaml"):
        import_module(name)
