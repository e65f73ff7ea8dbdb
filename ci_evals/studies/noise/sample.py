"""The sample of a study of noise: tests, and one conversation of each whose user messages are fixed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Usage
from ci_evals.domain.suite import AUTO, Suite, Test
from ci_evals.domain.transcript import Turn, UserSource
from ci_evals.rejudging.saved import is_judged
from ci_evals.studies.asking import shuffled
from ci_evals.studies.conversations import is_usable
from ci_evals.support.redaction import MASK, Redactor

FIXED_SUFFIX = " (words held)"
"""Stands behind the name of a suite whose tests are played with the words of a recorded user."""


@dataclass(frozen=True)
class SampledTest:
    """A test of the run, and one conversation of it."""

    suite: int
    """Its place in the run."""
    test: TestResult
    recorded: TrialResult
    """The conversation that is judged again, and whose user's words are held."""


@dataclass(frozen=True)
class PlayedModels:
    """The models that judge and play the user in a suite; None if nobody does."""

    judges: tuple[str | None, ...]
    """The models that judge in turn, one each time."""
    user: str | None


def pick_tests(results: Results, source: str, most: int, seed: int) -> tuple[SampledTest, ...]:
    """Draw at most `most` tests of the run by the seed, and return them in their order.

    Raises:
        UsageError: two at least are needed, and there are fewer whose conversations are there.
    """
    found = []
    for index, suite in enumerate(results.suites):
        for number, test in enumerate(suite.tests):
            recorded = [
                trial for trial in test.trials if trial.scored and is_usable(trial) and _can_be_held(trial)
            ]
            if recorded:
                found.append(
                    SampledTest(index, test, shuffled(recorded, f"noise {seed} {index} {number}")[0])
                )
    if len(found) < 2:
        told = f"only {len(found)} of its tests has" if found else "none of its tests has"
        raise UsageError(
            f"{source}: {told} a scored conversation that is still there and can be held again, and noise is "
            "told from two tests at least. Name a run of more tests, with its conversations"
        )
    chosen = {id(one) for one in shuffled(found, f"noise {seed}")[:most]}
    return tuple(one for one in found if id(one) in chosen)


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
    """Its place in the suite as it can be played."""

    @property
    def test(self) -> Test:
        """The test itself."""
        return self.planned.tests[self.number]

    def varies(self, players: PlayedModels) -> bool:
        """Tell whether a model writes any of the user's words."""
        return players.user is not None and any(turn.auto for turn in self.planned.suite.turns_of(self.test))


def match_tests(
    results: Results, found: Sequence[SampledTest], plan: Plan, redactor: Redactor
) -> tuple[PlayableTest, ...]:
    """The same tests in suites that were read now.

    Raises:
        UsageError: a test is not there, or not as it was when the run was played; with all of these.
    """
    known: dict[tuple[str, str], list[tuple[PlannedSuite, int]]] = {}
    for planned in plan.suites:
        for number, test in enumerate(planned.tests):
            names = redactor.text(planned.suite.name), redactor.text(test.name)
            known.setdefault(names, []).append((planned, number))
    pairs, problems = [], []
    for one in found:
        suite = results.suites[one.suite]
        called = known.get((suite.name, one.test.name), [])
        same = [
            (planned, number) for planned, number in called if _digest(planned, number) == one.test.digest
        ]
        # Two suites may have one name, and the same test.
        same.sort(key=lambda match: match[0].file != suite.file)
        if same:
            pairs.append(PlayableTest(one, *same[0]))
        else:
            why = "is not as it was when the run was played" if called else "is not there any more"
            problems.append(f"{suite.file}: the test {one.test.name!r} of {suite.name!r} {why}")
    if problems:
        raise UsageError(
            "\n".join([*problems, "play the run again, or name its suites as they were then by --suite"])
        )
    return tuple(pairs)


def _digest(planned: PlannedSuite, number: int) -> str:
    return planned.test_digests[number]


@dataclass(frozen=True)
class SamplePlan:
    """Plans that are made for a sample, and which test stands where in them."""

    plan: Plan
    """Played anew, and with words held: a suite for each judge, since each conversation is judged once."""
    fresh: Mapping[tuple[int, int], int]
    """The place in the sample of each test, by its place in the plan."""
    fixed: Mapping[tuple[int, int], int]
    judged: Results
    """The conversations that are judged again, each as often as it is to be."""
    rejudged: Mapping[tuple[int, int], int]
    """The same for these results."""


def plan_sample(
    results: Results,
    provider: str,
    sample: Sequence[PlayableTest],
    players: Mapping[int, PlayedModels],
    plays: int,
) -> SamplePlan:
    """Plan all that is to be played and judged.

    Args:
        results: The run.
        provider: Of judge and user.
        sample: The tests.
        players: By the place of a suite in the run.
        plays: How often each test is played anew, with its words held, and judged again.
    """
    suites: list[PlannedSuite] = []
    places: dict[bool, dict[tuple[int, int], int]] = {True: {}, False: {}}
    judged: list[SuiteResult] = []
    rejudged: dict[tuple[int, int], int] = {}

    def add(group: list[tuple[int, PlayableTest]], judge: str | None, loops: int, *, hold: bool) -> None:
        models = players[group[0][1].sampled.suite]
        group = [(index, one) for index, one in group if not hold or one.varies(models)]
        if group:
            for number, (index, _) in enumerate(group):
                places[hold][len(suites), number] = index
            suites.append(_played([one for _, one in group], judge, models.user, loops, hold=hold))

    for suite, models in players.items():
        tests_here = [(index, one) for index, one in enumerate(sample) if one.sampled.suite == suite]
        files = dict.fromkeys(id(one.planned) for _, one in tests_here)
        for turn, judge in enumerate(models.judges):
            loops = len(range(turn, plays, len(models.judges)))
            if not loops:
                continue
            for file in files:
                group = [(index, one) for index, one in tests_here if id(one.planned) == file]
                add(group, judge, loops, hold=False)
                add(group, judge, loops, hold=True)
            asked = [(index, one) for index, one in tests_here if judge and _is_judged(one.sampled.recorded)]
            for number, (index, _) in enumerate(asked):
                rejudged[len(judged), number] = index
            if asked:
                judged.append(_judged(results.suites[suite], [one for _, one in asked], judge, loops))
    run = results.run.model_copy(update={"config": results.run.config | {"provider": provider}})
    # What the run had used is no part of what this costs.
    saved = results.model_copy(update={"run": run, "suites": tuple(judged), "usage": Usage()})
    return SamplePlan(Plan(suites=tuple(suites), loops=1), places[False], places[True], saved, rejudged)


def _is_judged(trial: TrialResult) -> bool:
    return any(map(is_judged, trial.findings))


def _played(
    tests: Sequence[PlayableTest], judge: str | None, user: str | None, loops: int, *, hold: bool
) -> PlannedSuite:
    """A suite of these tests alone, which are of one."""
    planned = tests[0].planned
    suite = planned.suite.model_copy(update={"judge_model": judge, "user_model": user})
    if hold:
        suite = suite.model_copy(update={"name": suite.name + FIXED_SUFFIX})
    return replace(
        planned,
        suite=suite,
        tests=tuple(
            (_held(suite, one.test, tuple(one.sampled.recorded.turns)) if hold else one.test).model_copy(
                update={"loops": loops}
            )
            for one in tests
        ),
        test_digests=tuple(planned.test_digests[one.number] for one in tests),
        test_lines=tuple(planned.test_lines[one.number] for one in tests),
    )


def _held(suite: Suite, test: Test, turns: Sequence[Turn]) -> Test:
    """The test with the words of a conversation as its turns. Fixed ones are as they were."""
    planned_turns = tuple(
        planned.model_copy(update={"user": turn.user}) if planned.auto else planned
        for planned, turn in zip(suite.turns_of(test), turns, strict=False)
    )
    return test.model_copy(update={"turns": planned_turns, "max_turns": len(planned_turns)})


def _judged(suite: SuiteResult, tests: Sequence[PlayableTest], judge: str | None, times: int) -> SuiteResult:
    """A suite of one conversation of each of these tests, so many times."""
    return suite.model_copy(
        update={
            "judge_model": judge,
            "judge_panel": (),
            "judge_votes": 1,
            "tests": tuple(
                one.sampled.test.model_copy(
                    update={
                        "trials": tuple(
                            one.sampled.recorded.model_copy(update={"index": index})
                            for index in range(1, times + 1)
                        ),
                        "not_run": 0,
                    }
                )
                for one in tests
            ),
        }
    )
