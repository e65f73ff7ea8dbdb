"""A table as one test: every row is tried, and those that fail are named."""

import inspect

import pytest
from each_row import each_row


async def test_each_row_reports_every_failing_row_and_exception_type():
    tried = []

    @each_row(("one", "other"), [(1, 1), (1, 2), pytest.param(3, 3, id="threes"), (4, 0)], ids="abcd")
    def table(one, other):
        tried.append(one)
        assert one / other == 1

    with pytest.raises(ExceptionGroup, match="2 of 4 rows failed") as caught:
        table()
    assert tried == [1, 1, 3, 4]
    assert [error.__notes__[-1] for error in caught.value.exceptions] == ["row 1: b", "row 3: d"]
    assert [type(error) for error in caught.value.exceptions] == [AssertionError, ZeroDivisionError]

    @each_row("number", [1, 2])
    async def awaited(number):
        assert number == 1

    with pytest.raises(ExceptionGroup, match="1 of 2 rows failed"):
        await awaited()


def test_stacked_each_row_decorators_run_all_combinations_with_fixtures():
    tried = []

    @each_row("one", "ab")
    @each_row("other", "xy", ids=str.upper)
    def table(fixture, one, other):
        tried.append(fixture + one + other)
        assert other == "x"

    assert list(inspect.signature(table).parameters) == ["fixture"]
    with pytest.raises(ExceptionGroup, match="2 of 2 rows failed") as caught:
        table(fixture="-")
    assert tried == ["-ax", "-ay", "-bx", "-by"]
    assert caught.value.exceptions[0].exceptions[0].__notes__ == ["row 1: Y"]


@pytest.mark.parametrize(
    ("names", "rows", "ids"),
    [
        ("number", [], None),
        ("number", [1, 2], ["a"]),
        ("other", [1], None),
        ("number", [pytest.param(1, marks=pytest.mark.slow)], None),
    ],
)
def test_each_row_rejects_empty_or_mismatched_rows_and_pytest_params(names, rows, ids):
    with pytest.raises(AssertionError):

        @each_row(names, rows, ids)
        def table(number):
            pass
