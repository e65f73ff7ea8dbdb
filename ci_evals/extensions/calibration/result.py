"""A judge compared with people who labeled its verdicts."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ci_evals.domain.base import Amount, CleanText, Instant, ResultPart, Share
from ci_evals.domain.results.judge import Estimate, JudgeUsed
from ci_evals.domain.results.studies import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(ResultPart):
    """The counts of judge's verdicts by people's labels."""

    passes_passed: Amount
    """Passes of the judge that people pass too."""
    passes_failed: Amount
    """Passes of the judge that people fail."""
    fails_passed: Amount
    """Fails of the judge that people pass."""
    fails_failed: Amount
    """Fails of the judge that people fail too."""
    passes: Amount
    """The judge's passes that the labels were sampled from."""
    fails: Amount
    """The judge's fails that the labels were sampled from."""
    design: Annotated[float, Field(ge=1, le=1_000)] = 1
    """The effective number of labels: as many labels of different conversations say as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rater(ResultPart):
    """A judge compared with the people who labeled the same conversations: passed is positive."""

    name: str
    """`all`, the criterion, or the category."""
    kind: Literal["all", "criterion", "category"] = "all"
    items: Amount
    """Verdicts that both people and judge gave."""
    counted: Counted | None = None
    """The data behind the numbers below."""
    accuracy: Estimate | None
    sensitivity: Estimate | None
    """The share of people's passes that the judge passes."""
    specificity: Estimate | None
    """The share of people's fails that the judge fails."""
    kappa: Estimate | None
    """Cohen's, judge against the people's majority."""
    alpha: Estimate | None
    """Krippendorff's among all raters, the judge being one."""
    people: Estimate | None = None
    """Krippendorff's alpha of the people alone."""
    people_kappa: Estimate | None = None
    """Cohen's kappa of one person and the other, if exactly two labeled."""
    pass_rate: Share | None = None
    """Of all verdicts of the run, by the judge."""
    corrected: Estimate | None = None
    """The pass rate corrected for the judge's errors (Rogan and Gladen, 1978)."""
    may_gate: bool | None = None
    """Null if there are too few labels to say."""
    missing: Amount = 0
    """The minimum number of labels for it."""
    why: str
    """Why it may gate, or not, in words without a full stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(Study):
    """How far a judge agrees with people."""

    KEY: ClassVar[str] = "calibration"

    judge: JudgeUsed
    at: Instant
    run: CleanText
    """The id of the run with these verdicts."""
    people: int
    """How many people labeled."""
    labels: Amount
    """That decide: passes and fails, of all people together."""
    cannot_tell: Amount = 0
    """Labels that cannot tell."""
    ties: Amount = 0
    """Verdicts excluded, since as many people pass as fail them."""
    unknown: Amount = 0
    """Labels ignored, since they match nothing in the run."""
    parts: tuple[Rater, ...]
    """All together first, then criteria, then categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OldCalibration(Study):
    """A calibration that says nothing of this run's judge any more."""

    KEY: ClassVar[str] = "oldCalibration"

    at: Instant
    why: str


KINDS = (Calibration, OldCalibration)
"""The types of what is kept in the results of a run."""
