"""`--judge-cache`: a second run reuses the judge's answers."""

import json
from pathlib import Path

import fakes
import pytest
import world
from commands import ci_evals, read_files, read_results, write_suite
from each_row import each_row
from exits import exits

from ci_evals.cli.run.judge_cache import folder_of
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

pytestmark = pytest.mark.slow
TEST = {"name": "Greets", "evaluations": [{"criterion": "Is polite"}, {"criterion": "Is brief"}]}
PRICES = {"models": {"judge": {"input": 1000, "output": 1000}}}


class AlternatingJudge:
    def __init__(self):
        self.answers = 0

    def __call__(self, asked):
        self.answers += 1
        verdict = "pass" if self.answers % 2 else "fail"
        return fakes.judge_answer(verdict, "I threw a coin.", (1, "You said: Hello"))


@pytest.fixture
def services(tmp_path):
    with world.agent() as agent, world.llm(AlternatingJudge()) as models:
        write_suite(tmp_path, TEST, judgeModel="judge")
        (tmp_path / "prices.json").write_text(json.dumps(PRICES))
        env = models.env | {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
        yield models, env


def run(folder, env, *options, cache="answers", **more):
    options = ("--prices=prices.json", "--no-gate", *([f"--judge-cache={cache}"] if cache else []), *options)
    ran = exits(0, "run", "suite.json", *options, cwd=folder, env=env | more)
    results = read_results(folder)
    (judge,) = [one for one in results["usage"]["byRole"] if one["role"] == "judge"]
    trials = results["suites"][0]["tests"][0]["trials"]
    return ran, results, judge, [[one["outcome"] for one in trial["findings"]] for trial in trials]


def test_second_run_takes_verdicts_from_cache(tmp_path, services):
    """It costs nothing, and a budget admits it."""
    models, env = services
    _, results, judge, first = run(tmp_path, env, "--loops=3")
    assert results["run"]["config"]["judgeCache"] == "on"
    assert (judge["calls"], judge["cached"], len(models.asked)) == (6, 0, 6)
    assert judge["costUsd"] > 0.1
    _, results, judge, second = run(tmp_path, env, "--loops=3", "--max-cost=0")
    assert (judge["calls"], judge["cached"], len(models.asked)) == (6, 6, 6)
    assert (judge["costUsd"], results["usage"]["costUsd"], results["usage"]["unpriced"]) == (0, 0, [])
    assert second == first
    _, results, judge, _ = run(tmp_path, env, "--loops=4")
    assert (judge["calls"], judge["cached"], len(models.asked)) == (8, 6, 8)
    assert 0 < judge["costUsd"] < 0.1


def test_equal_conversations_of_one_run_are_judged_separately(tmp_path, services):
    _, env = services
    for _ in range(2):
        _, _, _, outcomes = run(tmp_path, env, "--loops=8", cache="answers")
        assert {outcome for trial in outcomes for outcome in trial} == {"passed", "failed"}
    assert len(read_files(tmp_path / "answers")) == 17  # and the mark of the last look for old ones


def test_judge_cache_is_not_used_if_off_or_if_auto_in_ci(tmp_path, services):
    models, env = services
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}
    for more in ({"CI_EVALS_JUDGE_CACHE": "off"}, {"CI_EVALS_JUDGE_CACHE": "auto", "CI": "true"}):
        models.asked.clear()
        _, results, judge, _ = run(tmp_path, env, cache=None, **home, **more)
        assert (results["run"]["config"]["judgeCache"], judge["cached"], len(models.asked)) == ("off", 0, 2)
    assert not (tmp_path / "home").exists()


def test_unwritable_judge_cache_causes_one_warning_and_reuses_no_answer(tmp_path, services):
    _, env = services
    (tmp_path / "answers").write_text("a file")
    ran, results, judge, _ = run(tmp_path, env, "--loops=2")
    assert (ran.stdout + ran.stderr).count("the judge's answers are not kept") == 1
    assert any("judge-cache: cannot write" in warning for warning in results["run"]["warnings"])
    assert (judge["calls"], judge["cached"]) == (4, 0)


def test_recording_contains_cached_answers_and_is_replayed_without_cache(tmp_path, services):
    models, env = services
    _, _, _, first = run(tmp_path, env)
    run(tmp_path, env, "--record=tape")
    assert len(models.asked) == 2
    _, results, judge, replayed = run(tmp_path, env, "--replay=tape")
    assert (replayed, judge["cached"], results["run"]["config"]["judgeCache"]) == (first, 0, "off")


def failing_judge(_asked):
    return fakes.judge_answer("fail", "It is rude.", (1, "You said: Hello"))


def forge_passes(folder, **changed):
    """Turns every kept fail into a pass, as somebody does who can write to the folder."""
    entries = list(folder.glob("*/*.json"))
    for file in entries:
        entry = json.loads(file.read_text())
        answer = entry["answer"].replace('"fail"', '"pass"').replace('"met": false', '"met": true')
        file.write_text(json.dumps(entry | {"answer": answer} | changed))
    return entries


def run_gated(folder, env, *options, **more):
    options = ("--judge-cache=answers", "--baseline=none", "--comment=never", *options)
    return ci_evals("run", "suite.json", *options, cwd=folder, env=env | more)


def test_judge_is_asked_again_if_cache_entry_is_forged(tmp_path, services):
    """Whoever can write to the folder, and lacks the key of the LLM, decides nothing: the judge is asked."""
    models, env = services
    models.answer = failing_judge
    assert run_gated(tmp_path, env).returncode == 1
    for changed in ({}, {"signature": ""}, {"signature": None}, {"version": 1}):
        models.asked.clear()
        assert len(forge_passes(tmp_path / "answers", **changed)) == 2
        ran = run_gated(tmp_path, env)
        assert (ran.returncode, len(models.asked)) == (1, 2)
        output = ran.stdout + ran.stderr
        assert output.count("not signed with this run's key") == (1 if changed != {"version": 1} else 0)
    models.asked.clear()
    assert (run_gated(tmp_path, env).returncode, models.asked) == (1, [])
    one, other = sorted((tmp_path / "answers").glob("*/*.json"))  # well signed, but for another question
    key = json.loads(other.read_text())["key"]
    other.write_text(json.dumps(json.loads(one.read_text()) | {"key": key}))
    assert (run_gated(tmp_path, env).returncode, len(models.asked)) == (1, 1)


def test_cache_is_signed_with_user_secret_if_llm_key_is_well_known(tmp_path, services):
    """Everybody knows the key that a local server takes."""
    models, env = services
    models.answer, models.key = failing_judge, "not-needed"
    env |= {"LLM_API_KEY": "not-needed", "OPENAI_API_KEY": "", "XDG_CACHE_HOME": ""}
    home, other = {"HOME": str(tmp_path / "home")}, {"HOME": str(tmp_path / "another")}
    assert run_gated(tmp_path, env, **home).returncode == 1
    assert (run_gated(tmp_path, env, **home).returncode, len(models.asked)) == (1, 2)
    (secret,) = (tmp_path / "home").rglob("signing-key")
    assert secret.stat().st_mode & 0o077 == 0
    ran = run_gated(tmp_path, env, **other)
    assert (ran.returncode, len(models.asked)) == (1, 4)
    assert "not signed with this run's key" in ran.stdout + ran.stderr
    ran = run_gated(tmp_path, env, HOME="")
    assert ran.returncode == 1
    assert "can be guessed" in ran.stdout + ran.stderr


def test_cache_inside_checkout_is_not_read_in_untrusted_events(tmp_path, services):
    """Not even a well signed answer."""
    models, env = services
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    write_suite(checkout, TEST, judgeModel="judge", apiKey=env["AGENT_KEY"])
    env = {name: value for name, value in env.items() if name != "CI_EVALS_BASE_URL"}
    options = ("--min-score=0", f"--base-url={services[1]['CI_EVALS_BASE_URL']}")
    run_gated(checkout, env, *options)
    for event in ("workflow_run", "issue_comment", "pull_request_target"):
        models.asked.clear()
        job = {"GITHUB_WORKSPACE": str(checkout), "GITHUB_EVENT_NAME": event}
        ran = run_gated(checkout, env, *options, **job)
        assert len(models.asked) == 2
        assert "--judge-cache" in ran.stderr
        assert "inside the checkout" in ran.stderr
    (tmp_path / "link").symlink_to(checkout / "answers")
    for folder, asked in (("link", 4), ("outside", 6), ("outside", 6)):
        run_gated(checkout, env, *options, f"--judge-cache=../{folder}", **job)
        assert len(models.asked) == asked


@each_row(
    ("value", "environ", "expected"),
    [
        ("off", {"HOME": "/home/a"}, None),
        ("auto", {"HOME": "/home/a", "CI": "1"}, None),
        ("auto", {"HOME": "/home/a", "GITHUB_ACTIONS": "true"}, None),
        ("auto", {"HOME": "/home/a", "XDG_CACHE_HOME": "/var/a", "CI": "false"}, "/var/a/ci-evals/judge"),
        ("auto", {}, None),
        ("here", {"HOME": "/home/a", "CI": "1"}, "here"),
    ],
)
def test_judge_cache_folder_is_user_folder_outside_ci_or_given_folder(value, environ, expected):
    assert folder_of(value, RunContext(environ)) == (expected and Path(expected))
    with pytest.raises(UsageError, match="Name a folder"):
        folder_of(" ", RunContext(environ))


def test_rejudge_does_not_reuse_answers_of_run(tmp_path, services):
    """Its own answers may be cached."""
    models, env = services
    run(tmp_path, env)
    env |= {"CI_EVALS_JUDGE_CACHE": ""}
    for options, asked in (([], 2), (["--judge-cache=answers"], 2), (["--judge-cache=answers"], 0), ([], 2)):
        models.asked.clear()
        command = ("rejudge", "results", "--output-dir=again", "--no-gate", *options)
        ran = ci_evals(*command, cwd=tmp_path, env=env)
        assert (ran.returncode, len(models.asked)) == (0, asked), ran.stderr
