"""For all tests: the profiles of hypothesis, a check of the installation, and the fork server."""

import contextlib
import gc
import importlib
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import property_examples
import pytest

GROUP = "ci_evals.extensions"

property_examples.register_profiles()


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


def pytest_collection(session):
    """Import the test files, each worker starting at a different one, so that each file is compiled once."""
    worker = getattr(session.config, "workerinput", None)
    files = [Path(argument) for argument in session.config.args if argument.endswith(".py")]
    if worker is None or not files:
        return
    number = int(worker["workerid"].removeprefix("gw"))
    first = len(files) * number // worker["workercount"]
    for file in files[first:] + files[:first]:
        folder = str(file.absolute().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)  # as collecting does
        # A file that cannot be imported is reported when it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(file.stem)


def pytest_collection_finish():
    """Keep the garbage collector from looking again and again through what stays to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def fork_server_is_ready():
    """No test's own clock runs while the commands are prepared that any of them may start."""
    if commands := sys.modules.get("commands"):
        commands.fork_server_socket()
