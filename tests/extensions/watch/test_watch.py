"""`run --watch` in a real terminal, with real files and an agent that is started."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import CLEAN_ENV, RunningCommand, fork_server_socket, open_descriptors, read_results
from fork_server import Start, ask_start

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.extensions.watch.watching import watch

pytestmark = pytest.mark.slow
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

WAIT_SECONDS = 120
SERVER = """
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

held = open("held", "a")


class Agent(BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
        with open("asked", "a") as file:
            print(asked, file=file)
        if asked == "hang" and not os.path.exists("mended"):
            time.sleep(300)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"reply": os.environ.get("SAYS", "Hello")}).encode())

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
"""
SUITE = """
name: Shop
adapter: http
baseUrl: http://127.0.0.1:{port}
start: cd .. && {python} server.py {port}
adapterOptions:
  send: {{ body: {{ text: "{{{{message}}}}" }} }}
  reply: {{ text: $.reply }}
tests:
  - name: Greets
    guidelines: You say hello.
    turns: [{{ user: greet }}]
    maxTurns: 1
    evaluations: [{{ criterion: It greets, strict: contains, text: Hello }}]
  - name: Waits
    guidelines: You wait.
    turns: [{{ user: {message} }}]
    maxTurns: 1
    evaluations: [{{ criterion: It answers, strict: contains, text: {text} }}]
"""


class Shop:
    """A folder with an agent and a suite."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self._port = taken.getsockname()[1]
        (folder / "server.py").write_text(SERVER)
        (folder / "evals").mkdir()
        self.write()

    def write(self, message="wait", text="Hello"):
        suite = SUITE.format(port=self._port, python=sys.executable, message=message, text=text)
        new = self.folder / "new"
        new.write_text(suite)
        new.rename(self.folder / "evals/suite.yaml")

    def asked(self):
        file = self.folder / "asked"
        return file.read_text().split() if file.exists() else []

    @property
    def is_gone(self):
        return not open_descriptors(self.folder / "held")


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


class ForkedWatch(RunningCommand):
    """The watcher as a fork in a terminal, whose runs are forks too."""

    def __init__(self, folder, terminal):
        self.args, self.returncode = ["run", "--watch"], None
        self._life, alive = os.pipe()
        start = Start(str(Path(__file__).with_name("forked_watch.py")), [], str(folder), CLEAN_ENV)
        self.pid = ask_start(fork_server_socket(), start, [terminal, terminal, terminal, alive])
        os.close(alive)


class WatchProcess:
    """`ci-evals run --watch`: forked, or started in a terminal of its own or with its output in a pipe."""

    def __init__(self, shop, how):
        args = ["run", "evals/", "--watch", "--provider=offline"]
        command = [sys.executable, "-m", "ci_evals", *args]
        self._out, self.its = os.pipe() if how == "in a pipe" else pty.openpty()
        own = {"cwd": shop.folder, "env": CLEAN_ENV}
        if how == "forked":
            self.process = ForkedWatch(shop.folder, self.its)
        elif how == "in a terminal":
            # The first terminal that a new session opens is its own, whose keys send signals.
            name = os.ttyname(self.its)
            command = ["sh", "-c", f'exec "$@" <{name} >{name} 2>&1', "sh", *command]
            self.process = subprocess.Popen(command, **own, start_new_session=True)
        else:
            streams = {"stdin": subprocess.DEVNULL, "stdout": self.its, "stderr": self.its}
            self.process = subprocess.Popen(command, **own, **streams)
        self.shown = ""

    def wait_for(self, pattern):
        """Read until there is a match, and forget all before its end."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not (match := re.search(pattern, self.shown)):
            ready, _, _ = select.select([self._out], [], [], max(0, deadline - time.monotonic()))
            assert ready, self.shown
            data = os.read(self._out, 65_536).decode(errors="replace")
            self.shown += (
                re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", data).replace("\n    ", " ").replace("\n  ", " ")
            )
        self.shown = self.shown[match.end() :]

    def press(self, key):
        os.write(self._out, key)

    def end(self):
        """Return the exit code, while what is still shown is read."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            if select.select([self._out], [], [], 0.1)[0]:
                self.shown += os.read(self._out, 65_536).decode(errors="replace")
            try:
                return self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                assert time.monotonic() < deadline, self.shown


@pytest.fixture
def watching(shop):
    """Starts `run --watch`, and ends what is left of it."""
    started = []

    def start(how="forked"):
        started.append(WatchProcess(shop, how))
        return started[-1]

    yield start
    for one in started:
        if one.process.returncode is None:
            one.process.send_signal(signal.SIGTERM)
            one.end()


def wait_until(condition):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


NEXT = r"Watching 1 file\. The next change runs all tests\."


def test_change_reruns_and_keys_select_tests(shop, watching):
    shop.write(text="Bye")
    run = watching()
    before = termios.tcgetattr(run.its)
    run.wait_for(NEXT + r" +Keys: f failed only, a all, q +quit")
    assert (shop.asked(), shop.is_gone) == (["greet", "wait"], True)
    run.press(b"f")
    run.wait_for("The next change runs tests that failed")
    assert shop.asked()[2:] == ["wait"]
    shop.write()
    run.wait_for(r"suite\.yaml changed: running again")
    run.wait_for("The next change runs tests that failed")
    assert read_results(shop.folder)["score"] == 100
    run.press(b"A")
    run.wait_for(NEXT)
    assert sorted(shop.asked()[-2:]) == ["greet", "wait"]
    run.press(b"q")
    assert (run.end(), termios.tcgetattr(run.its)) == (0, before)
    assert shop.is_gone


def test_change_during_run_stops_it_and_starts_next_run(shop, watching):
    """Nobody waits for what is out of date; the stopped run's agent is gone before the next one starts.

    Quitting has the exit code of the last whole run: a script must not take a failed run for a passed one.
    """
    shop.write("hang")
    run = watching()
    wait_until(lambda: "hang" in shop.asked())
    (shop.folder / "mended").touch()
    shop.write("hang", "Bye")
    run.wait_for(r"suite\.yaml changed: running again")
    run.wait_for(NEXT)
    results = read_results(shop.folder)
    assert (results["run"]["status"], results["gate"]["passed"]) == ("completed", False)
    assert shop.asked().count("hang") == 2
    (shop.folder / "mended").unlink()
    shop.write("hang")
    wait_until(lambda: shop.asked().count("hang") == 3)
    run.press(b"q")
    assert run.end() == 1
    assert shop.is_gone


def test_ctrl_c_ends_watched_run_and_agent_and_restores_the_terminal(shop, watching):
    shop.write("hang")
    run = watching("in a terminal")
    before = termios.tcgetattr(run.its)
    wait_until(lambda: "hang" in shop.asked())
    run.press(b"\x03")
    assert run.end() == 130
    assert shop.is_gone
    assert (termios.tcgetattr(run.its), read_results(shop.folder)["run"]["status"]) == (before, "interrupted")


def test_watch_in_a_pipe_awaits_broken_suite_joins_changes_and_ends_by_sigterm(shop, watching):
    """Without a terminal there are no keys, and SIGTERM ends it.

    Files that are saved together start one run, or two if the machine is busy; not one for each.
    """
    (shop.folder / "evals/suite.yaml").write_text("name: [")
    run = watching("in a pipe")
    run.wait_for(r"evals/suite\.yaml:2:1: not YAML")
    run.wait_for(NEXT)
    assert ("Keys" in run.shown, shop.asked()) == (False, [])
    for number in range(20):
        (shop.folder / f"evals/{number}.md").write_text("x")
    shop.write()
    run.wait_for("Evals passed")
    run.wait_for("Watching 21 files")
    assert shop.asked().count("greet") <= 3
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == 130


class WritingRun:
    """A run that never ends, whose agent writes next to its suite."""

    def __init__(self, shown):
        self._shown = shown
        with Path("evals/shop.db").open("a") as file:
            file.write("written")

    def poll(self):
        """Return that it still runs; edit the suite once its own changes are told to start no run."""
        if "Its changes start no run" in self._shown():
            Path("evals/suite.yaml").write_text("name: Edited")

    def end(self, timeout=None):
        return 0

    wait = terminate = kill = end


def test_watch_stops_rerunning_for_file_that_changes_in_every_run(shop, monkeypatch, capsys):
    monkeypatch.chdir(shop.folder)
    shown, starts = [], []

    def all_shown():
        shown.append(capsys.readouterr().err)
        return " ".join("".join(shown).split())

    def start(options):
        starts.append(options)
        if "Its changes start no run" in all_shown():
            raise KeyboardInterrupt
        return WritingRun(all_shown)

    assert watch(RunSettings(suites=["evals"], watch=True), RunContext({}), start) == 130
    assert (len(starts), all_shown().count("shop.db changed: running again")) == (7, 5)
    assert "shop.db changed in each of the last 5 runs" in all_shown()
    assert all_shown().endswith("suite.yaml changed: running again.")
