"""The judge check from outside: a judge that does not judge gives no verdict; a good one is let through."""

import json
import re
import signal
import time
from datetime import UTC, datetime, timedelta
from threading import Event
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import fakes
import pytest
import world
from commands import ci_evals, read_results, start, write_suite
from seeded_judges import prompt_block

from ci_evals.grading import control

pytestmark = pytest.mark.slow

TRUTH = {one.criterion.criterion: one.answer for one in control.questions()}
ASKED = len(TRUTH)
TEST = {"evaluations": [{"criterion": "It greets"}]}
STRICT = {"criterion": "Echoes", "strict": "answer_matches", "expected": "You said: Hello"}
PRICES = {"models": {name: {"input": 1, "output": 1} for name in ("small", "large")}}


def is_control(asked) -> bool:
    return prompt_block(asked.text, "criterion") in TRUTH


def good(asked) -> str:
    """Right on every control question, content with everything else."""
    first = prompt_block(asked.text, "conversation")[0]
    return fakes.judge_answer(
        TRUTH.get(prompt_block(asked.text, "criterion"), "pass"), "It is so.", (1, first["agent"][:30])
    )


def content(_) -> str:
    """Passes whatever it is asked, in well-formed answers."""
    return fakes.judge_answer("pass", "All is well.")


@pytest.fixture
def play(tmp_path):
    """Plays the suite with a judge; gives the finished command and the number of control questions."""
    write_suite(tmp_path, TEST, judgeModel="small")
    (tmp_path / "prices.json").write_text(json.dumps(PRICES))
    with world.agent() as agent, world.llm(good) as models:

        def run(judge=good, *options: str, command=("run", "suite.json"), **env: str):
            controls = []

            def answer(asked):
                controls.append(is_control(asked))
                return judge(asked)

            models.answer = answer
            whole = models.env | {"AGENT_KEY": agent.key, "CI_EVALS_BASE_URL": agent.url}
            whole |= {"CI_EVALS_JUDGE_CHECK": "auto", "CI_EVALS_PRICES": "prices.json"} | env
            done = ci_evals(*command, *options, cwd=tmp_path, env=whole)
            return done, sum(controls)

        run.models, run.agent = models, agent
        yield run


def test_a_judge_that_passes_everything_gives_no_verdict(play, tmp_path):
    """Its run would be green: exit code 3, and every report says why."""
    done, asked = play(content, "--verbose")
    results = read_results(tmp_path)
    assert (done.returncode, asked, results["gate"]["passed"]) == (3, ASKED, False)
    (reason,) = results["gate"]["reasons"]
    assert "the judge failed its check: small answered 6 of 16 control questions right, 12 required" in reason
    check = results["judgeCheck"]
    assert {name: check[name] for name in ("asked", "right", "required", "passed", "model")} == {
        "asked": 16, "right": 6, "required": 12, "passed": False, "model": "small"
    }  # fmt: skip
    for text in (done.stdout, (tmp_path / "results/summary.md").read_text(),
                 (tmp_path / "results/report.html").read_text()):  # fmt: skip
        assert "small answered 6 of 16 control questions right" in text
    assert "1 judged pass: 0 backed by quotes" in done.stdout
    junit = ET.parse(tmp_path / "results/junit.xml").getroot()
    (error,) = junit.iter("error")
    assert (junit.get("errors"), "its check: small answered 6 of 16" in error.get("message")) == ("1", True)


def test_a_good_judge(play, tmp_path):
    """Is let through; what the questions cost counts."""
    done, asked = play(good, "--verbose")
    results = read_results(tmp_path)
    assert (done.returncode, asked) == (0, ASKED), done.stdout + done.stderr
    check = results["judgeCheck"]
    assert (check["right"], check["passed"], check["takenFrom"]) == (16, True, None)
    assert check["costUsd"] > 0
    (judge,) = [one for one in results["usage"]["byRole"] if one["role"] == "judge"]
    assert (judge["calls"], results["usage"]["costUsd"] > check["costUsd"]) == (ASKED + 1, True)
    assert "small answered 16 of 16 control questions right" in done.stdout


def test_a_warning_only(play, tmp_path):
    """With `warn` the gate decides, and the warning is in every report."""
    done, asked = play(content, "--judge-check=warn")
    results = read_results(tmp_path)
    assert (done.returncode, asked, results["judgeCheck"]["passed"]) == (0, ASKED, False)
    assert any("judge check: small answered 6 of 16" in warning for warning in results["run"]["warnings"])
    assert "judge check: small" in done.stdout


@pytest.mark.parametrize(
    ("options", "evaluations"),
    [
        (["--judge-check=off"], TEST["evaluations"]),
        (["--provider=offline"], [*TEST["evaluations"], STRICT]),
        ([], [STRICT]),
    ],
)
def test_no_control_question_is_asked_if_nothing_is_judged(play, tmp_path, options, evaluations):
    """Where it is off, where no model judges, and where nothing is judged."""
    write_suite(tmp_path, {"evaluations": evaluations}, judgeModel="small")
    done, asked = play(content, *options)
    assert (done.returncode, asked) == (0, 0), done.stderr
    assert read_results(tmp_path)["judgeCheck"] is None


def test_a_judge_that_cannot_be_reached(play, tmp_path):
    """Its check is not passed."""

    play.models.always = world.Fault(400, "{}")
    done, _ = play(good)
    assert done.returncode == 3
    reasons = read_results(tmp_path)["gate"]["reasons"]
    assert any("its check" in reason and "16 without a usable answer" in reason for reason in reasons)


def test_a_check_in_the_baseline(play, tmp_path):
    """Counts for 30 days for the same model; then, and for another one, the questions are asked again."""
    play(good)
    base = tmp_path / "base.json"
    saved = read_results(tmp_path)
    base.write_text(json.dumps(saved))
    done, asked = play(content, "--baseline=base.json", "--verbose")
    results = read_results(tmp_path)
    assert (done.returncode, asked, results["judgeCheck"]["takenFrom"]) == (0, 0, "baseline")
    assert results["judgeCheck"]["at"] == saved["judgeCheck"]["at"]
    assert "in the baseline" in done.stdout
    assert play(content, "--baseline=base.json", "--judge-check=always")[1] == ASKED
    assert play(content, "--baseline=base.json", "--judge-model=large")[1] == ASKED

    def aged(days: float, **changes) -> None:
        at = (datetime.now(UTC) - timedelta(days=days)).isoformat()
        checks = [check | {"at": at} | changes for check in saved["judgeChecks"]]
        base.write_text(json.dumps(saved | {"judgeChecks": checks}))

    for changes, again in (
        ((29,), 0), ((31,), ASKED), ((-2,), ASKED), ((1, "passed"), ASKED), ((1, "prompt"), ASKED),
    ):  # fmt: skip
        days, *name = changes
        aged(days, **{one: False if one == "passed" else "0" * 64 for one in name})
        assert play(good, "--baseline=base.json")[1] == again, changes


ADDRESSES = {
    "the same": ("{url}", 0),
    "a slash more": ("{url}/", 0),
    "another way to write the same": ("{upper}", 0),
    "another host": ("http://localhost:{port}/v1", ASKED),
    "another path": ("{url}/other", ASKED),
    "a query": ("{url}?model=x", ASKED),
}
"""What OPENAI_BASE_URL says in a later run, and the number of control questions then."""


def test_a_check_counts_for_its_address_alone(play, tmp_path):
    """The same model of the same provider may be another one elsewhere."""
    play(good, "--judge-cache=cache")
    url = play.models.openai_url
    host = urlsplit(url)
    forms = {"url": url, "upper": url.replace("http", "HTTP"), "port": host.port}
    (tmp_path / "base.json").write_text(json.dumps(read_results(tmp_path)))
    for case, (written, asked) in ADDRESSES.items():
        for option in ("--baseline=base.json", "--judge-cache=cache"):
            done, controls = play(good, option, OPENAI_BASE_URL=written.format(**forms))
            (check,) = read_results(tmp_path)["judgeChecks"]
            if asked or option.startswith("--baseline"):
                assert (check["takenFrom"] is None) is bool(asked), (case, done.stdout + done.stderr)
                assert controls in (asked, 0), case


@pytest.mark.parametrize("missing", ["addressDigest", "address"])
def test_a_check_without_an_address_does_not_count(play, tmp_path, missing):
    """Results of earlier versions have none."""
    play(good)
    saved = read_results(tmp_path)
    check = {key: value for key, value in saved["judgeChecks"][0].items() if key != missing}
    (tmp_path / "base.json").write_text(json.dumps(saved | {"judgeChecks": [check]}))
    assert play(good, "--baseline=base.json")[1] == (ASKED if missing == "addressDigest" else 0)


def test_a_check_in_the_judges_cache(play, tmp_path):
    """Counts likewise; one that was not passed is not kept."""
    assert play(content, "--judge-cache=cache")[1] == ASKED
    assert play(good, "--judge-cache=cache")[1] == ASKED
    done, asked = play(content, "--judge-cache=cache", "--verbose")
    assert (asked, read_results(tmp_path)["judgeCheck"]["takenFrom"]) == (0, "cache")
    assert "in the judge's cache" in done.stdout
    assert play(content, "--judge-cache=cache", "--judge-check=always")[1] == ASKED


def strict(asked) -> str:
    """Right on every control question, content with nothing else."""
    return good(asked) if is_control(asked) else fakes.judge_answer("fail", "It is not so.")


def test_no_answer_of_a_judge_that_did_not_pass_is_cached(play):
    """Else its passes would stand in the next run, whose judge passes the check."""
    assert play(content, "--judge-cache=cache")[0].returncode == 3
    assert play(strict, "--judge-cache=cache")[0].returncode == 1
    done, _ = play(content, "--judge-cache=cache")
    assert done.returncode == 1, "answers of a judge that passed are kept"


@pytest.mark.parametrize("options", [(), ("--judge-check=always",)])
def test_nothing_that_such_a_judge_decided_is_resumed(play, tmp_path, options):
    """Else the run would be green as soon as another judge passes the check."""
    write_suite(tmp_path, {"name": "A"} | TEST, {"name": "B", "evaluations": [STRICT]}, judgeModel="small")
    assert play(content)[0].returncode == 3
    done, _ = play(strict, "--resume=results", *options)
    assert done.returncode == 1, done.stdout
    assert "1 of 2 trials had finished" in done.stderr, "what no judge decided is as it was"
    done, _ = play(strict, "--resume=results")
    assert (done.returncode, "2 of 2 trials had finished" in done.stderr) == (1, True), done.stderr


def test_a_run_of_such_a_judge_is_compared_with_nothing(play, tmp_path):
    """Neither by `compare`, on either side, nor as the baseline of a run."""
    for judge, name in ((content, "loose"), (good, "good")):
        play(judge, f"--output-dir={name}")
    for head, base, whose in (("loose", "good", "this run"), ("good", "loose", "the baseline")):
        done, _ = play(good, "--max-drop=5", command=("compare", head, base))
        assert done.returncode == 3, done.stdout
        assert f"the judge of {whose} did not pass its check: small answered 6 of 16" in done.stdout
        assert "✓ max-drop" not in done.stdout
    done, _ = play(good, "--max-drop=5", "--baseline=loose", "--output-dir=next")
    assert "max-drop was not checked: the judge of the baseline did not pass its check" in done.stdout
    done, _ = play(content, "--max-drop=5", "--baseline=good", "--judge-check=always")
    reason = "the judge of this run did not pass its check: small answered 6 of 16"
    assert reason in read_results(tmp_path)["comparison"]["reasons"][0]
    assert done.returncode == 3
    assert "✓ max-drop" not in done.stdout, "nor does such a run compare itself"
    play(content, "--judge-check=warn", "--output-dir=warned")
    assert play(good, "--max-drop=5", command=("compare", "good", "warned"))[0].returncode == 0


def test_each_model_of_a_panel_is_checked(play, tmp_path):
    """One that does not judge is enough for no verdict."""

    def judge(asked):
        return good(asked) if asked.model == "small" else content(asked)

    done, asked = play(judge, "--judge-panel=small,large")
    results = read_results(tmp_path)
    assert (done.returncode, asked) == (3, 2 * ASKED)
    assert [(one["model"], one["passed"]) for one in results["judgeChecks"]] == [
        ("small", True),
        ("large", False),
    ]
    assert results["judgeCheck"]["model"] == "large"


def test_a_replay_repeats_the_check(play, tmp_path):
    """Without asking anybody, and with the same outcome; a recording without one has none to repeat."""
    for judge, code in ((good, 0), (content, 3)):
        done, _ = play(judge, f"--record=tape-{code}")
        assert done.returncode == code, done.stderr
        then = read_results(tmp_path)["judgeCheck"]
        done, asked = play(good, f"--replay=tape-{code}")
        now = read_results(tmp_path)["judgeCheck"]
        assert (done.returncode, asked, now["right"]) == (code, 0, then["right"]), done.stdout + done.stderr
    play(good, "--record=without", CI_EVALS_JUDGE_CHECK="off")
    done, _ = play(good, "--replay=without")
    assert (done.returncode, read_results(tmp_path)["judgeCheck"]) == (0, None), done.stdout
    done, _ = play(good, "--replay=without", "--judge-check=always")
    assert done.returncode == 3


def test_a_merged_run_keeps_the_worst_check(play, tmp_path):
    """A shard whose judge did not pass makes no verdict of the whole."""
    write_suite(tmp_path, {"name": "A"} | TEST, {"name": "B"} | TEST, judgeModel="small")
    for shard, judge in enumerate((good, content), 1):
        play(judge, f"--shard={shard}/2", f"--output-dir=shards/{shard}")
    done, _ = play(good, command=("merge", "shards"))
    results = read_results(tmp_path)
    assert (done.returncode, results["judgeCheck"]["right"], len(results["judgeChecks"])) == (3, 6, 1)
    assert any("its check" in reason for reason in results["gate"]["reasons"])


def test_judging_again_checks_the_judge(play, tmp_path):
    """As a run does."""
    play(good)
    for judge, code in ((good, 0), (content, 3)):
        done, asked = play(judge, f"--output-dir=again-{code}", command=("rejudge", "results"))
        assert (done.returncode, asked) == (code, ASKED), done.stdout + done.stderr
        results = json.loads((tmp_path / f"again-{code}/_results.json").read_text())
        assert results["judgeCheck"]["passed"] is (code == 0)


def test_an_interrupt_cuts_the_check_off(play, tmp_path):
    """Nobody waits for a judge that does not answer."""

    ended = Event()

    def slow(asked):
        if is_control(asked):
            ended.wait(120)
        return good(asked)

    play.models.answer = slow
    env = play.models.env | {"AGENT_KEY": play.agent.key, "CI_EVALS_BASE_URL": play.agent.url}
    running = start("run", "suite.json", cwd=tmp_path, env=env | {"CI_EVALS_JUDGE_CHECK": "auto"})
    while not any(is_control(asked) for asked in play.models.asked):
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=300)
    ended.set()
    assert running.returncode == 130
    assert re.search("interrupted", json.dumps(read_results(tmp_path)["run"]))
