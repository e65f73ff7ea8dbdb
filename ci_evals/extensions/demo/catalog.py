"""The playbooks in this package: `domains/NAME.yaml` is played by the agent `demo-NAME`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from ci_evals.extensions.demo.playbook import Playbook

AGENT_PREFIX = "demo-"


class UnknownAgentError(LookupError):
    """No playbook has that agent id. The text names all there are."""


def known_agents() -> tuple[str, ...]:
    """Return the ids of all agents that have a playbook."""
    names = (file.name for file in _folder().iterdir() if file.name.endswith(".yaml"))
    stems = (name.removesuffix(".yaml") for name in names if not name.startswith("_"))
    return tuple(sorted(AGENT_PREFIX + stem for stem in stems))


def known_workflows() -> tuple[str, ...]:
    """Return the codes of the workflows of all playbooks."""
    codes = {workflow.code for agent_id in known_agents() for workflow in playbook(agent_id).workflows}
    return tuple(sorted(codes))


@cache
def playbook(agent_id: str) -> Playbook:
    """Return the playbook of the agent `demo-NAME`, from `domains/NAME.yaml`.

    Raises:
        UnknownAgentError: there is none.
    """
    if agent_id not in known_agents():
        raise UnknownAgentError(f"No agent {agent_id!r} here. Known: {', '.join(known_agents())}")
    return read(_folder().joinpath(agent_id.removeprefix(AGENT_PREFIX) + ".yaml").read_text(encoding="utf-8"))


def read(text: str) -> Playbook:
    """Read a playbook from YAML, on top of `domains/_shared.yaml`.

    Raises:
        pydantic.ValidationError: it has unknown or missing keys.
    """
    return Playbook.model_validate({**_shared(), **_parse(text)})


@cache
def _shared() -> Mapping[str, Any]:
    return _parse(_folder().joinpath("_shared.yaml").read_text(encoding="utf-8"))


def _parse(text: str) -> dict[str, object]:
    content: dict[str, object] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe
    return content


def _folder() -> Traversable:
    return files("ci_evals.extensions.demo").joinpath("domains")
