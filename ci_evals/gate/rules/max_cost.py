"""`max-cost`: what a run may cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ci_evals.domain import numbers
from ci_evals.domain.options import Group, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.gate.gate_input import GatedRun
from ci_evals.gate.rule import RAISE_LIMIT, LimitRule


@dataclass(frozen=True)
class MaxCost(LimitRule):
    """The maximum cost of a run, in US dollars."""

    max_cost: float | None = None

    kind: ClassVar[CheckKind] = CheckKind.MAX_COST
    noise_word: ClassVar[str] = "cost"
    advice: ClassVar[str] = RAISE_LIMIT
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="max_cost",
            kind=float,
            help="Maximum cost in US dollars; no new trials start near it.",
            metavar="USD",
            minimum=0,
            group=Group.LIMITS,
        ),
    )

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield the check, if there is a limit."""
        yield from self.limit_check(run, self.max_cost, run.results.usage.cost_usd, "the cost is not known")

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """`the run cost $2.00, at most $1 allowed`."""
        del check
        return f"the run cost {value}, {limit} allowed"

    @classmethod
    def worded_limit(cls, limit: float) -> str:
        """`at most $1`."""
        return f"at most {numbers.budget(limit, limit)}"

    @classmethod
    def seen(cls, check: GateCheck) -> str:
        """The cost."""
        return super().seen(check) if check.seen is None else numbers.budget(check.seen, check.required)
