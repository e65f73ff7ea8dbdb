"""The result of the study of which of two runs a judge prefers."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ci_evals.domain.base import Amount, CleanText, Instant, ResultPart, Share
from ci_evals.domain.results.judge import Estimate, JudgeUsed
from ci_evals.domain.results.studies import Study

Better = Literal["first", "second", "tie"]
"""A judge's answer on two conversations, by the position in which they were shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferred(ResultPart):
    """The preferences of a judge between two runs' conversations of one test."""

    suite: str
    test: str
    wins: Amount
    losses: Amount
    ties: Amount
    """Called a tie, or the conversation in the same position was preferred each time."""
    reasons: tuple[str, ...] = ()
    """Some of the judge's, for wins and losses; this run's conversation is the first in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference(Study):
    """This run against another one, conversation by conversation."""

    KEY: ClassVar[str] = "preference"

    judge: JudgeUsed
    at: Instant
    other: CleanText
    """The id of the other run."""
    other_commit: str | None = None
    pairs: Amount
    wins: Amount
    losses: Amount
    ties: Amount
    undecided: Amount = 0
    """Pairs on which the judge could not be asked or read."""
    share: Estimate | None
    """Wins and half the ties, of the decided pairs, 0 to 1."""
    p: Share | None = None
    """Of the exact sign test over tests, two-sided; null if no test is won or lost."""
    first: Estimate | None
    """Of the answers that name one side, the share that names the one shown first: 0.5 is no
    bias."""
    swapped: Amount = 0
    """Pairs in which the answer followed the position, not the conversation."""
    tests: tuple[Preferred, ...] = ()

    @property
    def place_sways(self) -> bool:
        """Tell whether the judge's answers follow the position more, or less, than chance explains."""
        first = self.first
        if first is None or first.low is None or first.high is None:
            return False
        return not first.low <= 0.5 <= first.high


KINDS = (Preference,)
"""The types of what is kept in the results of a run."""
