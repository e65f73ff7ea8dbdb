"""The command line as its users start it: a process of its own, in a folder of its own."""

import atexit
import html
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO, Any

import fork_server

from ci_evals.adapters.suites import bundled_path

CLEAN_ENV = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ} | {
    "CI_EVALS_JUDGE_CACHE": "off",
    "CI_EVALS_JUDGE_CHECK": "off",
}
"""No key, no CI and no answers of the machine that the tests run on may leak into them.

Judges here are stand-ins whose calls are counted: only tests of the judge check ask them control questions.
"""

MODULE = "ci_evals"
"""`ci-evals`, as a module."""

SOCKET = "CI_EVALS_TESTS_SOCKET"
"""The variable that names the fork server's socket."""

ACTION_SCRIPT = str(Path(__file__).parents[2] / "entrypoint.py")
"""The program that the action starts."""


class RunningCommand:
    """A command that runs, with what tests use of `subprocess.Popen`."""

    def __init__(self, program: str, args: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int):
        self.args, self.returncode = args, None
        out, stdout = os.pipe()
        err, stderr = os.pipe()
        self._life, alive = os.pipe()
        asked = fork_server.Start(program, [*args], str(cwd), {**env})
        self.pid = fork_server.ask_start(fork_server_socket(), asked, [stdin, stdout, stderr, alive])
        for stream in (stdout, stderr, alive):
            os.close(stream)
        self.stdout, self.stderr = os.fdopen(out), os.fdopen(err)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What is left in its streams, once they are closed and it has ended."""
        texts = ["", ""]

        def read(place: int, stream: IO[str]) -> None:
            with stream:
                texts[place] = stream.read()

        readers = [
            Thread(target=read, args=each, daemon=True) for each in enumerate((self.stdout, self.stderr))
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(timeout)
        if any(reader.is_alive() for reader in readers):
            self.kill()
            raise subprocess.TimeoutExpired(self.args, timeout)
        self.wait(timeout)
        return texts[0], texts[1]

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for the signal that ended it."""
        if self.returncode is None:
            # It never writes there: its end shows as the end of what can be read.
            if not select.select([self._life], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout)
            os.close(self._life)
            self.returncode = fork_server.ask_end(fork_server_socket(), self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To the process, unless it is known to have ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _start_fork_server() -> str:
    """Start a fork server, and return the path of the socket where it listens."""
    folder = tempfile.mkdtemp(prefix="ci-evals-tests-")
    path = f"{folder}/socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    number = listener.fileno()
    command = [sys.executable, fork_server.__file__, str(number)]
    process = subprocess.Popen(command, env=CLEAN_ENV, stdin=subprocess.PIPE, pass_fds=[number])
    listener.close()

    @atexit.register
    def end() -> None:
        process.stdin.close()
        process.terminate()
        process.wait()
        shutil.rmtree(folder)

    return path


# Now, so that it imports while pytest collects. Workers find the server of the process that started them.
if SOCKET not in os.environ:
    os.environ[SOCKET] = _start_fork_server()


@cache
def fork_server_socket() -> socket.socket:
    """Return the fork server's socket, once the server is ready."""
    server = socket.socket(socket.AF_UNIX)
    atexit.register(server.close)
    server.connect(os.environ[SOCKET])
    fork_server.await_ready(server)
    return server


def start(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, program: str = MODULE, typed: str = ""
) -> RunningCommand | subprocess.Popen[str]:
    """Start `ci-evals ARGS`; `typed` is what it can read from its standard input."""
    whole = CLEAN_ENV | dict(env or {})
    with tempfile.TemporaryFile() as stdin:
        stdin.write(typed.encode())
        stdin.seek(0)
        if fork_server.can_stand_in(whole):
            return RunningCommand(program, args, cwd, whole, stdin.fileno())
        return subprocess.Popen(
            [sys.executable, *(["-m"] if program == MODULE else []), program, *args],
            cwd=cwd,
            env=whole,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def ci_evals(
    *args: str, cwd: Path, env: Mapping[str, str] | None = None, program: str = MODULE, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `ci-evals ARGS` to its end; `typed` is what it can read from its standard input."""
    process = start(*args, cwd=cwd, env=env, program=program, typed=typed)
    out, err = process.communicate(timeout=300)
    return subprocess.CompletedProcess(args, process.returncode, out, err)


def action(*args: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs the action as its container starts it, to its end."""
    return ci_evals(*args, cwd=cwd, env=env, program=ACTION_SCRIPT)


def write_suite(folder: Path, *tests: dict[str, Any], name: str = "suite.json", **fields: Any) -> str:
    """Writes a suite for a stub agent into `folder` and gives back its file's name."""
    one = {
        "name": "Greets", "guidelines": "You say hello.", "turns": [{"user": "Hello"}], "maxTurns": 1,
        "evaluations": [{"criterion": "No forwarding", "strict": "not_escalated"}],
    }  # fmt: skip
    suite = {
        "name": "Stub", "agentId": "agent-1", "apiKey": "${AGENT_KEY}",
        "tests": [one | test for test in tests or ({},)],
    } | fields  # fmt: skip
    (folder / name).write_text(json.dumps(suite))
    return name


def write_suite_without_critical_tests(folder: Path, bundled: str, name: str = "suite.json") -> str:
    """Write a bundled suite without its critical tests, of which one failed trial is news enough."""
    collection, _, stem = bundled.partition(":")
    suite = json.loads((bundled_path(collection) / f"{stem}.json").read_text())
    for test in suite["tests"]:
        test.pop("critical", None)
    (folder / name).write_text(json.dumps(suite))
    return name


def comment_and_page_show(folder: Path, pattern: str) -> bool:
    """Return whether a sentence like this stands in the fold of the comment and on the page of a run."""
    comment, page = ((folder / "results" / name).read_text() for name in ("summary.md", "report.html"))
    fold = comment.partition("<details>")[2]
    return all(re.search(pattern, html.unescape(text)) for text in (fold, page))


def read_results(folder: Path) -> dict[str, Any]:
    """The run's `_results.json` below the default output folder."""
    return json.loads((folder / "results/_results.json").read_text())


def read_files(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` by its relative path."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


def open_descriptors(file: Path) -> list[Path]:
    result = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            links = [*(process / "fd").iterdir()]
        except OSError:  # it has ended
            continue
        for link in links:
            try:
                if link.readlink() == file:
                    result.append(link)
            except OSError:
                continue
    return result
