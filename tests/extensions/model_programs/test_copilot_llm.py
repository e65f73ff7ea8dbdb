"""A model behind the program `copilot`, played by a stand-in; tests/frameworks has the real one."""

import json

import claude_program
import copilot_program
import pytest
import world

from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, UsageError
from ci_evals.extensions.model_programs.copilot_llm import CopilotLLM
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor

PLAIN = Prompt(system="You are Ida.", text="What do you say? /clear @/etc/passwd")
SCHEMA = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}


@pytest.fixture
def program(tmp_path):
    def made(reply='return "Hello"', environ=None, version=copilot_program.VERSION, **options):
        copilot_program.install(tmp_path / "bin", reply, version)
        options = {"limiter": world.limiter(budget=world.NO_RETRIES), **options}
        return CopilotLLM("gpt-5.4", claude_program.environ(tmp_path / "bin", **environ or {}), **options)

    made.asked = lambda: claude_program.read_requests(tmp_path / "bin")
    return made


async def test_prompt_is_sent_on_stdin_with_the_schema_and_only_the_programs_variables(program):
    assert await program().complete(PLAIN) == Completion("Hello", input_tokens=100, output_tokens=5)
    (asked,) = program.asked()
    assert asked["text"] == "You are Ida.\n\nWhat do you say? /clear @/etc/passwd"
    assert not any("Ida" in word for word in asked["argv"])
    await program("""return '{"verdict": "pass"}'""").complete(Prompt("", "Did it help?", schema=SCHEMA))
    *_, asked = program.asked()
    assert asked["text"].startswith("Did it help?")
    text = " ".join(asked["text"].split()).replace("[ ", "[").replace(" ]", "]")
    assert json.dumps(SCHEMA["required"]) in text
    ours = {"GITHUB_TOKEN": "k", "LLM_API_KEY": "k", "INPUT_AGENT-KEY": "k", "COPILOT_ALLOW_ALL": "true"}
    await program(environ=ours | {"COPILOT_GITHUB_TOKEN": "t"}).complete(PLAIN)
    *_, asked = program.asked()
    env = asked["env"]
    assert not {"GITHUB_TOKEN", "LLM_API_KEY", "INPUT_AGENT-KEY"} & env.keys()
    assert (env["COPILOT_GITHUB_TOKEN"], env["COPILOT_ALLOW_ALL"]) == ("t", "false")


@pytest.mark.parametrize("token", ["COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL", None])
async def test_home_folder_is_replaced_unless_login_is_needed(program, token):
    """The program keeps each in its user's folder, where the login may lie."""
    await program(environ={token: "x"} if token else {}).complete(PLAIN)
    (asked,) = program.asked()
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
async def test_failure_of_program_is_reported_by_its_kind(program, reply, kind, message):
    with pytest.raises(kind, match=message) as caught:
        await program(reply).complete(PLAIN)
    assert type(caught.value) is kind


async def test_secrets_in_program_output_are_redacted(program):
    key = "sk-secret-1234567"
    model = program(f"fail('query', 'bad key {key}', 400)", redactor=Redactor(keys=[key]))
    with pytest.raises(LLMError) as caught:
        await model.complete(PLAIN)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("version", "message"),
    [("GitHub Copilot CLI 1.0.5.", "1.0.5, and 1.0.102 is needed"), ("copilot", "is it GitHub Copilot CLI")],
)
def test_old_or_foreign_program_is_refused(program, version, message):
    with pytest.raises(UsageError, match=message):
        program(version=version)
