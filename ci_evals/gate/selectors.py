"""Parts of a run, named on the command line: `category:safety=100`."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.suite import Suite, Test
from ci_evals.scoring import scores
from ci_evals.scoring.scores import FindingFilter


class SelectorKind(StrEnum):
    """Kinds of selectors."""

    SUITE = "suite"
    TEST = "test"
    CATEGORY = "category"
    TAG = "tag"
    LOGIC = "logic"
    DIFFICULTY = "difficulty"


@dataclass(frozen=True)
class Selector:
    """A part of the run."""

    kind: SelectorKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def read(cls, text: str) -> "Selector | None":
        """The selector of the form `kind:NAME`; None where the text has another form."""
        kind, colon, name = text.partition(":")
        return cls(SelectorKind(kind), name) if colon and kind in list(SelectorKind) else None

    @property
    def finding_filter(self) -> FindingFilter:
        """The findings that belong to the part."""
        match self.kind:
            case SelectorKind.CATEGORY:
                return scores.of_category(self.name)
            case SelectorKind.LOGIC:
                return scores.of_logic(self.name)
            case _:
                return scores.all_findings

    def takes(self, suite: str, test: TestResult) -> bool:
        """Return whether a test, of the suite of that name, has to do with the part."""
        return self.name in _names(suite, test)[self.kind]


@dataclass(frozen=True)
class SelectorLimit:
    """A limit on the score, or the drop, of a part of the run: `category:safety=100`."""

    selector: Selector
    limit: float

    def __str__(self) -> str:
        return f"{self.selector}={numbers.plain(self.limit)}"

    def redacted(self, redact: Callable[[str], str]) -> "SelectorLimit":
        """Return the limit with its part named as in results, without secrets."""
        return replace(self, selector=replace(self.selector, name=redact(self.selector.name)))


_KINDS = "|".join(SelectorKind)
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_LINE = re.compile(rf"\s*({_KINDS}):(.+)=\s*({_NUMBER})\s*", re.DOTALL)
_PLAIN = re.compile(rf"\s*({_NUMBER})\s*")
_NEXT = re.compile(rf"\n|,(?=\s*(?:(?:{_KINDS}):|{_NUMBER}\s*(?:,|\n|$)))")
"""The separator of two lines. A comma inside a name does no harm."""


def read_thresholds(text: str | None) -> tuple[SelectorLimit, ...]:
    """The floors in the option `thresholds`, one per line or comma.

    Raises:
        UsageError: a line is not of the form `kind:NAME=SCORE`, or the score is not 0 to 100.
    """
    return tuple(_limit("thresholds", "SCORE", line) for line in _lines(text))


def read_drops(text: str | None) -> tuple[float | None, tuple[SelectorLimit, ...]]:
    """The most points that the run, and parts of it, may fall (`max_drop`): `5` or `suite:NAME=3`.

    Raises:
        UsageError: a line has neither form, two name the whole run, or a number is not 0 to 100.
    """
    lines = _lines(text)
    whole = [float(match[1]) for line in lines if (match := _PLAIN.fullmatch(line))]
    if len(whole) > 1 or any(drop > 100 for drop in whole):
        raise UsageError("`max_drop=`: name one number from 0 to 100 for the whole run")
    parts = [line for line in lines if not _PLAIN.fullmatch(line)]
    return (whole[0] if whole else None), tuple(_limit("max_drop", "POINTS", line) for line in parts)


def _lines(text: str | None) -> list[str]:
    return [line for line in _NEXT.split(text or "") if line.strip()]


def _limit(setting: str, noun: str, line: str) -> SelectorLimit:
    match = _LINE.fullmatch(line)
    if match is None or float(match[3]) > 100:
        number = "a number of points, or " if setting == "max_drop" else ""
        raise UsageError(
            f"`{setting}=`: {line.strip()!r} is not {number}of the form KIND:NAME={noun}, with KIND one of "
            f"{', '.join(SelectorKind)} and {noun} from 0 to 100"
        )
    return SelectorLimit(Selector(SelectorKind(match[1]), match[2].strip()), float(match[3]))


def highest(limits: Iterable[SelectorLimit]) -> dict[Selector, float]:
    """Return the highest limit of each part."""
    by_part: dict[Selector, float] = {}
    for one in limits:
        by_part[one.selector] = max(one.limit, by_part.get(one.selector, one.limit))
    return by_part


def lowest(limits: Iterable[SelectorLimit]) -> dict[Selector, float]:
    """Return the lowest limit of each part."""
    by_part: dict[Selector, float] = {}
    for one in limits:
        by_part[one.selector] = min(one.limit, by_part.get(one.selector, one.limit))
    return by_part


def check_names(setting: str, limits: Iterable[SelectorLimit], suites: Sequence[Suite | SuiteResult]) -> None:
    """Raise UsageError if a limit names something no suite has: it would guard nothing.

    Raises:
        UsageError: with the nearest name that exists.
    """
    selectors = [limit.selector for limit in limits]
    known: dict[SelectorKind, set[str]] = {kind: set() for kind in SelectorKind}
    for suite in suites if selectors else ():
        for test in suite.tests:
            for kind, names in _names(suite.name, test).items():
                known[kind] |= names
    for selector in selectors:
        there = sorted(known[selector.kind])
        if selector.name not in there:
            close = difflib.get_close_matches(selector.name, there, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"available: {', '.join(there) or 'none'}"
            raise UsageError(f"`{setting}=`: there is no {selector.kind} {selector.name!r}; {hint}")


def _names(suite: str, test: Test | TestResult) -> dict[SelectorKind, set[str]]:
    """The names, by kind, that select a test or criteria of it."""
    criteria = (
        test.evaluations
        if isinstance(test, Test)
        else [finding for trial in test.trials for finding in trial.findings]
    )
    return {
        SelectorKind.SUITE: {suite},
        SelectorKind.TEST: {test.name},
        SelectorKind.CATEGORY: {one.category for one in criteria if one.category is not None},
        SelectorKind.TAG: {*test.tags},
        SelectorKind.LOGIC: {code for one in criteria for code in one.aui_logic},
        SelectorKind.DIFFICULTY: set() if test.difficulty is None else {test.difficulty},
    }
