"""The conversations of a page: compressed data that the browser unpacks when somebody opens a test.

Base 64 has no character that ends an element, so that nothing in it can.
"""

import base64
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_evals.domain.results import Results, SuiteResult, TestResult
from ci_evals.domain.transcript import Exchanges

_NO_EXCHANGES = Exchanges()


@dataclass(frozen=True)
class Shown:
    """A test of a page, and the same test in the baseline."""

    number: int
    """Its place on the page, from 0.

    `t7` is the id of its data, `t7.1` that of its first trial's conversation; `b7` and `b7.1` are those of the
    baseline.
    """
    suite: str
    """The suite's name, which here no other suite has: links are made of it."""
    of: SuiteResult
    test: TestResult
    base: TestResult | None = None

    @property
    def same(self) -> bool:
        """Whether the baseline's test was defined alike."""
        return self.base is not None and self.base.digest == self.test.digest


def tests_of(results: Results, baseline: Results | None) -> tuple[Shown, ...]:
    """All tests in the order of the results, each with its namesake of the baseline."""
    there = {
        (suite, name): test
        for suite, found in _named(baseline.suites if baseline else ())
        for name, test in _by_name(found.tests)
    }
    shown = [
        (suite, found, name, test)
        for suite, found in _named(results.suites)
        for name, test in _by_name(found.tests)
    ]
    return tuple(
        Shown(number, suite, found, test, there.get((suite, name)))
        for number, (suite, found, name, test) in enumerate(shown)
    )


def blobs(tests: Iterable[Shown]) -> Iterator[str]:
    """The elements that hold the tests' data, a trial at a time."""
    for shown in tests:
        yield from _of_test(f"t{shown.number}", shown.test)
        if shown.base is not None:
            yield from _of_test(f"b{shown.number}", shown.base)


def _of_test(name: str, test: TestResult) -> Iterator[str]:
    trials = tuple(trial.model_copy(update={"exchanges": _NO_EXCHANGES}) for trial in test.trials)
    facts = test.model_copy(update={"trials": trials})
    yield _element(name, zlib.compress(facts.model_dump_json(by_alias=True).encode(), level=6))
    for place, trial in enumerate(test.trials, start=1):
        yield _element(f"{name}.{place}", trial.exchanges.zipped)


def _element(name: str, data: bytes) -> str:
    text = base64.b64encode(data).decode("ascii")
    return f'<script type="application/octet-stream" id="{name}">{text}</script>\n'


def _named(suites: Iterable[SuiteResult]) -> Iterator[tuple[str, SuiteResult]]:
    """Suites with names of their own: the second of one name has its number behind it."""
    seen: Counter[str] = Counter()
    for suite in suites:
        seen[suite.name] += 1
        number = seen[suite.name]
        yield (suite.name if number == 1 else f"{suite.name} ({number})"), suite


def _by_name(tests: Iterable[TestResult]) -> Iterator[tuple[tuple[str, int], TestResult]]:
    """Tests by name; those of one name, as where a secret was taken out of it, by their order."""
    seen: Counter[str] = Counter()
    for test in tests:
        yield (test.name, seen[test.name]), test
        seen[test.name] += 1
