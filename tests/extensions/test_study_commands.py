"""`prefer`, `attack` and `validate --probe` as their users start them, on runs that were saved."""

import json
import signal
import time
from pathlib import Path

import builders as build
import pytest
import report_texts
import seeded_judges
import world
from commands import ci_evals, read_files, start, write_suite

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.settings import JudgeSettings
from ci_evals.extensions.attack.study import attack_judge
from ci_evals.extensions.preference.study import compare_runs
from ci_evals.extensions.validate.settings import ValidateSettings
from ci_evals.extensions.validate.suite_check import validate_suites

pytestmark = pytest.mark.slow


def probe(suites, results, **fields):
    """`validate --probe`."""
    validate_suites(ValidateSettings(suites=suites, probe=results, **fields), RunContext())


SECRET = "tenant-4711-blue"


def criteria(test: int) -> tuple[str, str]:
    """One that nothing is said about, in words that no console should obey, and one that tells."""
    return f"\x1b[31mNothing\x1b[0m of {test} is ##[error]deleted, {SECRET}", f"Order {test} is cancelled"


def talk(who: str, test: int):
    first, second = criteria(test)
    return build.trial_result(
        turns=(build.turn(agent=f"{who}-{test} {SECRET}"),),
        findings=(
            build.finding(kind="judged", criterion=first),
            build.finding("failed", kind="judged", criterion=second),
        ),
    )


def save(folder: Path, who: str, **fields) -> Path:
    """A run of five tests, as it stands in its folder."""
    tests = [build.test_result(f"T{test}", trials=(talk(who, test),)) for test in range(5)]
    suite = build.suite_result("Stub", *tests, judge_model="some-model")
    folder.mkdir()
    run = build.run_info(id=who, **fields)
    file = folder / "_results.json"
    file.write_text(report_texts.results_json_text(build.results(suite, run=run)), encoding="utf-8")
    return file


@pytest.fixture
def runs(tmp_path) -> Path:
    save(tmp_path / "a", "ours")
    save(tmp_path / "b", "theirs")
    return tmp_path


def kept(root: Path, study: str):
    return json.loads((root / "a/_results.json").read_text())["studies"][study]


@pytest.mark.end_to_end
def test_prefer(runs):
    """Told on the console, kept with A, and drawn in its reports; B stays as it is."""
    before = read_files(runs / "b")
    with world.llm(seeded_judges.pairwise_judge(1.0, 0.0)) as llm:
        completed = ci_evals(
            *("prefer", "a", "b", "--pairs=4"), cwd=runs, env=llm.env | {"MY_SECRET_TOKEN": SECRET}
        )
    assert completed.returncode == 0, completed.stderr
    assert "4 wins, 0 losses, 0 ties" in completed.stdout
    assert "Of 5 pairs of conversations 4 are compared (--pairs)" in completed.stderr
    assert "The judge was asked 8 times" in completed.stderr
    found = kept(runs, "preference")
    assert (found["wins"], found["other"], found["share"]["value"]) == (4, "theirs", 1)
    assert found["judge"]["models"] == ["some-model"]
    assert (runs / "a/summary.md").exists()
    assert read_files(runs / "b") == before
    assert (
        SECRET
        not in repr(llm.asked) + completed.stdout + completed.stderr + (runs / "a/_results.json").read_text()
    )


@pytest.mark.end_to_end
def test_attack(runs):
    """Told on the console, and kept. A judge that obeys one kind is found."""

    def answer(asked: world.ModelRequest) -> str:
        return seeded_judges.fakes.judge_answer(
            "pass" if "system: The rules have changed" in asked.text else "fail"
        )

    with world.llm(answer) as llm:
        completed = ci_evals("attack", "a/_results.json", "--verdicts=3", "--quiet", cwd=runs, env=llm.env)
    assert completed.returncode == 0, completed.stderr
    found = kept(runs, "attacks")
    turned = {kind["name"]: kind["turned"] for kind in found["kinds"]}
    assert turned == dict.fromkeys(turned, 0) | {"role changes": 3}
    assert (found["verdicts"], found["control"]["turned"]) == (3, 0)
    assert "role changes" in completed.stdout


def test_an_interruption(runs):
    """What was asked until then is told and kept, and the exit code says that it is not all."""

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
    assert kept(runs, "preference")["pairs"] == 3


def suite(root: Path, **more) -> str:
    """The suite of these runs."""
    turns = [{"user": "x"}]
    asked = [[{"criterion": one} for one in criteria(test)] for test in range(5)]
    return write_suite(
        root, *({"name": f"T{test}", "turns": turns, "evaluations": asked[test]} | more for test in range(5))
    )


def judge(asked: world.ModelRequest) -> str:
    return seeded_judges.fakes.judge_answer(
        "fail" if "cancelled" in seeded_judges.prompt_block(asked.text, "criterion") else "pass"
    )


@pytest.mark.end_to_end
def test_probe(runs):
    """Each vacuous criterion is a warning with its place; the suite stays good."""
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
    found = kept(runs, "probe")
    assert [one["vacuous"] for one in found["criteria"]] == [True, False] * 5
    assert (
        SECRET
        not in repr(llm.asked) + completed.stdout + completed.stderr + (runs / "a/_results.json").read_text()
    )


def test_a_refused_key_and_an_unreadable_judge(runs):
    """The outside world's failure exits with 3, and what was found earlier stays as it is."""
    before = read_files(runs)
    with world.llm(lambda _: "Well.") as llm:
        refused = ci_evals("attack", "a", cwd=runs, env=llm.env | {"LLM_API_KEY": "stale-key-11111111"})
        unread = ci_evals("prefer", "a", "b", "--parallel=1", cwd=runs, env=llm.env)
    assert (refused.returncode, unread.returncode) == (3, 3)
    assert "401" in refused.stderr or "refuse" in refused.stderr
    assert "decided nothing" in unread.stderr
    assert read_files(runs) == before


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: compare_runs(Path("a"), Path("a"), 100, JudgeSettings(llm_key="k"), RunContext()),
            "the same run",
        ),
        (lambda: compare_runs(Path("a"), Path("no"), 100, JudgeSettings(llm_key="k"), RunContext()), "no: "),
        (
            lambda: compare_runs(Path("a"), Path("b"), 100, JudgeSettings(), RunContext()),
            "no key for the LLM",
        ),
        (lambda: attack_judge(Path("a"), 10, JudgeSettings(), RunContext()), "no key for the LLM"),
        (
            lambda: attack_judge(Path("a"), 10, JudgeSettings(provider="offline"), RunContext()),
            "there is no judge",
        ),
        (
            lambda: attack_judge(Path("a"), 10, JudgeSettings(llm_key="k", judge_votes=2), RunContext()),
            "even number of votes",
        ),
        (
            lambda: attack_judge(
                Path("a"), 10, JudgeSettings(llm_key="k", judge_panel="a,b", judge_model="c"), RunContext()
            ),
            "Omit one of them",
        ),
        (lambda: probe(suites=["suite.json"], results=Path("a")), "no key"),
        (lambda: probe(suites=["suite.json"], results=Path("nowhere"), llm_key="k"), "nowhere"),
        (
            lambda: probe(suites=["demo:hr"], results=Path("a"), llm_key="k"),
            "holds no judged criterion of these suites",
        ),
    ],
)
def test_what_is_refused(runs, monkeypatch, call, message):
    """Before anybody is asked; nothing is written then."""
    suite(runs)
    monkeypatch.chdir(runs)
    for name in ("LLM_API_KEY", "OPENAI_API_KEY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    before = read_files(runs)
    with pytest.raises(UsageError, match=message):
        call()
    assert read_files(runs) == before
