"""From a saved run and its suites to the faults that its gate notices, and checks for the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ci_evals.cli.terminal.display import WorkProgress
from ci_evals.domain.checks.evaluation import is_offline
from ci_evals.domain.null_agents import CLAIM
from ci_evals.domain.results.run import Results
from ci_evals.domain.suite import Suite, Test
from ci_evals.extensions.mutate.faults import Fault
from ci_evals.extensions.mutate.gate_draws import PlantedGate, graded_again
from ci_evals.extensions.mutate.planting import (
    Planting,
    SavedTrial,
    TestKey,
    plant_all,
    saved_trials,
)
from ci_evals.extensions.mutate.result import (
    FaultResult,
    GateUsed,
    IdleCriterion,
    JudgeQuestions,
    Mutations,
    NullAgents,
    Suggestion,
    TestResult,
)
from ci_evals.extensions.mutate.suggestions import suggest
from ci_evals.gate.policy import Policy
from ci_evals.scoring.null_score import null_score


@dataclass(frozen=True)
class MutationStudy:
    """A run, its suites, and the faults to plant."""

    results: Results
    suites: tuple[Suite, ...]
    """The suite of each suite of the run, in its order."""
    policy: Policy
    options: dict[str, JsonValue]
    """The options that the policy was made of."""
    faults: tuple[Fault, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Planted:
    """The conversations of a run, and the faults in those that passed."""

    trials: list[SavedTrial]
    plantings: list[Planting]

    @property
    def passed(self) -> list[SavedTrial]:
        """The conversations that passed."""
        return [trial for trial in self.trials if trial.passed]


async def plant_in(study: MutationStudy, progress: WorkProgress) -> Planted:
    """Plant the faults, and grade by strict checks.

    Raises:
        UsageError: a suite has changed since the run.
    """
    trials = await saved_trials(study.results, study.suites)
    passed = [trial for trial in trials if trial.passed]
    progress.begun(len(passed))
    return Planted(trials, await plant_all(study.faults, passed, progress.done))


async def conclude(study: MutationStudy, planted: Planted, judge: JudgeQuestions | None = None) -> Mutations:
    """Let the gate decide, and suggest checks. `judge` says how many questions a judge was asked."""
    plantings, passed = planted.plantings, planted.passed
    gate = PlantedGate(graded_again(study.results, planted.trials), study.policy)
    return Mutations(
        run=study.results.run.id,
        judge=judge,
        gate=GateUsed(passed=not gate.fails_without_faults, options=study.options, shares=study.shares),
        faults=tuple(_fault_result(fault, plantings, gate, study.shares) for fault in study.faults),
        tests=tuple(_tests(study, plantings)),
        criteria=tuple(_idle_criteria(study, passed, plantings)),
        null_agents=_null_agents(study),
        suggestions=await _suggestions(study, passed, plantings),
    )


def _fault_result(
    fault: Fault, plantings: Sequence[Planting], gate: PlantedGate, shares: Sequence[float]
) -> FaultResult:
    own = [planting for planting in plantings if planting.kind == fault.kind]
    silent = [planting for planting in own if not planting.noticed]
    undecided = [planting for planting in silent if planting.undecided]
    not_asked = [planting for planting in silent if not planting.undecided and planting.not_asked]
    return FaultResult(
        kind=fault.kind,
        planted=len(own),
        noticed=len(own) - len(silent),
        undecided=len(undecided),
        not_asked=len(not_asked),
        needed_share=gate.needed_share(own, shares),
    )


def _unnoticed(plantings: Sequence[Planting]) -> dict[TestKey, list[str]]:
    """Return the kinds that no trial of a test noticed, by test."""
    noticed = {(planting.trial.key, planting.kind) for planting in plantings if planting.noticed}
    found: dict[TestKey, list[str]] = {}
    for planting in plantings:
        key, kind = planting.trial.key, planting.kind
        if (key, kind) not in noticed and kind not in found.setdefault(key, []):
            found[key].append(kind)
    return {key: kinds for key, kinds in found.items() if kinds}


def _tests(study: MutationStudy, plantings: Sequence[Planting]) -> Iterator[TestResult]:
    for key, kinds in _unnoticed(plantings).items():
        suite = study.results.suites[key.suite]
        yield TestResult(suite=suite.name, name=suite.tests[key.test].name, unnoticed=tuple(kinds))


def _idle_criteria(
    study: MutationStudy, trials: Sequence[SavedTrial], plantings: Sequence[Planting]
) -> Iterator[IdleCriterion]:
    """Yield the strict criteria of the tests with faults that noticed none of them."""
    noticed = {(planting.trial.key, place) for planting in plantings for place in planting.noticed}
    tests = {trial.key: trial.test for trial in trials}
    for key in dict.fromkeys(planting.trial.key for planting in plantings):
        for place, evaluation in enumerate(tests[key].evaluations):
            if is_offline(evaluation) and (key, place) not in noticed:
                suite, test = study.results.suites[key.suite].name, tests[key].name
                yield IdleCriterion(suite=suite, test=test, criterion=evaluation.criterion)


def _null_agents(study: MutationStudy) -> NullAgents:
    tests: list[Test] = []
    for result, suite in zip(study.results.suites, study.suites, strict=True):
        played = {test.name for test in result.tests}
        tests += [test for test in suite.tests if test.name in played]
    return NullAgents(refuses=null_score(tests), claims=null_score(tests, CLAIM))


async def _suggestions(
    study: MutationStudy, trials: Sequence[SavedTrial], plantings: Sequence[Planting]
) -> tuple[Suggestion, ...]:
    found: list[Suggestion] = []
    for key, kinds in _unnoticed(plantings).items():
        own = [trial for trial in trials if trial.key == key]
        found += await suggest(own, kinds, study.results.suites[key.suite].file)
    return tuple(found)
