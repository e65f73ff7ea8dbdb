"""A table of rows as one test, which names all rows that fail.

Each test costs pytest some milliseconds in every process, which is more than hundreds of short rows take.
`pytest.mark.parametrize` is for few rows, rows that take long, and fixtures that each row needs anew.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest


def each_row(
    names: str | Sequence[str], rows: Iterable[Any], ids: Iterable[Any] | Callable[[Any], Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call the test with each row, as `pytest.mark.parametrize` does, but as one test."""
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    labeled = list(_labeled(names, rows, ids))
    assert labeled, "a table without rows checks nothing"

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def run(**fixtures: Any) -> None:
                failures: list[Exception] = []
                for label, row in labeled:
                    with _collected(failures, label):
                        await test(**fixtures, **row)
                _report(failures, len(labeled))
        else:

            @wraps(test)
            def run(**fixtures: Any) -> None:
                failures: list[Exception] = []
                for label, row in labeled:
                    with _collected(failures, label):
                        test(**fixtures, **row)
                _report(failures, len(labeled))

        signature = inspect.signature(test)
        others = [parameter for name, parameter in signature.parameters.items() if name not in names]
        assert len(others) + len(names) == len(signature.parameters), f"{test.__name__} takes other names"
        run.__signature__ = signature.replace(parameters=others)
        return run

    return decorate


def _labeled(names: list[str], rows: Iterable[Any], ids: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row by the names, with a label by which a reader finds it."""
    rows = list(rows)
    labels = None if ids is None or callable(ids) else list(ids)
    assert labels is None or len(labels) == len(rows), "as many ids as rows"
    for number, row in enumerate(rows):
        label = labels[number] if labels else None
        if isinstance(row, type(pytest.param())):
            assert not row.marks, "a row has no marks; use pytest.mark.parametrize"
            label = row.id or label
            values = row.values
        else:
            values = row if len(names) > 1 else (row,)
        if label is None and callable(ids):
            label = "-".join(str(ids(value)) for value in values)
        if label is None:
            label = ", ".join(repr(value)[:60] for value in values)
        yield f"row {number}: {label}", dict(zip(names, values, strict=True))


@contextmanager
def _collected(failures: list[Exception], label: str) -> Iterator[None]:
    """Add the error of a row to the failures, with the row below it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # all failures are reported, of whatever kind
        error.add_note(label)
        failures.append(error)


def _report(failures: list[Exception], count: int) -> None:
    """Fail with all failures, if there are any."""
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {count} rows failed", failures)
