"""Agents that are programs: what they are told, what they may answer, and that nothing is left of them."""

import asyncio
import json
import os
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.support.redaction import Redactor

TEST = Test(
    name="Deposit",
    user_info={"name": "Ida"},
    guidelines="You want your deposit back.",
    system_prompt="Be brief.",
    turns=({"user": "Hello"},),
    evaluations=({"criterion": "Helpful"},),
)
ECHO = """
import json, sys
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        print(json.dumps(heard["text"]), flush=True)
"""


@pytest.fixture
def program(tmp_path):
    """Writes a program and gives back an agent that runs it."""

    def written(text, settings=None, environ=None, redactor=None, arguments=""):
        file = tmp_path / "program.py"
        file.write_text(text)
        environ = environ or {"PATH": os.environ["PATH"]}
        command = f"command: {sys.executable} {file} {arguments}"
        return CommandAgent(command, settings or AgentSettings(), environ, redactor=redactor)

    return written


@asynccontextmanager
async def talking(agent):
    session = await agent.open_session(TEST)
    try:
        yield session
    finally:
        await agent.close(session)


async def converse(agent, *texts, timeout=10):  # noqa: ASYNC109
    async with talking(agent) as session:
        return [await agent.send_message(session, text, timeout=timeout) for text in texts]


async def refusal(agent, *texts, **how) -> str:
    with pytest.raises(AgentError) as caught:
        await converse(agent, *(texts or ("Hello",)), **how)
    return str(caught.value)


CALLS_A_TOOL = """
import json, sys
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        print(json.dumps({"text": "Hi", "toolCalls": [{"name": heard["text"]}]}), flush=True)
"""


async def test_a_programs_call_of_an_escalation_tool_hands_over(program):
    agent = program(CALLS_A_TOOL, AgentSettings(options={"escalationTools": ["to_person"]}))
    first, second = await converse(agent, "refund", "to_person")
    assert (first.hand_over, second.hand_over) == (False, True)


async def test_escalation_tools_are_a_list_of_names(program):
    with pytest.raises(UsageError, match=r"adapterOptions\.escalationTools must be a list of tool names"):
        program(ECHO, AgentSettings(options={"escalationTools": "to_person"}))


async def test_what_a_program_is_told(program):
    """First whose conversation it is, then each message; one line of JSON each."""
    keeps = """
import json, sys
heard = []
for line in sys.stdin:
    heard.append(json.loads(line))
    if heard[-1]["type"] == "message":
        print(json.dumps({"text": "ok", "trace": heard}), flush=True)
"""
    settings = AgentSettings(agent_id="a1", api_key="key-123456", model="m", options={"tone": "warm"})
    first, second = await converse(program(keeps, settings), "Hello", "Two\nlines \u2028 \ud800")
    assert first.trace == [
        {
            "type": "open",
            "agentId": "a1",
            "model": "m",
            "systemPrompt": "Be brief.",
            "userInfo": {"name": "Ida"},
            "options": {"tone": "warm"},
        },
        {"type": "message", "id": first.trace[1]["id"], "text": "Hello"},
    ]
    third = second.trace[2]
    assert third == {"type": "message", "id": third["id"], "text": "Two\nlines \u2028 \ufffd"}
    assert third["id"] != first.trace[1]["id"]


async def test_what_a_program_finds_in_its_environment(program):
    """All that is there, but for what is meant for us alone; and the agent's key."""
    tells = """
import json, os, sys
sys.stdin.readline(); sys.stdin.readline()
print(json.dumps({"text": "ok", "params": dict(os.environ)}))
"""
    held_back = {
        "INPUT_LLM-KEY": "a",
        "CI_EVALS_LLM_KEY": "b",
        "GITHUB_TOKEN": "c",
        "LLM_API_KEY": "d",
        "ACTIONS_RUNTIME_TOKEN": "e",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "f",
    }
    kept = {"PATH": os.environ["PATH"], "MY_SETTING": "x", "GITHUB_SHA": "y", "AGENT_KEY": "of another"}
    (reply,) = await converse(program(tells, AgentSettings(api_key="key-123456"), kept | held_back), "Hello")
    assert reply.params.items() >= (kept | {"AGENT_KEY": "key-123456"}).items()
    assert not held_back.keys() & reply.params.keys()
    (reply,) = await converse(program(tells, None, kept), "Hello")
    assert reply.params["AGENT_KEY"] == "of another"


async def test_arguments_are_read_as_a_shell_would_and_no_shell_runs(program):
    """Quotes hold words together; nothing is expanded."""
    tells = """
import json, sys
sys.stdin.readline(); sys.stdin.readline()
print(json.dumps({"text": json.dumps(sys.argv[1:])}))
"""
    (reply,) = await converse(program(tells, arguments="--name 'Ida Berg' $HOME; *"), "Hello")
    assert json.loads(reply.agent) == ["--name", "Ida Berg", "$HOME;", "*"]


WRITES = "import sys\nsys.stdin.readline(); sys.stdin.readline()\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WRITES + "print('hm')", "wrote a line that is not JSON: hm; standard output is only for"),
        (WRITES + "print('{\"answer\": 1}')", "has no 'text'"),
        (WRITES + "print('7')", "is neither a string nor an object: 7"),
        (WRITES + "sys.exit('no')", "ended with exit code 1 before it answered; its standard error ends: no"),
        (WRITES + "sys.exit()", "ended with exit code 0 before it answered"),
        ("import os\nos.kill(os.getpid(), 9)", "was ended by signal 9 before it answered"),
        ("import os, time\nos.close(1)\ntime.sleep(60)", "closed its standard output without an answer"),
        (WRITES + "sys.stdout.buffer.write(b'\\xff\\xfe\\n')", "wrote a line that is not JSON"),
        (WRITES + "print('x' * (17 * 2**20))", "wrote more than 16 MB for one message"),
        (WRITES + "while True: print('\"y\"')", "more than"),
    ],
)  # fmt: skip
async def test_what_a_program_may_do_wrong(program, text, message):
    """Each ends the trial, and is told in words."""
    messages = ("Hello", "Again") if "while" in text else ("Hello",)
    assert message in await refusal(program(text), *messages)


async def test_blank_lines_and_a_last_line_without_an_end_are_read(program):
    """They are no answers, and one."""
    (reply,) = await converse(program(WRITES + "print()\nprint('  ')\nprint('\"Hi\"', end='')"), "Hello")
    assert reply.agent == "Hi"


async def test_two_lines_for_one_message_are_no_two_answers(program):
    """The second would answer a question that was not asked yet."""
    twice = ECHO.replace("flush=True)", "flush=True)\n        print('\"more\"', flush=True)")
    agent = program(twice)
    async with talking(agent) as session:
        await agent.send_message(session, "Hello", timeout=10)
        while not session.unread():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
        with pytest.raises(AgentError, match='wrote more than one line for a message: "more"'):
            await agent.send_message(session, "Again", timeout=10)
        await session.end()


async def test_endless_lines_that_nobody_reads_end_the_program(program):
    """In a moment: neither the memory nor the time that they take grows without end."""
    started = time.process_time()
    async with talking(program("while True: print('y')")) as session:
        while not session.too_long:  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
    assert time.process_time() - started < 3  # seconds; where it was quadratic: half a minute


async def test_its_last_words_hold_no_secret_and_are_few(program):
    """Only the end of standard error is told."""
    text = WRITES + "sys.stderr.write('x' * 9000 + ' key-123456 fell over')\nsys.exit(3)"
    error = await refusal(program(text, AgentSettings(api_key="key-123456"), redactor=Redactor()))
    assert error.endswith("x *** fell over")
    assert len(error) < 600


def test_unrunnable_program_is_reported_before_anything_runs(tmp_path):
    """With what to do."""
    script = tmp_path / "agent.sh"
    script.write_text("#!/bin/sh\n")

    def named(line):
        with pytest.raises(UsageError) as caught:
            CommandAgent(f"command: {line}", AgentSettings(), os.environ)
        return str(caught.value)

    assert "'command: no-such-program --x': there is no program 'no-such-program'" in named(
        "no-such-program --x"
    )
    assert "make it executable (chmod +x), or name what runs it" in named(str(script))
    assert "cannot be read: No closing quotation" in named("node 'agent.js")
    script.chmod(0o755)
    CommandAgent(f"command: {script}", AgentSettings(), os.environ)


async def test_a_file_that_the_system_cannot_run(tmp_path):
    """It is executable and no program."""
    script = tmp_path / "agent.sh"
    script.write_text("echo '\"Hi\"'\n")
    script.chmod(0o755)
    assert "could not be started: [Errno 8] Exec format error" in await refusal(
        CommandAgent(str(script), AgentSettings(), os.environ)
    )


def alive(pid: int) -> bool:
    """Whether a process runs: one that nobody has looked after yet (Z) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(*pids: int) -> None:
    """Waits for processes to end that were killed: they are not ours to wait for."""
    deadline = time.monotonic() + 300
    while any(alive(pid) for pid in pids):  # nobody tells
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


STUBBORN = '''
import json, os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(1, flush=True)
time.sleep(60)
"""
grandchild = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
grandchild.stdout.readline()
sys.stdin.readline(); sys.stdin.readline()
print(json.dumps({"text": "ok", "params": {"pids": [os.getpid(), grandchild.pid]}}), flush=True)
time.sleep(60)
'''


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("how", ["closed", "timed out", "cancelled"])
async def test_nothing_is_left_of_a_stubborn_program(program, how):
    """Nor of what it has started, though both ignore that they should end."""
    agent = program(STUBBORN)
    session = await agent.open_session(TEST)
    first = await agent.send_message(session, "Hello", timeout=20)
    pids = first.params["pids"]
    assert all(alive(pid) for pid in pids)
    started = time.monotonic()
    if how == "timed out":
        with pytest.raises(AgentError, match=r"did not answer within 0.1 s"):
            await agent.send_message(session, "Hello", timeout=0.1)
        assert time.monotonic() - started < 30
    if how == "cancelled":
        message = asyncio.ensure_future(agent.send_message(session, "Hello", timeout=60))
        await asyncio.sleep(0)
        message.cancel()
        with pytest.raises(asyncio.CancelledError):
            await message
    await agent.close(session)
    await agent.close(session)
    assert time.monotonic() - started < 30  # both sleep for 60
    await gone(*pids)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
async def test_what_a_program_leaves_running_is_ended_with_it(program):
    """It has ended by itself and well; its child goes on and holds its output."""
    leaves = STUBBORN.replace("stdout=subprocess.PIPE", "").replace("grandchild.stdout.readline()\n", "")
    leaves = leaves.replace("print(1, flush=True)\n", "").replace(
        "flush=True)\ntime.sleep(60)", "flush=True)"
    )
    agent = program(leaves)
    async with talking(agent) as session:
        pids = (await agent.send_message(session, "Hello", timeout=20)).params["pids"]
        assert "ended with exit code 0" in await refusal_in(agent, session)
    await gone(*pids)


async def refusal_in(agent, session) -> str:
    with pytest.raises(AgentError) as caught:
        await agent.send_message(session, "Again", timeout=20)
    return str(caught.value)
