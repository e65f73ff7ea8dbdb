"""The command line as its users start it: a process of its own, in a folder of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CLEAN = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
"""No key and no CI of the machine that the tests run on may leak into them."""


def start(*args: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Starts `ci-evals ARGS`."""
    return subprocess.Popen(
        [sys.executable, "-m", "ci_evals", *args],
        cwd=cwd,
        env=CLEAN | dict(env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ci_evals(*args: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs `ci-evals ARGS` to its end."""
    process = start(*args, cwd=cwd, env=env)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(args, process.returncode, out, err)


def write_suite(folder: Path, *tests: dict[str, Any], name: str = "suite.json", **fields: Any) -> str:
    """Writes a suite for a stub agent into `folder` and gives back its file's name."""
    one = {
        "name": "Greets",
        "guidelines": "You say hello.",
        "turns": [{"user": "Hello"}],
        "maxTurns": 1,
        "evaluations": [{"criterion": "No forwarding", "strict": "not_escalated"}],
    }
    suite = {
        "name": "Stub",
        "agentId": "agent-1",
        "apiKey": "${AGENT_KEY}",
        "tests": [one | test for test in tests or ({},)],
    } | fields
    (folder / name).write_text(json.dumps(suite))
    return name


def results_in(folder: Path) -> dict[str, Any]:
    """The run's `_results.json` below the default output folder."""
    return json.loads((folder / "results/_results.json").read_text())


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` by its relative path."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }
