"""Votes: how many are asked for, when it ends, and what they come to."""

import asyncio
from itertools import product

import fakes
import pytest
from each_row import each_row

from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.verdict import Cause, Outcome, Verdict, Vote
from ci_evals.grading.voting import JudgePanel, Majority, VoidAnswerError, vote_of
from ci_evals.ports import Prompt

PASS, FAIL = Verdict.passed("It does.", 1), Verdict.failed("It does not.", 2)
UNSURE = Verdict.undecided(Cause.CANNOT_TELL, "Who knows.")
VOID = Verdict.undecided(Cause.VOID_ANSWER, "invented")
AWAY = Verdict.undecided(Cause.JUDGE_ERROR, "away")
KINDS = {"p": PASS, "f": FAIL, "c": UNSURE, "v": VOID, "a": AWAY}
VOTES = {sign: vote_of("m", verdict) for sign, verdict in KINDS.items()}


def poll(votes: str, most: int) -> tuple[Verdict, list[int]]:
    """The verdict of these votes, and how many were asked for at once each time."""
    asked: list[int] = []
    batches: list[int] = []

    async def vote(index: int) -> Vote:
        asked.append(index)
        await asyncio.sleep(0)
        if len(asked) > sum(batches):
            batches.append(len(asked) - sum(batches))
        await asyncio.sleep(0.002 * (most - index))  # the last answer comes first
        return vote_of(f"m{index}", KINDS[votes[index]])

    verdict = asyncio.run(JudgePanel([fakes.ScriptedLLM([])], most).poll(vote, Majority()))
    assert asked == list(range(len(asked)))
    return verdict, batches


@each_row(("votes", "most", "batches", "outcome", "agreement"), [
    *[("pp", 3, [2], "passed", 1), ("ff", 3, [2], "failed", 1), ("pff", 3, [2, 1], "failed", 2 / 3)],
    *[("cpp", 3, [2, 1], "passed", 2 / 3), ("ppp", 5, [3], "passed", 1)],
    ("ppff", 5, [3, 1, 1], "failed", 3 / 5),
    ("pffpp", 5, [3, 1, 1], "passed", 3 / 5),
    *[("pvvpp", 5, [3, 2], "passed", 3 / 5), ("cccc", 7, [4], "undecided", 1)],
    *[("cc", 3, [2], "undecided", 1), ("pcf", 3, [2, 1], "undecided", 1 / 3)],
    ("pcv", 3, [2, 1], "undecided", 2 / 3),
])  # fmt: skip
def test_votes_are_requested_only_while_they_can_change_the_verdict(votes, most, batches, outcome, agreement):
    verdict, asked = poll(votes + "f" * (most - len(votes)), most)
    assert (verdict.outcome, asked, verdict.agreement) == (outcome, batches, pytest.approx(agreement))
    assert [vote.model for vote in verdict.votes] == [f"m{i}" for i in range(sum(batches))]


def test_majority_gives_its_first_reason_and_votes_without_majority_are_undecided():
    verdict, _ = poll("fpp", 3)
    assert (verdict.reason, verdict.evidence, verdict.cause) == ("It does.", (1,), None)
    for sign in "pfcv":
        assert poll(sign, 1) == (KINDS[sign], [1])
    for votes, cause, third in (
        ("pfv", Cause.VOID_ANSWER, "1 void (invented)"),
        ("pfa", Cause.JUDGE_ERROR, "1 without an answer (away)"),
        ("pfc", Cause.CANNOT_TELL, "1 cannot tell"),
    ):
        verdict, _ = poll(votes, 3)
        reason = f"no majority of 3 votes: 1 passed, 1 failed, {third}"
        assert (verdict.cause, verdict.reason) == (cause, reason)


def poll_at_once(votes: str) -> Verdict:
    rule, polled = Majority(), []
    while more := rule.more(polled, len(votes)):
        polled += [VOTES[sign] for sign in votes[len(polled) : len(polled) + more]]
    return rule.verdict(polled, len(votes))


def test_early_stopping_or_an_undecided_vote_never_reverses_the_verdict():
    for votes in map("".join, product("pfcv", repeat=5)):
        passed, failed = (votes.count(sign) > 2 for sign in "pf")
        outcome = Outcome.PASSED if passed else Outcome.FAILED if failed else Outcome.UNDECIDED
        assert poll_at_once(votes).outcome is outcome, votes
        for index, sign in product(range(5), "cv"):
            after = poll_at_once(votes[:index] + sign + votes[index + 1 :])
            assert after.outcome in {outcome, Outcome.UNDECIDED}


PROMPT = Prompt(system="s", text="t", schema={"type": "object"}, schema_name="verdict")


async def test_models_vote_in_turn_with_distinct_sample_ids():
    llms = [fakes.ScriptedLLM(["ok"], name) for name in ("a", "b")]
    panel = JudgePanel(llms, 5, sample_id="3")
    votes = [await panel.ask(i, PROMPT, lambda text: PASS) for i in range(4)]
    assert [vote.model for vote in votes] == ["a", "b", "a", "b"]
    assert [prompt.sample_id for prompt in llms[0].prompts] == ["3/0/0", "3/2/0"]
    assert [prompt.sample_id for prompt in llms[1].prompts] == ["3/1/0", "3/3/0"]
    assert [panel.rotation(i) for i in range(6)] == [0, 1, 1, 2, 2, 3]
    assert [JudgePanel(llms[:1], 3).rotation(i) for i in range(3)] == [0, 1, 2]


async def test_void_or_unusable_vote_is_requested_once_more_and_unreachable_judge_is_not():
    llm = fakes.ScriptedLLM(["bad", "good"])

    def read(text: str) -> Verdict:
        if text == "bad":
            raise VoidAnswerError("it invents")
        return PASS

    assert (await JudgePanel([llm]).ask(0, PROMPT, read)).outcome is Outcome.PASSED
    assert [prompt.sample_id for prompt in llm.prompts] == ["/0/0", "/0/1"]
    vote = await JudgePanel([fakes.ScriptedLLM(["bad"])]).ask(0, PROMPT, read)
    assert (vote.cause, vote.reason) == (Cause.VOID_ANSWER, "it invents (asked twice)")
    away, empty = fakes.ScriptedLLM([LLMError("away")]), fakes.ScriptedLLM([LLMAnswerError("empty")])
    assert (await JudgePanel([away]).ask(0, PROMPT, lambda _: PASS)).reason == "away"
    assert (await JudgePanel([empty]).ask(0, PROMPT, lambda _: PASS)).reason == "empty (asked twice)"
    assert (len(away.prompts), len(empty.prompts)) == (1, 2)
