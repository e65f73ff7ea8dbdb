"""`min-score`: the minimum score of the run, and those that suite files set for a suite or a test."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from ci_evals.domain import numbers
from ci_evals.domain.options import Group, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.weakened import Weakening
from ci_evals.domain.score_scale import as_share, is_share
from ci_evals.gate.gate_input import GatedRun
from ci_evals.gate.rule import loosened_option
from ci_evals.gate.rules.floors import FloorRule, floor_check


@dataclass(frozen=True)
class MinScore(FloorRule):
    """The minimum score of the run, and those that suite files set."""

    min_score: float = 80

    kind: ClassVar[CheckKind] = CheckKind.MIN_SCORE
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="min_score",
            kind=float,
            group=Group.GATE,
            help="Minimum run score (0–100).",
            default=min_score,
            metavar="POINTS",
            minimum=0,
            maximum=100,
        ),
    )

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield the floor of the run, then those of suites and tests."""
        yield floor_check(self.kind, run, run.whole, self.min_score)
        for number, suite in enumerate(run.results.suites, start=1):
            tests = [one for one in run.tests if one.scope.suite_number == number]
            if suite.min_score is not None and tests:
                yield floor_check(self.kind, run, run.whole._replace(suite_number=number), suite.min_score)
            for one in tests:
                if one.test.min_score is not None:
                    yield floor_check(self.kind, run, one.scope, one.test.min_score)

    def loosened(self, before: Self) -> Iterator[Weakening]:
        """Yield a lower floor."""
        if self.min_score < before.min_score:
            yield loosened_option(self.kind, numbers.plain(before.min_score), numbers.plain(self.min_score))

    def warnings(self) -> Iterator[str]:
        """Yield a warning if the floor looks like a share of 1."""
        if is_share(self.min_score):
            yield f"`min_score={self.min_score:g}` {as_share(self.min_score)}"
