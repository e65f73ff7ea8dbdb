"""Code that a run starts finds the job's variables, but none of our keys and tokens."""

import json
import os
import sys
from pathlib import Path

import pytest
from commands import ci_evals, read_results, write_suite

pytestmark = pytest.mark.slow

KEY = "6f1d2a90c7b3e4"
CODE = """
import json, os, sys

def tell(name):
    with open(name + ".env", "w") as file:
        json.dump(dict(os.environ), file)
    return True

def reply(message): return str(tell("agent"))
def step(): return tell("python step")
def check(): return tell("python check")

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "told":
        open("told", "w").write(sys.argv[2])
    elif len(sys.argv) > 1:
        print(json.dumps(tell("command " + sys.argv[1])))
    else:
        for line in sys.stdin:
            if json.loads(line)["type"] == "message":
                print(json.dumps(str(tell("command agent"))), flush=True)
"""
PYTHON = sys.executable

OURS = {
    "LLM_API_KEY": KEY,
    "GITHUB_TOKEN": KEY,
    "GH_TOKEN": KEY,
    "GH_ENTERPRISE_TOKEN": KEY,
    "GITLAB_TOKEN": KEY,
    "CI_JOB_TOKEN": KEY,
    "CI_REPOSITORY_URL": f"https://gitlab-ci-token:{KEY}@gitlab.example.com/shop.git",
    "CI_EVALS_GITLAB_TOKEN": KEY,
    "INPUT_AGENT-KEY": KEY,
    "ACTIONS_RUNTIME_TOKEN": KEY,
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": KEY,
    "ACTIONS_RESULTS_URL": f"https://results.example.com/?token={KEY}",
}
"""What no code gets."""
OF_PROVIDERS = {
    "OPENAI_API_KEY": KEY,
    "AZURE_OPENAI_API_KEY": KEY,
    "AZURE_OPENAI_AD_TOKEN": KEY,
    "ANTHROPIC_API_KEY": KEY,
    "ANTHROPIC_AUTH_TOKEN": KEY,
    "CLAUDE_CODE_OAUTH_TOKEN": KEY,
    "COPILOT_GITHUB_TOKEN": KEY,
    "OTEL_EXPORTER_OTLP_HEADERS": f"x-team={KEY}",
}
"""What an agent may need, and a step or a check does not."""
THEIRS = {"AGENT_KEY": "agent-key-4471", "DATABASE_URL": "postgres://app@db/app", "GITHUB_SHA": "1" * 40}


@pytest.fixture
def played(tmp_path):
    """The folder of a run that started code of each kind."""
    (tmp_path / "shop.py").write_text(CODE)
    program = [PYTHON, "shop.py"]
    for adapter in ("python:shop:reply", f"command: {PYTHON} shop.py"):
        suite = write_suite(
            tmp_path,
            {"evaluations": [{"criterion": "Checked", "strict": "python", "function": "shop:check"}]},
            adapter=adapter,
            agentId=None,
            apiKey=None,
            setup=[{"command": [*program, "setup"]}, {"command": [*program, "told", "${GITHUB_TOKEN}"]}],
            probes={"seen": {"python": "shop:step"}, "counted": {"command": [*program, "probe"]}},
            teardown=[{"command": [*program, "teardown"]}],
        )
        ran = ci_evals("run", suite, "--provider=offline", cwd=tmp_path, env=OURS | OF_PROVIDERS | THEIRS)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    return tmp_path


def test_code_gets_no_key_of_ours(played):
    """Each kind of code that a suite names."""
    found = {path.stem: json.loads(path.read_text()) for path in played.glob("*.env")}
    steps = {"python step", "python check", "command setup", "command probe", "command teardown"}
    assert found.keys() == {"agent", "command agent", *steps}
    for name, environ in found.items():
        lacking = OURS.keys() | (OF_PROVIDERS.keys() if name in steps else set())
        assert not lacking & environ.keys(), name
        assert THEIRS.items() <= environ.items(), name
        assert environ["PATH"] == os.environ["PATH"], name
        if name not in steps:
            assert OF_PROVIDERS.items() <= environ.items(), name


def test_a_suite_hands_on_what_it_names(played):
    """`${GITHUB_TOKEN}` among the arguments of a step is the token; no report shows it."""
    assert (played / "told").read_text() == KEY
    assert KEY not in Path(played / "results/_results.json").read_text()
    assert read_results(played)["run"]["status"] == "completed"
