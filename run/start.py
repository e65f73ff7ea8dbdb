"""Install ci-evals into an environment of its own, then run it with the step's inputs.

Only the standard library is at hand. Every package is installed by its hash, whatever a cache holds. In a
release, `wheel.txt` beside this file names the wheel and its hash; otherwise it is built from this checkout.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "requirements/run.txt"
BUILD_PACKAGES = ROOT / "requirements/build.txt"
RELEASED = ROOT / "run/wheel.txt"

INPUTS = "CI_EVALS_INPUTS"
"""The variable with all inputs of the step as one JSON object."""
OWN_INPUTS = frozenset({"python"})
"""Inputs that only this action has; the program does not know them."""
PIP_CACHE = "CI_EVALS_PIP_CACHE"
INSTALL_FAILED = 3
"""Nothing was learned about the agent: the exit code of a run without a verdict."""


def main() -> None:
    """Install, then become the program; on Windows, wait for it."""
    try:
        python = environment(Path(os.environ["RUNNER_TEMP"]))
    except subprocess.CalledProcessError as error:
        failed = " ".join(map(str, error.cmd[1:]))
        print(
            f"::error title=ci-evals::Installing ci-evals failed (exit code {error.returncode} of: {failed})"
        )
        sys.exit(INSTALL_FAILED)
    command = [str(python), str(ROOT / "entrypoint.py")]
    environ = program_environ(os.environ)
    if os.name == "nt":  # its exec starts a new process and does not wait for it
        sys.exit(subprocess.call(command, env=environ))
    os.execve(command[0], command, environ)


def program_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a container action would find its inputs."""
    inputs = json.loads(environ[INPUTS])
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("INPUT_") and name not in {INPUTS, PIP_CACHE}
    }
    given = {f"INPUT_{name.upper()}": text for name, text in inputs.items() if name not in OWN_INPUTS}
    # Where the output goes to a file, Windows would write it in a code page that lacks most characters.
    return kept | given | {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}


def environment(folder: Path) -> Path:
    """Return the Python of an environment with ci-evals in `folder`, which later steps of the job use too."""
    home = folder / environment_name()
    python = _python_of(home)
    complete = home / "installed"
    if not complete.exists():  # nothing, or what an interrupted step has left
        print("Installing ci-evals", flush=True)
        _make(home)
        _pip(python, "--require-hashes", "--requirement", str(PACKAGES))
        if RELEASED.exists():
            _pip(python, "--require-hashes", "--no-deps", "--requirement", str(RELEASED))
        else:
            _pip(python, "--no-deps", str(_built_wheel(folder / "ci-evals-build")))
        complete.touch()
    return python


def environment_name() -> str:
    """Return a name that stands for this version of the action and this Python."""
    mark = hashlib.sha256(f"{ROOT} {sys.executable} {sys.version}".encode())
    for file in (PACKAGES, RELEASED if RELEASED.exists() else ROOT / "pyproject.toml"):
        mark.update(file.read_bytes())
    return f"ci-evals-{mark.hexdigest()[:16]}"


def _built_wheel(folder: Path) -> Path:
    _make(folder)
    _pip(_python_of(folder), "--require-hashes", "--requirement", str(BUILD_PACKAGES))
    dist = folder / "dist"
    build = [str(_python_of(folder)), "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return next(dist.glob("*.whl"))


def _make(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)


def _pip(python: Path, *arguments: str) -> None:
    cache = os.environ.get(PIP_CACHE)
    options = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    options += ["--cache-dir", cache] if cache else []
    subprocess.run([str(python), "-m", "pip", "install", *options, *arguments], check=True)


def _python_of(home: Path) -> Path:
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


if __name__ == "__main__":
    main()
