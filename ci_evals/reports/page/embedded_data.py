"""The conversations of a page: compressed data that the browser unpacks when somebody opens a test.

Base 64 has no character that ends an element, so that nothing in it can.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import TypeVar

from pydantic_core import PydanticSerializationError

from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.transcript import Turns
from ci_evals.reports.facts import reliability
from ci_evals.scoring.scores import Counting
from ci_evals.scoring.validity import outcome_of

_Named = TypeVar("_Named", SuiteResult, TestResult)

_NO_TURNS = Turns()
_PACK = 256 * 1024
"""Bytes of JSON from which on a pack takes no further conversation.

Those of one test are much alike, so together they take a third of what they take apart. Nobody waits for as
much to be unpacked.
"""


@dataclass(frozen=True)
class TestView:
    """A test of a page, and the same test in the baseline."""

    number: int
    """Its place on the page, from 0.

    `t7` is the id of its data, `t7.1` that of its first pack of conversations, and `b7.1` that of the
    baseline's first pack.
    """
    suite: str
    """The suite's name, which here no other suite has: links are made of it."""
    name: str
    """The test's, likewise."""
    of: SuiteResult
    test: TestResult
    outcomes: tuple[TestOutcome, ...]
    """Of each trial: what the test would have come to with this one alone."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Of its criteria those that are to be trusted less, and why."""
    base: TestResult | None = None
    base_outcomes: tuple[TestOutcome, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the baseline's test was defined alike."""
        return self.base is not None and self.base.digest == self.test.digest


def tests_of(results: Results, baseline: Results | None) -> tuple[TestView, ...]:
    """All tests in the order of the results, each with its namesake of the baseline."""
    there = {
        (suite, name): test
        for suite, found in _named(baseline.suites if baseline else ())
        for name, test in _named(found.tests)
    }
    here = Counting(offline=results.run.offline)
    back_then = Counting(offline=baseline.run.offline) if baseline else here
    shown: list[TestView] = []
    doubts = reliability.CriterionWarnings(results)
    for suite, found in _named(results.suites):
        for name, test in _named(found.tests):
            base = there.get((suite, name))
            shown.append(
                TestView(
                    number=len(shown),
                    suite=suite,
                    name=name,
                    of=found,
                    test=test,
                    outcomes=_outcomes(test, here),
                    doubts=doubts.of_test(found.name, test.name),
                    base=base,
                    base_outcomes=_outcomes(base, back_then) if base else (),
                )
            )
    return tuple(shown)


def elements(tests: Iterable[TestView]) -> Iterator[str]:
    """The elements that hold the tests' data, a test at a time, its conversations in packs.

    Of a test `{"file", "doubts", "head", "base"}`: its suite's file, why to trust which of its criteria less,
    and of each side `{"outcomes", "packs", "test"}`:
    what each trial came to, how many trials are in each pack, and what the results file has of the test but
    for the turns. `base` may be null. A pack is a list of trials, each the list of its turns.
    """
    for shown in tests:
        sides = [("head", "t", shown.test, shown.outcomes)]
        if shown.base is not None:
            sides.append(("base", "b", shown.base, shown.base_outcomes))
        doubts = json.dumps(shown.doubts)
        facts = {"file": json.dumps(shown.of.file), "doubts": doubts, "base": "null"}
        for side, letter, test, outcomes in sides:
            packs = []
            for number, pack in enumerate(_packs(test), start=1):
                packs.append(len(pack))
                yield _element(f"{letter}{shown.number}.{number}", _listed(pack))
            facts[side] = _object(
                {"outcomes": json.dumps(outcomes), "packs": json.dumps(packs), "test": _json_of(test)}
            )
        yield _element(f"t{shown.number}", _object(facts).encode())


def _outcomes(test: TestResult, counting: Counting) -> tuple[TestOutcome, ...]:
    return tuple(outcome_of((trial,), 1, counting) for trial in test.trials)


def _packs(test: TestResult) -> Iterator[list[bytes]]:
    """The conversations as JSON, as many together as fill a pack."""
    pack: list[bytes] = []
    size = 0
    for trial in test.trials:
        # No string of JSON holds the end of a line.
        pack.append(b"".join(map(bytes.lstrip, trial.turns.json.split(b"\n"))))
        size += len(pack[-1])
        if size > _PACK:
            yield pack
            pack, size = [], 0
    if pack:
        yield pack


def _listed(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _object(items: Mapping[str, str]) -> str:
    """The JSON of an object, whose values are JSON already."""
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in items.items()) + "}"


def _json_of(test: TestResult) -> str:
    """The test without its conversations."""
    trials = tuple(trial.model_copy(update={"turns": _NO_TURNS}) for trial in test.trials)
    facts = test.model_copy(update={"trials": trials})
    try:
        return facts.model_dump_json(by_alias=True)
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair: UTF-8 cannot write it, an escape can, and the script shows U+FFFD for it.
        return json.dumps(facts.model_dump(by_alias=True))


def _element(name: str, data: bytes) -> str:
    text = base64.b64encode(zlib.compress(data, level=6)).decode("ascii")
    return f'<script type="application/octet-stream" id="{name}">{text}</script>\n'


def _named(items: Sequence[_Named]) -> Iterator[tuple[str, _Named]]:
    """Suites, or tests, with names of their own: the second of one name has a number behind it.

    Two have one name where a secret was taken out of both.
    """
    taken: set[str] = set()
    own = {item.name for item in items}
    for item in items:
        numbered = (f"{item.name} ({number})" for number in count(2) if f"{item.name} ({number})" not in own)
        name = next(name for name in chain([item.name], numbered) if name not in taken)
        taken.add(name)
        yield name, item
