"""The judge of a run: its check by control questions, and how far its votes agree."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ci_evals.domain.base import Amount, CleanText, Dollars, Instant, ResultPart


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(ResultPart):
    """An estimate from a sample, with its 95 % interval."""

    value: float
    low: float | None = None
    """Null if there are too few observations for an interval."""
    high: float | None = None
    count: Amount
    """The number of observations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUsed(ResultPart):
    """The judge that a number is about. Of another one it says nothing."""

    provider: str | None
    models: tuple[str, ...]
    """Those that vote, each once, sorted."""
    votes: int = 1
    prompt: CleanText
    """SHA-256 of everything that a judge may be shown, except conversations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCheck(ResultPart):
    """The answers of one judge to control questions, compared with the known answers."""

    asked: Amount
    """Control questions."""
    right: Amount
    """Right answers."""
    required: Amount
    """Right answers that it takes."""
    passed: bool
    why: str | None = None
    """Why it did not pass."""
    model: str
    provider: str | None = None
    address: str | None = None
    """Scheme, host and port of the judge's API, or its program; null if unknown."""
    address_digest: CleanText | None = None
    """SHA-256 of the whole address, without credentials; null if unknown. A later run takes the
    check over only for the same address."""
    prompt: CleanText
    """SHA-256 of the judge's prompt and the control questions."""
    at: Instant
    """When the questions were asked."""
    cost_usd: Dollars | None = None
    """Null if a price is unknown."""
    taken_from: Literal["baseline", "cache"] | None = None
    """Where an earlier check was found; null if this run asked."""


def worst_check(checks: Iterable[JudgeCheck]) -> JudgeCheck | None:
    """Return the check that speaks most against its judge; None without any."""
    return min(checks, key=lambda check: (check.passed, check.right - check.required), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartAgreement(ResultPart):
    """The agreement of the votes on some verdicts. Votes count if they were asked for in any case."""

    name: str
    """The criterion, or the category."""
    suite: str | None = None
    test: str | None = None
    share: Estimate | None
    """Of pairs of votes on one verdict, those that agree, 0 to 1."""
    alpha: Estimate | None
    """Krippendorff's alpha, at most 1; 0 is chance. Null if all votes are alike."""
    verdicts: Amount
    """Verdicts with at least two votes that decide."""
    low: bool
    """Whether fewer than 80 % of the pairs agree, by more than chance does to so few verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAgreement(ResultPart):
    """The agreement of a judge's votes, in a run with several votes on each criterion."""

    votes: int
    """At most, on one criterion."""
    models: tuple[str, ...]
    whole: PartAgreement
    effective_votes: Estimate | None = None
    """The number of independent votes that N votes are worth at least. Null if unknown: there are fewer
    than ten tests, no votes disagree, or suites have different numbers of votes."""
    levels: Estimate | None = None
    """Krippendorff's alpha, ordinal, of the levels that votes on rubrics name. Null without any, or
    if all are alike."""
    criteria: tuple[PartAgreement, ...]
    """Those with the lowest share first."""
    categories: tuple[PartAgreement, ...] = ()
