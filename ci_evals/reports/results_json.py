"""`_results.json`, written a trial at a time: of a large run the whole text would fill the memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from pydantic_core import PydanticSerializationError

from ci_evals.domain.base import ResultPart
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turns
from ci_evals.reports.story import listed_tests
from ci_evals.support import dataclass_json
from ci_evals.support.text import whole

_STEP = 2
_NO_TURNS = Turns()


def render(results: Results) -> Iterator[str]:
    """The text, in parts. What `layout.load` reads from it is rendered to the same bytes."""
    test = _line_of_test if listed_tests.lists_some_tests(results) else _test
    suites = (_suite(suite, 2, test) for suite in results.suites)
    yield from _filled(results, depth=0, arms=map(_arm, results.arms), suites=suites)
    yield "\n"


def _arm(arm: Arm) -> Iterator[str]:
    return _filled(arm, depth=2, suites=(_suite(suite, 4, _test) for suite in arm.suites))


def _suite(
    suite: SuiteResult, depth: int, render_test: Callable[[TestResult, int], Iterator[str]]
) -> Iterator[str]:
    return _filled(suite, depth, tests=(render_test(test, depth + 2) for test in suite.tests))


def _line_of_test(test: TestResult, depth: int) -> Iterator[str]:
    """The text of one of many tests, in half the size and time."""
    if any(trial.turns for trial in test.trials):
        yield from _test(test, depth)
    else:
        yield _json(test, indent=None)


def _test(test: TestResult, depth: int) -> Iterator[str]:
    return _filled(test, depth, trials=(_trial(trial, depth + 2) for trial in test.trials))


def _trial(trial: TrialResult, depth: int) -> Iterator[str]:
    turns = trial.turns.json
    if rb"\ud" in turns:  # maybe half of a surrogate pair
        yield _text(trial, depth)
        return
    rest = replace(trial, turns=_NO_TURNS)
    head, tail = _around_list(_text(rest, depth), "turns", depth)
    yield head
    yield _deeper(turns, depth + 1)
    yield tail


def _filled(record: ResultPart, depth: int, **lists: Iterable[Iterable[str]]) -> Iterator[str]:
    """The record's text with these texts in its lists, which are named in the order of its fields."""
    text = _text(replace(record, **dict.fromkeys(lists, ())), depth)
    for name, items in lists.items():
        head, text = _around_list(text, name, depth)
        yield head
        opened = False
        for item in items:
            yield f"{',' if opened else '['}{_line(depth + 2)}"
            yield from item
            opened = True
        yield f"{_line(depth + 1)}]" if opened else "[]"
    yield text


def _around_list(text: str, name: str, depth: int) -> tuple[str, str]:
    """The text before and after the empty list `name` of a record: only its own names are indented so."""
    key = f'{_line(depth + 1)}"{name}": '
    head, _, tail = text.partition(f"{key}[]")
    return head + key, tail


def _text(record: ResultPart, depth: int) -> str:
    return _json(record, _STEP).replace("\n", _line(depth))


def _json(record: ResultPart, indent: int | None) -> str:
    try:
        return dataclass_json.to_json(record, indent)
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair: JSON can carry one into a reply, UTF-8 cannot carry it into a file.
        repaired = dataclass_json.from_value(type(record), _well_formed(dataclass_json.to_plain(record)))
        return dataclass_json.to_json(repaired, indent)


def _deeper(text: bytes, depth: int) -> str:
    return text.replace(b"\n", _line(depth).encode()).decode()


def _line(depth: int) -> str:
    """The beginning of a line so deep in the file. No string of JSON holds one."""
    return "\n" + " " * (_STEP * depth)


def _well_formed(value: Any) -> Any:
    match value:
        case str():
            return whole(value)
        case dict():
            return {_well_formed(key): _well_formed(item) for key, item in value.items()}
        case list() | tuple():
            return [_well_formed(item) for item in value]
        case _:
            return value
