"""Conversations of a saved run, made ready to be shown to a judge again."""

from collections.abc import Iterator
from dataclasses import dataclass

from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Trial
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.verdict import Finding
from ci_evals.rejudging.saved import RejudgeJob, SavedConversation, is_judged, saved_conversation
from ci_evals.scoring.gate.policy import Policy
from ci_evals.support.redaction import Redactor


@dataclass(frozen=True)
class Saved:
    """A run whose conversations are looked at again."""

    results: Results
    source: str
    """What it is called in messages: its file."""

    def conversations(self) -> Iterator["JudgedConversation"]:
        """Those that count in a score, in the order of the results."""
        for s, suite in enumerate(self.results.suites):
            for t, test in enumerate(suite.tests):
                for index, trial in enumerate(test.trials, 1):
                    if speaks(trial):
                        yield JudgedConversation(self, Trial(s, t, index), suite.name, test, trial)

    def check_judged(self) -> None:
        """Makes sure that a judge has decided on conversations that are still there.

        Raises:
            UsageError: with what is missing.
        """
        trials = [one.trial for one in self.conversations()]
        if not trials:
            raise UsageError(
                f"{self.source}: it holds no conversation that was played to its end, so that there is "
                "nothing to judge again"
            )
        if not any(is_judged(finding) for trial in trials for finding in trial.findings):
            raise UsageError(
                f"{self.source}: it holds no judged verdict, so that there is nothing to judge again"
            )


@dataclass(frozen=True)
class JudgedConversation:
    """A trial of a saved run."""

    run: Saved
    place: Trial
    suite: str
    test: TestResult
    trial: TrialResult

    @property
    def judged(self) -> tuple[Finding, ...]:
        """Its judged findings, in the order of `case.tests`."""
        return tuple(filter(is_judged, self.trial.findings))

    def case(self) -> SavedConversation:
        """As a judge is shown it.

        Raises:
            UsageError: the trial is none that a run leaves.
        """
        work = RejudgeJob(self.run.results, "", Policy(), Redactor(), source=self.run.source)
        return saved_conversation(work, self.place)


def speaks(trial: TrialResult) -> bool:
    """Whether a trial says something of the agent: it was played to an end of its own, and is still there."""
    return trial.counts and len(trial.turns) > 0
