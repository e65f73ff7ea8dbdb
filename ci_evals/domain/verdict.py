"""Verdicts: the outcome of one evaluation on one trial."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field

from ci_evals.domain.base import ResultPart, Share, as_written
from ci_evals.domain.criterion import Criterion


class Outcome(StrEnum):
    """Undecided is an outcome: it is neither a pass nor a fail, and never a number."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


class Cause(StrEnum):
    """Causes of undecided verdicts."""

    NO_TRACE = "no_trace"
    """The spans of a reply that were waited for did not come, or not all of them."""
    NO_EVIDENCE = "no_evidence"
    """A reply that the check needs did not come, or did not report what the check looks at."""
    JUDGE_ERROR = "judge_error"
    """The judge could not be reached, or its answer could not be read."""
    VOID_ANSWER = "void_answer"
    """The judge's answer was read and does not count: a pass that rests on nothing, words that nobody said, a
    reason without words, or one that contradicts its verdict."""
    NO_JUDGE = "no_judge"
    """No model is there to judge (provider offline)."""
    NO_USER = "no_user"
    """No model is there to play a user with traits or a language (provider offline)."""
    NO_MODEL = "no_model"
    """No embedding model is there to compare answers."""
    CANNOT_TELL = "cannot_tell"
    """The judge says that it cannot be told from the conversation, or its votes come to no majority."""
    NOT_REACHED = "not_reached"
    """The agent ended the conversation before lines of the test that could decide it: it counts as failed."""


NOT_WANTED = frozenset({Cause.NO_JUDGE, Cause.NO_USER})
"""Causes of verdicts that a run without models is not asked for."""
UNUSABLE = frozenset({Cause.JUDGE_ERROR, Cause.VOID_ANSWER})
"""Causes of verdicts that a model was asked for and gave no usable answer on."""

RestsOn = Literal["quotes", "absence"]
"""The grounds of a judged verdict: words of the conversation, or something that is not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote(ResultPart):
    """Words of a conversation that a judge rests on; they were looked for, and stand there."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionGrade(ResultPart):
    """A judge's grade of one dimension of a rubric."""

    name: str
    level: str
    """The level's name in the rubric."""
    score: Share
    """What that level is worth."""
    weight: Annotated[float, Field(ge=0, le=1_000_000)] = 1
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade(ResultPart):
    """The grade of a criterion with a rubric, 0 to 1.

    It is the mean of the dimensions' scores by their weights, `sum(weight x score) / sum(weight)`.
    """

    score: Share
    """The weighted mean over the dimensions, unrounded."""
    pass_at: Share | None
    """Minimum score to pass the criterion; null if another tool decided."""
    dimensions: tuple[DimensionGrade, ...]

    @classmethod
    def of(cls, pass_at: float | None, dimensions: tuple[DimensionGrade, ...]) -> Self:
        """The grade that the dimensions come to."""
        return cls(score=float(_mean(dimensions) or 0), pass_at=pass_at, dimensions=dimensions)

    def exact(self) -> Fraction:
        """The score by the numbers as they were written, unrounded."""
        mean = _mean(self.dimensions)
        return as_written(self.score) if mean is None else mean

    def passes(self) -> bool:
        """Return whether the criterion is passed with it."""
        return self.pass_at is not None and self.exact() >= as_written(self.pass_at)


def _mean(dimensions: Iterable[DimensionGrade]) -> Fraction | None:
    """None if nothing has weight, as no suite may have it."""
    total = reached = Fraction()
    for dimension in dimensions:
        weight = as_written(dimension.weight)
        total += weight
        reached += weight * as_written(dimension.score)
    return reached / total if total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote(ResultPart):
    """One answer of a judge on one criterion."""

    model: str
    outcome: Outcome
    cause: Cause | None = None
    reason: str
    evidence: tuple[int, ...] = ()
    quotes: tuple[Quote, ...] = ()
    rests_on: RestsOn | None = None
    grade: Grade | None = None
    unusable: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class _VerdictFields(ResultPart):
    """The fields that a verdict has by itself and as a part of a finding."""

    outcome: Outcome
    cause: Cause | None = None
    reason: str
    votes: tuple[Vote, ...] | None = None
    """The votes, in the order of asking. Null if there was only one."""
    agreement: Share | None = None
    """Of the votes that were given, the share for the outcome. Null without votes."""
    evidence: tuple[int, ...] = ()
    """The numbers of the turns that it rests on."""
    quotes: tuple[Quote, ...] = ()
    """The words that it rests on."""
    rests_on: RestsOn | None = None
    """Of a judged verdict: `quotes` of the conversation, or the `absence` of something in the turns
    that `evidence` names. Every judged pass has it."""
    grade: Grade | None = None
    """Of a criterion with a rubric, if it was decided."""
    unusable: tuple[str, ...] | None = None
    """What the judge wrote in answers that could not be used, shortened; only with `debug`."""

    @property
    def fails(self) -> bool:
        """True if the agent failed the criterion, or ended the conversation before it could be decided."""
        return self.outcome is Outcome.FAILED or self.cause is Cause.NOT_REACHED


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(_VerdictFields):
    """An outcome with its reason."""

    @classmethod
    def passed(cls, reason: str, *evidence: int) -> Self:
        """The criterion is met."""
        return cls(outcome=Outcome.PASSED, reason=reason, evidence=evidence)

    @classmethod
    def failed(cls, reason: str, *evidence: int) -> Self:
        """The criterion is not met."""
        return cls(outcome=Outcome.FAILED, reason=reason, evidence=evidence)

    @classmethod
    def undecided(cls, cause: Cause, reason: str, *evidence: int) -> Self:
        """It cannot be said. `evidence`: the turns that say too little."""
        return cls(outcome=Outcome.UNDECIDED, cause=cause, reason=reason, evidence=evidence)

    def opposite(self) -> "Verdict":
        """The verdict of the opposite check, on the same evidence."""
        if self.outcome is Outcome.PASSED:
            return Verdict.failed(self.reason, *self.evidence)
        if self.outcome is Outcome.FAILED:
            return Verdict.passed(self.reason, *self.evidence)
        return self


@dataclass(frozen=True, kw_only=True)
class _EvaluationFields(ResultPart):
    """The fields of a finding that come first in its JSON: the evaluation that it is of."""

    criterion: str
    kind: Literal["strict", "judged"]
    strict: str | None = None
    claims: Literal["backed"] | None = None
    """`backed` if it asks whether tool calls back what the agent says it did; else null."""
    category: str | None = None
    weight: Annotated[float, Field(ge=0, le=1_000_000)] = 1
    aui_logic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(_VerdictFields, _EvaluationFields):
    """An evaluation with its verdict, as it stands in the results file."""

    @classmethod
    def of(cls, evaluation: Criterion, verdict: Verdict) -> Self:
        """The finding that `verdict` makes of `evaluation`."""
        strict = evaluation.strict_kind
        return cls(
            criterion=evaluation.criterion,
            kind="judged" if strict is None else "strict",
            strict=strict,
            claims=evaluation.claims_kind,
            category=evaluation.category,
            weight=evaluation.weight,
            aui_logic=evaluation.aui_logic,
            outcome=verdict.outcome,
            reason=verdict.reason,
        ).with_verdict(verdict)

    def with_verdict(self, verdict: Verdict) -> Self:
        """The finding with this verdict instead of its own."""
        return replace(
            self,
            outcome=verdict.outcome,
            cause=verdict.cause,
            reason=verdict.reason,
            votes=verdict.votes,
            agreement=verdict.agreement,
            evidence=verdict.evidence,
            quotes=verdict.quotes,
            rests_on=verdict.rests_on,
            grade=verdict.grade,
            unusable=verdict.unusable,
        )

    @property
    def verdict(self) -> Verdict:
        """The verdict alone."""
        return Verdict(
            outcome=self.outcome,
            cause=self.cause,
            reason=self.reason,
            votes=self.votes,
            agreement=self.agreement,
            evidence=self.evidence,
            quotes=self.quotes,
            rests_on=self.rests_on,
            grade=self.grade,
            unusable=self.unusable,
        )
