"""`max-p95-latency`: how long 95 % of the replies may take."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ci_evals.domain import numbers
from ci_evals.domain.options import Group, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.gate.gate_input import GatedRun
from ci_evals.gate.rule import RAISE_LIMIT, LimitRule


@dataclass(frozen=True)
class MaxP95Latency(LimitRule):
    """The maximum 95th percentile of response times, in seconds."""

    max_p95_latency: float | None = None

    kind: ClassVar[CheckKind] = CheckKind.MAX_P95_LATENCY
    noise_word: ClassVar[str] = "latency"
    advice: ClassVar[str] = RAISE_LIMIT
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="max_p95_latency",
            kind=float,
            group=Group.GATE,
            help="Maximum 95th percentile of response times.",
            metavar="SECONDS",
            minimum=0,
        ),
    )

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield the check, if there is a limit."""
        yield from self.limit_check(run, self.max_p95_latency, run.results.latency.p95, "no reply came")

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """`95 % of the replies took up to 9 s, at most 5 s allowed`."""
        del check
        return f"95 % of the replies took up to {value}, {limit} allowed"

    @classmethod
    def worded_limit(cls, limit: float) -> str:
        """`at most 5 s`."""
        return f"at most {numbers.plain(limit)} s"

    @classmethod
    def seen(cls, check: GateCheck) -> str:
        """The 95th percentile."""
        return super().seen(check) if check.seen is None else numbers.latency(check.seen, check.required)
