"""Providers of judge and simulated user: their keys, tokens and programs."""

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


def roles(results, *names):
    return {tuple(one[name] for name in names) for one in results["usage"]["byRole"]}


@pytest.fixture
def suite(tmp_path):
    return write_suite(tmp_path, JUDGED)


def run(folder, suite, env, *options, provider="claude-code", code=0, text=""):
    ran = ci_evals("run", suite, f"--provider={provider}", *options, cwd=folder, env=env)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert text in ran.stdout + ran.stderr
    return ran


def assert_not_written(folder, secret):
    assert not [path for path, data in read_files(folder / "results").items() if secret.encode() in data]


def env_of(agent, **more):
    return {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | more


def install_claude(folder, agent, reply=CLAUDE, **more):
    """Install a `claude` with this reply, and return the environment that finds it."""
    claude_program.install(folder / "bin", reply)
    return claude_program.environ(folder / "bin", **env_of(agent, **more))


def test_copilot_simulates_user_and_judges_at_unknown_cost(tmp_path, agent, suite):
    """Without any key. No budget allows an unknown cost."""
    reply = f"return {PASS!r} if 'JSON Schema' in asked['text'] else 'Hello'"
    copilot_program.install(tmp_path / "bin", reply)
    env = claude_program.environ(tmp_path / "bin", **env_of(agent))
    run(tmp_path, suite, env, provider="copilot")
    assert roles(read_results(tmp_path), "role", "costUsd") == {("user", None), ("judge", None)}
    limited = ci_evals("run", suite, "--provider=copilot", "--max-cost=1", cwd=tmp_path, env=env)
    assert limited.returncode in {2, 3}


def test_claude_code_simulates_user_and_judges_at_reported_cost(tmp_path, agent, suite):
    """Without any key. A budget holds without a table of prices."""
    env = install_claude(tmp_path, agent)
    assert "error" not in run(tmp_path, suite, env, "--max-cost=1").stderr
    results = read_results(tmp_path)
    (trial,) = results["suites"][0]["tests"][0]["trials"]
    assert trial["turns"][0]["user"] == "Hello from haiku"
    assert [finding["outcome"] for finding in trial["findings"]] == ["passed", "passed"]
    expected = {("judge", "sonnet", 0.25), ("user", "haiku", 0.25)}
    assert roles(results, "role", "model", "costUsd") == expected
    usage = results["usage"]
    assert (usage["costUsd"], usage["unpriced"]) == (0.5, [])
    assert usage["tokens"] == {"input": 42, "output": 10, "cachedInput": 0}
    assert claude_program.count_version_requests(tmp_path / "bin") == 1
    assert "max-cost" in [check["name"] for check in results["gate"]["checks"]]
    run(tmp_path, suite, env, "--max-cost=0.4", code=1)


def test_claude_code_models_are_given_by_alias_or_full_name(tmp_path, agent, suite):
    env = install_claude(tmp_path, agent)
    run(tmp_path, suite, env, "--judge-model=claude-opus-5-5", "--user-model=opus[1m]")
    asked = claude_program.read_requests(tmp_path / "bin")
    assert [one["model"] for one in asked] == ["opus[1m]", "claude-opus-5-5"]


def test_missing_claude_program_is_reported_only_if_it_is_needed(tmp_path, agent, suite):
    ran = ci_evals("plan", suite, "--provider=claude-code", cwd=tmp_path, env={"AGENT_KEY": "key-123456"})
    known = "cost        known only afterwards (haiku, sonnet): the provider reports it with each answer"
    assert (ran.returncode, known in ran.stdout) == (0, True), ran.stderr
    env = env_of(agent, PATH=str(tmp_path))
    text = "--provider=claude-code: there is no program 'claude' on the PATH; install it"
    run(tmp_path, suite, env, code=2, text=text)
    assert (agent.requests, (tmp_path / "results").exists()) == ([], False)
    run(tmp_path, write_suite(tmp_path), env)


def test_claude_without_login_stops_run_after_first_trial(tmp_path, agent):
    suite = write_suite(tmp_path, *({"name": f"t{i}"} | JUDGED for i in range(4)))
    env = install_claude(tmp_path, agent, "error_result('Not logged in · Please run /login')")
    run(tmp_path, suite, env, "--retries=0", code=3, text="no access to Claude: Not logged in")
    assert len(claude_program.read_requests(tmp_path / "bin")) == 1
    assert read_results(tmp_path)["counts"]["notRun"] == 3


def test_interruption_does_not_wait_for_claude(tmp_path, agent, suite):
    env = install_claude(tmp_path, agent, "time.sleep(300)")
    process = start("run", suite, "--provider=claude-code", cwd=tmp_path, env=env)
    deadline = time.monotonic() + 300
    while not claude_program.read_requests(tmp_path / "bin") and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert (process.returncode, read_results(tmp_path)["run"]["status"]) == (130, "interrupted")


@pytest.fixture
def azure():

    def answer(request):
        if "azure-key-1" not in f"{request.headers.get('api-key')} {request.headers.get('Authorization')}":
            return world.UNAUTHORIZED.response()
        text = PASS if "response_format" in request.get_json() else "Hello, azure-key-1"
        choice = {"finish_reason": "stop", "message": {"content": text}}
        return Response(json.dumps({"choices": [choice]}), content_type="application/json")

    with HTTPServer() as server:
        for name in ("judge", "user"):
            path, version = f"/openai/deployments/{name}/chat/completions", {"api-version": "2024-10-21"}
            server.expect_request(path, query_string=version).respond_with_handler(answer)
        yield {"AZURE_OPENAI_ENDPOINT": server.url_for(""), "OPENAI_API_VERSION": "2024-10-21"}


def test_azure_deployments_run_with_key_of_each_variable_which_is_not_shown(tmp_path, agent, azure, suite):
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN", "LLM_API_KEY"):
        env = env_of(agent, **azure, **{name: "azure-key-1"}, OPENAI_API_KEY="key-of-openai")
        ran = run(tmp_path, suite, env, "--judge-model=judge", "--user-model=user", provider="openai")
        assert "azure-key-1" not in ran.stdout + ran.stderr
        assert_not_written(tmp_path, "azure-key-1")


def test_missing_azure_key_azure_version_or_anthropic_key_names_variable_to_set(
    tmp_path, agent, azure, suite
):
    """OpenAI's own key is not sent to Azure."""
    openai_key = azure | {"OPENAI_API_KEY": "key-of-openai"}
    no_version = azure | {"AZURE_OPENAI_API_KEY": "azure-key-1", "OPENAI_API_VERSION": ""}
    azure_keys = "LLM_API_KEY or AZURE_OPENAI_API_KEY or AZURE_OPENAI_AD_TOKEN (in a workflow"
    anthropic_keys = "LLM_API_KEY or ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
    for provider, variables, text in (
        ("openai", openai_key, f"set {azure_keys}"),
        ("openai", no_version, "OPENAI_API_VERSION is not"),
        ("anthropic", {}, f"set {anthropic_keys} (in a workflow the input llm-key), or"),
    ):
        run(tmp_path, suite, env_of(agent, **variables), provider=provider, code=2, text=text)
        assert agent.requests == []


def test_anthropic_accepts_bearer_token_and_does_not_show_it(tmp_path, agent, suite):
    with world.llm(lambda asked: PASS if asked.wants_json else f"My token is {world.LLM_KEY}") as models:
        env = env_of(agent, ANTHROPIC_BASE_URL=models.url, ANTHROPIC_AUTH_TOKEN=models.key)
        run(tmp_path, suite, env, provider="anthropic")
    assert {asked.headers["Authorization"] for asked in models.asked} == {f"Bearer {models.key}"}
    assert_not_written(tmp_path, models.key)


def test_judge_of_same_model_family_as_agent_causes_one_warning(tmp_path, agent):
    suite = write_suite(tmp_path, JUDGED, JUDGED | {"name": "Second"}, model="claude-opus-5-5")
    text = "sonnet judges claude-opus-5-5 (Claude)"
    assert run(tmp_path, suite, install_claude(tmp_path, agent)).stderr.count(text) == 1
    assert sum(text in warning for warning in read_results(tmp_path)["run"]["warnings"]) == 1
    assert text in (tmp_path / "results/summary.md").read_text()
