"""`--judge-cache`: the second run asks the judge nothing, says so, and comes to the same verdicts."""

import json
from pathlib import Path

import fakes
import pytest
import world
from commands import ci_evals, read_files, read_results, write_suite

from ci_evals.cli.run.judge_cache import folder_of
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

pytestmark = pytest.mark.slow

TEST = {
    "guidelines": "You say hello.",
    "turns": [{"user": "Hello"}],
    "maxTurns": 1,
    "evaluations": [{"criterion": "Is polite"}, {"criterion": "Is brief"}],
}
PRICES = {"models": {"judge": {"input": 1000, "output": 1000}}}


class Coin:
    """A judge that says pass and fail in turn, whatever it is asked."""

    def __init__(self):
        self.answers = 0

    def __call__(self, asked):
        self.answers += 1
        verdict = "pass" if self.answers % 2 else "fail"
        return fakes.judge_answer(verdict, "I threw a coin.", (1, "You said: Hello"))


@pytest.fixture
def neighbours(tmp_path):
    with world.agent() as agent, world.llm(Coin()) as models:
        write_suite(tmp_path, {"name": "Greets", **TEST}, judgeModel="judge")
        (tmp_path / "prices.json").write_text(json.dumps(PRICES))
        env = models.env | {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
        yield models, env


def run(folder, env, *options, cache="answers", **more):
    options = ("--prices=prices.json", "--no-gate", *([f"--judge-cache={cache}"] if cache else []), *options)
    ran = ci_evals("run", "suite.json", *options, cwd=folder, env=env | more)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    results = read_results(folder)
    (judge,) = [one for one in results["usage"]["byRole"] if one["role"] == "judge"]
    trials = results["suites"][0]["tests"][0]["trials"]
    return ran, results, judge, [[one["outcome"] for one in trial["findings"]] for trial in trials]


def test_the_second_run_asks_the_judge_nothing(tmp_path, neighbours):
    """It costs nothing, counts what was there already, and a budget admits it; its verdicts are the same."""
    models, env = neighbours
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


def test_equal_conversations_of_one_run_are_judged_apart(tmp_path, neighbours):
    """The agent says the same in every trial, the judge throws a coin: trials differ, then and later."""
    _, env = neighbours
    for _ in range(2):
        _, _, _, outcomes = run(tmp_path, env, "--loops=8", cache="answers")
        assert {outcome for trial in outcomes for outcome in trial} == {"passed", "failed"}
    assert len(read_files(tmp_path / "answers")) == 17  # and the mark of the last look for old ones


def test_without_it_every_question_is_asked(tmp_path, neighbours):
    """Where it is off, and by itself in CI, nothing is written."""
    models, env = neighbours
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}
    for more in ({"CI_EVALS_JUDGE_CACHE": "off"}, {"CI_EVALS_JUDGE_CACHE": "auto", "CI": "true"}):
        models.asked.clear()
        _, results, judge, _ = run(tmp_path, env, cache=None, **home, **more)
        assert (results["run"]["config"]["judgeCache"], judge["cached"], len(models.asked)) == ("off", 0, 2)
    assert not (tmp_path / "home").exists()


def test_a_recording_holds_the_answers_that_were_there_already(tmp_path, neighbours):
    """And is rerun without the cache."""
    models, env = neighbours
    _, _, _, first = run(tmp_path, env)
    run(tmp_path, env, "--record=tape")
    assert len(models.asked) == 2
    _, results, judge, replayed = run(tmp_path, env, "--replay=tape")
    assert (replayed, judge["cached"], results["run"]["config"]["judgeCache"]) == (first, 0, "off")


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_calls(tmp_path, neighbours):
    """It is said once, and stands in the results."""
    _, env = neighbours
    (tmp_path / "answers").write_text("a file")
    ran, results, judge, _ = run(tmp_path, env, "--loops=2")
    assert (ran.stdout + ran.stderr).count("the judge's answers are not kept") == 1
    assert any("judge-cache: cannot write" in warning for warning in results["run"]["warnings"])
    assert (judge["calls"], judge["cached"]) == (4, 0)


def failing(_asked):
    """A judge that finds fault with everything."""
    return fakes.judge_answer("fail", "It is rude.", (1, "You said: Hello"))


def forge(folder, **changed):
    """Turns every kept fail into a pass, as somebody does who can write to the folder."""
    entries = list(folder.glob("*/*.json"))
    for file in entries:
        entry = json.loads(file.read_text())
        answer = entry["answer"].replace('"fail"', '"pass"').replace('"met": false', '"met": true')
        file.write_text(json.dumps(entry | {"answer": answer} | changed))
    return entries


def gated(folder, env, *options, **more):
    options = ("--judge-cache=answers", "--baseline=none", "--comment=never", *options)
    return ci_evals("run", "suite.json", *options, cwd=folder, env=env | more)


@pytest.mark.parametrize("changed", [{}, {"signature": ""}, {"signature": None}, {"version": 1}], ids=str)
def test_a_forged_pass_opens_no_gate(tmp_path, neighbours, changed):
    """Whoever can write to the folder, and lacks the key of the LLM, decides nothing: the judge is asked."""
    models, env = neighbours
    models.answer = failing
    assert gated(tmp_path, env).returncode == 1
    assert len(forge(tmp_path / "answers", **changed)) == 2
    ran = gated(tmp_path, env)
    assert (ran.returncode, len(models.asked)) == (1, 4)
    stderr = ran.stdout + ran.stderr
    assert stderr.count("not signed with this run's key") == (1 if changed != {"version": 1} else 0)
    models.asked.clear()
    assert (gated(tmp_path, env).returncode, models.asked) == (1, [])


def test_entry_of_another_question_is_skipped(tmp_path, neighbours):
    """Its signature is good, but for another question."""
    models, env = neighbours
    models.answer = failing
    gated(tmp_path, env)
    one, other = sorted((tmp_path / "answers").glob("*/*.json"))
    key = json.loads(other.read_text())["key"]
    other.write_text(json.dumps(json.loads(one.read_text()) | {"key": key}))
    models.asked.clear()
    assert (gated(tmp_path, env).returncode, len(models.asked)) == (1, 1)


def test_a_dummy_key_signs_nothing_that_others_could_sign(tmp_path, neighbours):
    """Everybody knows the key that a local server takes: a secret of the user's signs in its place."""
    models, env = neighbours
    models.answer, models.key = failing, "not-needed"
    env |= {
        "LLM_API_KEY": "not-needed",
        "OPENAI_API_KEY": "",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": "",
    }
    assert gated(tmp_path, env).returncode == 1
    assert (gated(tmp_path, env).returncode, len(models.asked)) == (1, 2)
    (secret,) = (tmp_path / "home").rglob("signing-key")
    assert secret.stat().st_mode & 0o077 == 0
    ran = gated(tmp_path, env, HOME=str(tmp_path / "another"))
    assert (ran.returncode, len(models.asked)) == (1, 4)
    assert "not signed with this run's key" in ran.stdout + ran.stderr
    ran = gated(tmp_path, env, HOME="")
    assert ran.returncode == 1
    assert "can be guessed" in ran.stdout + ran.stderr


@pytest.mark.parametrize("event", ["pull_request_target", "workflow_run", "issue_comment"])
def test_where_files_may_be_anybodys_none_of_the_checkout_is_read(tmp_path, neighbours, event):
    """Not even a well signed answer; a folder outside the checkout serves."""
    models, env = neighbours
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    write_suite(checkout, {"name": "Greets", **TEST}, judgeModel="judge", apiKey=env["AGENT_KEY"])
    env = {name: value for name, value in env.items() if name != "CI_EVALS_BASE_URL"}
    options = ("--min-score=0", f"--base-url={neighbours[1]['CI_EVALS_BASE_URL']}")
    inside = {"GITHUB_WORKSPACE": str(checkout)}
    gated(checkout, env, *options)
    models.asked.clear()
    ran = gated(checkout, env, *options, **inside, GITHUB_EVENT_NAME=event)
    assert len(models.asked) == 2
    assert "--judge-cache" in ran.stderr
    assert "inside the checkout" in ran.stderr
    (tmp_path / "link").symlink_to(checkout / "answers")
    gated(checkout, env, *options, "--judge-cache=../link", **inside, GITHUB_EVENT_NAME=event)
    assert len(models.asked) == 4
    for asked in (6, 6):
        gated(checkout, env, *options, "--judge-cache=../outside", **inside, GITHUB_EVENT_NAME=event)
        assert len(models.asked) == asked


@pytest.mark.parametrize(
    ("value", "environ", "place"),
    [
        ("off", {"HOME": "/home/a"}, None),
        ("auto", {"HOME": "/home/a", "CI": "1"}, None),
        ("auto", {"HOME": "/home/a", "GITHUB_ACTIONS": "true"}, None),
        ("auto", {"HOME": "/home/a", "XDG_CACHE_HOME": "/var/a", "CI": "false"}, "/var/a/ci-evals/judge"),
        ("auto", {}, None),
        ("here", {"HOME": "/home/a", "CI": "1"}, "here"),
    ],
)
def test_answers_are_cached_by_default_outside_ci_or_in_the_named_folder(value, environ, place):
    """In the user's cache folder, in none in CI, or where somebody says."""
    assert folder_of(value, RunContext(environ)) == (place and Path(place))


def test_a_cache_must_be_somewhere():
    """An empty name is no folder."""
    with pytest.raises(UsageError, match="Name a folder"):
        folder_of(" ", RunContext({}))


def test_judging_again_asks_again(tmp_path, neighbours):
    """What the run's judge said is no answer of the judge that is asked anew; that one's own may be kept."""
    models, env = neighbours
    run(tmp_path, env)
    for options, asked in (
        ([], 2),
        (["--judge-cache=answers"], 2),
        (["--judge-cache=answers"], 0),
        ([], 2),
    ):
        models.asked.clear()
        ran = ci_evals(
            "rejudge", "results", "--output-dir=again", "--no-gate", *options, cwd=tmp_path,
            env=env | {"CI_EVALS_JUDGE_CACHE": ""},
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert len(models.asked) == asked
