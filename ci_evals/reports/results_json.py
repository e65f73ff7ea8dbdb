"""`_results.json`, written a trial at a time: of a large run the whole text would fill the memory."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from pydantic_core import PydanticSerializationError, to_json

from ci_evals.domain.base import Record
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turns
from ci_evals.reports.story import listed_tests
from ci_evals.support.text import whole

_STEP = 2
_NO_TURNS = Turns()
_MOST_KNOWN = 1_000
"""Texts of tests that are kept for others like them."""
_NAMES: dict[str, object] = {"name": "", "line": 0, "digest": ""}


def render(results: Results) -> Iterator[str]:
    """The text, in parts. What `layout.load` reads from it is rendered to the same bytes."""
    test = partial(_line_of_test, known={}) if listed_tests.limited(results) else _test
    suites = (_suite(suite, 2, test) for suite in results.suites)
    yield from _filled(results, depth=0, arms=map(_arm, results.arms), suites=suites)
    yield "\n"


def _arm(arm: Arm) -> Iterator[str]:
    return _filled(arm, depth=2, suites=(_suite(suite, 4, _test) for suite in arm.suites))


def _suite(
    suite: SuiteResult, depth: int, render_test: Callable[[TestResult, int], Iterator[str]]
) -> Iterator[str]:
    return _filled(suite, depth, tests=(render_test(test, depth + 2) for test in suite.tests))


class _Like(NamedTuple):
    """The text of tests that differ in nothing but their own name, line and digest."""

    values: dict[str, object]
    before: str
    """What stands between the name and the line."""
    after: str
    """What follows the digest."""


def _line_of_test(test: TestResult, depth: int, known: dict[int, _Like]) -> Iterator[str]:
    """The text of one of many tests, in half the size and time. `known` are others, by their trials."""
    if any(trial.turns for trial in test.trials):
        yield from _test(test, depth)
        return
    like, values = known.get(id(test.trials)), {**test.__dict__, **_NAMES}
    try:
        name = f'{{"name":{to_json(test.name).decode()}'
    except PydanticSerializationError:
        yield _json(test, indent=None)
        return
    place = f',"line":{test.line},"digest":{to_json(test.digest).decode()}'
    if like is None or like.values != values:
        text = _json(test, indent=None)
        before, _, after = text.removeprefix(name).partition(place)
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[id(test.trials)] = like = _Like(values, before, after)
    yield f"{name}{like.before}{place}{like.after}"


def _test(test: TestResult, depth: int) -> Iterator[str]:
    return _filled(test, depth, trials=(_trial(trial, depth + 2) for trial in test.trials))


def _trial(trial: TrialResult, depth: int) -> Iterator[str]:
    turns = trial.turns.json
    if rb"\ud" in turns:  # maybe half of a surrogate pair
        yield _text(trial, depth)
        return
    rest = trial.model_copy(update={"turns": _NO_TURNS})
    head, tail = _around_list(_text(rest, depth), "turns", depth)
    yield head
    yield _deeper(turns, depth + 1)
    yield tail


def _filled(record: Record, depth: int, **lists: Iterable[Iterable[str]]) -> Iterator[str]:
    """The record's text with these texts in its lists, which are named in the order of its fields."""
    text = _text(record.model_copy(update=dict.fromkeys(lists, ())), depth)
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


def _text(record: Record, depth: int) -> str:
    return _json(record, _STEP).replace("\n", _line(depth))


def _json(record: Record, indent: int | None) -> str:
    try:
        return record.model_dump_json(by_alias=True, indent=indent)
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair: JSON can carry one into a reply, UTF-8 cannot carry it into a file.
        repaired = type(record).model_validate(_well_formed(record.model_dump(by_alias=True)))
        return repaired.model_dump_json(by_alias=True, indent=indent)


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
