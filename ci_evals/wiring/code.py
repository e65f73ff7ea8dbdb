"""Agents that are code: a function or object, a program, a plug-in."""

import os
from importlib import import_module
from pathlib import Path

from ci_evals.adapters.code import plugin_agent, python_agent
from ci_evals.adapters.code.about import About
from ci_evals.adapters.code.command_agent import CommandAgent
from ci_evals.adapters.transport import connections
from ci_evals.domain.agents import COMMAND, PYTHON
from ci_evals.ports import Agent
from ci_evals.redaction import Redactor


def agent(adapter: str, about: About, redactor: Redactor) -> Agent:
    """The agent that the name of an adapter says where to find.

    Raises:
        UsageError: a module, a program or a plug-in cannot be used.
    """
    if adapter.startswith(PYTHON):
        _import_what_comes_late()
        return python_agent.load(adapter, about, Path.cwd(), redactor)
    if adapter.startswith(COMMAND):
        return CommandAgent(adapter, about, os.environ, redactor=redactor)
    return plugin_agent.load(adapter, about, redactor)


def _import_what_comes_late() -> None:
    """Once a folder of the user's is on the path, a `tabulate.py` in there would be taken for the package."""
    connections.load()
    for name in ("jinja2", "junit_xml", "rapidfuzz.distance", "svg", "tabulate", "yaml"):
        import_module(name)
