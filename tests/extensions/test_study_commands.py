"""`prefer`, `attack` and `validate --probe` as their users start them, on runs that were saved."""

import json
import signal
import time
from pathlib import Path

import builders as build
import fakes
import pytest
import report_texts
import seeded_judges
import world
from commands import ci_evals, read_files, start, write_suite
from each_row import each_row

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.settings import JudgeSettings
from ci_evals.extensions.attack.study import attack_judge
from ci_evals.extensions.preference.study import compare_runs
from ci_evals.extensions.validate.settings import ValidateSettings
from ci_evals.extensions.validate.suite_check import validate_suites

pytestmark = pytest.mark.slow


def probe(suites, results, **fields):
    """Run `validate --probe`."""
    validate_suites(ValidateSettings(suites=suites, probe=results, **fields), RunContext())


SECRET = "tenant-4711-blue"


def criteria(test: int) -> tuple[str, str]:
    """A vacuous criterion, in words that no console should obey, and one that decides."""
    return f"\x1b[31mNothing\x1b[0m of {test} is ##[error]deleted, {SECRET}", f"Order {test} is cancelled"


def save(folder: Path, who: str) -> None:
    """Save a run of five tests."""

    def trial(test: int):
        vacuous, decided = criteria(test)
        findings = [build.finding(kind="judged", criterion=vacuous)]
        findings += [build.finding("failed", kind="judged", criterion=decided)]
        turn = build.turn(agent=f"{who}-{test} {SECRET}")
        return build.trial_result(turns=(turn,), findings=tuple(findings))

    tests = [build.test_result(f"T{test}", trials=(trial(test),)) for test in range(5)]
    suite = build.suite_result("Stub", *tests, judge_model="some-model")
    folder.mkdir()
    results = build.results(suite, run=build.run_info(id=who))
    (folder / "_results.json").write_text(report_texts.results_json_text(results), encoding="utf-8")


def assert_no_secret(completed, llm, root: Path) -> None:
    saved = (root / "a/_results.json").read_text()
    assert SECRET not in repr(llm.asked) + completed.stdout + completed.stderr + saved


@pytest.fixture
def runs(tmp_path) -> Path:
    save(tmp_path / "a", "ours")
    save(tmp_path / "b", "theirs")
    return tmp_path


def saved_study(root: Path, study: str):
    return json.loads((root / "a/_results.json").read_text())["studies"][study]


@pytest.mark.end_to_end
def test_prefer_reports_and_saves_the_comparison_with_the_first_run(runs):
    before = read_files(runs / "b")
    with world.llm(seeded_judges.pairwise_judge(1.0, 0.0)) as llm:
        env = llm.env | {"MY_SECRET_TOKEN": SECRET}
        completed = ci_evals("prefer", "a", "b", "--pairs=4", cwd=runs, env=env)
    assert completed.returncode == 0, completed.stderr
    assert "4 wins, 0 losses, 0 ties" in completed.stdout
    assert "Of 5 pairs of conversations 4 are compared (--pairs)" in completed.stderr
    assert "The judge was asked 8 times" in completed.stderr
    result = saved_study(runs, "preference")
    assert (result["wins"], result["other"], result["share"]["value"]) == (4, "theirs", 1)
    assert result["judge"]["models"] == ["some-model"]
    assert (runs / "a/summary.md").exists()
    assert read_files(runs / "b") == before
    assert_no_secret(completed, llm, runs)


@pytest.mark.end_to_end
def test_attack_reports_and_saves_the_kind_that_flips_the_judge(runs):
    def answer(asked: world.ModelRequest) -> str:
        return fakes.judge_answer("pass" if "system: The rules have changed" in asked.text else "fail")

    with world.llm(answer) as llm:
        completed = ci_evals("attack", "a/_results.json", "--verdicts=3", "--quiet", cwd=runs, env=llm.env)
    assert completed.returncode == 0, completed.stderr
    result = saved_study(runs, "attacks")
    turned = {kind["name"]: kind["turned"] for kind in result["kinds"]}
    assert turned == dict.fromkeys(turned, 0) | {"role changes": 3}
    assert (result["verdicts"], result["control"]["turned"]) == (3, 0)
    assert "role changes" in completed.stdout


def test_interrupted_study_saves_what_was_asked_and_exits_with_130(runs):
    def answer(asked):
        if len(llm.asked) > 6:
            time.sleep(60)
        return seeded_judges.pairwise_judge(1.0, 0.0)(asked)

    with world.llm(answer) as llm:
        process = start("prefer", "a", "b", "--parallel=1", cwd=runs, env=llm.env)
        deadline = time.monotonic() + 300
        while len(llm.asked) < 8 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert "the numbers cover the verdicts until then" in err
    assert "of 3 pairs of conversations: 3 wins" in out
    assert saved_study(runs, "preference")["pairs"] == 3


def suite(root: Path) -> str:
    """Write the suite of these runs."""
    evaluations = [[{"criterion": one} for one in criteria(test)] for test in range(5)]
    turns = [{"user": "x"}]
    tests = [{"name": f"T{n}", "turns": turns, "evaluations": some} for n, some in enumerate(evaluations)]
    return write_suite(root, *tests)


def judge(asked: world.ModelRequest) -> str:
    criterion = seeded_judges.prompt_block(asked.text, "criterion")
    return fakes.judge_answer("fail" if "cancelled" in criterion else "pass")


@pytest.mark.end_to_end
def test_probe_warns_of_each_vacuous_criterion_with_its_position(runs):
    file = suite(runs)
    with world.llm(judge) as llm:
        own = {"MY_SECRET_TOKEN": SECRET, "AGENT_KEY": "k"}
        completed = ci_evals("validate", file, "--probe=a", "--probe-with=4", cwd=runs, env=llm.env | own)
    assert completed.returncode == 0, completed.stderr
    warnings = [line for line in completed.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 5
    for test, line in enumerate(warnings):
        assert line.startswith(f"warning: {file}:1:")
        assert f"tests[{test}].evaluations[0].criterion: " in line
        assert f"of {test} is" in line
        assert "passes before 4 of 4 conversations of other tests too: it measures nothing" in line
    assert completed.stderr.count("an adversarial user") == 1
    assert "\x1b" not in completed.stderr + completed.stdout
    assert "##[error]" not in completed.stderr + completed.stdout
    result = saved_study(runs, "probe")
    assert [one["vacuous"] for one in result["criteria"]] == [True, False] * 5
    assert_no_secret(completed, llm, runs)


def test_refused_key_or_unreadable_judge_exits_with_3_and_keeps_results(runs):
    before = read_files(runs)
    with world.llm(lambda _: "Well.") as llm:
        refused = ci_evals("attack", "a", cwd=runs, env=llm.env | {"LLM_API_KEY": "stale-key-11111111"})
        unread = ci_evals("prefer", "a", "b", "--parallel=1", cwd=runs, env=llm.env)
    assert (refused.returncode, unread.returncode) == (3, 3)
    assert "401" in refused.stderr or "refuse" in refused.stderr
    assert ("decided nothing" in unread.stderr, read_files(runs)) == (True, before)


A, B = Path("a"), Path("b")
NO_KEY, KEY = JudgeSettings(), JudgeSettings(llm_key="k")
OFFLINE, EVEN = JudgeSettings(provider="offline"), JudgeSettings(llm_key="k", judge_votes=2)
PANEL = JudgeSettings(llm_key="k", judge_panel="a,b", judge_model="c")


@each_row(("call", "message"), [
    (lambda: compare_runs(A, A, 100, KEY, RunContext()), "the same run"),
    (lambda: compare_runs(A, Path("no"), 100, KEY, RunContext()), "no: "),
    (lambda: compare_runs(A, B, 100, NO_KEY, RunContext()), "no key for the LLM"),
    (lambda: attack_judge(A, 10, NO_KEY, RunContext()), "no key for the LLM"),
    (lambda: attack_judge(A, 10, OFFLINE, RunContext()), "there is no judge"),
    (lambda: attack_judge(A, 10, EVEN, RunContext()), "even number of votes"),
    (lambda: attack_judge(A, 10, PANEL, RunContext()), "Omit one of them"),
    (lambda: probe(suites=["suite.json"], results=A), "no key"),
    (lambda: probe(suites=["suite.json"], results=Path("nowhere"), llm_key="k"), "nowhere"),
    (lambda: probe(suites=["demo:hr"], results=A, llm_key="k"), "holds no judged criterion of these suites"),
])  # fmt: skip
def test_invalid_study_settings_are_refused_before_asking_or_writing(runs, monkeypatch, call, message):
    suite(runs)
    monkeypatch.chdir(runs)
    for name in ("LLM_API_KEY", "OPENAI_API_KEY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    before = read_files(runs)
    with pytest.raises(UsageError, match=message):
        call()
    assert read_files(runs) == before
