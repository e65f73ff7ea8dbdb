"""A judge compared with people who labeled its verdicts."""

from typing import ClassVar, Literal

from pydantic import Field

from ci_evals.domain.base import Amount, CleanText, Instant, Record, Share
from ci_evals.domain.results.judge import Estimate, JudgeUsed
from ci_evals.domain.results.studies import Study


class Counted(Record):
    """The counts of judge's verdicts by people's labels."""

    passes_passed: Amount = Field(description="Passes of the judge that people pass too.")
    passes_failed: Amount = Field(description="Passes of the judge that people fail.")
    fails_passed: Amount = Field(description="Fails of the judge that people pass.")
    fails_failed: Amount = Field(description="Fails of the judge that people fail too.")
    passes: Amount = Field(description="The judge's passes that the labels were sampled from.")
    fails: Amount = Field(description="The judge's fails that the labels were sampled from.")
    design: float = Field(
        1,
        ge=1,
        le=1_000,
        description="The effective number of labels: as many labels of different conversations say as much.",
    )


class Rater(Record):
    """A judge compared with the people who labeled the same conversations: passed is positive."""

    name: str = Field(description="`all`, the criterion, or the category.")
    kind: Literal["all", "criterion", "category"] = "all"
    items: Amount = Field(description="Verdicts that both people and judge gave.")
    counted: Counted | None = Field(None, description="The data behind the numbers below.")
    accuracy: Estimate | None
    sensitivity: Estimate | None = Field(description="The share of people's passes that the judge passes.")
    specificity: Estimate | None = Field(description="The share of people's fails that the judge fails.")
    kappa: Estimate | None = Field(description="Cohen's, judge against the people's majority.")
    alpha: Estimate | None = Field(description="Krippendorff's among all raters, the judge being one.")
    people: Estimate | None = Field(None, description="Krippendorff's alpha of the people alone.")
    people_kappa: Estimate | None = Field(
        None, description="Cohen's kappa of one person and the other, if exactly two labeled."
    )
    pass_rate: Share | None = Field(None, description="Of all verdicts of the run, by the judge.")
    corrected: Estimate | None = Field(
        None, description="The pass rate corrected for the judge's errors (Rogan and Gladen, 1978)."
    )
    may_gate: bool | None = Field(None, description="Null if there are too few labels to say.")
    missing: Amount = Field(0, description="The minimum number of labels for it.")
    why: str = Field(description="Why it may gate, or not, in words without a full stop.")


class Calibration(Study):
    """How far a judge agrees with people."""

    KEY: ClassVar[str] = "calibration"

    judge: JudgeUsed
    at: Instant
    run: CleanText = Field(description="The id of the run with these verdicts.")
    people: int = Field(description="How many people labeled.")
    labels: Amount = Field(description="That decide: passes and fails, of all people together.")
    cannot_tell: Amount = Field(0, description="Labels that cannot tell.")
    ties: Amount = Field(0, description="Verdicts excluded, since as many people pass as fail them.")
    unknown: Amount = Field(0, description="Labels ignored, since they match nothing in the run.")
    parts: tuple[Rater, ...] = Field(description="All together first, then criteria, then categories.")


class OldCalibration(Study):
    """A calibration that says nothing of this run's judge any more."""

    KEY: ClassVar[str] = "oldCalibration"

    at: Instant
    why: str


KINDS = (Calibration, OldCalibration)
"""The types of what is kept in the results of a run."""
