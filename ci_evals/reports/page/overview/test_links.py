"""Links to the tests of a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.suite import TestResult
from ci_evals.reports import sanitize
from ci_evals.reports.page.embedded_data import TestView

_NAME = 160
"""Characters of a name."""


@dataclass(frozen=True)
class TestLink:
    """A test by its names, and its address on the page; None if the page does not have it."""

    suite: str
    """Empty if there is only one."""
    test: str
    href: str | None


class TestLinks:
    """The tests of a page, found by their results or by their changes."""

    def __init__(self, tests: Sequence[TestView]) -> None:
        self._many = len({view.suite for view in tests}) > 1
        self._by_id = {id(view.test): view for view in tests}
        # Of several with one name the first.
        self._by_name = {(view.of.name, view.test.name): view for view in reversed(tests)}

    def view(self, test: TestResult | None, change: TestChange | None = None) -> TestView | None:
        """The test of the page; the first of several with the name of a change."""
        if test is not None:
            return self._by_id.get(id(test))
        return self._by_name.get((change.suite, change.name)) if change else None

    def link(self, test: TestResult | None, change: TestChange | None = None) -> TestLink:
        """The link to it."""
        view = self.view(test, change)
        named = view or change
        suite = named.suite if named and self._many else ""
        name = sanitize.one_line(named.name if named else "", _NAME) or "(no name)"
        return TestLink(sanitize.one_line(suite, _NAME), name, view.address() if view else None)
