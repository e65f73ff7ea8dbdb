"""The sample of a study of noise: tests, and one conversation of each whose user messages are fixed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, PlannedSuite, SuiteModels
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Usage
from ci_evals.domain.suite import AUTO, PlannedTurn, Suite, Test
from ci_evals.domain.transcript import Turn, UserSource
from ci_evals.extension_support.asking import shuffled
from ci_evals.extension_support.conversations import is_usable
from ci_evals.extension_support.rejudging.saved import is_judged
from ci_evals.support.redaction import MASK, Redactor

FIXED_SUFFIX = " (words held)"
"""Stands behind the name of a suite whose tests are played with the words of a recorded user."""


@dataclass(frozen=True)
class SampledTest:
    """A test of the run, and one conversation of it."""

    suite: int
    """Its index in the run."""
    test: TestResult
    recorded: TrialResult
    """The conversation that is judged again, and whose user's words are held."""


def pick_tests(results: Results, source: str, most: int, seed: int) -> tuple[SampledTest, ...]:
    """Draw at most `most` tests of the run by the seed, and return them in their order.

    Raises:
        UsageError: two at least are needed, and there are fewer whose conversations are there.
    """
    usable = []
    for index, suite in enumerate(results.suites):
        for number, test in enumerate(suite.tests):
            recorded = [
                trial for trial in test.trials if trial.scored and is_usable(trial) and _can_be_held(trial)
            ]
            if recorded:
                drawn = shuffled(recorded, f"noise {seed} {index} {number}")[0]
                usable.append(SampledTest(index, test, drawn))
    if len(usable) < 2:
        too_few = f"only {len(usable)} of its tests has" if usable else "none of its tests has"
        raise UsageError(
            f"{source}: {too_few} a scored conversation that can be rerun, and noise takes at "
            "least two tests. Name a run of more tests, with its conversations"
        )
    chosen = {id(test) for test in shuffled(usable, f"noise {seed}")[:most]}
    return tuple(test for test in usable if id(test) in chosen)


def _can_be_held(trial: TrialResult) -> bool:
    """Tell whether the user's words can be repeated: none was a secret, which results do not hold."""
    return not any(
        MASK in turn.user or turn.user == AUTO
        for turn in trial.turns.without_traces()
        if turn.user_source is UserSource.AUTO
    )


@dataclass(frozen=True)
class PlayableTest:
    """A picked test with its suite as it can be played."""

    sampled: SampledTest
    planned: PlannedSuite
    number: int
    """Its index in the suite as it can be played."""

    @property
    def test(self) -> Test:
        """The test itself."""
        return self.planned.tests[self.number]

    def varies(self, models: SuiteModels) -> bool:
        """Tell whether a model writes any of the user's words."""
        return models.user is not None and any(turn.auto for turn in self.planned.suite.turns_of(self.test))


def match_tests(
    results: Results, chosen: Sequence[SampledTest], plan: Plan, redactor: Redactor
) -> tuple[PlayableTest, ...]:
    """The same tests in suites that were read now.

    Raises:
        UsageError: a test is not there, or not as it was when the run was played; with all of these.
    """
    by_name: dict[tuple[str, str], list[tuple[PlannedSuite, int]]] = {}
    for planned in plan.suites:
        for number, test in enumerate(planned.tests):
            names = redactor.text(planned.suite.name), redactor.text(test.name)
            by_name.setdefault(names, []).append((planned, number))
    playable, problems = [], []
    for sampled in chosen:
        suite, test_result = results.suites[sampled.suite], sampled.test
        named = by_name.get((suite.name, test_result.name), [])
        same = [match for match in named if match[0].test_digests[match[1]] == test_result.digest]
        if same:
            # Two suites may have one name, and the same test.
            planned, number = min(same, key=lambda match: match[0].file != suite.file)
            playable.append(PlayableTest(sampled, planned, number))
        else:
            why = "has changed since the run" if named else "no longer exists"
            problems.append(f"{suite.file}: the test {test_result.name!r} of {suite.name!r} {why}")
    if problems:
        raise UsageError("\n".join([*problems, "rerun the suites, or name the old ones with `suite=`"]))
    return tuple(playable)


_Indexes = Mapping[tuple[int, int], int]
"""The index of a test in the sample, by those of its suite and itself in what is played or judged."""


@dataclass(frozen=True)
class SamplePlan:
    """Plans that are made for a sample, and which test stands where in them."""

    plan: Plan
    """A suite for each judge, since each conversation is judged once."""
    fresh: _Indexes
    fixed: _Indexes
    judged: Results
    """The conversations that are judged again, each as often as it is to be."""
    rejudged: _Indexes

    @property
    def conversations(self) -> tuple[int, int, int]:
        """How many are played again, played with fixed user words, and judged again."""
        fresh, fixed = (
            sum(self.plan.loops_of(self.plan.suites[suite].tests[test]) for suite, test in indexes)
            for indexes in (self.fresh, self.fixed)
        )
        return fresh, fixed, sum(len(test.trials) for suite in self.judged.suites for test in suite.tests)


def plan_sample(
    results: Results,
    provider: str,
    sample: Sequence[PlayableTest],
    models_by_suite: Mapping[int, SuiteModels],
    plays: int,
) -> SamplePlan:
    """Plan all that is to be played and judged.

    Args:
        results: The run.
        provider: Of judge and user.
        sample: The tests.
        models_by_suite: By the index of a suite in the run.
        plays: How often each test is played again, played with fixed user words, and judged again.
    """
    suites: list[PlannedSuite] = []
    judged: list[SuiteResult] = []
    fresh: dict[tuple[int, int], int] = {}
    fixed: dict[tuple[int, int], int] = {}
    rejudged: dict[tuple[int, int], int] = {}

    def add(indexes: list[int], models: SuiteModels, judge: str | None, loops: int, *, hold: bool) -> None:
        if indexes:
            (fixed if hold else fresh).update(_numbered(len(suites), indexes))
            suites.append(_played([sample[index] for index in indexes], judge, models.user, loops, hold=hold))

    for suite, models in models_by_suite.items():
        tests_here = [index for index, test in enumerate(sample) if test.sampled.suite == suite]
        files: dict[int, list[int]] = {}
        for index in tests_here:
            files.setdefault(id(sample[index].planned), []).append(index)
        judges = models.judges or (None,)
        for turn, judge in enumerate(judges):
            loops = len(range(turn, plays, len(judges)))
            if not loops:
                continue
            for indexes in files.values():
                add(indexes, models, judge, loops, hold=False)
                varying = [index for index in indexes if sample[index].varies(models)]
                add(varying, models, judge, loops, hold=True)
            again = [index for index in tests_here if judge and _is_judged(sample[index].sampled.recorded)]
            if again:
                rejudged.update(_numbered(len(judged), again))
                tests = [sample[index].sampled for index in again]
                judged.append(_judged(results.suites[suite], tests, judge, loops))
    run = replace(results.run, config=results.run.config | {"provider": provider})
    # What the run had used is no part of what this costs.
    saved = replace(results, run=run, suites=tuple(judged), usage=Usage())
    return SamplePlan(Plan(suites=tuple(suites), loops=1), fresh, fixed, saved, rejudged)


def _numbered(suite: int, indexes: Sequence[int]) -> _Indexes:
    return {(suite, number): index for number, index in enumerate(indexes)}


def _is_judged(trial: TrialResult) -> bool:
    return any(map(is_judged, trial.findings))


def _played(
    tests: Sequence[PlayableTest], judge: str | None, user: str | None, loops: int, *, hold: bool
) -> PlannedSuite:
    """A suite of these tests alone, which are of one."""
    planned = tests[0].planned
    suite = planned.suite.copy_with(judge_model=judge, user_model=user)
    if hold:
        suite = suite.copy_with(name=suite.name + FIXED_SUFFIX)
    return replace(
        planned,
        suite=suite,
        tests=tuple(
            (_held(suite, one.test, tuple(one.sampled.recorded.turns)) if hold else one.test).copy_with(
                loops=loops
            )
            for one in tests
        ),
        test_digests=tuple(planned.test_digests[one.number] for one in tests),
        test_lines=tuple(planned.test_lines[one.number] for one in tests),
    )


class RecordedTurn(PlannedTurn):
    """A message that the simulated user wrote in the recorded conversation. An agent may end before it."""

    @property
    def fixed(self) -> bool:
        """False, as for the turn that it was written for."""
        return False


def _held(suite: Suite, test: Test, turns: Sequence[Turn]) -> Test:
    """The test with the words of a conversation as its turns. Fixed ones are as they were."""
    planned_turns = tuple(
        _recorded(planned, turn) if planned.auto else planned
        for planned, turn in zip(suite.turns_of(test), turns, strict=False)
    )
    return test.copy_with(turns=planned_turns, max_turns=len(planned_turns))


def _recorded(planned: PlannedTurn, turn: Turn) -> RecordedTurn:
    fields = dict(planned) | {"user": turn.user}
    return RecordedTurn.model_construct(planned.model_fields_set, **fields)


def _judged(suite: SuiteResult, tests: Sequence[SampledTest], judge: str | None, times: int) -> SuiteResult:
    """A suite of one conversation of each of these tests, repeated."""
    repeated = []
    for sampled in tests:
        trials = (replace(sampled.recorded, index=index) for index in range(1, times + 1))
        repeated.append(replace(sampled.test, trials=tuple(trials), not_run=0))
    return replace(suite, judge_model=judge, judge_panel=(), judge_votes=1, tests=tuple(repeated))
