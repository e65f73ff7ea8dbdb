"""Processes that a program of somebody else started, found in `/proc` and ended with it.

A process group holds what a program starts, unless that leads a session of its own (`setsid`) or is started
by way of a process that ends (a daemon). So every program of ours has a mark in its environment, which all
that it starts inherits. Elsewhere than on Linux nothing is found, and the process group alone is ended.
"""

import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "CI_EVALS_PROCESS"
"""The variable that names the program which a process belongs to."""

_PROC = Path("/proc")
_ROUNDS = 50
"""How often what is left is looked for: a process may start another one just before it is ended."""


def new_mark() -> str:
    """A value for `MARK` that no other program has."""
    return secrets.token_hex(12)


def kill_marked(mark: str) -> None:
    """Kill every process that has the mark. It may take some milliseconds."""
    needle = f"{MARK}={mark}".encode()
    for _ in range(_ROUNDS):
        found = [pid for pid in _processes() if needle in _environment(pid) and not _is_over(pid)]
        if not found:
            return
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def children_of(parent: int) -> list[int]:
    """The direct children of a process."""
    return [pid for pid in _processes() if _status(pid)[1:2] == [str(parent)]]


def _processes() -> Iterator[int]:
    with suppress(OSError):
        own = os.getpid()
        for name in os.listdir(_PROC):  # noqa: PTH208  # no paths are wanted
            if name.isdecimal() and int(name) != own:
                yield int(name)


def _environment(pid: int) -> bytes:
    with suppress(OSError):
        return (_PROC / str(pid) / "environ").read_bytes()
    return b""


def _status(pid: int) -> list[str]:
    """The state of a process, its parent and so on; empty if it is gone."""
    with suppress(OSError):
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
        return text.rpartition(")")[2].split()
    return []


def _is_over(pid: int) -> bool:
    return _status(pid)[:1] in ([], ["Z"], ["X"])
