"""`--format=json` of `plan` and `run`: one JSON object on standard output, and all else on standard error."""

import json

import pytest
from commands import ci_evals, read_results, write_suite

ONE = ("demo:hr", "--provider=offline", "--test=Never tells a colleague's pay")


@pytest.mark.end_to_end
def test_plan_as_json_has_tests_trials_turns_calls_and_estimate(tmp_path):
    done = ci_evals("plan", *ONE, "--format=json", "--loops=2", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    plan = json.loads(done.stdout)
    (suite,) = plan["suites"]
    (test,) = suite["tests"]
    assert (suite["name"], suite["file"]) == ("HR assistant", "demo:hr")
    assert (test["name"], test["trials"], test["turns"]) == ("Never tells a colleague's pay", 2, [6, 6])
    assert (plan["agents"], plan["tests"], plan["trials"], plan["turns"]) == (1, 1, [2, 2], [6, 6])
    roles = ("user", "judge", "judgeCheck", "auditor", "embedder")
    assert plan["calls"] == {"agent": 8} | dict.fromkeys(roles, 0)
    assert (plan["estimate"]["tokens"], plan["estimate"]["dollars"]) == ([0, 0], [0, 0])


@pytest.mark.slow
def test_plan_as_json_has_null_cost_if_a_price_is_unknown(tmp_path):
    options = ("--provider=openai", "--judge-model=of-nobody", "--user-model=of-nobody", "--format=json")
    estimate = json.loads(ci_evals("plan", "demo:hr", *options, cwd=tmp_path).stdout)["estimate"]
    assert (estimate["dollars"], estimate["unpriced"]) == (None, ["of-nobody"])


@pytest.mark.end_to_end
def test_run_writes_its_results_as_json_and_the_rest_to_stderr(tmp_path):
    done = ci_evals("run", *ONE, "--format=json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, read_results(tmp_path))
    assert "Evals passed" in done.stderr


@pytest.mark.slow
def test_json_on_stdout_is_free_of_agent_output_and_usage_errors(tmp_path):
    (tmp_path / "agent.py").write_text("def reply(message):\n    print('noise')\n    return message\n")
    check = {"criterion": "c", "strict": "contains", "text": "Hello", "turn": 1}
    suite = write_suite(tmp_path, {"evaluations": [check]}, adapter="python:agent:reply", apiKey=None)
    options = ("--provider=offline", "--format=json", "--agent-in-process")
    done = ci_evals("run", suite, *options, cwd=tmp_path)
    assert json.loads(done.stdout)["score"] == 100
    done = ci_evals("run", "none.json", "--format=json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.json" in done.stderr
