"""The ordered work of a run."""

from dataclasses import dataclass

from ci_evals.domain.suite import PlannedTurn, Suite, Test


@dataclass(frozen=True)
class PlannedSuite:
    """A suite with the tests selected from it."""

    suite: Suite
    file: str
    """The place it was read from, as the user named it (a path, or `demo:hr`)."""
    digest: str
    """SHA-256 of the suite's meaning: all that a result depends on, without key and addresses."""
    tests: tuple[Test, ...]
    """Those selected, in the order of the file."""
    test_digests: tuple[str, ...]
    """For each selected test, SHA-256 of all that its result depends on."""
    test_lines: tuple[int, ...]
    """For each selected test, the line of the file that it begins on."""


@dataclass(frozen=True)
class Trial:
    """One run of one test. `suite` and `test` are places in the plan, `index` counts from 1."""

    suite: int
    test: int
    index: int


@dataclass(frozen=True)
class Plan:
    """All trials of a run, in the order in which they are reported."""

    suites: tuple[PlannedSuite, ...]
    loops: int
    more: int = 0
    """Trials of each test beyond those of its loops, played because a first look was close."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial: suites and tests in the order given, loops of a test side by side."""
        return tuple(
            Trial(suite=s, test=t, index=index)
            for s, planned in enumerate(self.suites)
            for t, test in enumerate(planned.tests)
            for index in range(1, self.loops_of(test) + 1)
        )

    def loops_of(self, test: Test) -> int:
        """The number of trials of this test: its own `loops`, or the run's, and those added later."""
        return (test.loops or self.loops) + self.more

    def test_of(self, trial: Trial) -> Test:
        """The test that a trial plays."""
        return self.suites[trial.suite].tests[trial.test]

    def turns_of(self, trial: Trial) -> tuple[PlannedTurn, ...]:
        """The turns that a trial plays, filled up with `auto`."""
        return self.suites[trial.suite].suite.turns_of(self.test_of(trial))
