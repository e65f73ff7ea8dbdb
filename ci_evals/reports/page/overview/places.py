"""Where the tests that a report names stand on the page."""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.suite import TestResult
from ci_evals.reports import sanitize
from ci_evals.reports.page import address
from ci_evals.reports.page.embedded_data import TestView

_NAME = 160
"""Characters of a name."""


@dataclass(frozen=True)
class Place:
    """A test by its names, and its address on the page; None where the page does not have it."""

    suite: str
    """Empty where there is but one."""
    test: str
    href: str | None


class Places:
    """The tests of a page, found by what the reports know of them."""

    def __init__(self, tests: Sequence[TestView]) -> None:
        self._many = len({shown.suite for shown in tests}) > 1
        self._by_id = {id(shown.test): shown for shown in tests}
        self._by_name: dict[tuple[str, str], deque[TestView]] = defaultdict(deque)
        for shown in tests:
            self._by_name[shown.of.name, shown.test.name].append(shown)

    def shown(self, test: TestResult | None, became: TestChange | None = None) -> TestView | None:
        """The test of the page. Of several with the name of a change it is the first."""
        if test is not None:
            return self._by_id.get(id(test))
        found = self._by_name.get((became.suite, became.name)) if became else None
        return found[0] if found else None

    def of(self, test: TestResult | None, became: TestChange | None = None) -> Place:
        """Its place, for a link."""
        found = self.shown(test, became)
        if found is None:
            return self._place(became.suite if became else "", became.name if became else "", None)
        return self._place(found.suite, found.name, address.of(found))

    def _place(self, suite: str, test: str, href: str | None) -> Place:
        shown = sanitize.one_line(suite, _NAME) if self._many else ""
        return Place(shown, sanitize.one_line(test, _NAME) or "(no name)", href)
