"""Conversations of a saved run, made ready to be shown to a judge again."""

from collections.abc import Iterator
from dataclasses import dataclass

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Finding
from ci_evals.extension_support.rejudging.saved import (
    RejudgeJob,
    SavedConversation,
    is_judged,
    saved_conversation,
)
from ci_evals.gate.policy import Policy
from ci_evals.support.redaction import Redactor


@dataclass(frozen=True)
class JudgedConversation:
    """A trial of a saved run that counts in its score."""

    run: SavedRun
    position: Trial
    suite: str
    test: TestResult
    trial: TrialResult

    @property
    def judged(self) -> tuple[Finding, ...]:
        """Its judged findings, in the order of `case().tests`."""
        return tuple(filter(is_judged, self.trial.findings))

    def case(self) -> SavedConversation:
        """Return the conversation as a judge is shown it.

        Raises:
            UsageError: the trial is none that a run leaves.
        """
        work = RejudgeJob(self.run.results, "", Policy(), Redactor(), source=str(self.run.file))
        return saved_conversation(work, self.position)


def conversations_of(run: SavedRun) -> Iterator[JudgedConversation]:
    """The conversations that count in a score, in the order of the results."""
    for s, suite in enumerate(run.results.suites):
        for t, test in enumerate(suite.tests):
            for index, trial in enumerate(test.trials, 1):
                if is_usable(trial):
                    yield JudgedConversation(run, Trial(s, t, index), suite.name, test, trial)


def check_judged(run: SavedRun) -> None:
    """Make sure that a judge has decided on conversations that are still there.

    Raises:
        UsageError: with what is missing.
    """
    trials = [conversation.trial for conversation in conversations_of(run)]
    if not trials:
        raise UsageError(f"{run.file}: it has no finished conversation to judge again")
    if not any(is_judged(finding) for trial in trials for finding in trial.findings):
        raise UsageError(f"{run.file}: it has no judged verdict to judge again")


def is_usable(trial: TrialResult) -> bool:
    """Tell whether a trial was played to an end of its own, and its conversation is still there."""
    return trial.counts and len(trial.turns) > 0
