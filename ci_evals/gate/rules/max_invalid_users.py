"""`max-invalid-users`: the number of trials whose simulated user may have broken character."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ci_evals.domain import numbers
from ci_evals.domain.options import Group, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.gate.gate_input import GatedRun
from ci_evals.gate.rule import LimitRule


@dataclass(frozen=True)
class MaxInvalidUsers(LimitRule):
    """The number of trials that may be left out since the simulated user broke character."""

    max_invalid_users: int = 0

    kind: ClassVar[CheckKind] = CheckKind.MAX_INVALID_USERS
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="max_invalid_users",
            kind=int,
            group=Group.GATE,
            help="Maximum number of invalid users.\n\n"
            "A simulated user is invalid if it breaks character and does so again when the trial is "
            "retried. The trial then does not count.",
            default=max_invalid_users,
            minimum=0,
        ),
    )

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield the check, if users were checked."""
        if run.results.user_checks:
            yield from self.limit_check(run, self.max_invalid_users, run.results.counts.invalid_users)

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """`1 trial excluded, since the simulated user broke character twice, at most 0 allowed`."""
        del value
        trials = numbers.count(int(check.seen or 0), "trial")
        return f"{trials} excluded, since the simulated user broke character twice, {limit} allowed"
