"""A process that has imported the product, and forks the commands of tests off itself.

A start of Python with all that a command imports costs most of a second of a processor, a fork some
hundredths. What comes of the fork is a process of its own in all that a test can see: its environment,
folder, streams, signals, exit code, and Python's own orderly end. What it shares with its siblings is the
order of sets of strings: a test that this matters to sets PYTHONHASHSEED, and gets a start.

Started as a program it is the server. Its argument is the descriptor of a socket that listens, and it ends
with its standard input. For each connection, which is one process of tests, it forks one more server. That
says that it is ready, and takes requests: for a child, whose process id is the answer, or for what became of
one that has ended.
"""

import atexit
import gc
import json
import locale
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

import typer
from pydantic import BaseModel

import ci_evals
from ci_evals import bundled_suites, load_suite
from ci_evals.adapters.transport import network
from ci_evals.agents import plugins
from ci_evals.cli import app
from ci_evals.domain import transcript
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.support import dataclass_json, templates

LATE = (
    "anthropic.resources.messages", "anyio._backends._asyncio", "ctypes", "encodings.utf_16_be", "httpcore2",
    "importlib.resources.readers", "openai.resources.chat", "truststore", "typer._adapters",
    "typer._click.decorators",
)  # fmt: skip
"""What the product's dependencies import when they are first used."""

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Start:
    """What to start and how: a module's name or a script's path, with its arguments."""

    program: str
    args: list[str]
    cwd: str
    env: dict[str, str]


def can_stand_in(env: Mapping[str, str]) -> bool:
    """Whether a fork is the same as a start: the interpreter and the SDKs read some variables at theirs."""
    read = {name for name in env if name.startswith(("PYTHON", "LANG", "LC_")) or name.endswith("_LOG")}
    return all(env[name] == os.environ.get(name) for name in read - {"PYTHONPATH"})


def await_ready(door: socket.socket) -> None:
    """Returns once what can be imported is."""
    assert door.recv(1), "the fork server died; its output is above"


def ask_start(door: socket.socket, start: Start, streams: list[int]) -> int:
    """Asks for a child with these standard streams, and a fourth that it holds while it lives; its id."""
    # The streams travel with the first bytes.
    socket.send_fds(door, [b" "], streams)
    door.sendall(json.dumps(asdict(start)).encode() + b"\n")
    return int(door.recv(_CHUNK))


def ask_end(door: socket.socket, pid: int) -> int:
    """The exit code of a child that has ended, negative for a signal, as in `subprocess`."""
    door.sendall(b"%d\n" % pid)
    return int(door.recv(_CHUNK))


def _accept(listener: socket.socket) -> socket.socket | None:
    """Return a connection in a process of its own, and None in the process that listens, at its end."""
    while listener in select.select([listener, sys.stdin], [], [])[0]:
        door, _ = listener.accept()
        if not os.fork():
            listener.close()
            return door
        door.close()
    return None


def _serve(door: socket.socket) -> tuple[Start, list[int]] | None:
    """Answers until nobody asks any more; in a child: what it is to be."""
    while True:
        heard, streams, _, _ = socket.recv_fds(door, _CHUNK, 4)
        while heard and not heard.endswith(b"\n"):
            heard += door.recv(_CHUNK)
        if not heard:
            return None
        asked = json.loads(heard)
        if isinstance(asked, int):
            _, status = os.waitpid(asked, 0)
            door.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        elif pid := os.fork():
            for stream in streams:
                os.close(stream)
            door.sendall(str(pid).encode())
        else:
            door.close()
            return Start(**asked), streams


def _become(start: Start, streams: list[int]) -> None:
    """What the interpreter does when it begins, for a process that has begun long ago."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
        os.close(stream)
    os.set_inheritable(streams[3], False)  # noqa: FBT003  # takes no names
    os.chdir(start.cwd)
    os.environ.clear()
    os.environ.update(start.env)
    if {"SSL_CERT_FILE", "SSL_CERT_DIR"} & start.env.keys():
        network.certificates.cache_clear()
    time.tzset()
    text = {"encoding": locale.getpreferredencoding(do_setlocale=False), "closefd": False}
    sys.stdin = open(0, **text)  # noqa: SIM115  # the three are open to the end
    sys.stdout = open(1, "w", **text, buffering=1 if os.isatty(1) else -1)  # noqa: SIM115
    sys.stderr = open(2, "w", **text, buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    script = Path(start.program)
    sys.argv = [start.program, *start.args]
    sys.path[0] = str(script.parent) if script.is_file() else start.cwd
    sys.path[1:1] = filter(None, start.env.get("PYTHONPATH", "").split(os.pathsep))
    if script.is_file():
        runpy.run_path(start.program, run_name="__main__")
    else:
        runpy.run_module(start.program, run_name="__main__", alter_sys=True)


def _end(code: object) -> None:
    """Python's own end, but for giving back every object: to touch them all would copy them all."""
    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()  # what was not closed says so
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    if isinstance(code, int):
        os._exit(code)
    sys.exit(code)


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The product's models."""
    for model in base.__subclasses__():
        if model.__module__.startswith("ci_evals."):
            yield model
        yield from _models(model)


def _find_plugins() -> None:
    """Find the adapters on the path that a command has: it leaves out the folder that it runs in."""
    own = sys.path.pop(0)
    plugins.names()
    sys.path.insert(0, own)


def _make_options() -> None:
    """Make the options of all commands, and what reads their values."""
    group = app.program()
    parent = typer.Context(group, **group.context_settings)  # has the names of the option for help
    for command in group.commands.values():
        for parameter in command.get_params(typer.Context(command, parent=parent)):
            parameter.get_runtime_param()


def _warm_up() -> None:
    """Imports whatever a command may import, and fills what is kept: templates, patterns and certificates."""
    modules = [module.name for module in pkgutil.walk_packages(ci_evals.__path__, "ci_evals.")]
    for name in (*modules, *LATE):
        if not name.endswith("__main__"):
            import_module(name)
    for model in _models(BaseModel):
        model.model_rebuild()  # else each child builds those that wait for their first use
    for kind in (Results, SuiteResult, TestResult, TrialResult):
        dataclass_json._adapter(kind)
    transcript._all()
    app._all_options()
    _make_options()
    for name in bundled_suites():
        load_suite(name)
    for name in templates._environment(html=False).list_templates(extensions=["j2"]):
        templates._environment(html=name.endswith(".html.j2")).get_template(name)
    network.certificates()
    _find_plugins()
    gc.collect()
    gc.freeze()  # so that a child's collections of garbage do not copy what all have in common


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the tests, when its socket is closed
    _warm_up()
    if connection := _accept(socket.socket(fileno=int(sys.argv[1]))):
        with connection:
            connection.sendall(b"!")
            child = _serve(connection)
        if child:
            try:
                _become(*child)
            except SystemExit as end:
                _end(end.code)
