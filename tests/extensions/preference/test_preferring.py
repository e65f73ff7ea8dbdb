"""Two runs before judges whose taste and bias are known: pairs of conversations, answers, and their sums."""

import asyncio
import json
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

import builders as build
import fakes
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

from ci_evals.domain.errors import LLMAnswerError, LLMError, UsageError
from ci_evals.domain.results.judge import Estimate, JudgeUsed
from ci_evals.domain.results.run import Git, Origin
from ci_evals.domain.suite import AUTO, PlannedTurn
from ci_evals.extensions.preference.conversation_pair import ComparedConversation, ConversationPair
from ci_evals.extensions.preference.result import Preferred
from ci_evals.extensions.preference.study import pair_runs, prefer
from ci_evals.extensions.preference.tally import ComparedPair, Round, decided, preference, sign_test
from ci_evals.support.redaction import Redactor


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


def test_sampled_pairs_are_spread_over_tests_and_depend_only_on_the_seed():
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


def test_unmatched_and_changed_tests_are_reported_and_not_paired():
    trials = judged_trial("a", "passed"), judged_trial("b", "passed", index=2)
    same = build.test_result("same", trials=trials)
    cut = replace(same, trials=(replace(same.trials[0], status="interrupted"), same.trials[1]))
    changed = build.test_result("changed", digest="a" * 64)
    head = as_saved_run(run_of_tests(same, changed, build.test_result("new"), id="a"))
    other = replace(changed, digest="b" * 64)
    base = as_saved_run(run_of_tests(cut, other, build.test_result("old"), id="b"))
    paired_runs = pair_runs(head, base, 10, 0)
    assert [pair.trials[0].index for pair in paired_runs.pairs] == [2]
    unmatched = (paired_runs.only_in_head, paired_runs.only_in_base, paired_runs.changed)
    assert [[name.name for name in some] for some in unmatched] == [["new"], ["old"], ["changed"]]


REJUDGED = run_of_agent("b", 1, origin=Origin(how="rejudge", run="a", started_at=STUDY_TIME))
OTHER_TEST = as_saved_run(run_of_tests(build.test_result("x"), id="b"))
_TURNLESS = judged_trial("a", "passed", turns=())
EMPTY = as_saved_run(run_of_tests(build.test_result("x", trials=(_TURNLESS,)), id="a"))


@each_row(("head", "base", "message"), [
    (run_of_agent("a", 1), run_of_agent("a", 1), "are the same run"),
    (run_of_agent("a", 1), REJUDGED, "the same conversat"),
    (run_of_agent("a", 1), OTHER_TEST, "no test in common that is defined alike"),
    (EMPTY, OTHER_TEST, "no pair of conversations"),
])  # fmt: skip
def test_incomparable_runs_are_refused_with_the_reason(head, base, message):
    with pytest.raises(UsageError, match=message):
        pair_runs(head, base, 10, 0)


async def test_panel_is_asked_only_until_majority_and_refused_key_stops_the_study(monkeypatch):
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
    with world.llm() as models:
        async with study_asking(models, monkeypatch) as ask:
            models.key = "another"
            result = await prefer(ask, paired_runs, STUDY_TIME)
    assert ask.stop.outage
    assert (result.pairs, result.share, result.first) == (0, None, None)
    assert not models.asked


async def test_repeated_unreadable_answers_stop_the_preference_study(monkeypatch):
    report, models, ask = await preference_of(monkeypatch, lambda _: "The first one.", parallel=2)
    assert "in a row the judge could not be asked" in ask.stop.reason
    assert report.undecided == report.pairs < 15
    assert (report.ties, len(models.asked)) == (0, 4 * report.pairs)


GOOD = json.dumps({"reasoning": " It got there. ", "better": "first"})
SECRET = "tenant-4711-blue"


def conversation_pair(one="user: Refund! | agent: Done.", other="user: Refund! | agent: Maybe."):
    test = build.test_result(user_info={"order": 7}, guidelines=f"You want it back, {SECRET}.")
    turns = (PlannedTurn(user=AUTO, expectation="starts it"),)
    talks = (ComparedConversation(turns, build.transcript(text)) for text in (one, other))
    return ConversationPair(Redactor(values=[SECRET]), test, ["The refund is started"], *talks)


async def test_judge_is_shown_both_conversations_in_either_order_without_secrets():
    llm = fakes.ScriptedLLM([GOOD])
    result = conversation_pair()
    choices = await asyncio.gather(*(result.ask(llm, swapped=swapped) for swapped in (False, True)))
    straight, swapped = (prompt.text for prompt in llm.prompts)
    assert straight.index("Done.") < straight.index("Maybe.")
    assert swapped.index("Maybe.") < swapped.index("Done.")
    for text in (straight, swapped):
        for part in ("The refund is started", '"expected": "starts it"', '"order": 7'):
            assert part in text
        assert "weight" not in text
        assert SECRET not in text
    assert [tuple(choice) for choice in choices] == [("first", "It got there.")] * 2
    assert llm.prompts[0].schema["properties"]["better"]["enum"] == ["first", "second", "tie"]


@each_row("answer", [
    "The first is better.",
    '{"reasoning": "r", "better": "both"}',
    '{"reasoning": " ", "better": "first"}',
    '{"reasoning": "...", "better": "first"}',
    '{"reasoning": "r", "better": "first", "better": "second"}',
    '{"reasoning": "r", "better": "first", "verdict": "pass"}',
    LLMAnswerError("it refused"),
])  # fmt: skip
async def test_unreadable_answer_is_requested_once_more(answer):
    assert (await conversation_pair().ask(fakes.ScriptedLLM([answer, GOOD]), swapped=False)).better == "first"
    llm = fakes.ScriptedLLM([answer])
    choice = await conversation_pair().ask(llm, swapped=False)
    assert choice.better is None
    assert choice.reason.endswith("(asked twice)")
    assert len({prompt.sample_id for prompt in llm.prompts}) == 2


async def test_unavailable_judge_is_not_requested_again():
    llm = fakes.ScriptedLLM([LLMError("no connection")])
    assert tuple(await conversation_pair().ask(llm, swapped=False)) == (None, "no connection")
    assert len(llm.prompts) == 1


JUDGE = JudgeUsed(provider="openai", models=("m",), prompt="p")
AT = datetime(2026, 11, 22, tzinfo=UTC)
WIN, LOSS, TIE = Round("first", "second", "better"), Round("second", "first", "worse"), Round("tie", "tie")
PLACE, GONE = Round("first", "first"), Round(None, "first")


def pair(*rounds: Round, test: str = "t", votes: int = 0) -> ComparedPair:
    votes = votes or len(rounds)
    return ComparedPair("S", test, rounds, votes, counted=(votes + 1) // 2)


def tally(*pairs: ComparedPair):
    return preference(pairs, JUDGE, AT, "other", Git(commit="c" * 40))


@each_row(("straight", "swapped"), [*product(["first", "second", "tie"], repeat=2)])
def test_only_conversation_preferred_in_both_orders_wins(straight, swapped):
    expected = {("first", "second"): "win", ("second", "first"): "loss"}.get((straight, swapped), "tie")
    result = Round(straight, swapped)
    assert result.result == expected
    assert result.followed_place is (straight == swapped != "tie")


def test_rounds_of_pairs_are_summed_by_test():
    assert GONE.result is None
    result = tally(pair(WIN), pair(GONE))
    assert (result.pairs, result.wins, result.ties, result.undecided) == (2, 1, 0, 1)
    assert result.share.value == 1
    result = tally(pair(WIN), pair(WIN), pair(PLACE), pair(LOSS, test="u"), pair(TIE, test="u"))
    assert (result.wins, result.losses, result.ties, result.swapped) == (2, 1, 2, 1)
    assert (result.share.value, result.share.count) == (pytest.approx(3 / 5), 5)
    assert (result.first.value, result.first.count) == (pytest.approx(5 / 8), 8)
    first, second = result.tests
    assert (first.wins, first.losses, first.ties) == (2, 0, 1)
    assert (first.reasons, second.reasons) == (("win: better", "win: better"), ("loss: worse",))
    assert (result.other, result.other_commit) == ("other", "c" * 40)
    assert not decided((WIN, LOSS, TIE), 5)
    assert decided((WIN, LOSS, TIE, GONE), 5)


def test_judge_swayed_by_position_decides_no_pair_and_is_reported():
    result = tally(*(pair(PLACE, test=str(number)) for number in range(12)))
    assert (result.wins, result.losses, result.ties, result.swapped) == (0, 0, 12, 12)
    assert result.first.value == 1
    assert result.place_sways
    assert result.p is None
    fair = tally(*(pair(WIN, test=str(number)) for number in range(12)))
    assert fair.first.value == 0.5
    assert not fair.place_sways
    result = tally(pair(WIN, LOSS, PLACE, votes=3))
    assert (result.first.value, result.swapped) == (0.5, 0)


@each_row(("rounds", "result"), [
    ((WIN, WIN), "win"),
    ((WIN, LOSS, WIN), "win"),
    ((WIN, LOSS, TIE), "tie"),
    ((WIN, TIE, TIE), "tie"),
    ((WIN, LOSS, GONE), None),
    ((WIN, GONE, WIN), "win"),
])  # fmt: skip
def test_majority_of_rounds_decides_pair(rounds, result):
    assert pair(*rounds, votes=3).result == result
    assert decided(rounds, 3)
    assert not decided(rounds[:1], 3)


@each_row(("wins", "losses", "p"), [
    (5, 0, 2 / 32), (0, 5, 2 / 32), (4, 1, 12 / 32), (3, 3, 1.0), (0, 0, None), (1, 0, 1.0),
])  # fmt: skip
def test_sign_test_is_exact_and_counts_tests_not_pairs(wins, losses, p):
    """Each test is one toss, however many pairs it has; one that is even says nothing."""

    def test(won, lost):
        return Preferred(suite="S", test="t", wins=won, losses=lost, ties=0)

    result = sign_test([*[test(3, 1)] * wins, *[test(0, 1)] * losses, test(2, 2)])
    assert result == (p if p is None else pytest.approx(p))


@pytest.mark.parametrize("place", [0.0, 0.2, 0.6])
def test_intervals_cover_true_share_and_position_bias(place):
    rng, runs, taste = random.Random(11), 250, 0.6
    covered = Counter()

    def answers(wins: float) -> Round:
        ours = rng.random() < wins
        straight, swapped = (rng.random() < place for _ in range(2))
        return Round("first" if straight or ours else "second", "first" if swapped or not ours else "second")

    for _ in range(runs):
        shares = [rng.betavariate(4 * taste, 4 * (1 - taste)) for _ in range(30)]
        numbered = [(str(n), share) for n, share in enumerate(shares) for _ in range(2)]
        result = tally(*(pair(answers(share), test=name) for name, share in numbered))
        covered["share"] += result.share.low <= taste * (1 - place) + place / 2 <= result.share.high
        covered["first"] += result.first.low <= (1 + place) / 2 <= result.first.high
    assert min(covered.values()) >= 0.92 * runs
