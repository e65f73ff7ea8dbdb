"""A parent process that watches the command, so that nothing but the command's own verdict passes a gate.

The command forks before it does any work. The child, the worker, does it all and writes its exit code into a
pipe as its last act. The parent exits with that code only if the worker really ended with it; a worker that
is gone in any other way (`os._exit(0)` in somebody's code, a crash in C, the system's memory killer) is lost,
and no exit status of it counts.

The parent also does what process 1 of a container has to: it passes signals on, reaps orphans, and ends what
the worker left running. A worker that hangs and does not end when it is told to is killed, since a runner
would soon kill the parent too, and nobody would learn what came of the command.

What the process had started before (`server & exec ci-evals run ...`) is not the command's. With such
children it forks once more: it stays their parent, and the supervisor has none but the worker.
"""

import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ci_evals.extension_registry import commands

_UNSUPERVISED = frozenset({"list-suites", "schema"})
"""Commands of the core that show something, serve, or open a browser.

Somebody may rely on the exit code of any other, but for those of extensions that say so.
"""

_HELP = frozenset({"-h", "--help", "--version"})
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
ENDING = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
"""The signals that end a command in order."""

_WATCHED = {*ENDING, *(getattr(signal, name) for name in ("SIGCHLD", "SIGALRM") if hasattr(signal, name))}
"""The signals that the parent waits for. SIGALRM is that of its own clock."""

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_SI_USER = 0
"""The code of a signal that a process has sent. Signals of the terminal have a greater one."""

ENDING_SECONDS = 8.5
"""The time that a worker may take to end after the first signal that tells it to.

Its reports take 7 seconds at most. GitHub sends SIGTERM after 7.5 seconds, upon which a worker that still
hears anything ends at once, and SIGKILL after ten: 1.5 seconds are left to write the outputs. At a terminal
the time begins with the second Ctrl-C: nobody kills there, and the user decides how long to wait.
"""

_KILLED_SECONDS = 0.5
"""The time to wait for a killed worker: one that the system holds (a dead network disk) may stay."""

_LEFT_OVER_SECONDS = 3.0
"""The longest that the parent takes to end what the worker left running."""

_verdict: list[int] = []
"""The end of the pipe that the worker's exit code goes into; empty without a supervisor."""


def is_supervised(args: Sequence[str]) -> bool:
    """Return whether a command line is to be supervised."""
    if not args or args[0].startswith("-") or args[0] in _UNSUPERVISED:
        return False
    added = commands().get(args[0])
    if added is not None and not added.facts.is_supervised:
        return False
    return hasattr(os, "fork") and _HELP.isdisjoint(args)


def fork_worker(ending_seconds: float = ENDING_SECONDS) -> str | None:
    """Fork. Return None in the worker; the parent exits with its verdict, or gets how it was lost."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()  # else both would write what is in the buffer
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take the worker's status with it
    # Other programs of this user, such as agents, must not read our keys and streams in /proc, or our memory.
    # What we start is not concerned.
    _prctl(_PR_SET_DUMPABLE, 0)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    if _has_children() and (supervisor := _fork()):
        code = _watch(supervisor, None)
        if code is not None and code >= 0:
            os._exit(code)
        return _loss_reason(code, ending_seconds)
    reader, writer = os.pipe()
    worker = _fork()
    if not worker:
        os.close(reader)
        _verdict.append(writer)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    os.close(writer)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    code = _watch(worker, ending_seconds)
    _end_left_over(_LEFT_OVER_SECONDS if code is not None else _KILLED_SECONDS)
    if code is not None and code >= 0 and _written(reader) == b"%d\n" % code:
        os._exit(code)
    return _loss_reason(code, ending_seconds)


def send_exit_code(code: int) -> None:
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


def _fork() -> int:
    """Fork. The child, which gets 0, ends with this process."""
    parent = os.getpid()
    child = os.fork()
    if not child:
        end_with_parent(parent)
    return child


def _watch(worker: int, ending_seconds: float | None) -> int | None:
    """Pass on signals and reap orphans until the worker has ended.

    Kill it if it takes longer than this after a signal to end. None gives it all the time.

    Returns:
        Its exit code, negative for a signal; None where it did not end in time and was killed.
    """
    ending = killed = pressed = False
    while True:
        number, from_terminal = _next_signal()
        if number == signal.SIGCHLD:
            if (status := _reap(worker)) is not None:
                code = os.waitstatus_to_exitcode(status)
                return None if killed and code == -signal.SIGKILL else code
        elif number == signal.SIGALRM:
            if killed:
                return None
            killed = True
            os.kill(worker, signal.SIGKILL)
            signal.setitimer(signal.ITIMER_REAL, _KILLED_SECONDS)
        elif from_terminal and number == signal.SIGINT and not pressed:
            pressed = True  # the worker has it too, and the user decides how long to wait
        else:
            if ending_seconds is not None and not ending and _ends(number):
                ending = True
                signal.setitimer(signal.ITIMER_REAL, ending_seconds)
            if not from_terminal:
                with suppress(ProcessLookupError):
                    os.kill(worker, number)


def _reap(worker: int) -> int | None:
    """Reap what has ended; the worker's wait status if it is among that."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if not pid:
            return None
        if not os.WIFSTOPPED(status):
            if pid == worker:
                return status
        elif pid == worker and os.WSTOPSIG(status) == signal.SIGSTOP:
            os.kill(worker, signal.SIGCONT)  # the terminal stops by SIGTSTP; this was an agent


def _ends(number: int) -> bool:
    """Return whether the command heeds the signal: under nohup it continues when the terminal is closed."""
    return number != getattr(signal, "SIGHUP", None) or signal.getsignal(number) is not signal.SIG_IGN


def _next_signal() -> tuple[int, bool]:
    """The next signal, and whether the terminal sent it: then the worker has it already."""
    if not hasattr(signal, "sigwaitinfo"):  # macOS
        number = signal.sigwait(_WATCHED)
        return number, number == signal.SIGINT and os.isatty(0)
    info = signal.sigwaitinfo(_WATCHED)
    return info.si_signo, info.si_signo != signal.SIGTERM and info.si_code > _SI_USER


def _written(reader: int) -> bytes:
    """The verdict. The pipe's end is not waited for: what the worker left running may hold it open."""
    os.set_blocking(reader, False)
    with suppress(BlockingIOError):
        return os.read(reader, 64)
    return b""


def _end_left_over(seconds: float) -> None:
    """End all descendants: those of an ended process become children of this one."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            _kill(_children(os.getpid()))


def _has_children() -> bool:
    """Return whether this process has children that run, as one that a shell has become by `exec`."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill(processes: Iterable[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)
    time.sleep(0.005)


def _children(parent: int) -> list[int]:
    from ci_evals.adapters.processes.descendants import children_of  # noqa: PLC0415  # rarely needed

    return children_of(parent)


def end_with_parent(parent: int, number: int = getattr(signal, "SIGKILL", signal.SIGTERM)) -> None:
    """Have the system send this process a signal when its parent ends: nobody would read its verdict.

    Only Linux does so. Exits at once if the parent has ended already.
    """
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(128 + number)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415  # some milliseconds, and only here

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _loss_reason(code: int | None, ending_seconds: float) -> str:
    """Describe how the worker was lost, as a clause."""
    if code is None:
        return f"it did not end within {ending_seconds} seconds after it was asked to, and was killed"
    if code >= 0:
        return f"it exited with status {code} before there was a verdict"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    hint = ", as if memory had run out" if -code == signal.SIGKILL else ""
    return f"{name} ended it{hint}"
