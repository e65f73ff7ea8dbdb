"""Models behind the programs `claude` and `copilot`, played by stand-ins; tests/frameworks has a real one."""

import asyncio
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import claude_program
import copilot_program
import pytest
import world

from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, UsageError
from ci_evals.extensions.model_programs.claude_code_llm import ClaudeCodeLLM
from ci_evals.extensions.model_programs.copilot_llm import CopilotLLM
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor

PLAIN = Prompt(system="You are Ida, who says „hello“.", text="What do you say?")
SCHEMA = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}
JUDGING = Prompt(system="You are a judge.", text="Did it help?", schema=SCHEMA)


@pytest.fixture
def program(tmp_path):
    def made(reply='return "Hello"', environ=None, version=claude_program.VERSION, **options):
        folder = tmp_path / "bin"
        claude_program.install(folder, reply, version)
        options = {"limiter": world.limiter(budget=world.NO_RETRIES), **options}
        return ClaudeCodeLLM("sonnet", claude_program.environ(folder, **environ or {}), **options)

    made.asked = lambda: claude_program.read_requests(tmp_path / "bin")
    return made


async def failure(llm, prompt=PLAIN):
    with pytest.raises(LLMError) as caught:
        await llm.complete(prompt)
    return caught.value


async def test_system_text_schema_and_usage_pass_through_claude(program):
    answer = await program("return asked['text'] + ' Hello'").complete(PLAIN)
    assert answer == Completion("What do you say? Hello", input_tokens=21, output_tokens=5, cost_usd=0.25)
    (asked,) = program.asked()
    assert (asked["model"], asked["system"], asked["text"]) == ("sonnet", PLAIN.system, PLAIN.text)
    assert (asked["schema"], asked["turns"]) == (None, 1)
    answer = await program("""return '{"verdict": "pä\\u2028ss"}'""").complete(JUDGING)
    assert answer.text == '{"verdict": "pä\u2028ss"}'
    *_, asked = program.asked()
    assert asked["schema"] == SCHEMA
    assert asked["turns"] > 1
    llm = program('result(\'{"verdict": "fail"}\'); sys.exit()')
    assert (await llm.complete(JUDGING)).text == '{"verdict": "fail"}'


async def test_prompt_for_claude_is_in_no_argument_or_file(program):
    await program().complete(PLAIN)
    (asked,) = program.asked()
    assert not any(part in word for word in asked["argv"] for part in ("Ida", "What do you say"))
    folder = Path(asked["cwd"]).parent
    assert not list(folder.parent.glob(f"{folder.name}/**"))


async def test_claude_gets_its_own_variables_but_no_other_keys(program):
    held_back = {"INPUT_AGENT-KEY": "k", "CI_EVALS_LLM_KEY": "k", "GITHUB_TOKEN": "k", "LLM_API_KEY": "k"}
    await program(environ=held_back | {"CLAUDECODE": "1", "CLAUDE_CODE_OAUTH_TOKEN": "t"}).complete(PLAIN)
    *_, asked = program.asked()
    assert not {*held_back, "CLAUDECODE"} & asked["env"].keys()
    assert asked["env"]["CLAUDE_CODE_OAUTH_TOKEN"] == "t"
    assert asked["env"]["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"


async def test_prompt_with_lone_surrogates_or_3_mb_and_option_like_model_work(program):
    llm = program("return str(len(asked['text'])) + asked['text'][:1]")
    assert (await llm.complete(Prompt("", "\ud800" + "x" * 3_000_000))).text == "3000001\ufffd"
    llm.model = "--version"
    assert (await llm.complete(PLAIN)).text == "16W"
    first, second = program.asked()
    assert (first["system"], second["model"]) == ("", "--version")


async def test_unrelated_program_output_is_ignored(program):
    llm = program("""
print("warning: no git", flush=True)
say(type="rate_limit_event")
result("Hello")
print("bye", flush=True)
time.sleep(0.2)
sys.exit()
""")
    assert (await llm.complete(PLAIN)).text == "Hello"


NO_USE, NO_ACCESS, FAILED = LLMAnswerError, LLMAccessError, LLMError
RETRY = {"type": "system", "subtype": "api_retry", "error_status": 401, "error": "authentication_failed"}
"""What the program says before it asks once more, as seen with 2.1.330."""


@pytest.mark.parametrize("retry", [RETRY | {"attempt": 1}, RETRY | {"attempt": 7, "error_status": 529}])
async def test_retry_of_the_program_is_awaited(program, retry):
    assert (await program(f"say(**{retry}); return 'Hello'").complete(PLAIN)).text == "Hello"


@pytest.mark.parametrize(("reply", "kind", "text"), [
    ("error_result('Not logged in · Please run /login')", NO_ACCESS, "no access to Claude: Not logged in"),
    ("error_result('Invalid API key · Fix external API key', 401)", NO_ACCESS, "Invalid API key"),
    ("error_result('API Error: 401 unauthorized', 401)", NO_ACCESS, "claude auth login"),
    (f"say(**{RETRY | {'attempt': 2}}); time.sleep(3000)", NO_ACCESS, "authentication_failed (401); log in"),
    ("error_result('OAuth token has expired')", NO_ACCESS, "OAuth token has expired"),
    ("error_result('This organization has been disabled')", NO_ACCESS, "has been disabled"),
    ("error_result('Credit balance is too low')", NO_ACCESS, "Credit balance"),
    ('error_result("You\'ve hit your session limit · resets 4:50pm", 429)', NO_ACCESS,
     "cannot be used for now: You've hit your session limit · resets 4:50pm"),
    ("error_result('Request rejected (429)', 429)", FAILED, "lower parallel"),
    ("error_result('API Error: Repeated 529 Overloaded errors', 529)", FAILED, "failed: API Error: Repeated"),
    ("error_result('', 500)", FAILED, "failed: success, status 500"),
    ("result(None, subtype='error_during_execution', errors=['no net']); sys.exit(1)", FAILED, "no net"),
    ("result(None, subtype='error_max_turns', is_error=True)", NO_USE, "wanted form (error_max_turns)"),
    ("result('x', subtype=['success'])", FAILED, "failed: x"),
    ("result(' ')", NO_USE, "gave an empty answer"),
    ("result(None)", NO_USE, "gave an empty answer"),
    ("print('<html>')", NO_USE, "cannot be read: <html>"),
    ("print('[1]')", FAILED, "ended with exit code 0 and no answer"),
    ("sys.exit('error: unknown option')", FAILED, "exit code 1 and no answer: error: unknown option"),
    ("sys.exit('Not logged in')", NO_ACCESS, "no access to Claude: Not logged in"),
    ("os.kill(os.getpid(), 9)", FAILED, "ended with exit code -9"),
])  # fmt: skip
async def test_program_failure_raises_matching_error_type_and_text(program, reply, kind, text):
    error = await failure(program(f"{reply}; sys.exit()"))
    assert type(error) is kind
    assert text in str(error)
    assert str(error).startswith("claude 2.1.296 ")


async def test_rate_limited_program_call_is_retried_and_wait_is_reported(program):
    waits = []
    llm = program(
        """
again = os.path.join(os.path.dirname(sys.argv[0]), "again")
if os.path.exists(again):
    return "Hello"
open(again, "w").close()
error_result("Request rejected (429)", 429)
sys.exit()
""",
        limiter=world.limiter(waits),
    )
    assert ((await llm.complete(PLAIN)).text, len(program.asked()), waits) == ("Hello", 2, [0.25])
    assert llm.limiter.note(llm.who).startswith("claude 2.1.296 limited the rate once (429): calls waited ")


async def test_secrets_in_output_of_claude_are_redacted(program):
    redactor = Redactor({"sk-secret-1"})
    for reply in ("error_result('bad sk-secret-1')", "sys.exit('bad sk-secret-1')"):
        assert "bad ***" in str(await failure(program(reply, redactor=redactor)))


async def test_endless_answer_of_claude_is_an_error_and_ends_the_program(program):
    llm = program("""
for _ in range(40):
    sys.stdout.write("x" * 1_000_000)
time.sleep(3000)
""")
    started = time.monotonic()
    error = await failure(llm)
    assert isinstance(error, LLMAnswerError)
    assert "more than 16 MB" in str(error)
    assert time.monotonic() - started < 300


STALLING_REPLY = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3000)"])
pids = os.path.join(os.path.dirname(sys.argv[0]), "pids")
with open(f"{pids}.new", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename(f"{pids}.new", pids)
time.sleep(3000)
"""


def running(pid):
    command = ["ps", "-o", "stat=", "-p", pid]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


async def assert_processes_ended(folder):
    for pid in (folder / "bin/pids").read_text().split():
        for _ in range(3_000):
            if running(pid).strip()[:1] in ("", "Z"):
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail(f"process {pid} still runs")


@pytest.mark.slow
async def test_timeout_ends_program_and_its_children(program, tmp_path):
    error = await failure(program(STALLING_REPLY, timeout=1))
    assert type(error) is LLMError
    assert str(error).endswith("did not answer within 1 s")
    await assert_processes_ended(tmp_path)


@pytest.mark.slow
async def test_cancellation_ends_program_and_its_children(program, tmp_path):
    task = asyncio.create_task(program(STALLING_REPLY).complete(PLAIN))
    for _ in range(5_000):
        await asyncio.sleep(0.02)
        if (tmp_path / "bin/pids").exists():
            break
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 300  # it sleeps for 3000
    await assert_processes_ended(tmp_path)


async def test_concurrent_programs_are_limited(program):
    llm = program(
        """
running = os.path.join(os.path.dirname(sys.argv[0]), "running")
os.makedirs(running, exist_ok=True)
mine = os.path.join(running, str(os.getpid()))
open(mine, "w").close()
time.sleep(0.1)
most = len(os.listdir(running))
os.remove(mine)
return str(most)
""",
        limiter=world.limiter(most=2),
    )
    answers = await asyncio.gather(*(llm.complete(PLAIN) for _ in range(6)))
    assert max(int(answer.text) for answer in answers) <= 2


def test_model_works_in_several_event_loops(program):
    llm = program(limiter=world.limiter(most=1))

    async def ask_some():
        return await asyncio.gather(*(llm.complete(PLAIN) for _ in range(2)))

    assert [len(asyncio.run(ask_some())) for _ in range(2)] == [2, 2]


def test_version_is_requested_once(program, tmp_path):
    assert program().version == program().version == "2.1.296"
    assert claude_program.count_version_requests(tmp_path / "bin") == 1


def test_version_parts_are_compared_as_numbers(program):
    assert program(version="2.10.0 (Claude Code)").version == "2.10.0"


@pytest.mark.parametrize(("version", "text"), [
    ("2.1.247 (Claude Code)", "is 2.1.247, and 2.1.248 is needed at least: claude update"),
    ("1.9.999", "is 1.9.999, and"),
    ("Claude the Robot 7", "does not report its version, but 'Claude the Robot 7': is it Claude Code?"),
    ("", "does not report its version, but ''"),
])  # fmt: skip
def test_old_or_foreign_claude_program_is_refused_with_the_reason(program, version, text):
    with pytest.raises(UsageError, match=re.escape(text)):
        program(version=version)


def test_missing_or_broken_program_is_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"no program 'claude' on the PATH; install it .* another provider"):
        ClaudeCodeLLM("sonnet", {"PATH": str(tmp_path)})
    (tmp_path / "claude").write_text("#!/nowhere/python\n")
    (tmp_path / "claude").chmod(0o755)
    with pytest.raises(UsageError, match=r"claude' cannot be run: "):
        ClaudeCodeLLM("sonnet", {"PATH": str(tmp_path)})


@pytest.mark.slow
def test_fake_claude_program_rejects_unknown_arguments(tmp_path):
    path = claude_program.install(tmp_path)
    for arguments in ([], ["-p", "Hello"], ["--wizardry"]):
        ran = subprocess.run([path, *arguments], input="", capture_output=True, text=True, check=False)
        assert ran.returncode
        assert ran.stderr
    assert sys.executable in path.read_text()


ASKED = Prompt(system="You are Ida.", text="What do you say? /clear @/etc/passwd")


@pytest.fixture
def copilot(tmp_path):
    def made(reply='return "Hello"', environ=None, version=copilot_program.VERSION, **options):
        copilot_program.install(tmp_path / "bin", reply, version)
        options = {"limiter": world.limiter(budget=world.NO_RETRIES), **options}
        return CopilotLLM("gpt-5.4", claude_program.environ(tmp_path / "bin", **environ or {}), **options)

    made.asked = lambda: claude_program.read_requests(tmp_path / "bin")
    return made


async def test_copilot_gets_prompt_and_schema_on_stdin_and_only_its_own_variables(copilot):
    assert await copilot().complete(ASKED) == Completion("Hello", input_tokens=100, output_tokens=5)
    (asked,) = copilot.asked()
    assert asked["text"] == "You are Ida.\n\nWhat do you say? /clear @/etc/passwd"
    assert not any("Ida" in word for word in asked["argv"])
    await copilot("""return '{"verdict": "pass"}'""").complete(Prompt("", "Did it help?", schema=SCHEMA))
    *_, asked = copilot.asked()
    assert asked["text"].startswith("Did it help?")
    text = " ".join(asked["text"].split()).replace("[ ", "[").replace(" ]", "]")
    assert json.dumps(SCHEMA["required"]) in text
    ours = {"GITHUB_TOKEN": "k", "LLM_API_KEY": "k", "INPUT_AGENT-KEY": "k", "COPILOT_ALLOW_ALL": "true"}
    await copilot(environ=ours | {"COPILOT_GITHUB_TOKEN": "t"}).complete(ASKED)
    *_, asked = copilot.asked()
    env = asked["env"]
    assert not {"GITHUB_TOKEN", "LLM_API_KEY", "INPUT_AGENT-KEY"} & env.keys()
    assert (env["COPILOT_GITHUB_TOKEN"], env["COPILOT_ALLOW_ALL"]) == ("t", "false")


@pytest.mark.parametrize("token", ["COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL", None])
async def test_home_folder_is_replaced_unless_login_is_needed(copilot, token):
    """The program keeps every conversation in that folder, where the login may be too."""
    await copilot(environ={token: "x"} if token else {}).complete(ASKED)
    (asked,) = copilot.asked()
    assert ("COPILOT_HOME" in asked["env"]) is (token is not None)


NO_LOGIN = "Error: No authentication information found."


@pytest.mark.parametrize(("reply", "kind", "message"), [
    ("fail('authentication', 'Authentication failed (HTTP 401).', 401)", LLMAccessError, "copilot login"),
    (f"sys.exit({NO_LOGIN!r})", LLMAccessError, "no access to Copilot: Error: No authentication"),
    ("fail('quota', 'No premium requests left', 402)", LLMAccessError, "cannot be used for now"),
    ("fail('query', 'Last error: 500', 500)", LLMError, "copilot 1.0.102 failed: Last error: 500"),
    ("fail('rate_limit', 'retried 5 times; slow down', 429)", LLMError, "limits the rate of calls"),
    ("return ' '", LLMAnswerError, "gave an empty answer"),
    ("say('assistant.message', content='', toolRequests=[{}]); os._exit(0)", LLMError, "exit code 0"),
    ("print('Hello', flush=True); os._exit(0)", LLMAnswerError, "an answer that cannot be read"),
])  # fmt: skip
async def test_failure_of_copilot_is_reported_by_its_kind(copilot, reply, kind, message):
    with pytest.raises(kind, match=message) as caught:
        await copilot(reply).complete(ASKED)
    assert type(caught.value) is kind


async def test_secrets_in_output_of_copilot_are_redacted(copilot):
    key = "sk-secret-1234567"
    model = copilot(f"fail('query', 'bad key {key}', 400)", redactor=Redactor(keys=[key]))
    with pytest.raises(LLMError) as caught:
        await model.complete(ASKED)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(("version", "message"), [
    ("GitHub Copilot CLI 1.0.5.", "1.0.5, and 1.0.102 is needed"), ("copilot", "is it GitHub Copilot CLI"),
])  # fmt: skip
def test_old_or_foreign_copilot_program_is_refused_with_the_reason(copilot, version, message):
    with pytest.raises(UsageError, match=message):
        copilot(version=version)
