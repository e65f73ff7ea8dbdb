"""Studies of a saved run: each asked for by its own command, and kept with the results that it is about."""

from typing import Literal

from pydantic import Field

from ci_evals.domain.base import Amount, CleanText, Dollars, Instant, Record, Share
from ci_evals.domain.results.judge import Estimate, JudgeUsed


class Counted(Record):
    """How often judge and people said what, on the verdicts that people labelled."""

    passes_passed: Amount = Field(description="Passes of the judge that people pass too.")
    passes_failed: Amount = Field(description="Passes of the judge that people fail.")
    fails_passed: Amount = Field(description="Fails of the judge that people pass.")
    fails_failed: Amount = Field(description="Fails of the judge that people fail too.")
    passes: Amount = Field(description="Of what the labels were drawn from: passes of the judge.")
    fails: Amount = Field(description="Of what the labels were drawn from: fails of the judge.")
    design: float = Field(
        1,
        ge=1,
        le=1_000,
        description="How many labels tell as much as one would, were no two of one conversation.",
    )


class Rater(Record):
    """How a judge stands to the people who labelled the same conversations: passed is positive."""

    name: str = Field(description="`all`, the criterion, or the category.")
    kind: Literal["all", "criterion", "category"] = "all"
    items: Amount = Field(description="Verdicts that both people and judge gave.")
    counted: Counted | None = Field(None, description="What the numbers below are made of.")
    accuracy: Estimate | None
    sensitivity: Estimate | None = Field(description="Of what people pass, the share that the judge passes.")
    specificity: Estimate | None = Field(description="Of what people fail, the share that the judge fails.")
    kappa: Estimate | None = Field(description="Cohen's, judge against the people's majority.")
    alpha: Estimate | None = Field(description="Krippendorff's among all raters, the judge being one.")
    people: Estimate | None = Field(None, description="Krippendorff's alpha among the people alone.")
    people_kappa: Estimate | None = Field(
        None, description="Cohen's kappa of one person against the other, where exactly two labelled."
    )
    pass_rate: Share | None = Field(None, description="Of all verdicts of the run, as the judge has it.")
    corrected: Estimate | None = Field(
        None, description="The pass rate freed from the judge's errors (Rogan and Gladen, 1978)."
    )
    may_gate: bool | None = Field(None, description="Null where there are too few labels to say.")
    missing: Amount = Field(0, description="Labels that it takes, at least, until it can be said.")
    why: str = Field(description="Why it may gate, or not, in words without a full stop.")


class Calibration(Record):
    """A judge held against people."""

    judge: JudgeUsed
    at: Instant
    run: CleanText = Field(description="The id of the run whose verdicts they are.")
    people: int = Field(description="How many people labelled.")
    labels: Amount = Field(description="That decide: passes and fails, of all people together.")
    cannot_tell: Amount = Field(0, description="Labels that say that it cannot be told.")
    ties: Amount = Field(0, description="Verdicts left out, since as many people pass as fail them.")
    unknown: Amount = Field(0, description="Labels left out, since they are of nothing in the run.")
    parts: tuple[Rater, ...] = Field(description="All together first, then criteria, then categories.")


class OldCalibration(Record):
    """A calibration that says nothing of this run's judge any more."""

    at: Instant
    why: str


class NoiseShare(Record):
    """One source of the noise of a trial's score."""

    source: Literal["agent", "user", "judge"]
    variance: Estimate = Field(
        description="In square points, of one trial and one vote; 0 where chance made the estimate less."
    )
    share: Estimate | None = Field(
        description="Of the variance of trials of one test, 0 to 1; together they are 1. Null where nothing "
        "varies."
    )


Remedy = Literal["loops", "votes", "tests"]
"""What money can be spent on to make scores less noisy."""


class Noise(Record):
    """Where the noise of scores comes from."""

    judge: JudgeUsed | None = Field(description="Null where nobody judged.")
    at: Instant
    tests: Amount = Field(description="Those that it was told from.")
    tests_left_out: Amount = Field(0, description="Those with fewer than two scores of a kind.")
    plays: Amount = Field(description="Conversations that were played for it.")
    judgements: Amount = Field(description="Conversations that were judged again for it.")
    left_out: Amount = Field(
        0, description="Of both, those that broke off, had an invalid user or came to no score."
    )
    cost_usd: Dollars | None = Field(None, description="What it cost; null where a price is not known.")
    parts: tuple[NoiseShare, ...] = Field(description="Agent, user, judge.")
    between_tests: Estimate = Field(description="Variance of the tests' own scores, in square points.")
    standard_error: float | None = Field(
        None, description="Of the run's score, in points, as long as the tests stay these."
    )
    best: Remedy | None = Field(
        description="What the next dollar takes most noise away by, as long as the tests stay these, which "
        "is what a gate asks; `tests` where more of the same takes none away, null where nothing varies."
    )
    gains: dict[Remedy, float] = Field(
        default_factory=dict,
        description="By remedy: square points that it takes off the variance of the run's score, a dollar "
        "(a call, where costs are not known). Other tests take nothing away from the noise of these.",
    )
    best_in_general: Remedy | None = Field(
        None,
        description="The same where these tests are a sample of all that users may ask, so that the next "
        "ones would score otherwise: how good is the agent in general?",
    )
    gains_in_general: dict[Remedy, float] = Field(default_factory=dict)
    gains_per: Literal["dollar", "call"] = "dollar"
    why: str = Field(description="Why the next dollar belongs in `best`, in a sentence or two.")


def _apart(estimate: Estimate | None, value: float) -> bool:
    """Whether the interval says that it is another number."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return False
    return not estimate.low <= value <= estimate.high


Better = Literal["first", "second", "tie"]
"""What a judge says of two conversations, by the places in which they were shown."""


class Preferred(Record):
    """Which of two runs' conversations a judge prefers, of one test."""

    suite: str
    test: str
    wins: Amount
    losses: Amount
    ties: Amount = Field(description="Told as such, or each time the one in the same place was preferred.")
    reasons: tuple[str, ...] = Field(
        (),
        description="Some of the judge's, for wins and losses; this run's conversation is the first in them.",
    )


class Preference(Record):
    """This run against another one, conversation by conversation."""

    judge: JudgeUsed
    at: Instant
    other: CleanText = Field(description="The id of the other run.")
    other_commit: str | None = None
    pairs: Amount
    wins: Amount
    losses: Amount
    ties: Amount
    undecided: Amount = Field(0, description="Pairs on which the judge could not be asked or read.")
    share: Estimate | None = Field(description="Wins and half the ties, of the decided pairs, 0 to 1.")
    p: Share | None = Field(
        None, description="Of the exact sign test over tests, two-sided; null where no test is won or lost."
    )
    first: Estimate | None = Field(
        description="Of the answers that name one side, the share that names the one shown first: 0.5 is no "
        "bias."
    )
    swapped: Amount = Field(0, description="Pairs where the answer followed the place, not the conversation.")
    tests: tuple[Preferred, ...] = ()

    @property
    def place_sways(self) -> bool:
        """Whether the judge's answers follow the place more, or less, than chance explains."""
        return _apart(self.first, 0.5)


class AttackKind(Record):
    """What came of one way to talk the judge round."""

    name: str
    tried: Amount = Field(description="Verdicts that were given again, each attack by itself.")
    turned: Amount = Field(description="Of these, those that became a pass.")
    undecided: Amount = Field(0, description="Verdicts that could not be given again.")
    share: Estimate | None = Field(description="Null where nothing was tried.")
    p: Share | None = Field(
        None,
        description="How likely the judge's own changes would turn as many: a permutation test against the "
        "control. Null where there is nothing to compare.",
    )


class Attacks(Record):
    """What instructions in an agent's replies do to a judge, on verdicts that had failed."""

    judge: JudgeUsed
    at: Instant
    verdicts: Amount = Field(0, description="Failed verdicts that were attacked.")
    kinds: tuple[AttackKind, ...]
    whole: AttackKind
    control: AttackKind = Field(
        description="The same verdicts given again without attack: as they were, and with harmless words."
    )

    @property
    def beyond_noise(self) -> tuple[AttackKind, ...]:
        """The kinds that turn more verdicts than the judge changes by itself; 5 % for an error in any."""
        level = 0.05 / max(1, len(self.kinds))
        return tuple(kind for kind in self.kinds if kind.p is not None and kind.p <= level)


class Probed(Record):
    """A criterion before conversations of other tests."""

    suite: str
    test: str
    criterion: str
    tried: Amount = Field(description="Conversations of other tests by which it was decided.")
    passed: Amount
    undecided: Amount = Field(0, description="Conversations by which it could not be decided.")
    share: Estimate | None = Field(description="Null where nothing was decided.")
    vacuous: bool = Field(description="Whether it passes wherever it was tried.")


class Probe(Record):
    """Which criteria measure nothing."""

    judge: JudgeUsed
    at: Instant
    criteria: tuple[Probed, ...]

    @property
    def vacuous(self) -> tuple[Probed, ...]:
        """The criteria that pass before conversations of other tests too."""
        return tuple(one for one in self.criteria if one.vacuous)


class Studies(Record):
    """What was found out about judge and criteria of a run, each thing where it was asked for."""

    calibration: Calibration | None = None
    old_calibration: OldCalibration | None = Field(
        None, description="Given to the run, but of another judge."
    )
    noise: Noise | None = None
    preference: Preference | None = None
    attacks: Attacks | None = None
    probe: Probe | None = None
