"""`thresholds`: minimum scores of parts of the run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import JsonValue

from ci_evals.domain import numbers
from ci_evals.domain.options import Group, Names, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.results.weakened import Weakening
from ci_evals.domain.score_scale import as_share, is_share
from ci_evals.domain.suite import Suite
from ci_evals.gate.gate_input import GatedRun
from ci_evals.gate.rule import loosened_option
from ci_evals.gate.rules.floors import FloorRule, floor_check
from ci_evals.gate.selectors import Selector, SelectorLimit, check_names, highest, read_thresholds


@dataclass(frozen=True)
class Thresholds(FloorRule):
    """The minimum scores of parts of the run."""

    thresholds: tuple[SelectorLimit, ...] = ()

    kind: ClassVar[CheckKind] = CheckKind.THRESHOLD
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="thresholds",
            kind=str,
            group=Group.GATE,
            help="Minimum scores of parts, such as suite:NAME=85.\n\n"
            "Separated by commas or lines: `suite:NAME=85`, `test:NAME=…`, `category:NAME=100`, "
            "`tag:NAME=…`, `logic:ID=…`, `difficulty:NAME=…`.",
            metavar="SELECTOR=POINTS,...",
            names=Names.TEXT,
        ),
    )

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """Read `suite:Refunds=85, category:safety=100`."""
        return cls(read_thresholds(values.get("thresholds")))

    def recorded(self) -> dict[str, JsonValue]:
        """Return the floors as the option names them."""
        return {"thresholds": "\n".join(map(str, self.thresholds)) or None}

    def parts(self) -> Iterator[Selector]:
        """Yield the parts with a floor."""
        yield from (threshold.selector for threshold in self.thresholds)

    def loosened(self, before: Self) -> Iterator[Weakening]:
        """Yield the parts whose floor is lower, or that have none any more."""
        floors = highest(self.thresholds)
        for selector, floor in highest(before.thresholds).items():
            now = floors.get(selector)
            if now is None or now < floor:
                option = f"thresholds {selector}"
                shown = None if now is None else numbers.plain(now)
                yield loosened_option(option, numbers.plain(floor), shown)

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield a floor for each part."""
        for threshold in self.thresholds:
            for scope in run.selected(threshold.selector):
                yield floor_check(self.kind, run, scope, threshold.limit)

    def warnings(self) -> Iterator[str]:
        """Yield a warning for each floor that looks like a share of 1."""
        for threshold in self.thresholds:
            if is_share(threshold.limit):
                yield f"`thresholds=`: {threshold.selector}={threshold.limit:g} {as_share(threshold.limit)}"

    def check_names(self, suites: Sequence[Suite | SuiteResult]) -> None:
        """Look whether some suite has each part."""
        check_names("thresholds", self.thresholds, suites)

    def redacted(self, redact: Callable[[str], str]) -> Self:
        """Return the same floors with their parts named as in results."""
        return type(self)(tuple(threshold.redacted(redact) for threshold in self.thresholds))
