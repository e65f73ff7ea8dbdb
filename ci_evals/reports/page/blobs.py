"""The conversations of a page: compressed data that the browser unpacks when somebody opens a test.

Base 64 has no character that ends an element, so that nothing in it can.
"""

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic_core import PydanticSerializationError

from ci_evals.domain.results import Results, SuiteResult, TestOutcome, TestResult
from ci_evals.domain.transcript import Exchanges
from ci_evals.scoring.pairing import Side
from ci_evals.scoring.share import Counting
from ci_evals.scoring.soundness import outcome_of

_NO_EXCHANGES = Exchanges()


@dataclass(frozen=True)
class Shown:
    """A test of a page, and the same test in the baseline."""

    number: int
    """Its place on the page, from 0.

    `t7` is the id of its data, `t7.1` that of its first trial's conversation; `b7` and `b7.1` are those of
    the baseline.
    """
    suite: str
    """The suite's name, which here no other suite has: links are made of it."""
    of: SuiteResult
    test: TestResult
    outcomes: tuple[TestOutcome, ...]
    """Of each trial: what the test would have come to with this one alone."""
    base: TestResult | None = None
    base_outcomes: tuple[TestOutcome, ...] = ()

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
    here = Counting(offline=Side.of(results).offline)
    back_then = Counting(offline=Side.of(baseline).offline) if baseline else here
    shown: list[Shown] = []
    for suite, found in _named(results.suites):
        for name, test in _by_name(found.tests):
            base = there.get((suite, name))
            shown.append(
                Shown(
                    number=len(shown),
                    suite=suite,
                    of=found,
                    test=test,
                    outcomes=_outcomes(test, here),
                    base=base,
                    base_outcomes=_outcomes(base, back_then) if base else (),
                )
            )
    return tuple(shown)


def blobs(tests: Iterable[Shown]) -> Iterator[str]:
    """The elements that hold the tests' data, a trial at a time.

    Of a test `{"file", "outcomes", "test"}`: its suite's file, what each trial came to, and what the results
    file has of it but for the exchanges; of a trial the list of its exchanges.
    """
    for shown in tests:
        yield from _of_test(f"t{shown.number}", shown.of.file, shown.test, shown.outcomes)
        if shown.base is not None:
            yield from _of_test(f"b{shown.number}", None, shown.base, shown.base_outcomes)


def _outcomes(test: TestResult, counting: Counting) -> tuple[TestOutcome, ...]:
    return tuple(outcome_of((trial,), 1, counting) for trial in test.trials)


def _of_test(
    name: str, file: str | None, test: TestResult, outcomes: tuple[TestOutcome, ...]
) -> Iterator[str]:
    around = json.dumps({"file": file, "outcomes": outcomes})
    facts = f'{around[:-1]}, "test": {_json_of(test)}}}'
    yield _element(name, zlib.compress(facts.encode(), level=6))
    for place, trial in enumerate(test.trials, start=1):
        yield _element(f"{name}.{place}", trial.exchanges.zipped)


def _json_of(test: TestResult) -> str:
    """The test without its conversations."""
    trials = tuple(trial.model_copy(update={"exchanges": _NO_EXCHANGES}) for trial in test.trials)
    facts = test.model_copy(update={"trials": trials})
    try:
        return facts.model_dump_json(by_alias=True)
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair: UTF-8 cannot write it, an escape can, and the script shows U+FFFD for it.
        return json.dumps(facts.model_dump(by_alias=True))


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
