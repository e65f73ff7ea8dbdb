"""The findings of `validate` in suites: each at its place, by a rule."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from ci_evals.domain.errors import Problem, SeveralError, SuiteError, UsageError


class Rule(StrEnum):
    """The kinds of findings."""

    INVALID = "invalid-suite"
    WARNING = "suite-warning"
    WEAK = "weak-suite"
    VACUOUS = "vacuous-criterion"


@dataclass(frozen=True)
class SuiteFinding:
    """Something that `validate` found, by a rule."""

    rule: Rule
    problem: Problem

    def __str__(self) -> str:
        return f"warning: {self.problem}"

    def spelled(self, spell: Callable[[str], str]) -> Self:
        """Return the finding with the settings in its message as its reader sets them."""
        return replace(self, problem=replace(self.problem, message=spell(self.problem.message)))


def problems_of(error: UsageError) -> Iterator[Problem]:
    """Yield each problem of an error that has a place in a suite, once."""
    seen = set()
    for fault in _faults(error):
        for problem in fault.problems if isinstance(fault, SuiteError) else ():
            if problem not in seen:
                seen.add(problem)
                yield problem


def messages_of(error: UsageError) -> list[str]:
    """Return the messages of an error that have no place in a suite, each once."""
    messages = (str(fault) for fault in _faults(error) if not isinstance(fault, SuiteError))
    return list(dict.fromkeys(messages))


def _faults(error: UsageError) -> tuple[UsageError, ...]:
    return error.faults if isinstance(error, SeveralError) else (error,)
