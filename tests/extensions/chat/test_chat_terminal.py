"""`chat` in a terminal: Ctrl-C and the end of the input close the agent."""

import os

import pytest
from commands import start

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
IN_TERMINAL = """
import os, runpy, sys
os.setsid()
# The first terminal that a new session opens is its own, whose keys send signals.
terminal = os.open(sys.argv.pop(1), os.O_RDWR)
for number in range(3):
    os.dup2(terminal, number)
sys.stdout.reconfigure(line_buffering=True)
runpy.run_module("ci_evals", run_name="__main__", alter_sys=True)
"""


class Terminal:
    """A terminal with a chat in it."""

    def __init__(self, folder):
        (folder / "slow.py").write_text(AGENT)
        (folder / "terminal.py").write_text(IN_TERMINAL)
        self._ours, self._its = pty.openpty()
        options = (os.ttyname(self._its), "chat", "--adapter=python:slow:agent")
        self._process = start(*options, cwd=folder, program=str(folder / "terminal.py"))
        self.shown = ""

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
        self._process.communicate(timeout=300)
        return self._process.returncode


@pytest.mark.parametrize(("line", "keys", "code"), [
    (b"hello\n", b"\x04", 0), (b"hello\n", b"\x03", 130), (b"wait\n", b"\x03", 130),
], ids=["Ctrl-D", "Ctrl-C at the prompt", "Ctrl-C during a reply"])  # fmt: skip
def test_ctrl_d_ends_chat_with_0_and_ctrl_c_with_130_and_both_close_the_agent(tmp_path, line, keys, code):
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
