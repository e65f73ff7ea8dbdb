"""What is known of the two models inside the tool, the judge and the simulated user: how far to trust them.

docs/judge.md tells how each number is reckoned, and from where the method is.
"""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from ci_evals.domain.base import Amount, CleanText, Dollars, Instant, Record, Share


class Estimate(Record):
    """A number that was told from a sample, with its 95 % interval."""

    value: float
    low: float | None = Field(None, description="Null where so few things give no interval.")
    high: float | None = None
    count: Amount = Field(description="How many things it was told from.")


class JudgeUsed(Record):
    """The judge that a number is about. Of another one it says nothing."""

    provider: str | None
    models: tuple[str, ...] = Field(description="Those that vote, each once, sorted.")
    votes: int = 1
    prompt: CleanText = Field(description="SHA-256 of all that a judge may be shown besides conversations.")


class CheckMode(StrEnum):
    """Whether a run asks its judge control questions (`--judge-check`)."""

    AUTO = "auto"
    """Asks, unless the baseline or the judge's cache holds a recent passed check of the same judge."""
    ALWAYS = "always"
    WARN = "warn"
    """As `auto`, but a judge that does not pass is a warning only."""
    OFF = "off"


class JudgeCheck(Record):
    """The answers of one judge to control questions, compared with the known answers."""

    asked: Amount = Field(description="Control questions.")
    right: Amount = Field(description="Right answers.")
    required: Amount = Field(description="Right answers that it takes.")
    passed: bool
    why: str | None = Field(None, description="Why it did not pass.")
    model: str
    provider: str | None = None
    prompt: CleanText = Field(description="SHA-256 of the judge's prompt and the control questions.")
    at: Instant = Field(description="When the questions were asked.")
    cost_usd: Dollars | None = Field(None, description="Null if a price is unknown.")
    taken_from: Literal["baseline", "cache"] | None = Field(
        None, description="Where an earlier check was found; null if this run asked."
    )


# In every run: how far the votes on one criterion agree.


class PartAgreement(Record):
    """How far the votes on some verdicts agree. Only those count that were asked for whatever came."""

    name: str = Field(description="The criterion, or the category.")
    suite: str | None = None
    test: str | None = None
    share: Estimate | None = Field(description="Of pairs of votes on one verdict, those that agree, 0 to 1.")
    alpha: Estimate | None = Field(
        description="Krippendorff's alpha, at most 1; 0 is chance. Null where all votes are alike."
    )
    verdicts: Amount = Field(description="Verdicts with at least two votes that decide.")
    low: bool = Field(
        description="Whether fewer than 80 % of the pairs agree, by more than chance does to so few verdicts."
    )


class VoteAgreement(Record):
    """How far the judge's votes agree, in a run with several votes on each criterion."""

    votes: int = Field(description="At most, on one criterion.")
    models: tuple[str, ...]
    whole: PartAgreement
    levels: Estimate | None = Field(
        None,
        description="Krippendorff's alpha, ordinal, of the levels that votes on rubrics name. Null without "
        "any, or where all are alike.",
    )
    criteria: tuple[PartAgreement, ...] = Field(description="Those with the lowest share first.")
    categories: tuple[PartAgreement, ...] = ()


# In every run with a model in the user's part: whether it kept to that part.


class Breach(Record):
    """Where a simulated user broke its role."""

    rule: str = Field(description="Which rule of the ledger, such as `repeats`; `audit` is the model's.")
    exchange: int = Field(description="Counted from 1; one more than there are stands for the unsent remark.")
    text: str = Field(description="The words that show it.")
    reason: str


class UserAudit(Record):
    """What was made of the simulated user of one conversation."""

    breaches: tuple[Breach, ...] = ()
    by_model: bool | None = Field(
        None,
        description="Whether a model looked at it too; null where none was asked, false where it failed.",
    )

    @property
    def valid(self) -> bool:
        """Whether the user kept to its role."""
        return not self.breaches


class UserLedger(Record):
    """What became of the simulated users of a run."""

    conversations: Amount = Field(description="Those that were looked at, the ones played again included.")
    played_again: Amount = Field(description="Trials whose first user had broken its role.")
    invalid: Amount = Field(description="Trials that are left out, since the second one had too.")
    audited: Amount = Field(0, description="Conversations that a model looked at as well.")
    not_audited: Amount = Field(0, description="Conversations that a model should have, and could not.")
    by_rule: dict[str, Amount] = Field(default_factory=dict, description="Conversations by broken rule.")
    broken: Estimate | None = Field(
        None,
        description="Of first conversations, the share whose user broke its role; the test is the unit.",
    )


# Studies: asked for by a command of their own, and kept with the results that they are about.


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
