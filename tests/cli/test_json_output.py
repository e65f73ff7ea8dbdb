"""`--format=json` of `plan` and `run`: one JSON object on standard output, and all else on standard error."""

import json

import pytest
from commands import ci_evals, read_results

ONE = ("demo:hr", "--provider=offline", "--test=Never tells a colleague's pay")


@pytest.mark.end_to_end
def test_a_plan_as_json(tmp_path):
    done = ci_evals("plan", *ONE, "--format=json", "--loops=2", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    plan = json.loads(done.stdout)
    (suite,) = plan["suites"]
    assert (suite["name"], suite["file"]) == ("HR assistant", "demo:hr")
    (test,) = suite["tests"]
    assert (test["name"], test["trials"], test["turns"]) == ("Never tells a colleague's pay", 2, [6, 6])
    assert (plan["agents"], plan["tests"], plan["trials"], plan["turns"]) == (1, 1, [2, 2], [6, 6])
    assert plan["calls"] == {
        "agent": 8, "user": 0, "judge": 0, "judgeCheck": 0, "auditor": 0, "embedder": 0,
    }  # fmt: skip
    assert (plan["estimate"]["tokens"], plan["estimate"]["dollars"]) == ([0, 0], [0, 0])


@pytest.mark.slow
def test_the_cost_of_a_plan_is_null_where_it_is_unknown(tmp_path):
    options = ("--provider=openai", "--judge-model=of-nobody", "--user-model=of-nobody", "--format=json")
    estimate = json.loads(ci_evals("plan", "demo:hr", *options, cwd=tmp_path).stdout)["estimate"]
    assert (estimate["dollars"], estimate["unpriced"]) == (None, ["of-nobody"])


@pytest.mark.end_to_end
def test_a_run_as_json(tmp_path):
    """It is that of _results.json; what people read is on standard error."""
    done = ci_evals("run", *ONE, "--format=json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout) == read_results(tmp_path)
    assert "Evals passed" in done.stderr


@pytest.mark.slow
def test_what_an_agent_prints_does_not_break_the_json(tmp_path):
    """Also of one in our own process."""
    (tmp_path / "agent.py").write_text("def reply(message):\n    print('noise')\n    return message\n")
    test = {
        "name": "t",
        "guidelines": "g",
        "turns": [{"user": "Hello"}],
        "maxTurns": 1,
        "evaluations": [{"criterion": "c", "strict": "contains", "text": "Hello", "turn": 1}],
    }
    suite = {"name": "S", "adapter": "python:agent:reply", "tests": [test]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    options = ("--provider=offline", "--format=json", "--agent-in-process")
    done = ci_evals("run", "suite.json", *options, cwd=tmp_path)
    assert json.loads(done.stdout)["score"] == 100


@pytest.mark.slow
def test_a_mistake_prints_nothing_on_standard_output(tmp_path):
    done = ci_evals("run", "none.json", "--format=json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.json" in done.stderr
