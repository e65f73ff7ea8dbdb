"""Agents that are programs: input, environment, answers, and that they are ended with their children."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest
from agent_sessions import error_of, replies_of, session_of
from processor_time import at_most

from ci_evals.agents.command.agent import CommandAgent
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.support.redaction import Redactor

TEST = Test(
    name="Deposit", user_info={"name": "Ida"}, guidelines="You want your deposit back.",
    system_prompt="Be brief.", turns=({"user": "Hello"},), evaluations=({"criterion": "Helpful"},),
)  # fmt: skip
linux_only = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
ECHO = """
import json, sys
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        print(json.dumps(heard["text"]), flush=True)
"""


@pytest.fixture
def program_agent(tmp_path):
    """Write a program, and return an agent that runs it."""

    def write(text, settings=None, environ=None, redactor=None, arguments=""):
        file = tmp_path / "program.py"
        file.write_text(text)
        environ = environ or {"PATH": os.environ["PATH"]}
        command = f"command: {sys.executable} {file} {arguments}"
        return CommandAgent(command, settings or AgentSettings(), environ, redactor=redactor)

    return write


CALLS_A_TOOL = """
import json, sys
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "message":
        print(json.dumps({"text": "Hi", "toolCalls": [{"name": heard["text"]}]}), flush=True)
"""


async def test_call_of_listed_escalation_tool_is_hand_over_and_list_must_be_list(program_agent):
    agent = program_agent(CALLS_A_TOOL, AgentSettings(options={"escalationTools": ["to_person"]}))
    first, second = await replies_of(agent, "refund", "to_person")
    assert (first.hand_over, second.hand_over) == (False, True)
    with pytest.raises(UsageError, match=r"adapterOptions\.escalationTools must be a list of tool names"):
        program_agent(ECHO, AgentSettings(options={"escalationTools": "to_person"}))


async def test_program_reads_one_json_line_per_session_and_message(program_agent):
    keeps = """
import json, sys
heard = []
for line in sys.stdin:
    heard.append(json.loads(line))
    if heard[-1]["type"] == "message":
        print(json.dumps({"text": "ok", "trace": heard}), flush=True)
"""
    settings = AgentSettings(agent_id="a1", api_key="key-123456", model="m", options={"tone": "warm"})
    agent = program_agent(keeps, settings)
    first, second = await replies_of(agent, "Hello", "Two\nlines \u2028 \ud800", test=TEST)
    opening = {"type": "open", "agentId": "a1", "model": "m", "systemPrompt": "Be brief."}
    opening |= {"userInfo": {"name": "Ida"}, "options": {"tone": "warm"}}
    assert first.trace == [opening, {"type": "message", "id": first.trace[1]["id"], "text": "Hello"}]
    third = second.trace[2]
    assert third == {"type": "message", "id": third["id"], "text": "Two\nlines \u2028 \ufffd"}
    assert third["id"] != first.trace[1]["id"]


async def test_program_environment_has_agent_key_but_no_keys_of_ci_evals(program_agent):
    tells = """
import json, os, sys
sys.stdin.readline(); sys.stdin.readline()
print(json.dumps({"text": "ok", "params": dict(os.environ)}))
"""
    names = ("INPUT_LLM-KEY", "CI_EVALS_LLM_KEY", "GITHUB_TOKEN", "LLM_API_KEY", "ACTIONS_RUNTIME_TOKEN")
    held_back = dict.fromkeys((*names, "ACTIONS_ID_TOKEN_REQUEST_TOKEN"), "secret")
    kept = {"PATH": os.environ["PATH"], "MY_SETTING": "x", "GITHUB_SHA": "y", "AGENT_KEY": "of another"}
    (reply,) = await replies_of(
        program_agent(tells, AgentSettings(api_key="key-123456"), kept | held_back), "Hello"
    )
    assert reply.params.items() >= (kept | {"AGENT_KEY": "key-123456"}).items()
    assert not held_back.keys() & reply.params.keys()
    (reply,) = await replies_of(program_agent(tells, None, kept), "Hello")
    assert reply.params["AGENT_KEY"] == "of another"


async def test_arguments_are_split_like_shell_words_without_expansion(program_agent):
    tells = """
import json, sys
sys.stdin.readline(); sys.stdin.readline()
print(json.dumps({"text": json.dumps(sys.argv[1:])}))
"""
    (reply,) = await replies_of(program_agent(tells, arguments="--name 'Ida Berg' $HOME; *"), "Hello")
    assert json.loads(reply.agent) == ["--name", "Ida Berg", "$HOME;", "*"]


AFTER_READ = "import sys\nsys.stdin.readline(); sys.stdin.readline()\n"


@pytest.mark.parametrize(("text", "message"), [
    (AFTER_READ + "print('hm')", "wrote a line that is not JSON: hm; standard output is only for"),
    (AFTER_READ + "print('{\"answer\": 1}')", "has no 'text'"),
    (AFTER_READ + "print('7')", "is neither a string nor an object: 7"),
    (AFTER_READ + "sys.exit('no')", "exit code 1 before it answered; its standard error ends: no"),
    (AFTER_READ + "sys.exit()", "ended with exit code 0 before it answered"),
    ("import os\nos.kill(os.getpid(), 9)", "was ended by signal 9 before it answered"),
    ("import os, time\nos.close(1)\ntime.sleep(3000)", "closed its standard output without an answer"),
    (AFTER_READ + "sys.stdout.buffer.write(b'\\xff\\xfe\\n')", "wrote a line that is not JSON"),
    (AFTER_READ + "print('x' * (17 * 2**20))", "wrote more than 16 MB for one message"),
    (AFTER_READ + "while True: print('\"y\"')", "more than"),
])  # fmt: skip
async def test_invalid_output_or_early_exit_of_program_is_agent_error_with_the_reason(
    program_agent, text, message
):
    messages = ("Hello", "Again") if "while" in text else ("Hello",)
    assert message in await error_of(program_agent(text), *messages)


async def test_blank_lines_are_skipped_and_last_line_needs_no_newline(program_agent):
    (reply,) = await replies_of(
        program_agent(AFTER_READ + "print()\nprint('  ')\nprint('\"Hi\"', end='')"), "Hello"
    )
    assert reply.agent == "Hi"


async def test_second_line_for_a_message_is_agent_error(program_agent):
    twice = ECHO.replace("flush=True)", "flush=True)\n        print('\"more\"', flush=True)")
    agent = program_agent(twice)
    async with session_of(agent) as session:
        await agent.send_message(session, "Hello", timeout=10)
        while not session.unread():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0)
        with pytest.raises(AgentError, match='wrote more than one line for a message: "more"'):
            await agent.send_message(session, "Again", timeout=10)
        await session.end()


async def test_endless_program_output_is_detected_in_linear_time(program_agent):
    with at_most(loops=900):  # where it was quadratic: ten times as many
        async with session_of(program_agent("while True: print('y')")) as session:
            while not session.too_long:  # noqa: ASYNC110  # nobody tells
                await asyncio.sleep(0)


async def test_error_ends_with_truncated_stderr_without_secrets(program_agent):
    text = AFTER_READ + "sys.stderr.write('x' * 9000 + ' key-123456 fell over')\nsys.exit(3)"
    error = await error_of(program_agent(text, AgentSettings(api_key="key-123456"), redactor=Redactor()))
    assert error.endswith("x *** fell over")
    assert len(error) < 600


async def test_unrunnable_program_is_rejected_with_advice(tmp_path):
    script = tmp_path / "agent.sh"
    script.write_text("echo '\"Hi\"'\n")
    for line, message in (
        ("no-such-program --x", "'command: no-such-program --x': there is no program 'no-such-program'"),
        (str(script), r"make it executable \(chmod \+x\), or name what runs it"),
        ("node 'agent.js", "cannot be read: No closing quotation"),
    ):
        with pytest.raises(UsageError, match=message):
            CommandAgent(f"command: {line}", AgentSettings(), os.environ)
    script.chmod(0o755)
    agent = CommandAgent(f"command: {script}", AgentSettings(), os.environ)
    assert "could not be started: [Errno 8] Exec format error" in await error_of(agent)


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie (Z) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def wait_for_end(*pids: int) -> None:
    """Wait for the end of processes that are no children of this one."""
    deadline = time.monotonic() + 300
    while any(is_running(pid) for pid in pids):  # nobody tells
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


STUBBORN = '''
import json, os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(1, flush=True)
time.sleep(3000)
"""
grandchild = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
grandchild.stdout.readline()
sys.stdin.readline(); sys.stdin.readline()
print(json.dumps({"text": "ok", "params": {"pids": [os.getpid(), grandchild.pid]}}), flush=True)
time.sleep(3000)
'''


@linux_only
@pytest.mark.parametrize("how", ["closed", "timed out", "cancelled"])
async def test_program_that_ignores_signals_is_killed_with_its_children(program_agent, how):
    agent = program_agent(STUBBORN)
    session = await agent.open_session(TEST)
    first = await agent.send_message(session, "Hello", timeout=20)
    pids = first.params["pids"]
    assert all(is_running(pid) for pid in pids)
    started = time.monotonic()
    if how == "timed out":
        with pytest.raises(AgentError, match=r"did not answer within 0.1 s"):
            await agent.send_message(session, "Hello", timeout=0.1)
        assert time.monotonic() - started < 300
    if how == "cancelled":
        message = asyncio.ensure_future(agent.send_message(session, "Hello", timeout=60))
        await asyncio.sleep(0)
        message.cancel()
        with pytest.raises(asyncio.CancelledError):
            await message
    await agent.close(session)
    await agent.close(session)
    assert time.monotonic() - started < 300  # both sleep for 3000
    await wait_for_end(*pids)


@linux_only
async def test_child_of_exited_program_is_ended(program_agent):
    leaves = STUBBORN.replace("stdout=subprocess.PIPE", "").replace("grandchild.stdout.readline()\n", "")
    leaves = leaves.replace("print(1, flush=True)\n", "")
    agent = program_agent(leaves.replace("flush=True)\ntime.sleep(3000)", "flush=True)"))
    async with session_of(agent) as session:
        pids = (await agent.send_message(session, "Hello", timeout=20)).params["pids"]
        with pytest.raises(AgentError, match="ended with exit code 0"):
            await agent.send_message(session, "Again", timeout=20)
    await wait_for_end(*pids)
