"""The judge of a run, and the agreement of two judges on the same criteria of the same conversations."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Results
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.scoring.agreement.beyond_chance import AgreementTable

_WORDS = (
    (Fraction(4, 5), "almost perfect"),
    (Fraction(3, 5), "substantial"),
    (Fraction(2, 5), "moderate"),
    (Fraction(1, 5), "fair"),
    (Fraction(0), "slight"),
)
"""The usual words for a kappa above each of these (Landis and Koch, 1977)."""


@dataclass(frozen=True)
class Twice:
    """A criterion of one trial that was judged twice."""

    suite: str
    test: str
    trial: int
    """Counted from 1 within its test."""
    before: Finding
    after: Finding

    @property
    def changed(self) -> bool:
        """True if the verdict is another one. A new reason for the same verdict is no change."""
        return self.before.outcome is not self.after.outcome


@dataclass(frozen=True)
class Agreement:
    """The agreement of two judges."""

    decided: int
    """Verdicts that both reached."""
    agreed: int
    kappa: Fraction | None
    """Cohen's kappa, from -1 to 1: 0 is what chance alone would give, 1 full agreement.

    None where nothing was decided by both, or where both gave the same verdict throughout: then chance would
    agree as well."""

    @property
    def share(self) -> Fraction | None:
        """The share of agreement among verdicts that both reached."""
        return Fraction(self.agreed, self.decided) if self.decided else None


def agreement(pairs: Sequence[Twice]) -> Agreement:
    """The agreement of the verdicts that both judges reached."""
    both = [
        (pair.before.outcome, pair.after.outcome)
        for pair in pairs
        if Outcome.UNDECIDED not in (pair.before.outcome, pair.after.outcome)
    ]
    if not both:
        return Agreement(decided=0, agreed=0, kappa=None)
    counts, passed, failed = Counter(both), Outcome.PASSED, Outcome.FAILED
    table = AgreementTable(
        both_pass=Fraction(counts[passed, passed], len(both)),
        first_passes=Fraction(counts[passed, failed], len(both)),
        second_passes=Fraction(counts[failed, passed], len(both)),
        both_fail=Fraction(counts[failed, failed], len(both)),
    )
    agreed = counts[passed, passed] + counts[failed, failed]
    return Agreement(decided=len(both), agreed=agreed, kappa=table.kappa())


def in_words(kappa: Fraction) -> str:
    """The usual word for a kappa."""
    return next((word for least, word in _WORDS if kappa > least), "none beyond chance")


def changes(pairs: Sequence[Twice]) -> Counter[tuple[Outcome, Outcome]]:
    """Count the changed verdicts by outcome before and after."""
    return Counter((pair.before.outcome, pair.after.outcome) for pair in pairs if pair.changed)


def judge_of(results: Results) -> JudgeUsed | None:
    """The judge of a run, of all its suites together; None where nobody judged."""
    models = {model for suite in results.suites for model in suite.models.judges}
    if not models:
        return None
    return JudgeUsed(
        provider=results.run.provider,
        models=tuple(sorted(models)),
        votes=max(suite.judge_votes for suite in results.suites),
        prompt=results.run.digests.judge_prompt,
    )


def unlike(judge: JudgeUsed, other: JudgeUsed) -> str | None:
    """In what two judges differ, in words; None where what is known of the one holds for the other."""
    facts = (
        ("the provider", judge.provider, other.provider),
        ("the model", judge.models, other.models),
        ("the votes", judge.votes, other.votes),
        ("the prompt", judge.prompt, other.prompt),
    )
    changed = [name for name, mine, theirs in facts if mine != theirs]
    return f"another judge: {' and '.join(changed)} changed" if changed else None
