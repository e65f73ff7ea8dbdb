"""Faults planted in the conversations of a saved run, and graded again by its suites."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_evals.domain.checks.evaluation import Judged, is_offline
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import AUTO, PlannedTurn, Suite, Test
from ci_evals.domain.transcript import Transcript
from ci_evals.domain.verdict import Cause, Finding, Outcome, Verdict
from ci_evals.extension_support.rejudging.saved import transcript_of
from ci_evals.extensions.mutate.faults import Fault
from ci_evals.extensions.mutate.faults.conversation import Conversation, OtherTests
from ci_evals.grading.grade import NO_JUDGE, grade

_NEAREST = 20
"""Other tests whose conversations a fault may take something from."""
_NOT_ASKED = Verdict.undecided(Cause.NO_JUDGE, "nobody was asked about it")


@dataclass(frozen=True)
class TestKey:
    """The places of a test in the results, counted from 0."""

    suite: int
    test: int


@dataclass(frozen=True)
class SavedTrial:
    """A saved conversation, and what the suite as it is now says of it."""

    key: TestKey
    index: int
    """Its place among the trials of its test, counted from 0."""
    test: Test
    conversation: Conversation
    findings: tuple[Finding, ...]
    """A finding for each evaluation of the test. Those that need a model or code are the run's own."""

    @property
    def passed(self) -> bool:
        """True if nothing failed, and no strict check is undecided."""
        for evaluation, finding in zip(self.test.evaluations, self.findings, strict=True):
            if finding.outcome is Outcome.PASSED:
                continue
            if not is_offline(evaluation) and finding.cause is Cause.NO_JUDGE:
                continue
            return False
        return True


@dataclass(frozen=True)
class Planting:
    """A fault in a conversation, and which criteria noticed it."""

    trial: SavedTrial
    kind: str
    noticed: frozenset[int]
    """The places of the evaluations that passed before and fail now."""
    undecided: frozenset[int]
    """The places of those that passed before and can no longer be decided."""
    judged: frozenset[int] = frozenset()
    """The places of those that a judge was asked about again, or is shown nothing new of."""

    @property
    def not_asked(self) -> frozenset[int]:
        """The places of the evaluations that could notice it, need a model or code, and were not asked."""
        places = range(len(self.trial.test.evaluations))
        asked = [place for place in places if is_offline(self.trial.test.evaluations[place])]
        return frozenset(places).difference(asked, self.judged)


async def saved_trials(results: Results, suites: Sequence[Suite]) -> list[SavedTrial]:
    """Return the whole conversations of a run, graded by the strict checks of its suites as they are now.

    Args:
        results: The run.
        suites: The suite of each suite of the run, in its order.

    Raises:
        UsageError: a suite lacks a test of the run, or asks its users' turns otherwise now.
    """
    _check_same_tests(results, suites)
    trials = []
    for number, (suite_result, suite) in enumerate(zip(results.suites, suites, strict=True)):
        tests = {test.name: test for test in suite.tests}
        for place, result in enumerate(suite_result.tests):
            if result.quarantine is not None:
                continue
            test = tests[result.name]
            others = _others(suite_result.tests, place)
            for index, trial in enumerate(result.trials):
                if trial.counts and trial.turns:
                    planned = _planned(suite, test, trial)
                    conversation = _conversation(test, trial, planned, others)
                    findings = await _base_findings(test, conversation, trial)
                    key = TestKey(number, place)
                    trials.append(SavedTrial(key, index, test, conversation, findings))
    return trials


async def plant(fault: Fault, trial: SavedTrial) -> Planting | None:
    """Plant a fault in a conversation and grade it again; None if the fault does not apply."""
    transcript = fault.plant(trial.conversation)
    if transcript is None:
        return None
    noticed, undecided = set(), set()
    after = await strict_findings(trial.test, trial.conversation.planned, transcript)
    for place, finding in after.items():
        if trial.findings[place].outcome is not Outcome.PASSED:
            continue
        if finding.fails:
            noticed.add(place)
        elif finding.outcome is Outcome.UNDECIDED:
            undecided.add(place)
    return Planting(trial, fault.kind, frozenset(noticed), frozenset(undecided))


async def strict_findings(
    test: Test, planned: Sequence[PlannedTurn], transcript: Transcript
) -> Mapping[int, Finding]:
    """Return the findings of the strict checks of a test that need no code and no model, by their places."""
    findings = await grade(test, planned, transcript, NO_JUDGE)
    return {
        place: finding
        for place, (evaluation, finding) in enumerate(zip(test.evaluations, findings, strict=True))
        if is_offline(evaluation)
    }


def with_only(test: Test, evaluation: Judged | StrictCheck) -> Test:
    """Return the test with this evaluation, and with those by which it may expect the agent to end it."""
    ending = [
        other
        for other in test.evaluations
        if isinstance(other, StrictCheck) and other.expects_end is not None
    ]
    return test.copy_with(evaluations=(evaluation, *ending))


async def plant_all(
    faults: Sequence[Fault], trials: Sequence[SavedTrial], progress: Callable[[], None] = lambda: None
) -> list[Planting]:
    """Plant each fault in each conversation where it applies.

    `progress` is called after each conversation.
    """
    plantings = []
    for trial in trials:
        for fault in faults:
            planting = await plant(fault, trial)
            if planting is not None:
                plantings.append(planting)
        progress()
    return plantings


async def _base_findings(test: Test, conversation: Conversation, trial: TrialResult) -> tuple[Finding, ...]:
    decided = await strict_findings(test, conversation.planned, conversation.transcript)
    saved = {(finding.criterion, finding.strict): finding for finding in trial.findings}
    findings = []
    for place, evaluation in enumerate(test.evaluations):
        finding = decided.get(place) or saved.get((evaluation.criterion, evaluation.strict_kind))
        findings.append(finding or Finding.of(evaluation, _NOT_ASKED))
    return tuple(findings)


def _conversation(
    test: Test, trial: TrialResult, planned: Sequence[PlannedTurn], others: OtherTests
) -> Conversation:
    transcript = transcript_of(trial)
    turns = tuple(turn.copy_with(trace=None, raw=None) for turn in transcript.turns)
    return Conversation(
        transcript.copy_with(turns=turns),
        planned,
        test.user_info,
        trial.probes_before,
        others,
        test.may_escalate,
    )


def _planned(suite: Suite, test: Test, trial: TrialResult) -> tuple[PlannedTurn, ...]:
    """Return the planned turns, at least as many as were played."""
    planned = suite.turns_of(test)
    missing = max(0, len(trial.turns) - len(planned))
    return planned + (PlannedTurn(user=AUTO),) * missing


def _others(tests: Sequence[TestResult], place: int) -> OtherTests:
    """Return what the other tests hold, beginning with the one that follows."""
    following = (*tests[place + 1 :], *tests[:place])[:_NEAREST]
    turns = [turn for test in following for trial in test.trials[:1] for turn in trial.turns.without_traces()]
    return OtherTests(tuple(turns), tuple(test.user_info for test in following))


def _check_same_tests(results: Results, suites: Sequence[Suite]) -> None:
    for suite_result, suite in zip(results.suites, suites, strict=True):
        for name in _changed_tests(suite_result.tests, suite):
            raise UsageError(
                f"{suite_result.file}: the test {name!r} is gone, or its turns have changed since the run. "
                "Run the suite again, or name the suite of the run with `suite=`."
            )


def _changed_tests(tests: Sequence[TestResult], suite: Suite) -> Iterator[str]:
    now = {test.name: test for test in suite.tests}
    for test in tests:
        if test.name not in now or now[test.name].turns != test.turns:
            yield test.name
