"""`max-errors`: the number of trials that may have errored or be undecided."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from ci_evals.domain import numbers
from ci_evals.domain.options import Group, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.weakened import Weakening
from ci_evals.gate.gate_input import GatedRun
from ci_evals.gate.rule import LimitRule, loosened_option


@dataclass(frozen=True)
class MaxErrors(LimitRule):
    """The number of errored or undecided trials, beyond which the run has no verdict."""

    max_errors: int = 0

    kind: ClassVar[CheckKind] = CheckKind.MAX_ERRORS
    noise_word: ClassVar[str] = "errors"
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="max_errors",
            kind=int,
            group=Group.GATE,
            help="Maximum number of errored or undecided trials.\n\n"
            "A trial errored if the agent, a model or the setup failed, or if it was interrupted. It is "
            "undecided if one of its verdicts is; `not_reached` counts as failed instead. Above the maximum "
            "the run has no verdict (exit code 3).",
            default=max_errors,
            minimum=0,
        ),
    )

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield the check."""
        yield from self.limit_check(run, self.max_errors, run.results.counts.errors)

    def loosened(self, before: Self) -> Iterator[Weakening]:
        """Yield a higher maximum."""
        if self.max_errors > before.max_errors:
            yield loosened_option(self.kind, str(before.max_errors), str(self.max_errors))

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """`2 trials errored or could not be judged, at most 0 allowed`."""
        del value
        trials = numbers.count(int(check.seen or 0), "trial")
        return f"{trials} errored or could not be judged, {limit} allowed"
