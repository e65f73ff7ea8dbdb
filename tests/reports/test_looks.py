"""How a run came to its decision, in sentences."""

from dataclasses import replace

import builders as build
import pytest
from test_headline import compared

from ci_evals.domain.results.comparison import ComparisonLook, HistoryComparison, TestName
from ci_evals.domain.results.run import Results, Rounds
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.reports.story import certainty

HISTORY = HistoryComparison(
    runs=6,
    together=6,
    tests=20,
    delta=-6.1,
    p=0.03,
    p_of_trials=0.01,
    spread=3.0,
    smallest_drop=5.6,
)
PLAYED = "The base agent was played in the same run, alternating trial by trial"
SPREAD = "Runs of main differ among themselves by 3.0 points; a drop below 5.6 would not stand out"

CONFIGURED = {"against": True, "bothSides": "auto"}


def both_sides(data: dict, **fields) -> Results:
    """A run whose score differs from the base agent's by so many points."""
    results = compared("hh", "hh", method="both-sides", **data, **fields)
    delta = data["delta"]
    scores = {} if delta is None else {"base": 90.0, "head": 90.0 + delta}
    return replace(results, comparison=replace(results.comparison, **scores))


def sentences(results: Results) -> list[str]:
    return list(certainty.decision_sentences(results))


def in_rounds(played: int, p: float, *, at=(2, 3, 5, 7), **fields) -> Results:
    """A run that was decided after so many trials, and passed."""
    look = ComparisonLook(trials=played, p=p, decision="pass" if p > 0.3 else "continue")
    results = compared("hhhh", "hhhh", looks=(look,), method="rounds", **fields)
    rounds = Rounds(looks=at, played=played)
    gate = build.decision(passed=True)
    return replace(results, run=replace(results.run, rounds=rounds), gate=gate)


def test_a_run_that_is_looked_at_once_has_nothing_to_say():
    """Nor has one without a baseline."""
    assert sentences(compared("hh", "hh")) == []
    assert sentences(build.results(build.suite_result("Refunds"))) == []


def test_rounds():
    """When the run was decided, and by what. Four tests were to have seven trials each."""
    (early,) = sentences(in_rounds(2, 0.6))
    saved = "which saved up to 20 conversations"
    assert early == f"Decided after 2 of at most 7 trials of each test, {saved}: no sign of a drop."
    (early,) = sentences(in_rounds(3, 0.02))
    assert early.endswith("16 conversations: more could hardly change the verdict.")
    failed = in_rounds(3, 0.02)
    look = replace(failed.comparison.looks[0], decision="fail")
    comparison = replace(failed.comparison, looks=(look,))
    update = {"gate": build.decision(passed=False), "comparison": comparison}
    assert sentences(replace(failed, **update))[0].endswith(": a proven drop.")
    spared = in_rounds(3, 0.6)
    run = replace(spared.run, config=CONFIGURED)
    assert "saved up to 44 conversations" in sentences(replace(spared, run=run))[0]
    assert sentences(in_rounds(7, 0.6)) == ["Earlier rounds were not clear, so all were played."]
    assert sentences(in_rounds(2, 0.6, at=(2,))) == []


@pytest.mark.parametrize(
    "update",
    [
        {"gate": build.decision(passed=False, reasons=("nothing",))},
        {"run": build.run_info(status="interrupted")},
    ],
)
def test_a_run_without_a_verdict_was_not_decided(update):
    """Whatever look it had come to."""
    results = in_rounds(2, 0.6)
    if run := update.get("run"):
        update = {"run": replace(run, rounds=results.run.rounds)}
    assert sentences(replace(results, **update)) == []


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (
            {"delta": -6.1, "p": 0.01},
            f"{PLAYED}: in this run, this agent scores 6.1 lower (p = 0.01).",
        ),
        (
            {"delta": -8.27, "p": 0.01},  # as 90.0 and 81.7, cut: 81.73
            f"{PLAYED}: in this run, this agent scores 8.3 lower (p = 0.01).",
        ),
        (
            {"delta": 2.0, "p": 0.9},
            f"{PLAYED}: in this run, this agent scores 2.0 higher.",
        ),
        (
            {"delta": 0.0},
            f"{PLAYED}: in this run both score the same.",
        ),
        (
            {"delta": None},
            f"{PLAYED}; no test was scored on both sides.",
        ),
    ],
)
def test_both_sides(value, sentence):
    """What was played, and what came of it."""
    assert sentences(both_sides(value)) == [sentence]


@pytest.mark.parametrize(
    ("smaller", "sentence"),
    [
        (1, "1 earlier run of main has fewer tests or trials than the newest and is left out."),
        (2, "2 earlier runs of main have fewer tests or trials than the newest and are left out."),
    ],
)
def test_smaller_runs_are_left_out(smaller, sentence):
    """Which is said, since else the history looks shorter than it is."""
    few = replace(HISTORY, runs=1, together=1, smaller=smaller, spread=None)
    assert sentences(compared("hh", "hh", history=few)) == [sentence]


def test_both_sides_after_a_screen():
    """Why the base was played, then what runs differ by."""
    first, second = sentences(both_sides({"delta": -6.1, "p": 0.01}, history=HISTORY))
    assert first == (
        "The score looked lower than in the last 6 runs, so the base agent was played in the same run: in "
        "this run, this agent scores 6.1 lower (p = 0.01)."
    )
    assert second == SPREAD.replace("main", "the base branch") + "."


def test_the_base_agent_that_was_played_in_any_case():
    """No score had looked lower, or nobody had asked."""
    high = replace(HISTORY, p_of_trials=0.8)
    assert sentences(compared("hh", "hh", method="both-sides", delta=0.0, history=high))[0].startswith(PLAYED)
    always = compared("hh", "hh", method="both-sides", delta=0.0, history=HISTORY)
    always = replace(always, run=replace(always.run, config={"bothSides": "always"}))
    assert sentences(always)[0].startswith(PLAYED)


def test_earlier_runs():
    """What they differ by, and whether they decide."""
    assert sentences(compared("hh", "hh", history=HISTORY)) == [f"{SPREAD}."]
    assert sentences(compared("hh", "hh", history=replace(HISTORY, decides=True), method="history")) == [
        f"{SPREAD}.",
        "p compares this run with the last 6 runs of main together.",
    ]
    alone = replace(HISTORY, runs=1, together=1, spread=None)
    assert sentences(compared("hh", "hh", history=alone)) == []


def test_baseline_branch_that_moved_is_reported():
    """It heads what the runs that are left say."""
    moved = replace(HISTORY, together=2)
    assert sentences(compared("hh", "hh", history=moved))[0] == (
        "main changed: its last 2 runs differ from those before, which are left out."
    )
    both = compared("hh", "hh", history=moved, method="both-sides", delta=0.0)
    assert sentences(both)[1].startswith("The base branch changed: its last 2 runs")


@pytest.mark.parametrize(
    ("before", "now", "judge", "advised"),
    [
        ("old", "new", "a-judge", True),
        ("old", "old", "a-judge", False),
        ("old", "new", None, False),
        (None, "new", "a-judge", False),
        ("old", None, "a-judge", False),
    ],
)
def test_a_spot_check_is_advised_where_the_agents_model_changed(before, now, judge, advised):
    """If both are known, and a judge decides anything."""
    results = compared("hh", "hh")
    used = Usage(by_role=(RoleUsage(role="agent", model=now), RoleUsage(role="judge", model="a-judge")))
    suites = tuple(replace(suite, judge_model=judge) for suite in results.suites)
    own = results.comparison
    baseline = replace(own.baseline, agent_models=(before,) if before else ())
    comparison = replace(own, baseline=baseline)
    message = sentences(replace(results, usage=used, suites=suites, comparison=comparison))
    advice = (
        "The agent's model changed from old to new: check on 50 + 50 verdicts whether the judge treats the "
        "new answers alike (ci-evals label --spot-check)."
    )
    assert message == [advice] * advised


def test_names_of_broken_tests():
    """With what a name is worth."""
    names = {
        "broken": (TestName(suite="S", name="A"), TestName(suite="S", name="B")),
        "probably_broken": (TestName(suite="S", name="C"),),
    }
    assert sentences(compared("hh", "hh", history=HISTORY, **names))[1:] == [
        "Broken: A; B (with all 20 tests looked at, a false name in at most 5 % of runs).",
        "Probably broken: C (of all such names one in ten is false).",
    ]
