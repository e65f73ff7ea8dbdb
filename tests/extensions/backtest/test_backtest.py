"""`backtest` from a folder to its reports."""

import json
from dataclasses import replace

import pytest
import stored
from each_row import each_row

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.backtest.command import backtest
from ci_evals.extensions.backtest.gates import Gate, Predictor
from ci_evals.extensions.backtest.gates_file import read_gates
from ci_evals.extensions.backtest.settings import BacktestSettings
from ci_evals.gate.checks import checks_of
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.odds import odds_of

GOOD = (1.0,) * 4
BAD = (0.0, 1.0, 1.0, 1.0)


def run_backtest(folder, code: int = 0, **options) -> dict:
    with pytest.raises(SystemExit) as end:
        backtest(BacktestSettings(folder=folder, quiet=True, **options), RunContext({}))
    assert end.value.code == code
    written = (options.get("output_dir") or folder) / "_backtest.json"
    return json.loads(written.read_text()) if written.exists() else {}


def test_false_alarms_of_an_unchanged_agent_are_counted_in_pairs(tmp_path):
    rates = [GOOD, GOOD, GOOD, BAD, GOOD, GOOD, GOOD, GOOD]
    result = run_backtest(stored.store(tmp_path, *(stored.run(n, own) for n, own in enumerate(rates))))
    assert (result["runs"], result["pairs"]) == (8, 4)
    assert (result["falseAlarms"]["count"], result["falseAlarms"]["of"]) == (1, 4)
    assert result["falseAlarms"]["interval"]["low"] == pytest.approx(0.0063, abs=1e-4)
    assert result["falseAlarms"]["interval"]["high"] == pytest.approx(0.8059, abs=1e-4)
    failed = [one for one in result["pairResults"] if one["failed"]]
    assert [(one["run"], one["base"], one["checks"]) for one in failed] == [("run-3", "run-2", ["min-score"])]
    assert result["checks"][0]["kind"] == "min-score"


def test_gate_options_override_runs_and_drops_compare_with_previous_run(tmp_path):
    folder = stored.store(tmp_path, stored.run(0), stored.run(1, BAD))
    assert run_backtest(folder)["falseAlarms"]["count"] == 1
    result = run_backtest(folder, min_score=70)
    assert result["falseAlarms"]["count"] == 0
    assert result["options"] == {"min-score": 70}
    result = run_backtest(folder, min_score=0, max_drop="5")
    assert result["falseAlarms"]["count"] == 1
    assert result["pairResults"][0]["checks"] == ["max-drop"]
    result = run_backtest(folder, min_score=0, regression=Regression.ANY)
    assert result["pairResults"][0]["checks"] == ["regression"]


def test_several_gates_are_compared_on_the_same_pairs(tmp_path):
    rates = [GOOD, GOOD, GOOD, BAD, GOOD, BAD, GOOD, GOOD]
    folder = stored.store(tmp_path / "runs", *(stored.run(n, own) for n, own in enumerate(rates)))
    gates = tmp_path / "gates.yaml"
    gates.write_text("loose: {min-score: 50}\nstrict:\n  min-score: 100\n  regression: any\n  history: 0\n")
    result = run_backtest(folder, settings=gates)
    loose, strict = result["settings"]
    assert (loose["name"], loose["options"]) == ("loose", {"min-score": 50})
    assert (loose["falseAlarms"]["count"], loose["onlyBefore"], loose["onlyHere"]) == (0, 2, 0)
    assert loose["p"] == pytest.approx(0.5)
    assert (strict["falseAlarms"]["count"], strict["onlyBefore"], strict["onlyHere"]) == (2, 0, 0)
    assert strict["options"] == {"min-score": 100, "regression": "any", "history": 0}


def test_runs_without_a_verdict_and_of_pull_requests_are_no_false_alarms(tmp_path):
    """A run without a verdict is no pass."""
    worst = stored.run(1)
    broken = replace(worst, counts=replace(worst.counts, not_run=3))
    runs = [stored.run(0), broken, stored.run(2), stored.run(3)]
    result = run_backtest(stored.store(tmp_path / "broken", *runs))
    assert (result["falseAlarms"]["of"], result["noVerdict"]) == (1, 1)
    assert result["pairResults"][0]["failed"] is None
    runs = [stored.run(0), stored.run(1), stored.run(2, BAD, pull_request=7), stored.run(3, pull_request=8)]
    result = run_backtest(stored.store(tmp_path / "pulls", *runs))
    assert result["falseAlarms"]["count"] == 0
    decided = [(one["run"], one["pullRequest"], one["failed"]) for one in result["pullRequests"]]
    assert decided == [("run-2", 7, True), ("run-3", 8, False)]


def test_false_alarms_of_equal_commits_are_counted_separately(tmp_path):
    same = "c" * 40
    runs = [stored.run(0, commit=same), stored.run(1, BAD, commit=same), stored.run(2), stored.run(3)]
    result = run_backtest(stored.store(tmp_path, *runs))
    assert (result["sameCommit"]["count"], result["sameCommit"]["of"]) == (1, 1)
    assert (result["otherCommit"]["count"], result["otherCommit"]["of"]) == (0, 1)
    assert result["otherCommit"]["interval"]["high"] == pytest.approx(0.975)


def test_predicted_rate_is_the_mean_odds_of_the_baselines_plus_significance_level(tmp_path):
    runs = [stored.run(number, (0.8, 0.9, 1.0, 1.0)) for number in range(4)]
    result = run_backtest(stored.store(tmp_path, *runs))
    policy = Gate().policy(runs[0])
    odds = [odds_of(base, checks_of(GateInput(base), policy)) for base in (runs[0], runs[2])]
    assert result["predicted"] == pytest.approx(sum(one.share for one in odds) / 2)
    assert 0 < result["predicted"] < 1
    strict = Gate({"regression": "any", "max_drop": "3"}).policy(runs[0])
    one = Predictor().prediction(runs[0], strict)
    assert one.share == odds_of(runs[0], checks_of(GateInput(runs[0]), strict)).share
    folder = stored.store(tmp_path / "significant", stored.run(0), stored.run(1))
    result = run_backtest(folder, regression=Regression.SIGNIFICANT)
    assert result["predictedAtMost"] == pytest.approx(result["predicted"] + 0.05)
    assert "level of regression=significant" in (folder / "backtest.md").read_text()


def test_incomparable_runs_give_no_verdict_and_an_empty_folder_is_refused(tmp_path, capsys):
    assert run_backtest(stored.store(tmp_path, stored.run(0)), code=3) == {}
    assert "no two runs can be compared: 1 run of the branch main" in capsys.readouterr().err
    git = stored.run(0).run.git
    runs = [stored.run(number, git=replace(git, ref=None)) for number in range(2)]
    assert run_backtest(stored.store(tmp_path, *runs), code=3) == {}
    assert "left out: run-0: names no branch" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"contains no _results\.json"):
        backtest(BacktestSettings(folder=tmp_path / "empty"), RunContext({}))


def test_invalid_files_and_old_versions_are_left_out_with_the_reason(tmp_path):
    folder = stored.store(tmp_path, stored.run(0), stored.run(1))
    text = (folder / "artifact-run-0" / "_results.json").read_text()
    old = text.replace('"schemaVersion": 3', '"schemaVersion": 2')
    for name, content in (("old", old), ("cut", text[:99])):
        (folder / name).mkdir()
        (folder / name / "_results.json").write_text(content)
    result = run_backtest(folder)
    assert result["falseAlarms"]["of"] == 1
    why = {one["name"].split("/")[-2]: one["why"] for one in result["leftOut"]}
    assert "earlier version" in why["old"]
    assert "not JSON" in why["cut"]


def test_reports_show_the_rate_in_words_and_charts_without_scripts(tmp_path, capsys):
    rates = [GOOD, GOOD, GOOD, BAD]
    folder = stored.store(tmp_path / "runs", *(stored.run(n, own) for n, own in enumerate(rates)))
    result = run_backtest(folder, output_dir=tmp_path / "out")
    assert result["pairs"] == 2
    printed = capsys.readouterr().out
    interval = "(50 %, 95 % interval 1 % to 99 %)"
    sentence = f"On main this gate failed an unchanged agent in 1 of 2 comparisons {interval}"
    summary, page = ((tmp_path / "out" / f"backtest.{kind}").read_text() for kind in ("md", "html"))
    assert [sentence in text for text in (printed, summary, page)] == [True] * 3
    assert "No comparison is known to be of one commit, so the agent may have changed." in summary
    assert (page.count("<svg"), "<script" in page) == (2, False)
    assert not (tmp_path / "runs" / "_backtest.json").exists()


def test_branch_names_are_escaped_and_secrets_redacted_in_reports(tmp_path):
    name = "<img/src=x>|@octo"
    run_backtest(stored.store(tmp_path, stored.run(0, branch=name), stored.run(1, branch=name)))
    assert "<img" not in (tmp_path / "backtest.html").read_text()
    assert "<img" not in (tmp_path / "backtest.md").read_text()
    secret = "sk-" + "s3cret" * 5
    folder = stored.store(tmp_path, stored.run(0, branch=secret), stored.run(1, branch=secret))
    with pytest.raises(SystemExit):
        backtest(BacktestSettings(folder=folder, quiet=True), RunContext({"OPENAI_API_KEY": secret}))
    for name in ("_backtest.json", "backtest.md", "backtest.html"):
        assert secret not in (folder / name).read_text()


def gates_of(tmp_path, text: str):
    file = tmp_path / "gates.yaml"
    file.write_text(text)
    return read_gates(file)


def test_gates_file_spells_options_as_on_the_command_line(tmp_path):
    text = "a: {min-score: 85.5, max-drop: 2, regression: significant}\n"
    text += "b: {thresholds: [category:safety=100, suite:Refunds=90], history: 20}\nc: {regression: off}\n"
    result = gates_of(tmp_path, text)
    assert result["a"].options == {"min_score": 85.5, "max_drop": "2", "regression": Regression.SIGNIFICANT}
    assert result["b"].options == {"thresholds": "category:safety=100\nsuite:Refunds=90"}
    assert result["b"].history == 20
    assert result["c"].options == {"regression": Regression.OFF}


@each_row(
    ("text", "message"),
    [
        ("a: {min-scor: 80}", "'a': unknown option 'min-scor'. Did you mean min-score?"),
        ("a: {rounds: auto}", "rounds: stored runs cannot show what it changes"),
        ("a: {loops: 5}", "loops: stored runs cannot show what it changes"),
        ("a: {against: x}", "against: stored runs cannot show what it changes"),
        ("a: {weakened: fail}", "weakened: stored runs cannot show what it changes"),
        ("a: {--min-score: 80}", "write min-score, without dashes in front"),
        ("a: {min-score: high}", "min-score: 'high' is none of its values. It is a number from 0 to 100."),
        ("a: {min-score: 101}", "min-score: 101 is none of its values"),
        ("a: {regression: maybe}", "Values: off, any, significant."),
        ("a: {history: all}", "history: 'all' is no number from 0 to 100"),
        ("a: {max-drop: much}", "'a': "),
        ("a: 80", "names no gates. It names each gate and its options"),
        ("[]", "names no gates"),
    ],
)
def test_invalid_gates_file_is_refused_with_the_fix(tmp_path, text, message):
    with pytest.raises(UsageError) as refused:
        gates_of(tmp_path, text)
    assert message in str(refused.value)
