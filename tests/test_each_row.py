"""A table as one test: every row is tried, and those that fail are named."""

import inspect

import pytest
from each_row import each_row


def test_all_failing_rows_are_named():
    """One after the other: a failure hides no other."""
    tried = []

    @each_row(("one", "other"), [(1, 1), (1, 2), pytest.param(3, 3, id="threes"), (4, 5)], ids="abcd")
    def table(one, other):
        tried.append(one)
        assert one == other

    with pytest.raises(ExceptionGroup, match="2 of 4 rows failed") as caught:
        table()
    assert tried == [1, 1, 3, 4]
    assert [error.__notes__[-1] for error in caught.value.exceptions] == ["row 1: b", "row 3: d"]


def test_any_error_is_a_failure_of_its_row():
    """Not only what is asserted."""

    @each_row("number", [1, 0, 2])
    def table(number):
        assert 1 / number

    with pytest.raises(ExceptionGroup) as caught:
        table()
    (error,) = caught.value.exceptions
    assert isinstance(error, ZeroDivisionError)
    assert error.__notes__ == ["row 1: 0"]


async def test_rows_of_a_coroutine_are_awaited():
    """Else none of them would fail."""

    @each_row("number", [1, 2])
    async def table(number):
        assert number == 1

    with pytest.raises(ExceptionGroup, match="1 of 2 rows failed"):
        await table()


def test_tables_multiply_and_fixtures_stay():
    """As with `pytest.mark.parametrize`."""
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
def test_a_table_that_would_check_less_is_refused(names, rows, ids):
    """Without rows, with a name that the test does not take, or with a mark that nothing reads."""
    with pytest.raises(AssertionError):

        @each_row(names, rows, ids)
        def table(number):
            pass
