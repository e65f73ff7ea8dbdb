"""Code that a run starts gets the variables of the job, but no keys and tokens of ci-evals."""

import json
import os
import sys

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
OWN_KEYS = dict.fromkeys(
    ("LLM_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITLAB_TOKEN"), KEY
)
OWN_KEYS |= dict.fromkeys(("CI_JOB_TOKEN", "CI_EVALS_GITLAB_TOKEN", "INPUT_AGENT-KEY", "INPUT_LLM-KEY"), KEY)
OWN_KEYS |= dict.fromkeys(
    ("ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "CI_EVALS_LLM_KEY"), KEY
)
OWN_KEYS["GITHUB_ENV"] = "a-file-of-the-runner"
OWN_KEYS["CI_REPOSITORY_URL"] = f"https://gitlab-ci-token:{KEY}@gitlab.example.com/shop.git"
OWN_KEYS["ACTIONS_RESULTS_URL"] = f"https://results.example.com/?token={KEY}"
"""What no code gets."""
PROVIDER_KEYS = dict.fromkeys(("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"), KEY)
PROVIDER_KEYS |= dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"), KEY)
PROVIDER_KEYS |= {"COPILOT_GITHUB_TOKEN": KEY, "OTEL_EXPORTER_OTLP_HEADERS": f"x-team={KEY}"}
"""What an agent may need, and a step or a check does not."""
JOB_VARIABLES = {
    "AGENT_KEY": "agent-key-4471",
    "DATABASE_URL": "postgres://app@db/app",
    "GITHUB_SHA": "1" * 40,
}


def test_code_of_suite_gets_no_keys_except_those_it_names(tmp_path):
    (tmp_path / "shop.py").write_text(CODE)
    program = [PYTHON, "shop.py"]
    check = {"criterion": "Checked", "strict": "python", "function": "shop:check"}
    setup = [{"command": [*program, "setup"]}, {"command": [*program, "told", "${GITHUB_TOKEN}"]}]
    probes = {"seen": {"python": "shop:step"}, "counted": {"command": [*program, "probe"]}}
    steps = {"setup": setup, "probes": probes, "teardown": [{"command": [*program, "teardown"]}]}
    for adapter in ("python:shop:reply", f"command: {PYTHON} shop.py"):
        fields = {"adapter": adapter, "agentId": None, "apiKey": None}
        suite = write_suite(tmp_path, {"evaluations": [check]}, **fields, **steps)
        env = OWN_KEYS | PROVIDER_KEYS | JOB_VARIABLES
        ran = ci_evals("run", suite, "--provider=offline", cwd=tmp_path, env=env)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    result = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.env")}
    steps = {"python step", "python check", "command setup", "command probe", "command teardown"}
    assert result.keys() == {"agent", "command agent", *steps}
    for name, environ in result.items():
        lacking = OWN_KEYS.keys() | (PROVIDER_KEYS.keys() if name in steps else set())
        assert not lacking & environ.keys(), name
        assert JOB_VARIABLES.items() <= environ.items(), name
        assert environ["PATH"] == os.environ["PATH"], name
        if name not in steps:
            assert PROVIDER_KEYS.items() <= environ.items(), name
    assert (tmp_path / "told").read_text() == KEY
    assert KEY not in (tmp_path / "results/_results.json").read_text()
    assert read_results(tmp_path)["run"]["status"] == "completed"
