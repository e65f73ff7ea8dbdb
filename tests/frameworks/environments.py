"""Environments of frameworks, installed from the registries once, and servers in them."""

import hashlib
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

AGENTS = Path(__file__).parent / "agents"
ENVIRONMENTS = Path(__file__).parents[2] / "build/frameworks"


def environment(packages: Sequence[str], *, node: bool = False, python: str | None = None) -> Path:
    """Return the folder of an environment with these packages, made once."""
    folder = ENVIRONMENTS / hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        if node:
            folder.mkdir(parents=True)
            subprocess.run(["npm", "install", "--silent", *packages], cwd=folder, check=True)
        else:
            if python:
                subprocess.run([found(python) or python, "-m", "venv", folder], check=True)
            else:
                venv.create(folder, with_pip=True)
            subprocess.run([folder / "bin/pip", "install", "--quiet", *packages], check=True)
        (folder / "made").touch()
    return folder


def found(python: str) -> Path | None:
    """Return a Python of this name that runs, which a shim of pyenv on the path may not."""
    folders = [Path(folder) for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for folder in [*folders, *sorted(pyenv.glob("versions/*/bin"))]:
        program = folder / python
        if not shutil.which(program):
            continue
        if not subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode:
            return program
    return None


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server(command: Sequence[object], port: int, ready: str, *, cwd: Path, **environ: str) -> Iterator[str]:
    """Start a server that is up when it answers at the path `ready`; yields its address."""
    url = f"http://127.0.0.1:{port}"
    variables = {"PATH": os.environ["PATH"], "HOME": str(cwd), **environ}
    with (
        (cwd / f"{port}.log").open("wb") as log,
        subprocess.Popen(
            [*map(str, command)], cwd=cwd, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        ) as process,
    ):
        try:
            _wait(f"{url}{ready}", process, cwd / f"{port}.log")
            yield url
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + 300
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > until:
                raise AssertionError(log.read_text(errors="replace")[-3000:]) from None
            time.sleep(0.2)
        else:
            return
