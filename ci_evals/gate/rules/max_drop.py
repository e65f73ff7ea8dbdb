"""`max-drop`: how far the score, of the run or parts of it, may fall below the baseline's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import JsonValue

from ci_evals.domain import numbers
from ci_evals.domain.base import Interval
from ci_evals.domain.options import Group, Names, Option
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.results.weakened import Weakening
from ci_evals.domain.suite import Suite
from ci_evals.gate.gate_input import GatedRun, Scope, why_not_compared
from ci_evals.gate.rule import TIE, Nature, Rule, loosened_option, part_of, rests_on, wanting, whole_points
from ci_evals.gate.rules.changes import NOT_COMPARABLE
from ci_evals.gate.selectors import Selector, SelectorLimit, check_names, lowest, read_drops
from ci_evals.scoring.scores import ScoreRule

if TYPE_CHECKING:
    from ci_evals.gate.noise import TrialNoise


@dataclass(frozen=True)
class MaxDrop(Rule):
    """The most points that the score, of the run or parts of it, may fall below the baseline's."""

    max_drop: float | None = None
    """Of the whole run; None for no limit."""
    max_drops: tuple[SelectorLimit, ...] = ()
    """Of parts."""

    kind: ClassVar[CheckKind] = CheckKind.MAX_DROP
    nature: ClassVar[Nature] = Nature.CHANGE
    noise_can_fail: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="max_drop",
            kind=str,
            group=Group.GATE,
            help="Maximum drop of the score since the baseline, in points.\n\n"
            "Also for parts, separated by commas or lines: `suite:NAME=3`, `category:NAME=0`, and the other "
            "selectors of `thresholds`.",
            metavar="POINTS,...",
            names=Names.TEXT,
        ),
    )

    @classmethod
    def from_options(cls, values: Mapping[str, Any]) -> Self:
        """Read `5, suite:Refunds=3`."""
        return cls(*read_drops(values.get("max_drop")))

    def recorded(self) -> dict[str, JsonValue]:
        """Return the limits as the option names them."""
        whole = [] if self.max_drop is None else [numbers.plain(self.max_drop)]
        return {"max_drop": "\n".join([*whole, *map(str, self.max_drops)]) or None}

    def parts(self) -> Iterator[Selector]:
        """Yield the parts with a limit."""
        yield from (drop.selector for drop in self.max_drops)

    def loosened(self, before: Self) -> Iterator[Weakening]:
        """Yield the parts that may fall further, or without a limit."""
        if before.max_drop is not None and _is_looser(self.max_drop, before.max_drop):
            yield _loosened(self.kind, before.max_drop, self.max_drop)
        drops = lowest(self.max_drops)
        for selector, drop in lowest(before.max_drops).items():
            if _is_looser(drops.get(selector), drop):
                yield _loosened(f"{self.kind} {selector}", drop, drops.get(selector))

    def checks(self, run: GatedRun) -> Iterator[GateCheck]:
        """Yield a check of the whole run, if it has a limit, and of each part."""
        if self.max_drop is not None:
            yield self._check(run, run.whole, self.max_drop)
        for drop in self.max_drops:
            for scope in run.selected(drop.selector):
                yield self._check(run, scope, drop.limit)

    def _check(self, run: GatedRun, scope: Scope, required: float) -> GateCheck:
        given, name = run.given, f"{self.kind} {scope.label}".strip()
        comparer, why = given.comparer, why_not_compared(given)
        if comparer is None or why:
            return scope.check(self.kind, name, required, note=why)
        tests = run.tests_in(scope)
        positions = {(one.scope.suite_number, one.scope.test_number) for one in tests}
        pairs = tuple(pair for pair in comparer.pairs if pair.numbers in positions)
        rule = ScoreRule(given.offline, finding_filter=scope.finding_filter)
        shown = comparer.change(pairs, rule, tested=False)
        strict = replace(rule, undecided_fails=True, assumed=given.assumed_score)
        change = comparer.change(pairs, strict, tested=False)
        if change.delta is None:
            return scope.check(self.kind, name, required, note=NOT_COMPARABLE)
        interval = None
        if change.interval:
            interval = Interval(low=-change.interval.high, high=-change.interval.low)
        settled = (
            given.look is None
            or required >= 100  # more than which no score falls
            or given.look.settles_drop(required + change.delta, comparer.clustered_pairs(pairs, strict))
        )
        return scope.check(
            self.kind,
            name,
            required,
            seen=None if shown.delta is None else 0.0 - shown.delta,
            seen_if_undecided_failed=0.0 - change.delta,
            interval=interval,
            passed=-change.delta <= required + TIE,
            settled=settled,
            note=rests_on(change.tests, len(tests)),
        )

    def check_names(self, suites: Sequence[Suite | SuiteResult]) -> None:
        """Look whether some suite has each part."""
        check_names("max_drop", self.max_drops, suites)

    def redacted(self, redact: Callable[[str], str]) -> Self:
        """Return the same limits with their parts named as in results."""
        return replace(self, max_drops=tuple(drop.redacted(redact) for drop in self.max_drops))

    @classmethod
    def worded_failure(cls, check: GateCheck, value: str, limit: str) -> str:
        """`the score of the suite “Refunds” fell by 7, at most 5 allowed`."""
        return f"the score{part_of(check)} fell by {value}, {limit} allowed"

    @classmethod
    def decisive(cls, check: GateCheck) -> str:
        """The drop in whole points, raised."""
        return whole_points(check, numbers.at_least)

    @classmethod
    def seen(cls, check: GateCheck) -> str:
        """The drop, or by how much the score rose."""
        if check.seen is not None and check.seen < 0 and not wanting(check):
            return f"rose by {numbers.score(-check.seen)}"
        return super().seen(check)

    @classmethod
    def fails_by_noise(cls, check: GateCheck, noise: "TrialNoise") -> list[bool] | None:
        """Return which simulated runs fall below the recorded one by more than is allowed."""
        drawn = noise.scores(noise.about(check), Selector.read(check.selector or ""))
        if drawn is None or check.required is None:
            return None
        return [-change > check.required + TIE for change in drawn.changes]


def _is_looser(now: float | None, before: float) -> bool:
    return now is None or now > before


def _loosened(option: str, before: float, now: float | None) -> Weakening:
    return loosened_option(option, numbers.plain(before), None if now is None else numbers.plain(now))
