"""The totals that a JUnit file states, compared with its test cases.

A total that is not there says nothing. Runners count differently, so a total contradicts the file only
if no known way of counting leads to it:

- pytest counts a test once more if its teardown breaks, and counts subtests that it does not list. The
  first is allowed for; a file with the second is not told from one that lacks test cases.
- mocha lists hooks that fail as test cases and counts them among the failures, not among the tests. Its
  reporter `xunit` counts failures as errors, and subtracts failed hooks from the skipped tests.
- jest-junit does not count a `test.todo`, and lists it as a test case that took no time.
- Google Test and CTest count disabled tests apart from skipped ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ci_evals.domain import numbers

_KEYS = ("tests", "failures", "errors", "skipped", "disabled")
_OF_PYTEST = ["errors", "failures", "skipped", "tests", "time", "timestamp", "hostname"]
"""The attributes of a suite as pytest writes them, in this order, after its name."""
_OF_VITEST = ["timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"]
"""Likewise of vitest."""
_SUBTESTS = (
    "The file may be cut off. If the tests use subtests, which pytest counts and does not list, parametrize "
    "them instead."
)
_LONGEST = 18
"""Digits of a total: a longer one would not fit into 64 bits."""


@dataclass
class Totals:
    """The totals of a `testsuites` or `testsuite`, and what its test cases come to."""

    tag: str
    name: str
    line: int
    stated: Mapping[str, int]
    of_pytest: bool = False
    of_vitest: bool = False
    cases: int = 0
    """Test cases in it, and in all suites within it."""
    failures: int = 0
    """Elements `failure` of them."""
    errors: int = 0
    broken: int = 0
    """Test cases with a `failure` or an `error`."""
    not_run: int = 0
    """Test cases that are skipped or disabled, whatever else they are."""
    passed: int = 0
    """Tests that passed, each once, without those that took no time."""
    nested: bool = False
    """True for a suite with suites within it, which some runners do not count."""

    def add(self, inner: "Totals") -> None:
        """Count what a suite within this one has."""
        self.cases += inner.cases
        self.failures += inner.failures
        self.errors += inner.errors
        self.broken += inner.broken
        self.not_run += inner.not_run
        self.passed += inner.passed
        self.of_pytest |= inner.of_pytest
        self.nested = True

    def contradiction(self) -> str | None:
        """Return which total the test cases contradict; None if they contradict none."""
        wrong = self._tests() or self._broken() or self._not_run()
        if not wrong:
            return None
        name = f" {self.name[:100]!r}" if self.name else ""
        return f"line {self.line}: {self.tag}{name} {wrong}"

    def _tests(self) -> str | None:
        tests = self.stated.get("tests")
        if tests is None:
            return None
        if tests > self.cases + (self.errors if self.of_pytest else 0):
            return (
                f"counts {numbers.count(tests, 'test')}, but has {numbers.count(self.cases, 'test case')}. "
                + (_SUBTESTS if self.of_pytest else "The file may be cut off.")
            )
        if self._counts_all and self.passed > tests:
            return f"counts {numbers.count(tests, 'test')}, but {self.passed:,} of its test cases passed."
        return None

    def _broken(self) -> str | None:
        """Return how many failures and errors no test case has."""
        stated = self.stated.get("failures", 0) + self.stated.get("errors", 0)
        found = self.failures + self.errors
        if stated > found:
            return (
                f"counts {stated:,} failures and errors, but its test cases have {found:,}. The suite itself "
                "may have broken, or the file is cut off."
            )
        return None

    def _not_run(self) -> str | None:
        stated = self.stated.get("skipped", 0) + self.stated.get("disabled", 0)
        fewer = self._counts_all and "skipped" in self.stated and self.not_run - self.broken > stated
        if stated > self.not_run or fewer:
            counted = numbers.count(stated, "skipped test")
            return f"counts {counted}, but {self.not_run:,} of its test cases are skipped."
        return None

    @property
    def _counts_all(self) -> bool:
        return not self.nested or self.tag == "testsuites"


def totals_of(tag: str, attributes: Mapping[str, str], line: int) -> Totals:
    """Return the totals that an element states. What is no count is no total: mocha writes -1."""
    stated = {key: count for key in _KEYS if (count := _count(attributes.get(key, ""))) is not None}
    keys = [key for key in attributes if key != "name"]
    name = attributes.get("name", "").strip()
    return Totals(tag, name, line, stated, of_pytest=keys == _OF_PYTEST, of_vitest=keys == _OF_VITEST)


def _count(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST else None
