"""The TCP ports on which a program and its descendants listen, as Linux shows them in `/proc`.

On other systems none is found, so nobody may conclude from an empty answer that nothing listens.
"""

import re
from contextlib import suppress
from pathlib import Path

from ci_evals.adapters.processes.descendants import PROC, marked_processes

_LISTENING = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_TABLES = ("tcp", "tcp6")
_LOCAL_ADDRESS, _STATE, _INODE = 1, 3, 9
"""Columns of a table of sockets."""


def listening_ports(mark: str) -> tuple[int, ...]:
    """Return the ports of all processes with the mark, in ascending order."""
    ports: set[int] = set()
    for pid in marked_processes(mark):
        sockets = _sockets_of(pid)
        for inode, port in _listening(pid).items():
            if inode in sockets:
                ports.add(port)
    return tuple(sorted(ports))


def _sockets_of(pid: int) -> set[str]:
    """Return the inodes of the sockets that a process has open."""
    inodes = set()
    with suppress(OSError):
        for link in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if match := _SOCKET.fullmatch(str(Path.readlink(link))):
                    inodes.add(match[1])
    return inodes


def _listening(pid: int) -> dict[str, int]:
    """Return the ports that are listened on where a process runs, by the socket's inode."""
    ports = {}
    for table in _TABLES:
        with suppress(OSError, ValueError, IndexError):
            for line in (PROC / str(pid) / "net" / table).read_text().splitlines()[1:]:
                columns = line.split()
                if columns[_STATE] == _LISTENING:
                    ports[columns[_INODE]] = int(columns[_LOCAL_ADDRESS].rpartition(":")[2], 16)
    return ports
