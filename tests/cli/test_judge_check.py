"""The judge check: a judge that fails it gives no verdict."""

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
CONTROL_QUESTIONS = len(TRUTH)
TEST = {"evaluations": [{"criterion": "It greets"}]}
STRICT = {"criterion": "Echoes", "strict": "answer_matches", "expected": "You said: Hello"}
PRICES = {"models": {name: {"input": 1, "output": 1} for name in ("small", "large")}}


def is_control(asked) -> bool:
    return prompt_block(asked.text, "criterion") in TRUTH


def good_judge(asked) -> str:
    """Answer control questions correctly, and pass everything else."""
    first = prompt_block(asked.text, "conversation")[0]
    verdict = TRUTH.get(prompt_block(asked.text, "criterion"), "pass")
    return fakes.judge_answer(verdict, "It is so.", (1, first["agent"][:30]))


def lenient_judge(_) -> str:
    return fakes.judge_answer("pass", "All is well.")


@pytest.fixture
def play(tmp_path):
    """Runs the suite with a judge; returns the command and the number of control questions."""
    write_suite(tmp_path, TEST, judgeModel="small")
    (tmp_path / "prices.json").write_text(json.dumps(PRICES))
    with world.agent() as agent, world.llm(good_judge) as models:

        def run(judge=good_judge, *options: str, command=("run", "suite.json"), **env: str):
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


def test_lenient_judge_exits_3_in_every_report_or_only_warns_with_judge_check_warn(play, tmp_path):
    done, asked = play(lenient_judge, "--verbose")
    results = read_results(tmp_path)
    assert (done.returncode, asked, results["gate"]["passed"]) == (3, CONTROL_QUESTIONS, False)
    (reason,) = results["gate"]["reasons"]
    assert "the judge failed its check: small answered 6 of 16 control questions right, 12 required" in reason
    expected = {"asked": 16, "right": 6, "required": 12, "passed": False, "model": "small"}
    assert results["judgeCheck"] | expected == results["judgeCheck"]
    files = [(tmp_path / "results" / name).read_text() for name in ("summary.md", "report.html")]
    for text in (done.stdout, *files):
        assert "small answered 6 of 16 control questions right" in text
    assert "1 judged pass: 0 backed by quotes" in done.stdout
    junit = ET.parse(tmp_path / "results/junit.xml").getroot()
    (error,) = junit.iter("error")
    assert (junit.get("errors"), "its check: small answered 6 of 16" in error.get("message")) == ("1", True)
    done, asked = play(lenient_judge, "--judge-check=warn")
    results = read_results(tmp_path)
    assert (done.returncode, asked, results["judgeCheck"]["passed"]) == (0, CONTROL_QUESTIONS, False)
    assert any("judge check: small answered 6 of 16" in warning for warning in results["run"]["warnings"])
    assert "judge check: small" in done.stdout


def test_reliable_judge_passes_its_check_in_run_and_rejudge_at_counted_cost(play, tmp_path):
    done, asked = play(good_judge, "--verbose")
    results = read_results(tmp_path)
    assert (done.returncode, asked) == (0, CONTROL_QUESTIONS), done.stdout + done.stderr
    check = results["judgeCheck"]
    assert (check["right"], check["passed"], check["takenFrom"]) == (16, True, None)
    assert check["costUsd"] > 0
    (judge,) = [one for one in results["usage"]["byRole"] if one["role"] == "judge"]
    assert judge["calls"] == CONTROL_QUESTIONS + 1
    assert results["usage"]["costUsd"] > check["costUsd"]
    assert "small answered 16 of 16 control questions right" in done.stdout
    for judge, code in ((good_judge, 0), (lenient_judge, 3)):
        done, asked = play(judge, f"--output-dir=again-{code}", command=("rejudge", "results"))
        assert (done.returncode, asked) == (code, CONTROL_QUESTIONS), done.stdout + done.stderr
        results = json.loads((tmp_path / f"again-{code}/_results.json").read_text())
        assert results["judgeCheck"]["passed"] is (code == 0)


def test_no_control_question_is_asked_if_nothing_is_judged_or_check_is_off(play, tmp_path):
    judged = TEST["evaluations"]
    for option, evaluations in (
        ("--judge-check=off", judged),
        ("--provider=offline", [*judged, STRICT]),
        ("--quiet", [STRICT]),
    ):
        write_suite(tmp_path, {"evaluations": evaluations}, judgeModel="small")
        done, asked = play(lenient_judge, option)
        assert (done.returncode, asked) == (0, 0), done.stderr
        assert read_results(tmp_path)["judgeCheck"] is None


def test_passed_judge_check_of_baseline_is_reused_for_30_days_if_address_is_known(play, tmp_path):
    play(good_judge)
    base = tmp_path / "base.json"
    saved = read_results(tmp_path)
    base.write_text(json.dumps(saved))
    done, asked = play(lenient_judge, "--baseline=base.json", "--verbose")
    results = read_results(tmp_path)
    assert (done.returncode, asked, results["judgeCheck"]["takenFrom"]) == (0, 0, "baseline")
    assert results["judgeCheck"]["at"] == saved["judgeCheck"]["at"]
    assert "in the baseline" in done.stdout
    for option in ("--judge-check=always", "--judge-model=large"):
        assert play(lenient_judge, "--baseline=base.json", option)[1] == CONTROL_QUESTIONS
    for days, changes, reused in (
        (29, {}, True),
        (31, {}, False),
        (-2, {}, False),
        (1, {"passed": False}, False),
        (1, {"prompt": "0" * 64}, False),
    ):
        at = (datetime.now(UTC) - timedelta(days=days)).isoformat()
        checks = [check | {"at": at} | changes for check in saved["judgeChecks"]]
        base.write_text(json.dumps(saved | {"judgeChecks": checks}))
        asked = play(good_judge, "--baseline=base.json")[1]
        assert asked == (0 if reused else CONTROL_QUESTIONS), (days, changes)
    for missing, asked in (("addressDigest", CONTROL_QUESTIONS), ("address", 0)):  # of an earlier version
        check = {key: value for key, value in saved["judgeChecks"][0].items() if key != missing}
        base.write_text(json.dumps(saved | {"judgeChecks": [check]}))
        assert play(good_judge, "--baseline=base.json")[1] == asked


QUESTIONS_BY_ADDRESS = {
    "the same": ("{url}", 0),
    "a slash more": ("{url}/", 0),
    "another way to write the same": ("{upper}", 0),
    "another host": ("http://localhost:{port}/v1", CONTROL_QUESTIONS),
    "another path": ("{url}/other", CONTROL_QUESTIONS),
    "a query": ("{url}?model=x", CONTROL_QUESTIONS),
}
"""OPENAI_BASE_URL of a later run, and the number of control questions then."""


def test_judge_check_is_only_reused_for_same_address(play, tmp_path):
    play(good_judge, "--judge-cache=cache")
    url = play.models.openai_url
    host = urlsplit(url)
    forms = {"url": url, "upper": url.replace("http", "HTTP"), "port": host.port}
    (tmp_path / "base.json").write_text(json.dumps(read_results(tmp_path)))
    for case, (written, asked) in QUESTIONS_BY_ADDRESS.items():
        for option in ("--baseline=base.json", "--judge-cache=cache")[: 2 if asked else 1]:
            done, controls = play(good_judge, option, OPENAI_BASE_URL=written.format(**forms))
            (check,) = read_results(tmp_path)["judgeChecks"]
            assert (check["takenFrom"] is None) is bool(asked), (case, done.stdout + done.stderr)
            assert controls in (asked, 0), case


def test_passed_judge_check_and_answers_are_reused_from_judge_cache(play, tmp_path):
    done, asked = play(lenient_judge, "--judge-cache=cache")
    assert (done.returncode, asked) == (3, CONTROL_QUESTIONS)
    done, asked = play(strict_judge, "--judge-cache=cache")
    assert (done.returncode, asked) == (1, CONTROL_QUESTIONS)
    done, asked = play(lenient_judge, "--judge-cache=cache", "--verbose")
    assert (done.returncode, asked) == (1, 0), "answers of a judge that passed are kept"
    assert read_results(tmp_path)["judgeCheck"]["takenFrom"] == "cache"
    assert "in the judge's cache" in done.stdout
    done, asked = play(lenient_judge, "--judge-cache=cache", "--judge-check=always")
    assert asked == CONTROL_QUESTIONS


def strict_judge(asked) -> str:
    """Answer control questions correctly, and fail everything else."""
    return good_judge(asked) if is_control(asked) else fakes.judge_answer("fail", "It is not so.")


@pytest.mark.parametrize("options", [(), ("--judge-check=always",)])
def test_trials_judged_by_failed_judge_are_not_resumed(play, tmp_path, options):
    unjudged = {"name": "B", "evaluations": [STRICT]}
    write_suite(tmp_path, {"name": "A"} | TEST, unjudged, judgeModel="small")
    assert play(lenient_judge)[0].returncode == 3
    done, _ = play(strict_judge, "--resume=results", *options)
    assert done.returncode == 1, done.stdout
    assert "1 of 2 trials had finished" in done.stderr
    done, _ = play(strict_judge, "--resume=results")
    assert (done.returncode, "2 of 2 trials had finished" in done.stderr) == (1, True), done.stderr


def test_runs_whose_judge_failed_its_check_are_not_compared(play, tmp_path):
    for judge, name in ((lenient_judge, "loose"), (good_judge, "good")):
        play(judge, f"--output-dir={name}")
    for head, base, whose in (("loose", "good", "this run"), ("good", "loose", "the baseline")):
        done, _ = play(good_judge, "--max-drop=5", command=("compare", head, base))
        assert done.returncode == 3, done.stdout
        assert f"the judge of {whose} did not pass its check: small answered 6 of 16" in done.stdout
        assert "✓ max-drop" not in done.stdout
    done, _ = play(good_judge, "--max-drop=5", "--baseline=loose", "--output-dir=next")
    assert "max-drop was not checked: the judge of the baseline did not pass its check" in done.stdout
    done, _ = play(lenient_judge, "--max-drop=5", "--baseline=good", "--judge-check=always")
    reason = "the judge of this run did not pass its check: small answered 6 of 16"
    assert reason in read_results(tmp_path)["comparison"]["reasons"][0]
    assert done.returncode == 3
    assert "✓ max-drop" not in done.stdout, "nor does such a run compare itself"
    play(lenient_judge, "--judge-check=warn", "--output-dir=warned")
    assert play(good_judge, "--max-drop=5", command=("compare", "good", "warned"))[0].returncode == 0


def test_one_lenient_judge_of_panel_or_unreachable_judge_fails_the_check(play, tmp_path):
    def judge(asked):
        return good_judge(asked) if asked.model == "small" else lenient_judge(asked)

    done, asked = play(judge, "--judge-panel=small,large")
    results = read_results(tmp_path)
    assert (done.returncode, asked) == (3, 2 * CONTROL_QUESTIONS)
    checks = [(one["model"], one["passed"]) for one in results["judgeChecks"]]
    assert (checks, results["judgeCheck"]["model"]) == ([("small", True), ("large", False)], "large")
    play.models.always = world.Fault(400, "{}")
    assert play(good_judge)[0].returncode == 3
    reasons = read_results(tmp_path)["gate"]["reasons"]
    assert any("its check" in reason and "16 without a usable answer" in reason for reason in reasons)


def test_replay_repeats_result_of_judge_check(play, tmp_path):
    for judge, code in ((good_judge, 0), (lenient_judge, 3)):
        done, _ = play(judge, f"--record=tape-{code}")
        assert done.returncode == code, done.stderr
        then = read_results(tmp_path)["judgeCheck"]
        done, asked = play(good_judge, f"--replay=tape-{code}")
        now = read_results(tmp_path)["judgeCheck"]
        assert (done.returncode, asked, now["right"]) == (code, 0, then["right"]), done.stdout + done.stderr
    play(good_judge, "--record=without", CI_EVALS_JUDGE_CHECK="off")
    done, _ = play(good_judge, "--replay=without")
    assert (done.returncode, read_results(tmp_path)["judgeCheck"]) == (0, None), done.stdout
    done, _ = play(good_judge, "--replay=without", "--judge-check=always")
    assert done.returncode == 3


def test_merged_run_keeps_worst_judge_check(play, tmp_path):
    write_suite(tmp_path, {"name": "A"} | TEST, {"name": "B"} | TEST, judgeModel="small")
    for shard, judge in enumerate((good_judge, lenient_judge), 1):
        play(judge, f"--shard={shard}/2", f"--output-dir=shards/{shard}")
    done, _ = play(good_judge, command=("merge", "shards"))
    results = read_results(tmp_path)
    assert (done.returncode, results["judgeCheck"]["right"], len(results["judgeChecks"])) == (3, 6, 1)
    assert any("its check" in reason for reason in results["gate"]["reasons"])


def test_interrupt_during_judge_check_ends_run(play, tmp_path):
    ended = Event()

    def slow(asked):
        if is_control(asked):
            ended.wait(120)
        return good_judge(asked)

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
