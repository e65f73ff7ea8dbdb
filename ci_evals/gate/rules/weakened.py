"""`weakened`: suites and gate may not require less than those of the baseline."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from ci_evals.domain import numbers
from ci_evals.domain.choices import WeakenedMode
from ci_evals.domain.options import Group, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.weakened import Weakened, Weakening
from ci_evals.gate.gate_input import GatedRun
from ci_evals.gate.rule import Nature, Rule, loosened_option

_OTHER_TOOL = "results of other tools do not say what their tests require"


@dataclass(frozen=True)
class NotWeakened(Rule):
    """Fails if suites or gate require less than in the baseline, and nobody has approved it."""

    weakened: WeakenedMode = WeakenedMode.WARN

    kind: ClassVar[CheckKind] = CheckKind.WEAKENED
    nature: ClassVar[Nature] = Nature.REQUIREMENTS
    advice: ClassVar[str] = (
        "Put back what is required no longer. If it is meant, somebody with write access approves it by a "
        "comment in the pull request (/evals approve suite, with the code in the report), and reruns the job."
    )
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="weakened",
            kind=WeakenedMode,
            group=Group.GATE,
            help="What happens if suites or gate require less.\n\n"
            "Less than in the baseline, that is: suites, tests or criteria are gone, a test is in "
            "quarantine or no longer critical, a weight or a `minScore` is lower, or a limit of the gate "
            "is looser. `warn`: reports list it. `fail`: the run fails too, unless somebody with write "
            "access has approved it in a comment. If it is not known what the baseline requires, the run "
            "has no verdict (exit code 3). What a run does not select is not weakened.",
            default=WeakenedMode.WARN,
        ),
    )

    @property
    def can_fail(self) -> bool:
        """True if it is more than a warning."""
        return self.weakened is WeakenedMode.FAIL

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield the check, if it can fail the run."""
        if not self.can_fail:
            return
        given, weakened = run.given, run.given.weakened
        if weakened is not None:
            yield self._check(run, weakened)
        elif run.results.of_other_tools:
            yield run.whole.check(self.kind, self.kind, 0, note=_OTHER_TOOL)
        else:
            why, blocks = given.no_baseline_reason, given.may_have_baseline
            yield run.whole.check(self.kind, self.kind, 0, note=why, blocks_verdict=blocks)

    def _check(self, run: GatedRun, weakened: Weakened) -> GateCheck:
        approval, count = weakened.approval, len(weakened.items)
        if count and approval is None:
            note = f"to approve it, comment: /evals approve suite {weakened.code}"
            return run.whole.check(self.kind, self.kind, 0, seen=count, passed=False, note=note)
        if weakened.unknown:
            return run.whole.check(self.kind, self.kind, 0, note=weakened.unknown, blocks_verdict=True)
        approved = f"approved by {approval.by}" if approval else None
        return run.whole.check(self.kind, self.kind, 0, seen=count, passed=True, note=approved)

    def loosened(self, before: Self) -> Iterator[Weakening]:
        """Yield the option if it failed runs and does not any more."""
        if before.weakened is WeakenedMode.FAIL and self.weakened is not WeakenedMode.FAIL:
            yield loosened_option(self.kind, before.weakened, self.weakened)

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """`suites or gate require less than in the baseline in 3 places`."""
        del value, limit
        places = numbers.count(int(check.seen or 0), "place")
        return f"suites or gate require less than in the baseline in {places}"

    @classmethod
    def worded_limit(cls, limit: float) -> str:
        """`nothing less than in the baseline`."""
        del limit
        return "nothing less than in the baseline"
