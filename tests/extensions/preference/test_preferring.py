"""Two runs before a judge whose taste and whose bias are known."""

from dataclasses import replace

import builders as build
import pytest
import seeded_judges
import world
from each_row import each_row
from study_judges import (
    STUDY_TIME,
    TESTS,
    TRIALS,
    as_saved_run,
    judged_trial,
    run_of_agent,
    run_of_tests,
    study_asking,
)

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.judge import Estimate
from ci_evals.domain.results.run import Origin
from ci_evals.extensions.preference.study import pair_runs, prefer


async def preference_of(monkeypatch, answer, *, most: int = 1_000, head=None, base=None, **fields):
    paired_runs = pair_runs(head or run_of_agent("ours"), base or run_of_agent("theirs"), most, 0)
    with world.llm(answer) as models:
        async with study_asking(models, monkeypatch, **fields) as ask:
            return await prefer(ask, paired_runs, STUDY_TIME), models, ask


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize(("strength", "place"), [(0.8, 0.0), (0.5, 0.3), (0.3, 0.15)])
async def test_estimated_preference_and_position_bias_match_the_judge(monkeypatch, strength, place):
    report, _, _ = await preference_of(monkeypatch, seeded_judges.pairwise_judge(strength, place))
    assert report.pairs == report.wins + report.losses + report.ties == TESTS * TRIALS
    assert covers(report.share, strength * (1 - place) + place / 2)
    assert covers(report.first, (1 + place) / 2)
    assert report.place_sways is (place > 0)
    assert report.share.high - report.share.low < 0.3
    if strength == 0.8:
        assert report.share.low > 0.5
        assert report.p < 0.05


async def test_position_bias_and_identical_conversations_cause_ties(monkeypatch):
    report, _, _ = await preference_of(monkeypatch, seeded_judges.pairwise_judge(0.9, 1.0), most=20)
    assert (report.wins, report.losses, report.ties, report.swapped) == (0, 0, 20, 20)
    assert (report.share.value, report.first.value, report.place_sways) == (0.5, 1.0, True)
    sides = {"head": run_of_agent("x", 3), "base": run_of_agent("x", 3, id="y")}
    report, models, _ = await preference_of(monkeypatch, seeded_judges.pairwise_judge(1, 1), **sides)
    assert (report.ties, report.swapped, report.first) == (6, 0, None)
    assert not models.asked


async def test_sample_is_spread_over_tests_and_depends_on_seed():
    head, base = run_of_agent("ours"), run_of_agent("theirs")
    one, same, other = (pair_runs(head, base, 40, seed) for seed in (1, 1, 2))
    counts = [sum(pair.tests[0].name == f"T{test}" for pair in one.pairs) for test in range(TESTS)]
    assert set(counts) == {1, 2}
    assert [pair.place for pair in one.pairs] == sorted(pair.place for pair in same.pairs)
    assert one.pairs != other.pairs
    assert one.available == TESTS * TRIALS
    for pair in one.pairs:
        ours, theirs = (trial.turns[0].agent for trial in pair.trials)
        assert ours.removeprefix("ours") == theirs.removeprefix("theirs")


async def test_unmatched_and_changed_tests_are_reported():
    same = build.test_result(
        "same", trials=(judged_trial("a", "passed"), judged_trial("b", "passed", index=2))
    )
    cut = replace(same, trials=(replace(same.trials[0], status="interrupted"), same.trials[1]))
    changed = build.test_result("changed", digest="a" * 64)
    head = as_saved_run(run_of_tests(same, changed, build.test_result("new"), id="a"))
    base = as_saved_run(
        run_of_tests(cut, replace(changed, digest="b" * 64), build.test_result("old"), id="b")
    )
    paired_runs = pair_runs(head, base, 10, 0)
    assert [pair.trials[0].index for pair in paired_runs.pairs] == [2]
    unmatched = (paired_runs.only_in_head, paired_runs.only_in_base, paired_runs.changed)
    assert [[name.name for name in some] for some in unmatched] == [["new"], ["old"], ["changed"]]


REJUDGED = run_of_agent("b", 1, origin=Origin(how="rejudge", run="a", started_at=STUDY_TIME))
OTHER_TEST = as_saved_run(run_of_tests(build.test_result("x"), id="b"))
EMPTY = as_saved_run(
    run_of_tests(build.test_result("x", trials=(judged_trial("a", "passed", turns=()),)), id="a")
)


@each_row(
    ("head", "base", "message"),
    [
        (run_of_agent("a", 1), run_of_agent("a", 1), "are the same run"),
        (run_of_agent("a", 1), REJUDGED, "the same conversat"),
        (run_of_agent("a", 1), OTHER_TEST, "no test in common that is defined alike"),
        (EMPTY, OTHER_TEST, "no pair of conversations"),
    ],
)
def test_incomparable_runs_are_refused(head, base, message):
    with pytest.raises(UsageError, match=message):
        pair_runs(head, base, 10, 0)


async def test_preference_panel_asks_only_until_majority(monkeypatch):
    first, second = seeded_judges.pairwise_judge(0.5, 0.4), seeded_judges.pairwise_judge(0.5, 0.0)

    def answer(asked):
        return first(asked) if asked.model == "first" else second(asked)

    paired_runs = pair_runs(run_of_agent("ours"), run_of_agent("theirs"), 30, 0)
    with world.llm(answer) as models:
        async with study_asking(models, monkeypatch, "first", "second", votes=3) as ask:
            result = await prefer(ask, paired_runs, STUDY_TIME)
    asked_of = [one.model for one in models.asked]
    assert asked_of.count("second") == 60
    assert 60 < asked_of.count("first") < 120
    assert result.wins + result.losses + result.ties == 30
    assert 5 < result.ties < 20


async def test_refused_key_or_unreadable_judge_stops_study(monkeypatch):
    paired_runs = pair_runs(run_of_agent("ours"), run_of_agent("theirs"), 30, 0)
    with world.llm() as models:
        async with study_asking(models, monkeypatch) as ask:
            models.key = "another"
            result = await prefer(ask, paired_runs, STUDY_TIME)
    assert ask.stop.outage
    assert (result.pairs, result.share, result.first) == (0, None, None)
    assert not models.asked
    report, models, ask = await preference_of(monkeypatch, lambda _: "The first one.", parallel=2)
    assert "in a row the judge could not be asked" in ask.stop.reason
    assert report.undecided == report.pairs < 15
    assert (report.ties, len(models.asked)) == (0, 4 * report.pairs)
