"""For all tests: what is slow on a busy machine is not wrong."""

import importlib
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import settings

GROUP = "ci_evals.extensions"

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


def pytest_sessionstart(session):
    """Check the installation, and start the one fork server that all workers use."""
    check_installation()
    workers = session.config.getoption("numprocesses", None)
    if workers and workers > 1:
        importlib.import_module("commands")


def check_installation():
    """An editable installation knows the extensions that there were when it was made."""
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    declared = tomllib.loads(pyproject.read_text())["project"]["entry-points"][GROUP]
    installed = metadata.distribution("ci-evals").entry_points.select(group=GROUP)
    if {(point.name, point.value) for point in installed} != set(declared.items()):
        command = f"{sys.executable} -m pip install --no-deps --no-build-isolation --editable ."
        pytest.exit(f"pyproject.toml has other extensions than the installation. Run: {command}", 4)


@pytest.fixture(scope="session", autouse=True)
def fork_server_is_ready():
    """No test's own clock runs while the commands are prepared that any of them may start."""
    if commands := sys.modules.get("commands"):
        commands.ready()
