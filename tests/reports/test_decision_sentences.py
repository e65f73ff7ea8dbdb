"""How a run came to its decision, in sentences."""

from dataclasses import replace

import builders as build
from each_row import each_row
from test_headline import compared

from ci_evals.domain.results.comparison import ComparisonLook, HistoryComparison, TestName
from ci_evals.domain.results.run import Results, Rounds
from ci_evals.domain.results.usage import RoleUsage, Usage
from ci_evals.reports.story import certainty

HISTORY = HistoryComparison(
    runs=6, together=6, tests=20, delta=-6.1, p=0.03, p_of_trials=0.01, spread=3.0, smallest_drop=5.6
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


def decided_after(played: int, p: float, *, at=(2, 3, 5, 7), **fields) -> Results:
    """A run that was decided after so many trials, and passed."""
    look = ComparisonLook(trials=played, p=p, decision="pass" if p > 0.3 else "continue")
    results = compared("hhhh", "hhhh", looks=(look,), method="rounds", **fields)
    rounds = Rounds(looks=at, played=played)
    gate = build.decision(passed=True)
    return replace(results, run=replace(results.run, rounds=rounds), gate=gate)


def test_decision_names_the_round_its_reason_and_saved_conversations():
    (early,) = sentences(decided_after(2, 0.6))
    saved = "which saved up to 20 conversations"
    assert early == f"Decided after 2 of at most 7 trials of each test, {saved}: no sign of a drop."
    (early,) = sentences(decided_after(3, 0.02))
    assert early.endswith("16 conversations: more could hardly change the verdict.")
    failed = decided_after(3, 0.02)
    look = replace(failed.comparison.looks[0], decision="fail")
    comparison = replace(failed.comparison, looks=(look,))
    update = {"gate": build.decision(passed=False), "comparison": comparison}
    assert sentences(replace(failed, **update))[0].endswith(": a proven drop.")
    spared = decided_after(3, 0.6)
    run = replace(spared.run, config=CONFIGURED)
    assert "saved up to 44 conversations" in sentences(replace(spared, run=run))[0]
    assert sentences(decided_after(7, 0.6)) == ["Earlier rounds were not clear, so all were played."]
    assert sentences(decided_after(2, 0.6, at=(2,))) == []


def test_decision_is_not_explained_without_rounds_baseline_or_verdict():
    assert sentences(compared("hh", "hh")) == []
    assert sentences(build.results(build.suite_result("Refunds"))) == []
    results = decided_after(2, 0.6)
    gate = build.decision(passed=False, reasons=("nothing",))
    assert sentences(replace(results, gate=gate)) == []
    assert sentences(replace(results, run=replace(results.run, status="interrupted"))) == []


@each_row(
    ("fields", "sentence"),
    [
        ({"delta": -6.1, "p": 0.01}, f"{PLAYED}: in this run, this agent scores 6.1 lower (p = 0.01)."),
        (  # as 90.0 and 81.7, cut: 81.73
            {"delta": -8.27, "p": 0.01},
            f"{PLAYED}: in this run, this agent scores 8.3 lower (p = 0.01).",
        ),
        ({"delta": 2.0, "p": 0.9}, f"{PLAYED}: in this run, this agent scores 2.0 higher."),
        ({"delta": 0.0}, f"{PLAYED}: in this run both score the same."),
        ({"delta": None}, f"{PLAYED}; no test was scored on both sides."),
    ],
)
def test_score_difference_from_base_agent_is_stated(fields, sentence):
    assert sentences(both_sides(fields)) == [sentence]


def test_rerun_of_the_base_agent_is_explained_by_the_history():
    first, second = sentences(both_sides({"delta": -6.1, "p": 0.01}, history=HISTORY))
    assert first == (
        "The score looked lower than in the last 6 runs, so the base agent was played in the same run: in "
        "this run, this agent scores 6.1 lower (p = 0.01)."
    )
    assert second == SPREAD.replace("main", "the base branch") + "."
    high = compared("hh", "hh", method="both-sides", delta=0.0, history=replace(HISTORY, p_of_trials=0.8))
    assert sentences(high)[0].startswith(PLAYED)
    always = compared("hh", "hh", method="both-sides", delta=0.0, history=HISTORY)
    always = replace(always, run=replace(always.run, config={"bothSides": "always"}))
    assert sentences(always)[0].startswith(PLAYED)


def test_history_sentences_state_spread_use_ignored_runs_and_a_branch_that_moved():
    def of(history: HistoryComparison, **fields) -> list[str]:
        return sentences(compared("hh", "hh", history=history, **fields))

    smaller = replace(HISTORY, runs=1, together=1, spread=None)
    end = "fewer tests or trials than the newest and"
    assert of(smaller) == []
    assert of(replace(smaller, smaller=1)) == [f"1 earlier run of main has {end} is left out."]
    assert of(replace(smaller, smaller=2)) == [f"2 earlier runs of main have {end} are left out."]
    used = "p compares this run with the last 6 runs of main together."
    assert of(HISTORY) == [f"{SPREAD}."]
    assert of(replace(HISTORY, decides=True), method="history") == [f"{SPREAD}.", used]
    moved = replace(HISTORY, together=2)
    changed = "main changed: its last 2 runs differ from those before, which are left out."
    assert of(moved)[0] == changed
    both = of(moved, method="both-sides", delta=0.0)
    assert both[1].startswith("The base branch changed: its last 2 runs")


@each_row(("before", "now", "judge", "advised"), [
    ("old", "new", "a-judge", True),
    ("old", "old", "a-judge", False),
    ("old", "new", None, False),
    (None, "new", "a-judge", False),
    ("old", None, "a-judge", False),
])  # fmt: skip
def test_spot_check_of_the_judge_is_advised_if_the_agent_model_changed(before, now, judge, advised):
    results = compared("hh", "hh")
    usage = Usage(by_role=(RoleUsage(role="agent", model=now), RoleUsage(role="judge", model="a-judge")))
    suites = tuple(replace(suite, judge_model=judge) for suite in results.suites)
    baseline = replace(results.comparison.baseline, agent_models=(before,) if before else ())
    comparison = replace(results.comparison, baseline=baseline)
    advice = (
        "The agent's model changed from old to new: check on 50 + 50 verdicts whether the judge treats the "
        "new answers alike (ci-evals label --spot-check)."
    )
    results = replace(results, usage=usage, suites=suites, comparison=comparison)
    assert sentences(results) == [advice] * advised


def test_broken_tests_are_named_with_their_error_rate():
    names = {
        "broken": (TestName(suite="S", name="A"), TestName(suite="S", name="B")),
        "probably_broken": (TestName(suite="S", name="C"),),
    }
    assert sentences(compared("hh", "hh", history=HISTORY, **names))[1:] == [
        "Broken: A; B (with all 20 tests looked at, a false name in at most 5 % of runs).",
        "Probably broken: C (of all such names one in ten is false).",
    ]
