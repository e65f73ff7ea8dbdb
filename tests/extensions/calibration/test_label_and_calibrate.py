"""`ci-evals label` and `calibrate`: from a saved run to a judge that is known, and to later runs."""

import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import fakes
import labeled_runs
import pytest
import world
from commands import ci_evals, write_suite
from labeled_runs import answers_of_person, filled_sheet, judged_run, write_results

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Origin
from ci_evals.extensions.calibration import sheet_reading
from ci_evals.extensions.calibration.later_runs import given, merged
from ci_evals.extensions.calibration.later_runs import read_file as read
from ci_evals.extensions.calibration.result import Calibration, OldCalibration
from ci_evals.extensions.calibration.sheet import write_sheet
from ci_evals.extensions.calibration.study import calibrate as calibrate_judge
from ci_evals.extensions.calibration.study import check_judge
from ci_evals.library import load_results

PEOPLE = {"ada": 0.02, "ben": 0.04, "cleo": 0.06}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Path:
    """A folder with a run, and the sheets that three people filled."""
    folder = tmp_path_factory.mktemp("labelled")
    file = write_results(judged_run(tests=25), folder)
    write_sheet(file, folder / "labels", 90, 0, RunContext())
    sheet = (folder / "labels/sheet.csv").read_text(encoding="utf-8")
    for who, mistakes in PEOPLE.items():
        (folder / f"{who}.csv").write_text(filled_sheet(answers_of_person(sheet, who, mistakes)))
    return folder


@pytest.fixture(scope="module")
def calibration(labelled) -> Calibration:
    """What these people say of the judge."""
    results, sheets = load_results(labelled), [labelled / f"{who}.csv" for who in PEOPLE]
    return calibrate_judge(results, sheet_reading.read(sheets), datetime(2026, 11, 22, tzinfo=UTC))


@pytest.fixture
def folder(labelled, tmp_path) -> Path:
    shutil.copytree(labelled, tmp_path, dirs_exist_ok=True)
    return tmp_path


def calibrate_with(folder: Path, *people: str, **settings) -> None:
    sheets = [folder / f"{who}.csv" for who in people or PEOPLE]
    settings = {"results_path": folder, "output": folder / "calibration.json", "seed": 0} | settings
    check_judge(sheets, context=RunContext(), **settings)


def test_calibration_finds_and_saves_the_error_rates_whatever_the_order_of_sheets(folder, capsys):
    calibrate_with(folder)
    captured = capsys.readouterr().out
    assert re.search("(269|270) labels by 3 people, against a-judge-of-note", captured)
    assert "May this judge gate? Yes: kappa is" in captured
    assert "It promises no date" in captured
    assert "ci-evals" not in captured.split("\n")[0]
    result = read(folder / "calibration.json")
    whole = result.parts[0]
    for name, truth in (("sensitivity", 0.95), ("specificity", 0.9), ("corrected", 0.8)):
        assert getattr(whole, name).low <= truth <= getattr(whole, name).high, name
    assert [part.kind for part in result.parts] == ["all"] + ["criterion"] * 3 + ["category"] * 2
    results = load_results(folder)
    assert results.study(Calibration) == result
    assert (folder / "report.html").exists()
    assert result.judge.models == ("a-judge-of-note",)
    # A file of the same judge is replaced.
    calibrate_with(folder, "ada", "ben")
    first = read(folder / "calibration.json").parts
    calibrate_with(folder, "ben", "ada")
    assert read(folder / "calibration.json").parts == first


def test_labels_calibrate_a_rejudged_run_and_unmatched_labels_are_counted(folder, capsys):
    other = judged_run(tests=22, sensitivity=0.7, judge_model="another")
    origin = Origin(how="rejudge", run="run-1", started_at=other.run.started_at)
    other = replace(other, run=replace(other.run, origin=origin))
    (folder / "other").mkdir()
    write_results(other, folder / "other")
    calibrate_with(folder, results_path=folder / "other", output=folder / "other.json")
    calibration = read(folder / "other.json")
    assert calibration.judge.models == ("another",)
    assert calibration.unknown > 0
    captured = capsys.readouterr().out
    assert f"{calibration.unknown} labels match nothing in this run" in captured
    assert "make a sheet from this run" in captured
    assert calibration.parts[0].sensitivity.high < 0.9
    message = "is of another judge: the model changed; remove it, or name another"
    with pytest.raises(UsageError, match=message):
        calibrate_with(folder, output=folder / "other.json")


def test_invalid_calibration_is_refused_before_anything_is_written(folder):
    before = (folder / "_results.json").read_bytes()
    (folder / "zoe.csv").write_text("item,label\ni0000,pass\n")
    with pytest.raises(UsageError, match="none of the labels is of this run"):
        calibrate_with(folder, "zoe")
    with pytest.raises(UsageError, match=r"none\.json: cannot be read: No such file"):
        read(folder / "none.json")
    (folder / "mine.json").write_text("{}")
    with pytest.raises(UsageError, match="another file is there"):
        calibrate_with(folder, output=folder / "mine.json")
    with pytest.raises(UsageError, match="there is no column"):
        check_judge([folder / "_results.json"], folder, Path("calibration.json"), 0, RunContext())
    assert ((folder / "_results.json").read_bytes(), (folder / "mine.json").read_text()) == (before, "{}")
    assert not (folder / "calibration.json").exists()


def test_sheet_with_labels_is_not_overwritten_and_needs_judged_verdicts(folder):
    (folder / "labels/sheet.csv").write_text((folder / "ada.csv").read_text())
    with pytest.raises(UsageError, match=r"sheet\.csv: it holds 90 labels, and is not overwritten"):
        write_sheet(folder, folder / "labels", 100, 0, RunContext())
    assert (folder / "labels/sheet.csv").read_text() == (folder / "ada.csv").read_text()
    (folder / "labels/sheet.csv").write_text("my notes")
    with pytest.raises(UsageError, match="another file is there, and is not overwritten"):
        write_sheet(folder, folder / "labels", 100, 0, RunContext())
    unjudged = folder / "unjudged"
    unjudged.mkdir()
    for results in (judged_run(tests=0), replace(judged_run(tests=2, sensitivity=1), suites=())):
        write_results(results, unjudged)
        with pytest.raises(UsageError, match="no judge has decided anything in it"):
            write_sheet(unjudged, unjudged / "labels", 100, 0, RunContext())
    assert not (unjudged / "labels").exists()


def test_calibration_corrects_other_runs_of_the_judge_with_a_wider_interval(calibration):
    worse = judged_run(tests=30, sensitivity=0.6)
    known = given(worse, calibration)
    assert known.study(OldCalibration) is None
    now, then = known.study(Calibration).parts[0], calibration.parts[0]
    assert (now.sensitivity, now.pass_rate) == (then.sensitivity, pytest.approx(share_passed(worse)))
    assert now.pass_rate < then.pass_rate
    e, f = then.sensitivity.value, then.specificity.value
    assert now.corrected.value == pytest.approx((now.pass_rate + f - 1) / (e + f - 1))
    gone = given(judged_run(tests=0), calibration).study(Calibration).parts[0]
    assert (gone.pass_rate, gone.corrected) == (None, None)
    same = judged_run()
    other = replace(same, run=replace(same.run, id="another"))
    here, there = (given(one, calibration).study(Calibration).parts[0].corrected for one in (same, other))
    assert (same.run.id, here.value) == (calibration.run, there.value)
    assert here.high - here.low < there.high - there.low


def test_calibration_of_another_judge_is_only_noted_as_old(calibration):
    known = given(judged_run(judge_model="newer"), calibration)
    assert known.study(Calibration) is None
    why = "another judge: the model changed"
    assert known.study(OldCalibration) == OldCalibration(at=calibration.at, why=why)


def share_passed(results) -> float:
    findings = [f for s in results.suites for t in s.tests for trial in t.trials for f in trial.findings]
    return sum(finding.outcome == "passed" for finding in findings) / len(findings)


def test_merge_keeps_a_calibration_only_if_shared_by_all_shards(calibration):
    shards = [given(judged_run(tests=tests), calibration) for tests in (5, 10)]
    assert shards[0].study(Calibration) != shards[1].study(Calibration)
    whole = judged_run(tests=15)
    assert merged(whole, shards) == given(whole, calibration)
    other = replace(calibration, run="another")
    for unlike in ([shards[0], given(judged_run(), other)], [shards[0], judged_run()], []):
        assert merged(whole, unlike) == whole
    newer = given(judged_run(judge_model="newer"), calibration)
    assert newer.study(OldCalibration)
    whole = judged_run(judge_model="newer", tests=15)
    assert (merged(whole, [newer] * 2), merged(whole, [newer, whole])) == (given(whole, calibration), whole)


GREETS = {"turns": [{"user": "Hello"}], "evaluations": [{"criterion": "It greets"}]}
TEST = {"name": "First", "userInfo": {"who": "Ada"}} | GREETS


def results_at(folder: Path) -> dict:
    return json.loads((folder / "_results.json").read_text())


PASS = fakes.judge_answer("pass", "It does.")


@pytest.mark.slow
def test_calibration_is_kept_by_later_runs_and_merges_and_dropped_by_rejudge(tmp_path):
    with (
        world.agent(lambda heard: world.message("Hi", workflows=[])) as agent,
        world.llm(lambda asked: PASS) as llm,
    ):
        env = {"CI_EVALS_BASE_URL": agent.url, "AGENT_KEY": agent.key} | llm.env
        suite = write_suite(tmp_path, TEST)

        def do(*args: str):
            return ci_evals(*args, cwd=tmp_path, env=env)

        assert do("run", suite, "--quiet").returncode == 0
        made = do("label", "results")
        assert made.returncode == 0, made.stderr
        (row,) = labeled_runs.read_sheet((tmp_path / "labels/sheet.csv").read_text(encoding="utf-8"))
        (tmp_path / "ada.csv").write_text(filled_sheet({row["item"]: "pass"}))
        completed = do("calibrate", "ada.csv")
        assert completed.returncode == 0, completed.stderr
        assert "May this judge gate? Not known yet: too few labels to say: 1 of 30" in completed.stdout
        again = do("run", suite, "--quiet", "--calibration=calibration.json", "--output-dir=again")
        assert again.returncode == 0, again.stderr
        assert results_at(tmp_path / "again")["studies"]["calibration"]["parts"][0]["passRate"] == 1
        assert do("merge", "again", "--output-dir=whole").returncode == 0
        known = results_at(tmp_path / "whole")["studies"]["calibration"]
        assert known["run"] == results_at(tmp_path / "results")["run"]["id"]
        newer = do("rejudge", "again", "--output-dir=new", "--quiet", "--judge-model=x")
        assert newer.returncode == 0, newer.stderr
        studies = results_at(tmp_path / "new")["studies"]
        assert "calibration" not in studies
        assert studies["oldCalibration"]["why"] == "another judge: the model changed"
        asked = len(llm.asked)
        (tmp_path / "bad.json").write_text("[]")
        refused = do("run", suite, "--calibration=bad.json", "--output-dir=bad")
        assert refused.returncode == 2
        why = "not what `ci-evals calibrate` writes; name its file (calibration.json), or make it again"
        assert refused.stderr == f"error: bad.json: {why}\n"
        assert len(llm.asked) == asked
        assert not (tmp_path / "bad").exists()
