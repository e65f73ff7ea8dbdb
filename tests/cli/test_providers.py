"""Who judges and plays the user, from the outside: keys, tokens and programs of the providers."""

import json
import signal
import time

import claude_program
import copilot_program
import fakes
import pytest
import world
from commands import ci_evals, read_files, read_results, start, write_suite
from pytest_httpserver import HTTPServer
from werkzeug import Response

pytestmark = pytest.mark.slow

PASS = fakes.judge_answer("pass", "It greets.")
JUDGED = {
    "turns": [{"user": "auto"}],
    "evaluations": [{"criterion": "It greets"}, {"criterion": "No forwarding", "strict": "not_escalated"}],
}
CLAUDE = f"return {PASS!r} if asked['schema'] else 'Hello from ' + asked['model']"


@pytest.fixture
def agent():
    with world.agent(lambda heard: world.message(f"You said {heard.text}", workflows=[])) as served:
        yield served


@pytest.fixture
def suite(tmp_path):
    return write_suite(tmp_path, JUDGED)


def env_of(agent, **more):
    return {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | more


def claude(folder, agent, reply=CLAUDE, **more):
    """The environment of a machine on which `claude` is there and replies so."""
    claude_program.install(folder / "bin", reply)
    return claude_program.environ(folder / "bin", **env_of(agent, **more))


def test_copilot_plays_user_and_judge(tmp_path, agent, suite):
    """Without any key. What it costs is unknown, which no budget allows."""
    reply = f"return {PASS!r} if 'JSON Schema' in asked['text'] else 'Hello'"
    copilot_program.install(tmp_path / "bin", reply)
    env = claude_program.environ(tmp_path / "bin", **env_of(agent))
    ran = ci_evals("run", suite, "--provider=copilot", cwd=tmp_path, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(tmp_path)
    assert {(one["role"], one["costUsd"]) for one in results["usage"]["byRole"]} == {
        ("user", None),
        ("judge", None),
    }
    limited = ci_evals("run", suite, "--provider=copilot", "--max-cost=1", cwd=tmp_path, env=env)
    assert limited.returncode in {2, 3}


def test_claude_code_plays_user_and_judge(tmp_path, agent, suite):
    """Without any key. What it has cost is what it tells, and holds a budget without a table of prices."""
    ran = ci_evals(
        "run", suite, "--provider=claude-code", "--max-cost=1", cwd=tmp_path, env=claude(tmp_path, agent)
    )
    assert (ran.returncode, ran.stderr.count("error")) == (0, 0), ran.stderr
    results = read_results(tmp_path)
    (trial,) = results["suites"][0]["tests"][0]["trials"]
    assert trial["turns"][0]["user"] == "Hello from haiku"
    assert [finding["outcome"] for finding in trial["findings"]] == ["passed", "passed"]
    usage = results["usage"]
    assert {(u["role"], u["model"], u["costUsd"]) for u in usage["byRole"]} == {
        ("judge", "sonnet", 0.25),
        ("user", "haiku", 0.25),
    }
    assert (usage["costUsd"], usage["unpriced"]) == (0.5, [])
    assert usage["tokens"] == {"input": 42, "output": 10, "cachedInput": 0}
    assert claude_program.count_version_requests(tmp_path / "bin") == 1
    assert "max-cost" in [check["name"] for check in results["gate"]["checks"]]


def test_other_models_of_claude_code(tmp_path, agent, suite):
    """By alias or by full name, as they are written; a suite's own too."""
    options = ["--provider=claude-code", "--judge-model=claude-opus-5-5", "--user-model=opus[1m]"]
    assert ci_evals("run", suite, *options, cwd=tmp_path, env=claude(tmp_path, agent)).returncode == 0
    asked = claude_program.read_requests(tmp_path / "bin")
    assert [one["model"] for one in asked] == ["opus[1m]", "claude-opus-5-5"]


def test_a_budget_that_claude_code_breaks(tmp_path, agent, suite):
    """By what it tells."""
    options = ["--provider=claude-code", "--max-cost=0.4"]
    assert ci_evals("run", suite, *options, cwd=tmp_path, env=claude(tmp_path, agent)).returncode == 1


def test_no_claude_on_this_machine(tmp_path, agent, suite):
    """Told before anything runs."""
    env = env_of(agent, PATH=str(tmp_path))
    ran = ci_evals("run", suite, "--provider=claude-code", cwd=tmp_path, env=env)
    assert (ran.returncode, agent.requests) == (2, [])
    assert "--provider=claude-code: there is no program 'claude' on the PATH; install it" in ran.stderr
    assert not (tmp_path / "results").exists()


def test_claude_is_not_looked_for_where_nothing_asks_it(tmp_path, agent):
    """All turns fixed, all criteria strict."""
    env = env_of(agent, PATH=str(tmp_path))
    ran = ci_evals("run", write_suite(tmp_path), "--provider=claude-code", cwd=tmp_path, env=env)
    assert ran.returncode == 0, ran.stderr


def test_claude_is_not_logged_in(tmp_path, agent):
    """Exit 3 at once: no second trial is tried."""
    suite = write_suite(tmp_path, *({"name": f"t{i}"} | JUDGED for i in range(4)))
    env = claude(tmp_path, agent, "error_result('Not logged in · Please run /login')")
    ran = ci_evals("run", suite, "--provider=claude-code", "--retries=0", cwd=tmp_path, env=env)
    assert ran.returncode == 3
    assert "no access to Claude: Not logged in" in ran.stdout
    assert len(claude_program.read_requests(tmp_path / "bin")) == 1
    assert read_results(tmp_path)["counts"]["notRun"] == 3


def test_an_interruption_does_not_wait_for_claude(tmp_path, agent, suite):
    """The reports are written in time."""
    env = claude(tmp_path, agent, "time.sleep(300)")
    process = start("run", suite, "--provider=claude-code", cwd=tmp_path, env=env)
    deadline = time.monotonic() + 300
    while not claude_program.read_requests(tmp_path / "bin") and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 130
    assert read_results(tmp_path)["run"]["status"] == "interrupted"


@pytest.fixture
def azure():
    """A resource at Azure OpenAI with a deployment for each job."""

    def answer(request):
        if "azure-key-1" not in f"{request.headers.get('api-key')} {request.headers.get('Authorization')}":
            return world.UNAUTHORIZED.response()
        text = PASS if "response_format" in request.get_json() else "Hello, azure-key-1"
        choice = {"finish_reason": "stop", "message": {"content": text}}
        return Response(json.dumps({"choices": [choice]}), content_type="application/json")

    with HTTPServer() as server:
        for name in ("judge", "user"):
            path = f"/openai/deployments/{name}/chat/completions"
            server.expect_request(path, query_string={"api-version": "2024-10-21"}).respond_with_handler(
                answer
            )
        yield {"AZURE_OPENAI_ENDPOINT": server.url_for(""), "OPENAI_API_VERSION": "2024-10-21"}


@pytest.mark.parametrize("name", ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "LLM_API_KEY"])
def test_deployments_at_azure(tmp_path, agent, azure, suite, name):
    """Models are named as they are deployed; the key is told nowhere."""
    options = ["--judge-model=judge", "--user-model=user"]
    env = env_of(agent, **azure, **{name: "azure-key-1"}, OPENAI_API_KEY="key-of-openai")
    ran = ci_evals("run", suite, *options, cwd=tmp_path, env=env)
    assert ran.returncode == 0, ran.stderr
    assert "azure-key-1" not in ran.stdout + ran.stderr
    assert not [path for path, text in read_files(tmp_path / "results").items() if b"azure-key-1" in text]


def test_azure_without_a_key(tmp_path, agent, azure, suite):
    """OpenAI's own key is not sent there."""
    ran = ci_evals("run", suite, cwd=tmp_path, env=env_of(agent, **azure, OPENAI_API_KEY="key-of-openai"))
    assert (ran.returncode, agent.requests) == (2, [])
    assert "set LLM_API_KEY or AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN (in a workflow" in ran.stderr


def test_azure_without_a_version(tmp_path, agent, azure, suite):
    """Told before anything runs."""
    env = env_of(agent, **azure, AZURE_OPENAI_API_KEY="azure-key-1") | {"OPENAI_API_VERSION": ""}
    ran = ci_evals("run", suite, cwd=tmp_path, env=env)
    assert (ran.returncode, agent.requests) == (2, [])
    assert "OPENAI_API_VERSION is not" in ran.stderr


def test_anthropic_by_a_bearer_token(tmp_path, agent, suite):
    """As a gateway gives it, without any key; it is told nowhere."""
    with world.llm(lambda asked: PASS if asked.wants_json else f"My token is {world.LLM_KEY}") as models:
        env = env_of(agent, ANTHROPIC_BASE_URL=models.url, ANTHROPIC_AUTH_TOKEN=models.key)
        ran = ci_evals("run", suite, "--provider=anthropic", cwd=tmp_path, env=env)
    assert ran.returncode == 0, ran.stderr
    assert {asked.headers["Authorization"] for asked in models.asked} == {f"Bearer {models.key}"}
    assert not [
        path for path, text in read_files(tmp_path / "results").items() if models.key.encode() in text
    ]


def test_no_key_names_what_anthropic_takes(tmp_path, agent, suite):
    """Key or token."""
    ran = ci_evals("run", suite, "--provider=anthropic", cwd=tmp_path, env=env_of(agent))
    assert ran.returncode == 2
    assert (
        "set LLM_API_KEY or ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN (in a workflow the input llm-key), or"
        in ran.stderr
    )


def test_a_judge_of_the_agents_family(tmp_path, agent):
    """Warned of once: on the console, in the results and in the summary."""
    suite = write_suite(tmp_path, JUDGED, JUDGED | {"name": "Second"}, model="claude-opus-5-5")
    ran = ci_evals("run", suite, "--provider=claude-code", cwd=tmp_path, env=claude(tmp_path, agent))
    text = "sonnet judges claude-opus-5-5 (Claude)"
    assert ran.stderr.count(text) == 1
    assert sum(text in warning for warning in read_results(tmp_path)["run"]["warnings"]) == 1
    assert text in (tmp_path / "results/summary.md").read_text()


def test_the_plan_needs_no_claude(tmp_path, suite):
    """It asks nobody, and so cannot know what the program will tell."""
    ran = ci_evals("plan", suite, "--provider=claude-code", cwd=tmp_path, env={"AGENT_KEY": "key-123456"})
    assert ran.returncode == 0, ran.stderr
    known = "cost        known only afterwards (haiku, sonnet): the provider reports it with each answer"
    assert known in ran.stdout
