"""The ordered work of a run, and the models that it is done with."""

from dataclasses import dataclass

from ci_evals.domain.suite import PlannedTurn, Suite, Test
from ci_evals.domain.world import World


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

    @property
    def has_worlds(self) -> bool:
        """True if any test has steps or probes."""
        return any(self.suite.world_of(test) for test in self.tests)


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

    def lock_of(self, trial: Trial) -> str | None:
        """The lock that the trial holds while it is played."""
        return self.suites[trial.suite].suite.lock_of(self.test_of(trial))

    def world_of(self, trial: Trial) -> World:
        """The steps and probes around a trial's conversation."""
        return self.suites[trial.suite].suite.world_of(self.test_of(trial))

    def turns_of(self, trial: Trial) -> tuple[PlannedTurn, ...]:
        """The turns that a trial plays, filled up with `auto`."""
        return self.suites[trial.suite].suite.turns_of(self.test_of(trial))


@dataclass(frozen=True)
class SuiteModels:
    """The names of the models behind judge, simulated user, auditor and comparisons of meaning."""

    judges: tuple[str, ...] = ()
    """They vote in turn; empty if nothing is judged."""
    votes: int = 1
    """The most votes on one criterion."""
    user: str | None = None
    """None if the user is scripted."""
    embedder: str | None = None
    auditor: str | None = None
    """Checks whether the simulated user kept to its role."""

    @property
    def judge(self) -> str | None:
        """The judge, or the first of a panel."""
        return next(iter(self.judges), None)

    @property
    def panel(self) -> tuple[str, ...]:
        """The judges if there are several."""
        return self.judges if len(self.judges) > 1 else ()

    @property
    def identity(self) -> tuple[object, str | None, str | None]:
        """The parts that a digest of models is made of."""
        judges: list[str | None] = [*self.panel] or [self.judge]
        voting = [judges, self.votes] if self.panel or self.votes > 1 else self.judge
        return voting, self.user, self.embedder
