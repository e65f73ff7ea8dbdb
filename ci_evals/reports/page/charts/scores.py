"""Scores by suite, category, tag and difficulty, each with its interval, its floor and the baseline's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ci_evals.domain.base import Interval
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.reports import numbers
from ci_evals.reports.facts.figure import Figure
from ci_evals.reports.page.charts import drawing, frame
from ci_evals.reports.page.charts.frame import MOST_ROWS, SCORES, Chart, Entry, TrackRow
from ci_evals.scoring.comparison.compare import ComparedPart, RunComparer
from ci_evals.scoring.comparison.pairing import Side
from ci_evals.scoring.gate.selectors import Selector, SelectorKind
from ci_evals.scoring.scores import UndecidedRule, mean
from ci_evals.scoring.statistics import mean_interval
from ci_evals.scoring.validity import scores_of_tests

_FEW = 8
"""Tags or difficulties that are shown; if there are more, they are names and no groups."""
_LEAST = 0.1
"""Points that a score must fall by to be text."""
_FLOORS = frozenset({CheckKind.MIN_SCORE, CheckKind.THRESHOLD})


@dataclass(frozen=True)
class Scored:
    """A part of the run, as a row shows it."""

    name: str
    score: float | None
    interval: Interval | None = None
    base: float | None = None
    """The baseline's score over the tests that both runs share."""
    floor: GateCheck | None = None
    whole: bool = False
    """True for the run, which contains all others."""

    @property
    def missed(self) -> bool:
        """True if the score is below its floor."""
        return self.floor is not None and self.floor.holds is False


def by_suite(results: Results) -> Figure | None:
    """The run and its suites; None where nothing is scored."""
    comparison = results.comparison if results.comparison and results.comparison.comparable else None
    found = [
        Scored(
            suite.name,
            suite.score,
            suite.interval,
            _base_of_suite(results, place - 1),
            _floor(results, suite_number=place),
        )
        for place, suite in enumerate(results.suites, start=1)
    ]
    floor = _floor(results)
    if len(found) == 1 and not found[0].floor:
        found = [Scored(part.name, part.score, part.interval, part.base, floor) for part in found]
    elif found:
        base = comparison.base if comparison else None
        found.insert(0, Scored("All suites", results.score, results.interval, base, floor, whole=True))
    return _figure("chart-scores", "Scores by suite", "suite", found)


def _floor(
    results: Results, suite_number: int | None = None, selector: str | None = None
) -> GateCheck | None:
    """The highest floor of a suite, of the part that a selector names, or of the run."""
    floors = [
        check
        for check in results.gate.checks
        if check.kind in _FLOORS and check.test is None and check.suite_number == suite_number
        if suite_number or check.selector == selector
    ]
    return max(floors, key=lambda check: check.required or 0, default=None)


def by_group(results: Results, baseline: Results | None) -> Figure | None:
    """Categories over all suites, and tags and difficulties if there are few; None without any."""
    names = {
        SelectorKind.CATEGORY: [group.name for suite in results.suites for group in suite.categories],
        SelectorKind.TAG: [group.name for suite in results.suites for group in suite.tags],
        SelectorKind.DIFFICULTY: [group.name for suite in results.suites for group in suite.difficulties],
    }
    kinds = {kind: tuple(dict.fromkeys(found)) for kind, found in names.items()}
    shown = [
        kind
        for kind, found in kinds.items()
        if found and (kind is SelectorKind.CATEGORY or len(found) <= _FEW)
    ]
    comparison = results.comparison
    pairs = (
        RunComparer(Side.of(results), Side.of(baseline))
        if baseline and comparison and comparison.comparable
        else None
    )
    found = [_of_selector(Selector(kind, name), results, pairs) for kind in shown for name in kinds[kind]]
    title = f"Scores by {' and '.join(shown)}"
    return _figure("chart-groups", title, "part", [part for part in found if part.score is not None])


def _base_of_suite(results: Results, place: int) -> float | None:
    suites = results.comparison.suites if results.comparison else ()
    same = place < len(suites) and suites[place].name == results.suites[place].name
    return suites[place].base if same and suites[place].comparable else None


def _of_selector(selector: Selector, results: Results, comparer: RunComparer | None) -> Scored:
    rule = UndecidedRule(offline=results.run.offline)
    taken = [test for suite in results.suites for test in suite.tests if selector.takes(suite.name, test)]
    scores = scores_of_tests(taken, rule, selector.finding_filter)
    base = None
    if comparer:
        pairs = tuple(pair for pair in comparer.pairs if selector.takes(pair.suite, pair.head))
        base = comparer.change(ComparedPart(pairs, selector.finding_filter), tested=False).base
    exact = mean(scores)
    return Scored(
        f"{selector.name} ({selector.kind})" if selector.kind is not SelectorKind.CATEGORY else selector.name,
        None if exact is None else float(exact),
        mean_interval([float(score) for score in scores]),
        base,
        _floor(results, selector=str(selector)),
    )


def _figure(name: str, title: str, noun: str, found: Sequence[Scored]) -> Figure | None:
    if not any(part.score is not None for part in found if not part.whole):
        return None
    shown = found[:MOST_ROWS]
    chart = Chart(
        id=name,
        title=title,
        says=_says(found, noun),
        headers=(noun, "score", "95 %", "asked for", "baseline"),
        rows=(
            (
                part.name,
                numbers.score(part.score),
                numbers.interval(part.interval),
                numbers.plain(part.floor.required) if part.floor else "",
                "" if part.base is None else numbers.score(part.base),
            )
            for part in found
        ),
    )
    return chart.in_rows(tuple(_key(shown)), list(map(_row, shown)))


def _row(part: Scored) -> TrackRow:
    value = numbers.score(part.score, part.floor.required if part.floor else None)
    floor = f", asked for {numbers.plain(part.floor.required)}" if part.floor and part.missed else ""
    about = [f"{value}{floor}"]
    about += [f"95 % {numbers.interval(part.interval)}"] if part.interval else []
    about += [f"baseline {numbers.score(part.base)}"] if part.base is not None else []
    return TrackRow(
        part.name,
        f"{value}{floor}",
        partial(_marks, part),
        ("c-bad-text",) if part.missed else (),
        "; ".join(about),
    )


def _marks(part: Scored, y: float) -> Iterator[drawing.Drawn]:
    if part.interval:
        yield frame.interval_mark(part.interval.low, part.interval.high, y)
    if part.floor and part.floor.required is not None:
        yield frame.floor_mark(part.floor.required, y)
    if part.base is not None:
        yield drawing.circle(SCORES(part.base), y, "c-base", radius=6)
    if part.score is not None:
        yield frame.score_mark(part.score, y, bad=part.missed)


def _key(shown: Sequence[Scored]) -> Iterator[Entry]:
    yield Entry("score", "head")
    if any(part.missed for part in shown):
        yield Entry("too low", "bad")
    if any(part.interval for part in shown):
        yield Entry("95 %", "interval")
    if any(part.base is not None for part in shown):
        yield Entry("baseline", "base")
    if any(part.floor for part in shown):
        yield Entry("asked for", "floor")


def _says(found: Sequence[Scored], noun: str) -> str:
    scored = [(part.score, part) for part in found if part.score is not None and not part.whole]
    low, worst = min(scored, key=lambda item: item[0])
    high, best = max(scored, key=lambda item: item[0])
    missed = sum(part.missed for part in found)
    text = f"{worst.name} scores {numbers.score(low)}"
    if len(scored) > 1:
        text = f"All {len(scored)} score {numbers.score(low)}"
    if low < high:
        text = f"Lowest is {worst.name} with {numbers.score(low)}"
        text += f", highest {best.name} with {numbers.score(high)}"
    falls = [
        (part.base - part.score, part) for part in found if part.base is not None and part.score is not None
    ]
    deepest, where = max(falls, key=lambda item: item[0], default=(0.0, None))
    if len(scored) == 1 and worst.base is not None:
        text += f", in the baseline {numbers.score(worst.base)}"
    elif where is not None and deepest >= _LEAST:
        text += f"; deepest fall from the baseline: {where.name}, {numbers.signed(-deepest)}"
    if missed:
        text += f"; {numbers.count(missed, noun)} below what the gate asks for"
    return f"{text}."
