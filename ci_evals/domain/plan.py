"""The ordered work of a run, and the models that it is done with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ci_evals.domain.definition import SuiteDefinition
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
    agent_headers: Mapping[str, str] | None = field(default=None, repr=False)
    """More headers for this agent alone; None for those of the run."""
    start_folder: str | None = None
    """The folder in which the suite's `start` runs; None for the current one."""
    other_users: frozenset[str] = frozenset()
    """The names of tests with another simulated user than they are written for, whom no script can play."""
    reused: frozenset[str] = frozenset()
    """The names of tests that are not played: their trials are reused from an earlier run."""

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


HEAD, BASE = "head", "base"
"""The names of the arms of a run with the option `against`."""


@dataclass(frozen=True)
class Plan:
    """All trials of a run, in the order in which they are reported.

    A run has one arm, the agent that it tests, or plays others beside it.
    """

    suites: tuple[PlannedSuite, ...]
    """Those of the first arm, then the same ones with the agent of each other arm."""
    loops: int
    arms: tuple[str, ...] = (HEAD,)
    """The names of the agents that are played side by side, first the one that is tested."""
    reference: str | None = None
    """The arm that the others are compared with (option `arms`), unless it is the one that is tested."""
    looks: tuple[int, ...] = ()
    """Trials of each test after which the run is looked at (option `rounds`); `loops` is then one of them."""
    definitions: tuple[SuiteDefinition, ...] = ()
    """The requirements of the suites of the first arm, including tests that are not selected."""
    first_arm_only: bool = False
    """True as long as the other arms wait for what the first one shows."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial: suites and tests in the order given, loops of a test side by side."""
        return tuple(
            Trial(suite=s, test=t, index=index)
            for s, planned in enumerate(self.suites)
            for t, test in enumerate(planned.tests)
            for index in self.indexes_of(planned, test)
            if not (self.first_arm_only and self.arm_of(s))
        )

    def arm_of(self, suite: int) -> int:
        """The place of a suite's arm among all arms."""
        return suite // (len(self.suites) // len(self.arms))

    def arm(self, number: int) -> "Plan":
        """The plan of one arm alone."""
        size = len(self.suites) // len(self.arms)
        own = self.suites[number * size : (number + 1) * size]
        return replace(self, suites=own, arms=(self.arms[number],), first_arm_only=False)

    def loops_of(self, test: Test) -> int:
        """The number of trials of this test: its own `loops`, or the run's.

        In rounds every test is played as often; one with more `loops` of its own has these from the first.
        """
        if self.looks:
            return max(test.loops or 0, self.loops)
        return test.loops or self.loops

    def played_of(self, suite: PlannedSuite, test: Test) -> int:
        """The number of trials of this test that the run plays itself."""
        return len(self.indexes_of(suite, test))

    def indexes_of(self, suite: PlannedSuite, test: Test) -> range:
        """The numbers of the trials of this test that the run plays itself."""
        last = 0 if test.name in suite.reused else self.loops_of(test)
        return range(1, last + 1)

    def test_of(self, trial: Trial) -> Test:
        """The test that a trial plays."""
        return self.suites[trial.suite].tests[trial.test]

    def needs_model_user(self, trial: Trial) -> bool:
        """Return whether only a model can play the trial's simulated user."""
        is_other = self.test_of(trial).name in self.suites[trial.suite].other_users
        return is_other and any(turn.auto for turn in self.turns_of(trial))

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
