"""Two runs before a judge whose taste and whose bias are known."""

from dataclasses import replace

import builders as build
import pytest
import seeded_judges
import world
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


async def asked(monkeypatch, answer, *, most: int = 1_000, head=None, base=None, **fields):
    paired_runs = pair_runs(head or run_of_agent("ours"), base or run_of_agent("theirs"), most, 0)
    with world.llm(answer) as models:
        async with study_asking(models, monkeypatch, **fields) as ask:
            return await prefer(ask, paired_runs, STUDY_TIME), models, ask


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize(("strength", "place"), [(0.8, 0.0), (0.5, 0.3), (0.3, 0.15)])
async def test_taste_and_bias_are_recovered(monkeypatch, strength, place):
    """Share of wins and share of first places lie where the judge was made to have them."""
    report, _, _ = await asked(monkeypatch, seeded_judges.pairwise_judge(strength, place))
    assert report.pairs == report.wins + report.losses + report.ties == TESTS * TRIALS
    assert holds(report.share, strength * (1 - place) + place / 2)
    assert holds(report.first, (1 + place) / 2)
    assert report.place_sways is (place > 0)
    assert report.share.high - report.share.low < 0.3
    if strength == 0.8:
        assert report.share.low > 0.5
        assert report.p < 0.05


async def test_a_judge_that_knows_places_alone_prefers_nobody(monkeypatch):
    """Whatever the conversations are: all ties, and the bias is as large as can be."""
    report, _, _ = await asked(monkeypatch, seeded_judges.pairwise_judge(0.9, 1.0), most=20)
    assert (report.wins, report.losses, report.ties, report.swapped) == (0, 0, 20, 20)
    assert report.share.value == 0.5
    assert (report.first.value, report.place_sways) == (1.0, True)


async def test_the_sample_is_spread_and_seeded():
    """A pair of each test before a second one; trial goes with trial; the same seed, the same pairs."""
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


async def test_parts_without_a_counterpart_are_named():
    """Tests of one run, changed ones, and trials that were cut off."""
    same = build.test_result(
        "same", trials=(judged_trial("a", "passed"), judged_trial("b", "passed", index=2))
    )
    cut = replace(same, trials=(replace(same.trials[0], status="interrupted"), same.trials[1]))
    changed = build.test_result("changed", digest="a" * 64)
    paired_runs = pair_runs(
        as_saved_run(run_of_tests(same, changed, build.test_result("new"), id="a")),
        as_saved_run(run_of_tests(cut, replace(changed, digest="b" * 64), build.test_result("old"), id="b")),
        10,
        0,
    )
    assert [pair.trials[0].index for pair in paired_runs.pairs] == [2]
    names = [
        [name.name for name in some]
        for some in (paired_runs.only_in_head, paired_runs.only_in_base, paired_runs.changed)
    ]
    assert names == [["new"], ["old"], ["changed"]]


async def test_the_same_words_are_a_tie(monkeypatch):
    """Nobody is asked, and they say nothing of the place."""
    report, models, _ = await asked(
        monkeypatch,
        seeded_judges.pairwise_judge(1, 1),
        head=run_of_agent("x", 3),
        base=run_of_agent("x", 3, id="y"),
    )
    assert (report.ties, report.swapped, report.first) == (6, 0, None)
    assert not models.asked


@pytest.mark.parametrize(
    ("head", "base", "message"),
    [
        (run_of_agent("a", 1), run_of_agent("a", 1), "are the same run"),
        (
            run_of_agent("a", 1),
            run_of_agent("b", 1, origin=Origin(how="rejudge", run="a", started_at=STUDY_TIME)),
            "the same conversat",
        ),
        (
            run_of_agent("a", 1),
            as_saved_run(run_of_tests(build.test_result("x"), id="b")),
            "no test in common that is defined alike",
        ),
        (
            as_saved_run(
                run_of_tests(build.test_result("x", trials=(judged_trial("a", "passed", turns=()),)), id="a")
            ),
            as_saved_run(run_of_tests(build.test_result("x"), id="b")),
            "no pair of conversations",
        ),
    ],
)
def test_incomparable_runs_are_refused(head, base, message):
    """Told before anybody is asked."""
    with pytest.raises(UsageError, match=message):
        pair_runs(head, base, 10, 0)


async def test_several_votes_and_models(monkeypatch):
    """The models ask in turn; a third round is only asked for where the first two did not agree."""
    judge = seeded_judges.pairwise_judge(0.5, 0.4)

    def answer(asked):
        return judge(asked) if asked.model == "first" else seeded_judges.pairwise_judge(0.5, 0.0)(asked)

    paired_runs = pair_runs(run_of_agent("ours"), run_of_agent("theirs"), 30, 0)
    with world.llm(answer) as models:
        async with study_asking(models, monkeypatch, "first", "second", votes=3) as ask:
            result = await prefer(ask, paired_runs, STUDY_TIME)
    asked_of = [one.model for one in models.asked]
    assert asked_of.count("second") == 60
    assert 60 < asked_of.count("first") < 120
    assert result.wins + result.losses + result.ties == 30
    assert 5 < result.ties < 20


async def test_a_key_that_is_refused(monkeypatch):
    """Nobody is asked twice, and nothing is told."""
    paired_runs = pair_runs(run_of_agent("ours"), run_of_agent("theirs"), 30, 0)
    with world.llm() as models:
        async with study_asking(models, monkeypatch) as ask:
            models.key = "another"
            result = await prefer(ask, paired_runs, STUDY_TIME)
    assert ask.stop.outage
    assert (result.pairs, result.share, result.first) == (0, None, None)
    assert not models.asked


async def test_a_judge_that_cannot_be_read_is_given_up(monkeypatch):
    """After so many in a row nobody is asked any more; what is undecided is no tie."""
    report, models, ask = await asked(monkeypatch, lambda _: "The first one.", parallel=2)
    assert "in a row the judge could not be asked" in ask.stop.reason
    assert report.undecided == report.pairs < 15
    assert report.ties == 0
    assert len(models.asked) == 4 * report.pairs
