"""A parent process that watches the command, so that nothing but the command's own verdict passes a gate.

The command forks before it does any work. The child, the worker, does it all and writes its exit code into a
pipe as its last act. The parent exits with that code only if the worker really ended with it; a worker that
is gone in any other way (`os._exit(0)` in somebody's code, a crash in C, the system's memory killer) is lost,
and no exit status of it counts.

The parent also does what process 1 of a container has to: it passes signals on, reaps orphans, and ends what
the worker left running.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

SUPERVISED = frozenset({
    "attack", "calibrate", "comment", "compare", "gate", "merge",
    "noise", "odds", "prefer", "rejudge", "run", "validate",
})  # fmt: skip
"""Commands whose exit code somebody may rely on. The others show something, serve, or open a browser."""

_HELP = frozenset({"-h", "--help", "--version"})
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
ENDING = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
"""The signals that end a command in order."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_FROM_A_PERSON = 0
"""A signal's code is no greater if a process sent it, and greater if the terminal did."""

_LEFT_OVER_SECONDS = 3.0
"""The longest that the parent takes to end what the worker left running."""

_verdict: list[int] = []
"""The end of the pipe that the worker's exit code goes into; empty without a supervisor."""


def wanted(args: Sequence[str]) -> bool:
    """Whether a command line is to be supervised."""
    return hasattr(os, "fork") and args[:1] != [] and args[0] in SUPERVISED and _HELP.isdisjoint(args)


def begin() -> str | None:
    """Fork. The worker gets None; the parent gets how the worker was lost, or exits with its verdict."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()  # else both would write what is in the buffer
    reader, writer = os.pipe()
    watched = {*ENDING, signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take the worker's status with it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    parent = os.getpid()
    # Other programs of this user, such as agents, must not read our keys and streams in /proc, or our memory.
    # What we start is not concerned.
    _prctl(_PR_SET_DUMPABLE, 0)
    worker = os.fork()
    if not worker:
        os.close(reader)
        _verdict.append(writer)
        _end_with(parent)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    os.close(writer)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    status = _watch(worker, watched)
    _end_left_over()
    code = os.waitstatus_to_exitcode(status)
    if code >= 0 and _written(reader) == b"%d\n" % code:
        os._exit(code)
    return _how(code)


def conclude(code: int) -> None:
    """Write the verdict, as the last act of the worker. Without a supervisor nothing."""
    while _verdict:
        with suppress(OSError):  # the parent then finds no verdict, which opens no gate
            os.write(_verdict.pop(), b"%d\n" % code)


def end_strays() -> None:
    """End what agents have left running, before the worker writes what nobody else may change.

    A process whose parent has ended is a child of the supervisor, whatever environment and session it has.
    """
    if not _verdict:
        return
    deadline = time.monotonic() + _LEFT_OVER_SECONDS
    while time.monotonic() < deadline:
        strays = [child for child in _children(os.getppid()) if child != os.getpid()]
        if not strays:
            return
        _kill(strays)


def _watch(worker: int, watched: set[signal.Signals]) -> int:
    """Pass on signals and reap orphans until the worker has ended; its wait status."""
    while True:
        number, from_terminal = _next_signal(watched)
        if number != signal.SIGCHLD:
            if not from_terminal:
                with suppress(ProcessLookupError):
                    os.kill(worker, number)
            continue
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if not pid:
                break
            if not os.WIFSTOPPED(status):
                if pid == worker:
                    return status
            elif pid == worker and os.WSTOPSIG(status) == signal.SIGSTOP:
                os.kill(worker, signal.SIGCONT)  # the terminal stops by SIGTSTP; this was an agent


def _next_signal(watched: set[signal.Signals]) -> tuple[int, bool]:
    """The next signal, and whether the terminal sent it: then the worker has it already."""
    if not hasattr(signal, "sigwaitinfo"):  # macOS
        number = signal.sigwait(watched)
        return number, number == signal.SIGINT and os.isatty(0)
    info = signal.sigwaitinfo(watched)
    return info.si_signo, info.si_signo != signal.SIGTERM and info.si_code > _FROM_A_PERSON


def _written(reader: int) -> bytes:
    """The verdict. The pipe's end is not waited for: what the worker left running may hold it open."""
    os.set_blocking(reader, False)
    with suppress(BlockingIOError):
        return os.read(reader, 64)
    return b""


def _end_left_over() -> None:
    """End all descendants: those of an ended process become children of this one."""
    deadline = time.monotonic() + _LEFT_OVER_SECONDS
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            _kill(_children(os.getpid()))


def _kill(processes: Iterable[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    time.sleep(0.005)


def _children(parent: int) -> list[int]:
    from ci_evals.adapters.transport.descendants import children_of  # noqa: PLC0415  # rarely needed

    return children_of(parent)


def _end_with(parent: int) -> None:
    """Have the system end this process where its parent is killed: nobody would read its verdict."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415  # some milliseconds, and only here

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _how(code: int) -> str:
    """How the worker was lost, as a clause."""
    if code >= 0:
        return f"it exited with status {code} before it had decided"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    hint = ", as when memory runs out" if -code == signal.SIGKILL else ""
    return f"it was ended by {name}{hint}"
