"""Verdicts: what became of one evaluation on one trial."""

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, JsonValue

from ci_evals.domain.base import Record
from ci_evals.domain.evaluation import Judged, Strict


class Outcome(StrEnum):
    """Undecided is an outcome: it is neither a pass nor a fail, and never a number."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


class Cause(StrEnum):
    """Why a verdict is undecided."""

    NO_EVIDENCE = "no_evidence"
    """No reply of the trial carried the trace that the check needs."""
    JUDGE_ERROR = "judge_error"
    """The judge could not be reached, or its answer could not be read."""
    NO_JUDGE = "no_judge"
    """No model is there to judge (`--provider=offline`)."""
    NO_MODEL = "no_model"
    """No embedding model is there to compare answers."""


class Verdict(Record):
    """An outcome with its reason. `evidence` holds the numbers of the exchanges that it rests on."""

    outcome: Outcome
    reason: str
    cause: Cause | None = None
    evidence: tuple[int, ...] = ()

    @classmethod
    def passed(cls, reason: str, *evidence: int) -> Self:
        """The criterion is met."""
        return cls(outcome=Outcome.PASSED, reason=reason, evidence=evidence)

    @classmethod
    def failed(cls, reason: str, *evidence: int) -> Self:
        """The criterion is not met."""
        return cls(outcome=Outcome.FAILED, reason=reason, evidence=evidence)

    @classmethod
    def undecided(cls, cause: Cause, reason: str) -> Self:
        """It cannot be said."""
        return cls(outcome=Outcome.UNDECIDED, cause=cause, reason=reason)


class Finding(Record):
    """An evaluation with its verdict, as it stands in the results file."""

    criterion: str
    kind: Literal["strict", "judged"]
    strict: str | None = None
    category: str | None = None
    weight: float = Field(1, ge=0, le=1_000_000)
    aui_logic: tuple[str, ...] = ()
    outcome: Outcome
    cause: Cause | None = None
    reason: str
    votes: JsonValue = None
    evidence: tuple[int, ...] = ()

    @classmethod
    def of(cls, evaluation: Judged | Strict, verdict: Verdict) -> Self:
        """The finding that `verdict` makes of `evaluation`."""
        strict = None if isinstance(evaluation, Judged) else evaluation.strict
        return cls(
            criterion=evaluation.criterion,
            kind="judged" if strict is None else "strict",
            strict=strict,
            category=evaluation.category,
            weight=evaluation.weight,
            aui_logic=evaluation.aui_logic,
            outcome=verdict.outcome,
            cause=verdict.cause,
            reason=verdict.reason,
            evidence=verdict.evidence,
        )
