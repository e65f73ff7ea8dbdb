"""`chat` in a terminal: Ctrl-C and the end of the input close the agent."""

import os
import subprocess
import sys

import pytest
from commands import CLEAN_ENV

pytestmark = pytest.mark.slow
pty = pytest.importorskip("pty")
AGENT = """
import asyncio

class Slow:
    async def open_session(self, test):
        return []

    async def send_message(self, session, text, *, timeout):
        from ci_evals.domain.transcript import Reply
        if text == "wait":
            open("waiting", "w").close()
            await asyncio.Event().wait()
        return Reply(agent="Fine", latency_seconds=0)

    async def close(self, session):
        open("closed", "w").close()

agent = Slow()
"""


class Terminal:
    """A terminal with a chat in it."""

    def __init__(self, folder):
        (folder / "slow.py").write_text(AGENT)
        ours, its = pty.openpty()
        # The first terminal that a new session opens is its own, whose keys send signals.
        name = os.ttyname(its)
        command = ["sh", "-c", f'exec "$@" <{name} >{name} 2>&1', "sh"]
        command += [sys.executable, "-m", "ci_evals", "chat", "--adapter=python:slow:agent"]
        self._process = subprocess.Popen(command, cwd=folder, env=CLEAN_ENV, start_new_session=True)
        self._its = its
        self._ours, self.shown = ours, ""

    def wait_for(self, text):
        while text not in self.shown:
            self.shown += os.read(self._ours, 4096).decode(errors="replace")
        if self._its is not None:  # the chat has it open
            os.close(self._its)
            self._its = None

    def type(self, keys):
        os.write(self._ours, keys)

    def end(self):
        """The exit code, after everything that was shown has been read."""
        try:
            while data := os.read(self._ours, 4096):
                self.shown += data.decode(errors="replace")
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(self._ours)
        return self._process.wait(timeout=300)


@pytest.mark.parametrize(("line", "keys", "code"), [
    (b"hello\n", b"\x04", 0), (b"hello\n", b"\x03", 130), (b"wait\n", b"\x03", 130),
], ids=["Ctrl-D", "Ctrl-C at the prompt", "Ctrl-C during a reply"])  # fmt: skip
def test_ctrl_d_and_ctrl_c_end_the_session(tmp_path, line, keys, code):
    os.mkfifo(tmp_path / "waiting")
    terminal = Terminal(tmp_path)
    terminal.wait_for("you>")
    terminal.type(line)
    if line == b"hello\n":
        terminal.wait_for("agent> Fine")
        terminal.wait_for("s\r\nyou>")
    else:
        (tmp_path / "waiting").read_text()  # a pipe, whose other end the agent opens
    terminal.type(keys)
    assert (terminal.end(), (tmp_path / "closed").exists()) == (code, True)
