"""The judge on two runs: does it treat both alike, and what is the change by people's labels?"""

import json
import re
from dataclasses import replace
from math import exp, log, sqrt
from pathlib import Path
from random import Random
from statistics import fmean

import builders as build
import pytest
from commands import ci_evals
from doc_pages import page, table
from labeled_runs import answers_of_person, filled_sheet, judged_run, read_sheet, write_results

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.calibration.settings import LabelSettings
from ci_evals.extensions.calibration.sheet import write_spot_check
from ci_evals.extensions.calibration.spot_check import Side, SideVerdict, SpotCheck
from ci_evals.extensions.calibration.spot_check_runs import SpotCheckRuns, check_spot

DOCS = page("judge-statistics.md")
TESTS, TRIALS, CRITERIA = 20, 3, 5
LABELS = (25, 50, 100, 200)
Judge = tuple[float, float]
"""How likely it passes what is right, and fails what is wrong."""
GOOD: Judge = (0.95, 0.8)
CASES: dict[str, tuple[float, float, Judge, Judge]] = {
    "none": (0.85, 0.85, GOOD, GOOD),
    "-5": (0.85, 0.80, GOOD, GOOD),
    "-10": (0.85, 0.75, GOOD, GOOD),
    "-10, weak judge": (0.85, 0.75, (0.9, 0.5), (0.9, 0.5)),
    "-10, judge fooled by the new answers": (0.85, 0.75, GOOD, (0.98, 0.45)),
    "none, judge harsh on the new answers": (0.85, 0.85, (0.97, 0.8), (0.90, 0.8)),
}
"""The shares that are right in baseline and run, and the judges of both."""
EXPECTED: dict[str, tuple[float, tuple[float, ...], tuple[float, ...]]] = {
    "none": (5, (4.6, 4.6, 5.3, 5.1), (3.4, 4.7, 5.1, 4.8)),
    "-5": (33, (17.3, 23.1, 31.4, 41.4), (4.2, 5.3, 6.2, 7.5)),
    "-10": (73, (34.7, 52.1, 68.7, 85.0), (5.3, 6.9, 10.1, 15.2)),
    "-10, weak judge": (36, (22.1, 33.9, 54.7, 79.3), (8.6, 10.8, 20.1, 30.7)),
    "-10, judge fooled by the new answers": (0.3, (27.5, 46.8, 67.5, 87.0), (30.9, 57.8, 86.1, 99.1)),
    "none, judge harsh on the new answers": (58, (6.4, 4.9, 4.9, 5.0), (10.3, 17.8, 30.1, 55.3)),
}
"""By other code: drops that the judge alone finds; by labels, with 25, 50, 100 and 200 of each run; and the
judge that is found to differ. In percent."""


def simulated_side(right: float, judge: Judge, levels: list[float], labels: int, rng: Random) -> Side:
    """Verdicts of a judge, some of them labeled by people who do not err."""
    middle, verdicts, truths = 1.15 * log(right / (1 - right)), [], []
    for test, level in enumerate(levels):
        for trial in range(TRIALS):
            chance = 1 / (1 + exp(-middle - level - rng.gauss(0, 0.6)))
            for _ in range(CRITERIA):
                truths.append(rng.random() < chance)
                passed = rng.random() < judge[0] if truths[-1] else rng.random() > judge[1]
                verdicts.append(SideVerdict(test, trial, passed))
    for index in rng.sample(range(len(verdicts)), labels):
        verdicts[index] = replace(verdicts[index], people=truths[index])
    return Side(verdicts)


def simulated(case: str, labels: int, times: int) -> tuple[float, float, float, float]:
    """How often the judge alone finds a drop, the labels do, and the judge is found to differ; in percent.

    The last twice: by a normal p, as the other code has it, and as it is found.
    """
    base_right, head_right, base_judge, head_judge = CASES[case]
    rng, alone, corrected, far, differs = Random(f"{case} {labels}"), [], [], [], []
    for _ in range(times):
        levels = [rng.gauss(0, 0.8) for _ in range(TESTS)]
        base = simulated_side(base_right, base_judge, levels, labels, rng)
        result = SpotCheck(simulated_side(head_right, head_judge, levels, labels, rng), base)
        alone.append(result.change / result.judge_error < -1.645)
        corrected.append(result.corrected / result.error < -1.645)
        far.append(abs(result.difference) / sqrt(result.head.error + result.base.error) > 1.96)
        differs.append(bool(result.differs))
    alone_found, by_labels, by_normal, by_t = (100 * fmean(each) for each in (alone, corrected, far, differs))
    return alone_found, by_labels, by_normal, by_t


def check(case: str, labels: int, times: int) -> tuple[float, float, float]:
    """Compare with results of other code; the bounds allow for few repetitions and dependent labels."""
    *result, by_t = simulated(case, labels, times)
    index = LABELS.index(labels)
    alone, by_labels, differs = EXPECTED[case]
    for seen, wanted in zip(result, (alone, by_labels[index], differs[index]), strict=True):
        share = wanted / 100
        error = 100 * sqrt(max(0.02, share * (1 - share)) * (1 / times + 1 / 3_000))
        assert seen == pytest.approx(wanted, abs=3 * error + 2.5)
    assert by_t <= result[2]
    return result[0], result[1], by_t


ROWS = table("true change", DOCS)


@pytest.mark.simulate
@pytest.mark.parametrize("cells", ROWS, ids=lambda cells: cells[0])
def test_simulated_spot_checks_match_the_table_of_the_docs(cells):
    """Within sampling error, also of other code."""
    case, alone, by_labels, differs = cells
    result = [check(case, labels, 1_000) for labels in LABELS]
    assert fmean(one for one, _, _ in result) == pytest.approx(float(alone), abs=0.1)
    for shown, column in ((by_labels, 1), (differs, 2)):
        seen = [row[column] for row in result]
        assert [float(number) for number in shown.split()] == pytest.approx(seen, abs=0.25)


def test_docs_table_lists_every_case_and_keeps_5_percent_level():
    assert {row[0] for row in ROWS} == CASES.keys()
    levels = [float(number) for row in ROWS if row[0].startswith("none") for number in row[2].split()]
    assert max(levels) <= 5 + 300 * sqrt(0.05 * 0.95 / 1_000)


@pytest.mark.parametrize("case", ["none", "-10, judge fooled by the new answers"])
def test_spot_checks_match_other_code_in_a_short_simulation(case):
    check(case, 50, 100)


def verdicts(*items: str) -> list[SideVerdict]:
    """For each test, trials of verdicts: `p` and `f`; `P` and `F` where people say the contrary, and `+`, `-`
    where they agree."""
    people = {"P": False, "F": True, "+": True, "-": False}
    return [
        SideVerdict(test, trial, letter in "pP+", people.get(letter))
        for test, trials in enumerate(items)
        for trial, letters in enumerate(trials.split())
        for letter in letters
    ]


def test_corrected_change_and_errors_match_a_calculation_by_hand():
    base, head = Side(verdicts("++ pf")), Side(verdicts("P+ pf"))
    result = SpotCheck(head, base)
    assert (result.change, result.difference, result.corrected) == (0, -0.5, -0.5)
    # Trial sums around the mean of 3/4: +1/2 and -1/2, so a variance of 1/2 for each of two trials of four.
    assert head.noise == base.noise == pytest.approx(2 * 0.5 / 16)
    assert head.error == pytest.approx(0.5 / 2)  # of 0 and -1
    unseen = 0.5 / 3
    assert base.error == pytest.approx(unseen * (1 - unseen) / 2)
    assert result.error == pytest.approx(sqrt(4 * 0.5 / 16 + (head.error + base.error) / 2))
    assert (result.differs, result.corrects) == (None, False)  # too few labels to tell
    assert Side(verdicts("pp", "ff", "pf")).noise == pytest.approx(3 / 2 * (1 + 1) / 36)
    result = SpotCheck(Side(verdicts("PP ++")), Side(verdicts("++ ++")))
    assert (result.corrected, result.error) == (-0.5, result.judge_error)


def test_correction_error_is_larger_if_labels_come_from_one_test():
    spread = Side(verdicts(*["P+"] * 10, *["++"] * 10))
    together = Side(verdicts("P" * 10, "+" * 10, "+" * 10, "+" * 10))
    assert spread.correction == together.correction
    assert together.error > 2 * spread.error


@pytest.mark.parametrize(("tests", "most"), [(2, 5), (3, 5), (5, 6)])
def test_spot_check_false_alarm_rate_holds_with_few_tests(tests, most):
    """The labels of two tests say little of how far they vary: by a normal p 18 % would be false with two."""
    rng = Random(7)

    def of_run() -> Side:
        verdicts, truths = [], []
        for test in range(tests):
            for trial in range(7):
                for _ in range(5):
                    truths.append(rng.random() < 0.8)
                    passed = rng.random() < 0.9 if truths[-1] else rng.random() > 0.8
                    verdicts.append(SideVerdict(test, trial, passed))
        for index in rng.sample(range(len(verdicts)), 25):
            verdicts[index] = replace(verdicts[index], people=truths[index])
        return Side(verdicts)

    times = 400
    alarms = sum(bool(SpotCheck(of_run(), of_run()).differs) for _ in range(times))
    assert 100 * alarms / times <= most


def runs_of(folder: Path, head: float, base: float) -> None:
    """Two saved runs of one suite: shares of what is right that the judge passes in run and baseline."""
    for name, sensitivity in (("head", head), ("base", base)):
        (folder / name).mkdir()
        write_results(judged_run(tests=25, sensitivity=sensitivity), folder / name)


@pytest.fixture
def alike(tmp_path) -> Path:
    """A folder with two runs that the judge treats alike."""
    runs_of(tmp_path, head=0.95, base=0.95)
    return tmp_path


def label(folder: Path, **settings) -> str:
    """Draw a sheet of both runs, and return it."""
    paths = {"results": folder / "head", "spot_check": folder / "base", "output": folder / "labels"}
    settings = paths | settings
    write_spot_check(LabelSettings(**settings), settings["spot_check"], RunContext())
    return (settings["output"] / "sheet.csv").read_text(encoding="utf-8")


def calibrate(folder: Path, sheet: str, items: int, seed: int = 0) -> None:
    """Print what a person's labels say of the judge on both runs."""
    (folder / "ada.csv").write_text(filled_sheet(answers_of_person(sheet, "ada")))
    runs = SpotCheckRuns.read(folder / "head", folder / "base", items // 2, seed, RunContext().hide())
    check_spot([folder / "ada.csv"], runs, RunContext())


@pytest.mark.slow
def test_judge_that_is_harsh_on_new_answers_is_detected_and_the_change_corrected(tmp_path):
    runs_of(tmp_path, head=0.5, base=0.98)
    made = ci_evals("label", "head", "--spot-check=base", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    sheet = (tmp_path / "labels/sheet.csv").read_text(encoding="utf-8")
    assert 50 < len(read_sheet(sheet)) <= 100
    assert [name for name in ("head", "base") if name in sheet] == []
    (tmp_path / "ada.csv").write_text(filled_sheet(answers_of_person(sheet, "ada")))
    ran = ci_evals("calibrate", "ada.csv", "--results=head", "--spot-check=base", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "The judge treats the new answers differently (50 + 50 labels, p " in ran.stdout
    who, text = ("the judge alone", "people's labels"), ran.stdout.replace("−", "-")
    judge, people = (float(re.search(rf"([-+]\d+\.\d) \([^)]*\) by {one}", text)[1]) for one in who)
    assert judge < -25 < people < 12
    assert "The gate goes by the judge." in ran.stdout
    assert not (tmp_path / "calibration.json").exists()
    options = ("--spot-check=base", "--items=60", "--seed=3")
    few = ci_evals("label", "head", "--output=few", *options, cwd=tmp_path)
    assert "30 + 30 verdicts to label" in few.stdout, few.stderr
    sheet = (tmp_path / "few/sheet.csv").read_text(encoding="utf-8")
    (tmp_path / "ada.csv").write_text(filled_sheet(answers_of_person(sheet, "ada")))
    ran = ci_evals("calibrate", "ada.csv", "--results=head", *options, cwd=tmp_path)
    assert "(30 + 30 labels" in ran.stdout, ran.stderr
    alone = ci_evals("label", "head", "--spot-check=head", cwd=tmp_path)
    assert (alone.returncode, "has no base agent" in alone.stderr) == (2, True)


def test_spot_check_of_consistent_judge_suggests_no_correction_and_needs_its_sheet(alike, capsys):
    sheet = label(alike, items=60, seed=3)
    calibrate(alike, sheet, items=60, seed=3)
    shown = capsys.readouterr().out
    assert "No sign that the judge treats the new answers differently (30 + 30 labels" in shown
    assert "to correct it takes 200 + 200 labels" in shown
    with pytest.raises(UsageError, match="not on this sheet"):
        calibrate(alike, sheet, items=60)
    with pytest.raises(UsageError, match="no label in it"):
        calibrate(alike, "\n".join(sheet.splitlines()[:1]) + "\n", items=60, seed=3)


def test_spot_check_of_too_few_verdicts_or_runs_of_two_judges_is_refused(alike):
    with pytest.raises(UsageError, match="at least 4 verdicts"):
        label(alike, items=3)
    write_results(judged_run(judge_model="another-judge"), alike / "base")
    with pytest.raises(UsageError, match="the judge of this run differs"):
        label(alike)
    assert (alike / "head/_results.json").exists()


def test_spot_check_samples_as_many_verdicts_of_both_arms_or_runs(tmp_path, capsys):
    head, base = judged_run(tests=10), judged_run(tests=10)
    arms = (build.arm("head", head, gated=True), build.arm("base", base))
    write_results(replace(head, arms=arms), tmp_path)
    label(tmp_path, results=tmp_path, spot_check=tmp_path, items=20)
    assert "10 + 10 verdicts to label" in capsys.readouterr().out
    # Some tests were played more often in one run: as many trials of each count as both runs have.
    for name, trials in (("head", 3), ("base", 2)):
        (tmp_path / name).mkdir()
        write_results(judged_run(tests=10, trials=trials), tmp_path / name)
    label(tmp_path, items=1000, output=tmp_path / "more")
    assert "60 + 60 verdicts to label" in capsys.readouterr().out


def test_changed_tests_are_left_out_of_a_spot_check(alike, capsys):
    file = alike / "base/_results.json"
    results = json.loads(file.read_text())

    def change(tests):
        for test in tests:
            test["digest"] = "0" * 64
        file.write_text(json.dumps(results))

    change(results["suites"][0]["tests"][:5])
    sheet = label(alike, items=1000)
    assert len(read_sheet(sheet)) == 20 * 3 * 3
    calibrate(alike, sheet, items=1000)
    left_out = "Left out: 5 tests whose definition differs between the runs."
    assert left_out in capsys.readouterr().out
    change(results["suites"][0]["tests"])
    with pytest.raises(UsageError, match="share no test that is defined alike"):
        label(alike, output=alike / "other")
