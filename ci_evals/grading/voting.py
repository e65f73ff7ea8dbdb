"""Votes on one question: how many are asked for at once, when they have decided, and what they come to.

What one vote is, and by which rule votes decide, are arguments: a plain criterion goes by the majority.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ci_evals.domain.errors import LLMAnswerError, LLMError
from ci_evals.domain.verdict import UNUSABLE, Cause, Outcome, Verdict, Vote
from ci_evals.ports import LLM, Prompt

Read = Callable[[str], Verdict | str]
"""What one answer says: a verdict, or why the answer is void.

Raises `LLMAnswerError` for one that cannot be read.
"""


class Rule(Protocol):
    """How votes decide. `most` is how many are asked for at the most, an odd number."""

    def more(self, votes: Sequence[Vote], most: int) -> int:
        """How many votes to ask for at once now: 0 where it is decided, or cannot be any more."""

    def verdict(self, votes: Sequence[Vote], most: int) -> Verdict:
        """What they come to, once no more are asked for. With one vote wanted that is its verdict."""


@dataclass(frozen=True)
class JudgePanel:
    """The models that vote in turn, and how often they are asked about one criterion."""

    llms: Sequence[LLM]
    votes: int = 1
    """At the most; odd."""
    sample_id: str = ""
    """Sets apart equal questions that stand in different trials."""

    def turn(self, index: int) -> int:
        """How far the order of a prompt is turned for a vote: by one for each round, and for each model.

        So the votes of one model have different orders, and so have the models in one round.
        """
        return index // len(self.llms) + index % len(self.llms)

    async def poll(self, vote: Callable[[int], Awaitable[Vote]], rule: Rule) -> Verdict:
        """What the votes come to; `vote` gives the one of an index, counted from 0, and never raises.

        Those of one batch are asked for at the same time, and count in the order of their indices.
        """
        votes: tuple[Vote, ...] = ()
        while more := rule.more(votes, self.votes):
            if more == 1:  # needs no task of its own
                votes += (await vote(len(votes)),)
            else:
                batch = range(len(votes), len(votes) + more)
                votes += tuple(await asyncio.gather(*map(vote, batch)))
        return rule.verdict(votes, self.votes)

    async def ask(self, index: int, prompt: Prompt, read: Read) -> Vote:
        """The vote of an index, by the model whose turn it is. A void answer is asked for once more.

        It is undecided where that one is void too (`void_answer`), cannot be read, or the model cannot be
        asked (`judge_error`).
        """
        llm = self.llms[index % len(self.llms)]
        cause, why = Cause.JUDGE_ERROR, ""
        for attempt in range(2):
            asked = Prompt(
                system=prompt.system,
                text=prompt.text,
                schema=prompt.schema,
                schema_name=prompt.schema_name,
                sample_id=f"{self.sample_id}/{index}/{attempt}",
            )
            try:
                completion = await llm.complete(asked)
                found = read(completion.text)
            except LLMAnswerError as error:
                cause, why = Cause.JUDGE_ERROR, str(error)
                continue
            except LLMError as error:
                return vote_of(llm.model, Verdict.undecided(Cause.JUDGE_ERROR, str(error)))
            if isinstance(found, Verdict):
                if found.outcome is not Outcome.UNDECIDED:
                    completion.accept()
                return vote_of(llm.model, found)
            cause, why = Cause.VOID_ANSWER, found
        return vote_of(llm.model, Verdict.undecided(cause, f"{why} (asked twice)"))


def vote_of(model: str, verdict: Verdict) -> Vote:
    """The verdict of one model as its vote."""
    return Vote(model=model, **{name: getattr(verdict, name) for name in _SHARED})


def verdict_of(vote: Vote) -> Verdict:
    """What a vote says, as the verdict that it is where it is the only one."""
    return Verdict(**{name: getattr(vote, name) for name in _SHARED})


_SHARED = tuple(name for name in Vote.model_fields if name != "model")


class Majority:
    """More than half of all votes that are wanted must be for one outcome; passed or failed alone can win."""

    def more(self, votes: Sequence[Vote], most: int) -> int:
        """As many as a majority takes; then as many as the outcome that leads still lacks."""
        counts = Counter(vote.outcome for vote in votes)
        lacking = most // 2 + 1 - max(counts[Outcome.PASSED], counts[Outcome.FAILED])
        return lacking if 0 < lacking <= most - len(votes) else 0

    def verdict(self, votes: Sequence[Vote], most: int) -> Verdict:
        """That of the majority, with the reason and the evidence of its first vote; else undecided."""
        if most == 1:
            return verdict_of(votes[0])
        counts = Counter(vote.outcome for vote in votes)
        for outcome in (Outcome.PASSED, Outcome.FAILED):
            if counts[outcome] > most // 2:
                said = verdict_of(next(vote for vote in votes if vote.outcome is outcome))
                return counted(said, votes)
        return counted(no_majority(votes, most), votes)


def no_majority(votes: Sequence[Vote], most: int) -> Verdict:
    """Undecided: for the cause of the first vote that was void or could not be had, else `cannot_tell`."""
    lost = next((vote for vote in votes if vote.cause in UNUSABLE), None)
    counts = Counter(_LOST.get(vote.cause) or _WORDS[vote.outcome] for vote in votes)
    words = (*_WORDS.values(), *_LOST.values())
    tally = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
    reason = f"no majority of {most} votes: {tally}"
    if lost and lost.cause:
        return Verdict.undecided(lost.cause, f"{reason} ({lost.reason})")
    return Verdict.undecided(Cause.CANNOT_TELL, reason)


_WORDS = {Outcome.PASSED: "passed", Outcome.FAILED: "failed", Outcome.UNDECIDED: "cannot tell"}
_LOST: Mapping[Cause | None, str] = {Cause.VOID_ANSWER: "void", Cause.JUDGE_ERROR: "without an answer"}


def counted(verdict: Verdict, votes: Sequence[Vote]) -> Verdict:
    """The verdict with the votes that it comes of, and the share of them that are for its outcome."""
    share = sum(vote.outcome is verdict.outcome for vote in votes) / len(votes)
    return verdict.model_copy(update={"votes": tuple(votes), "agreement": share})
