"""`backtest` from a folder to its reports."""

import json
from dataclasses import replace

import pytest
import stored

from ci_evals.cli.run_context import RunContext
from ci_evals.domain.choices import Regression
from ci_evals.domain.errors import UsageError
from ci_evals.extensions.backtest.command import backtest
from ci_evals.extensions.backtest.gates import Gate, Predictor
from ci_evals.extensions.backtest.settings import BacktestSettings
from ci_evals.gate.checks import checks_of
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.odds import odds_of

GOOD = (1.0,) * 4
BAD = (0.0, 1.0, 1.0, 1.0)


def played(folder, code: int = 0, **options) -> dict:
    """Run the command; return what it writes."""
    with pytest.raises(SystemExit) as end:
        backtest(BacktestSettings(folder=folder, quiet=True, **options), RunContext({}))
    assert end.value.code == code
    written = (options.get("output_dir") or folder) / "_backtest.json"
    return json.loads(written.read_text()) if written.exists() else {}


def test_failures_of_an_unchanged_agent_are_counted(tmp_path):
    """Four pairs, in one of which the later run falls below the floor of 80."""
    rates = [GOOD, GOOD, GOOD, BAD, GOOD, GOOD, GOOD, GOOD]
    found = played(stored.store(tmp_path, *(stored.run(n, own) for n, own in enumerate(rates))))
    assert (found["runs"], found["pairs"]) == (8, 4)
    assert (found["falseAlarms"]["count"], found["falseAlarms"]["of"]) == (1, 4)
    assert found["falseAlarms"]["interval"]["low"] == pytest.approx(0.0063, abs=1e-4)
    assert found["falseAlarms"]["interval"]["high"] == pytest.approx(0.8059, abs=1e-4)
    failed = [one for one in found["pairResults"] if one["failed"]]
    assert [(one["run"], one["base"], one["checks"]) for one in failed] == [("run-3", "run-2", ["min-score"])]
    assert found["checks"][0]["kind"] == "min-score"


def test_options_stand_instead_of_the_runs_own(tmp_path):
    """The same runs, with a floor that the worst of them reaches."""
    folder = stored.store(tmp_path, stored.run(0), stored.run(1, BAD))
    assert played(folder)["falseAlarms"]["count"] == 1
    found = played(folder, min_score=70)
    assert found["falseAlarms"]["count"] == 0
    assert found["options"] == {"min-score": 70}


def test_drops_are_seen_against_the_run_before(tmp_path):
    """The floor is reached; the drop since the run before is not allowed."""
    folder = stored.store(tmp_path, stored.run(0), stored.run(1, BAD))
    found = played(folder, min_score=0, max_drop="5")
    assert found["falseAlarms"]["count"] == 1
    assert found["pairResults"][0]["checks"] == ["max-drop"]
    found = played(folder, min_score=0, regression=Regression.ANY)
    assert found["pairResults"][0]["checks"] == ["regression"]


def test_other_gates_decide_the_same_runs(tmp_path):
    """Paired: where only one of both fails says how they differ."""
    rates = [GOOD, GOOD, GOOD, BAD, GOOD, BAD, GOOD, GOOD]
    folder = stored.store(tmp_path / "runs", *(stored.run(n, own) for n, own in enumerate(rates)))
    gates = tmp_path / "gates.yaml"
    gates.write_text("loose: {min-score: 50}\nstrict:\n  min-score: 100\n  regression: any\n  history: 0\n")
    found = played(folder, settings=gates)
    loose, strict = found["settings"]
    assert (loose["name"], loose["options"]) == ("loose", {"min-score": 50})
    assert (loose["falseAlarms"]["count"], loose["onlyBefore"], loose["onlyHere"]) == (0, 2, 0)
    assert loose["p"] == pytest.approx(0.5)
    assert (strict["falseAlarms"]["count"], strict["onlyBefore"], strict["onlyHere"]) == (2, 0, 0)
    assert strict["options"] == {"min-score": 100, "regression": "any", "history": 0}


def test_undecided_comparison_counts_neither_way(tmp_path):
    """A run without a verdict is no pass."""
    worst = stored.run(1)
    broken = replace(worst, counts=replace(worst.counts, not_run=3))
    found = played(stored.store(tmp_path, stored.run(0), broken, stored.run(2), stored.run(3)))
    assert (found["falseAlarms"]["of"], found["noVerdict"]) == (1, 1)
    assert found["pairResults"][0]["failed"] is None


def test_equal_commits_stand_apart(tmp_path):
    """With one commit it cannot have been the agent's code."""
    same = "c" * 40
    runs = [stored.run(0, commit=same), stored.run(1, BAD, commit=same), stored.run(2), stored.run(3)]
    found = played(stored.store(tmp_path, *runs))
    assert (found["sameCommit"]["count"], found["sameCommit"]["of"]) == (1, 1)
    assert (found["otherCommit"]["count"], found["otherCommit"]["of"]) == (0, 1)
    assert found["otherCommit"]["interval"]["high"] == pytest.approx(0.975)


def test_runs_of_pull_requests_are_decided_apart(tmp_path):
    """They have changes of the agent: their failures are no false alarms."""
    runs = [stored.run(0), stored.run(1), stored.run(2, BAD, pull_request=7), stored.run(3, pull_request=8)]
    found = played(stored.store(tmp_path, *runs))
    assert found["falseAlarms"]["count"] == 0
    assert [(one["run"], one["pullRequest"], one["failed"]) for one in found["pullRequests"]] == [
        ("run-2", 7, True),
        ("run-3", 8, False),
    ]


def test_prediction_is_that_of_odds(tmp_path):
    """The mean over the baselines of the pairs."""
    runs = [stored.run(number, (0.8, 0.9, 1.0, 1.0)) for number in range(4)]
    found = played(stored.store(tmp_path, *runs))
    policy = Gate().policy(runs[0])
    odds = [odds_of(base, checks_of(GateInput(base), policy)) for base in (runs[0], runs[2])]
    assert found["predicted"] == pytest.approx(sum(one.share for one in odds) / 2)
    assert 0 < found["predicted"] < 1
    strict = Gate({"regression": "any", "max_drop": "3"}).policy(runs[0])
    one = Predictor().prediction(runs[0], strict)
    assert one.share == odds_of(runs[0], checks_of(GateInput(runs[0]), strict)).share


def test_level_of_a_significance_test_is_added_to_the_prediction(tmp_path):
    """Odds leave it out, and say so."""
    found = played(stored.store(tmp_path, stored.run(0), stored.run(1)), regression=Regression.SIGNIFICANT)
    assert found["predictedAtMost"] == pytest.approx(found["predicted"] + 0.05)
    assert "level of regression=significant" in (tmp_path / "backtest.md").read_text()


def test_no_comparable_runs_are_no_verdict(tmp_path, capsys):
    """One run is none to compare with. Nothing is written."""
    assert played(stored.store(tmp_path, stored.run(0)), code=3) == {}
    assert "no two runs can be compared: 1 run of the branch main" in capsys.readouterr().err


def test_runs_without_a_branch_are_named(tmp_path, capsys):
    """A run outside a repository says nothing of a line of runs."""
    git = stored.run(0).run.git
    runs = [stored.run(number, git=replace(git, ref=None)) for number in range(2)]
    assert played(stored.store(tmp_path, *runs), code=3) == {}
    assert "left out: run-0: names no branch" in capsys.readouterr().err


def test_broken_files_and_those_of_an_earlier_version_are_named_and_left_out(tmp_path):
    """Section by section the others count."""
    folder = stored.store(tmp_path, stored.run(0), stored.run(1))
    text = (folder / "artifact-run-0" / "_results.json").read_text()
    for name, content in (
        ("old", text.replace('"schemaVersion": 3', '"schemaVersion": 2')),
        ("cut", text[:99]),
    ):
        (folder / name).mkdir()
        (folder / name / "_results.json").write_text(content)
    found = played(folder)
    assert found["falseAlarms"]["of"] == 1
    why = {one["name"].split("/")[-2]: one["why"] for one in found["leftOut"]}
    assert "earlier version" in why["old"]
    assert "not JSON" in why["cut"]


def test_empty_folder_is_refused(tmp_path):
    """With what should be there."""
    with pytest.raises(UsageError, match=r"contains no _results\.json"):
        backtest(BacktestSettings(folder=tmp_path), RunContext({}))


def test_reports_say_it_in_words_and_draw_it(tmp_path, capsys):
    """The page needs no script, and asks nobody for anything."""
    rates = [GOOD, GOOD, GOOD, BAD]
    found = played(
        stored.store(tmp_path / "runs", *(stored.run(n, own) for n, own in enumerate(rates))),
        output_dir=tmp_path / "out",
    )
    assert found["pairs"] == 2
    said = capsys.readouterr().out
    sentence = (
        "On main this gate failed an unchanged agent in 1 of 2 comparisons (50 %, 95 % interval 1 % to 99 %)"
    )
    assert sentence in said
    assert sentence in (tmp_path / "out" / "backtest.md").read_text()
    unknown = "No comparison is known to be of one commit, so the agent may have changed."
    assert unknown in (tmp_path / "out" / "backtest.md").read_text()
    page = (tmp_path / "out" / "backtest.html").read_text()
    assert sentence in page
    assert page.count("<svg") == 2
    assert "<script" not in page
    assert not (tmp_path / "runs" / "_backtest.json").exists()


def test_words_of_strangers_stay_words(tmp_path):
    """A branch is named by whoever pushes it."""
    name = "<img/src=x>|@octo"
    played(stored.store(tmp_path, stored.run(0, branch=name), stored.run(1, branch=name)))
    assert "<img" not in (tmp_path / "backtest.html").read_text()
    assert "<img" not in (tmp_path / "backtest.md").read_text()


def test_known_secrets_are_taken_out(tmp_path):
    """Whoever wrote the results may not have known them."""
    secret = "sk-" + "s3cret" * 5
    folder = stored.store(tmp_path, stored.run(0, branch=secret), stored.run(1, branch=secret))
    with pytest.raises(SystemExit):
        backtest(BacktestSettings(folder=folder, quiet=True), RunContext({"OPENAI_API_KEY": secret}))
    for name in ("_backtest.json", "backtest.md", "backtest.html"):
        assert secret not in (folder / name).read_text()
