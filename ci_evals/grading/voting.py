"""Votes on one question: how many to ask for at once, when they have decided, and what they add up to.

A vote and the rule by which votes decide are arguments; a plain criterion goes by the majority.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.verdict import UNUSABLE, Cause, Outcome, Verdict, Vote
from ci_evals.ports import LLM, Completion, Prompt, ask_twice


class VoidAnswerError(LLMAnswerError):
    """A judge's answer is readable but does not count: it invents, contradicts itself or has no grounds."""


class VotingRule(Protocol):
    """A rule by which votes decide; `most` is their maximum number, and odd."""

    def more(self, votes: Sequence[Vote], most: int) -> int:
        """Return how many votes to ask for next, at once; 0 if nothing more can change the outcome."""

    def verdict(self, votes: Sequence[Vote], most: int) -> Verdict:
        """Return the verdict of the votes once no more are needed; a single vote is its own verdict."""


@dataclass(frozen=True)
class JudgePanel:
    """The models that vote in turn, and how often they are asked about one criterion."""

    llms: Sequence[LLM]
    votes: int = 1
    """The maximum; odd."""
    sample_id: str = ""
    """Distinguishes equal questions in different trials, so that each is answered by itself."""
    keep: Callable[[str], str] | None = None
    """Makes of an answer that cannot be used what results keep of it; None if they keep nothing."""

    def rotation(self, index: int) -> int:
        """Return how far to rotate the parts of a prompt for a vote.

        It grows by one for each round and for each model, so that the votes of one model differ in order, and
        so do the models in one round.
        """
        return index // len(self.llms) + index % len(self.llms)

    async def poll(self, vote: Callable[[int], Awaitable[Vote]], rule: VotingRule) -> Verdict:
        """Collect votes, counted from 0, until the rule has decided. `vote` never raises.

        The votes of a batch are asked for together and count in the order of their indices.
        """
        votes: tuple[Vote, ...] = ()
        while more := rule.more(votes, self.votes):
            if more == 1:  # needs no task of its own
                votes += (await vote(len(votes)),)
            else:
                batch = range(len(votes), len(votes) + more)
                votes += tuple(await asyncio.gather(*map(vote, batch)))
        return rule.verdict(votes, self.votes)

    async def ask(self, index: int, prompt: Prompt, read: Callable[[str], Verdict]) -> Vote:
        """Return the vote of the model whose turn it is; an answer of no use is asked for once more.

        The vote is undecided if the second answer is void too (`void_answer`) or cannot be read, or if the
        model cannot be asked (`judge_error`). `read` raises `LLMAnswerError` for an answer of no use.
        """
        llm = self.llms[index % len(self.llms)]
        unusable: list[str] = []

        def note(error: LLMAnswerError) -> None:
            if self.keep and error.answer:
                unusable.append(self.keep(error.answer))

        def read_and_accept(completion: Completion) -> Verdict:
            try:
                verdict = read(completion.text)
            except LLMAnswerError as error:
                raise type(error)(str(error), error.paid, completion.text) from error
            if verdict.outcome is not Outcome.UNDECIDED:
                completion.accept()
            return verdict

        try:
            sample = replace(prompt, sample_id=f"{self.sample_id}/{index}")
            verdict = await ask_twice(llm, sample, read_and_accept, note)
        except LLMError as error:
            cause = Cause.VOID_ANSWER if isinstance(error, VoidAnswerError) else Cause.JUDGE_ERROR
            verdict = Verdict.undecided(cause, str(error))
        if unusable:
            verdict = replace(verdict, unusable=tuple(unusable))
        return vote_of(llm.model, verdict)


def vote_of(model: str, verdict: Verdict) -> Vote:
    """Return the verdict of one model as its vote."""
    return Vote(
        model=model,
        outcome=verdict.outcome,
        cause=verdict.cause,
        reason=verdict.reason,
        evidence=verdict.evidence,
        quotes=verdict.quotes,
        rests_on=verdict.rests_on,
        grade=verdict.grade,
        unusable=verdict.unusable,
    )


def verdict_of(vote: Vote) -> Verdict:
    """Return a vote as the verdict that it is if it stays the only one."""
    return Verdict(
        outcome=vote.outcome,
        cause=vote.cause,
        reason=vote.reason,
        evidence=vote.evidence,
        quotes=vote.quotes,
        rests_on=vote.rests_on,
        grade=vote.grade,
        unusable=vote.unusable,
    )


class Majority:
    """More than half of the maximum number of votes must agree; only passed or failed can win."""

    def more(self, votes: Sequence[Vote], most: int) -> int:
        """Ask for as many as a majority takes, then for as many as the leading outcome still lacks."""
        counts = Counter(vote.outcome for vote in votes)
        lacking = most // 2 + 1 - max(counts[Outcome.PASSED], counts[Outcome.FAILED])
        return lacking if 0 < lacking <= most - len(votes) else 0

    def verdict(self, votes: Sequence[Vote], most: int) -> Verdict:
        """Return the majority's outcome with reason and evidence of its first vote; else undecided."""
        if most == 1:
            return verdict_of(votes[0])
        counts = Counter(vote.outcome for vote in votes)
        for outcome in (Outcome.PASSED, Outcome.FAILED):
            if counts[outcome] > most // 2:
                first = next(vote for vote in votes if vote.outcome is outcome)
                return with_votes(verdict_of(first), votes)
        return with_votes(no_majority(votes, most), votes)


def no_majority(votes: Sequence[Vote], most: int) -> Verdict:
    """Return undecided, with the cause of the first unusable vote, else `cannot_tell`."""
    unusable = next((vote for vote in votes if vote.cause in UNUSABLE), None)
    counts = Counter(_UNUSABLE_WORDS.get(vote.cause) or _WORDS[vote.outcome] for vote in votes)
    words = (*_WORDS.values(), *_UNUSABLE_WORDS.values())
    tally = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
    reason = f"no majority of {most} votes: {tally}"
    if unusable and unusable.cause:
        return Verdict.undecided(unusable.cause, f"{reason} ({unusable.reason})")
    return Verdict.undecided(Cause.CANNOT_TELL, reason)


_WORDS = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.UNDECIDED: "cannot tell"}
_UNUSABLE_WORDS: Mapping[Cause | None, str] = {
    Cause.VOID_ANSWER: "void",
    Cause.JUDGE_ERROR: "without an answer",
}


def with_votes(verdict: Verdict, votes: Sequence[Vote]) -> Verdict:
    """Return the verdict with the votes behind it, and the share of them that agree with its outcome."""
    share = sum(vote.outcome is verdict.outcome for vote in votes) / len(votes)
    return replace(verdict, votes=tuple(votes), agreement=share)
