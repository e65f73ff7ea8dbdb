"""Finds the descendants of a program in `/proc`, to end them with it.

A process can leave its process group (`setsid`, a daemon). So every program that we start has a mark in its
environment, which all its descendants inherit. On other systems than Linux the process group alone is ended.
"""

import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "CI_EVALSPROCESS"

PROC = Path("/proc")
_ROUNDS = 50
"""Maximum number of searches: a process may start another one just before it is killed."""


def new_mark() -> str:
    """Return a unique value for `MARK`."""
    return secrets.token_hex(12)


def kill_marked(mark: str) -> None:
    """Kill every process with the mark, which may take some milliseconds."""
    for _ in range(_ROUNDS):
        pids = [pid for pid in marked_processes(mark) if _status(pid)[:1] not in ([], ["Z"], ["X"])]
        if not pids:
            return
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def marked_processes(mark: str) -> list[int]:
    """Return the processes with the mark, by number."""
    needle = f"{MARK}={mark}".encode()
    return [pid for pid in _processes() if needle in _environment(pid)]


def children_of(parent: int) -> list[int]:
    """Return the direct children of a process."""
    return [pid for pid in _processes() if _status(pid)[1:2] == [str(parent)]]


def _processes() -> Iterator[int]:
    with suppress(OSError):
        own = os.getpid()
        for name in os.listdir(PROC):  # noqa: PTH208  # no paths are wanted
            if name.isdecimal() and int(name) != own:
                yield int(name)


def _environment(pid: int) -> bytes:
    with suppress(OSError):
        return (PROC / str(pid) / "environ").read_bytes()
    return b""


def _status(pid: int) -> list[str]:
    """Return the state of a process, its parent and so on; empty if it is gone."""
    with suppress(OSError):
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
        return text.rpartition(")")[2].split()
    return []
