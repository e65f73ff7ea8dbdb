"""Results of a run that was judged again: with every number, the comparison and the decision made again."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from ci_evals.domain.plan import SuiteModels, Trial
from ci_evals.domain.results.run import Digests, Origin, Results, RunInfo
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.extension_support.rejudging.saved import RejudgedTrial, RejudgeJob, usage_of_others
from ci_evals.job.conclude import Conclusion
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.job.results_builder import JUDGE_TEMPLATES, environment
from ci_evals.planning import model_family
from ci_evals.reports.names import folders_for
from ci_evals.scoring.coverage import wanted_in
from ci_evals.scoring.scorecard import Scorecard, recounted, total
from ci_evals.scoring.scores import ScoreRule
from ci_evals.scoring.usage import summed, usage_of_roles, with_other
from ci_evals.stop import Stop
from ci_evals.support import templates
from ci_evals.support.digest import of_models

_RULE = ScoreRule(offline=False)


class RejudgedResultsBuilder:
    """Makes results of the trials that were judged again, and of those that are as they were."""

    def __init__(
        self,
        job: RejudgeJob,
        models: Sequence[SuiteModels],
        stop: Stop,
        now: Callable[[], datetime],
        checks: JudgeChecks,
    ) -> None:
        """`models` are those of each suite, with its new judges."""
        self.job, self.models, self.stop, self.checks = job, models, stop, checks
        self._now, self._started, self._begun = now, now(), time.perf_counter()
        self._id = uuid4().hex

    def results(self, trials: Mapping[Trial, RejudgedTrial], notes: tuple[str, ...]) -> Results:
        """Score, compare and decide, without secrets. `notes` are about how judging went."""
        return self._conclusion.results(lambda: self._scorecard(trials), lambda: self._info(notes))

    def unfinished(self) -> Results:
        """Return the results for as long as the judges are asked: the saved trials, and nothing passed."""
        judged = self.job.judged
        suites = tuple(recounted(suite, _RULE) for suite in self._suites({}))
        card = total(suites, judged.usage, _RULE, wanted_in(judged.coverage))
        return self._conclusion.unfinished(card, self._info())

    @property
    def _conclusion(self) -> Conclusion:
        job = self.job
        incomplete = (*_unfinished(job.judged), *job.incomplete)
        return Conclusion(job.policy, job.redactor, self.stop, job.baseline, self.checks, incomplete)

    def _scorecard(self, trials: Mapping[Trial, RejudgedTrial]) -> Scorecard:
        judged, prices = self.job.judged, self.job.prices
        suites = tuple(recounted(suite, _RULE) for suite in self._suites(trials))
        played = [trial for suite in suites for test in suite.tests for trial in test.trials]
        judging = [usage for trial in played for usage in trial.usage if usage.role == "judge"]
        usage = usage_of_roles(judging, prices)
        if self.checks.usage:
            usage = summed([usage, usage_of_roles(self.checks.usage, prices)])
        return total(suites, with_other(judged.usage, "judge", usage), _RULE, wanted_in(judged.coverage))

    def _suites(self, trials: Mapping[Trial, RejudgedTrial]) -> Iterator[SuiteResult]:
        suites = self.job.judged.suites
        folders = folders_for((suite.name for suite in suites), self._started)
        for s, (suite, models, folder) in enumerate(zip(suites, self.models, folders, strict=True)):
            tests = tuple(
                replace(test, trials=tuple(_trials(trials, s, t, test))) for t, test in enumerate(suite.tests)
            )
            yield replace(
                suite,
                judge_model=models.judge,
                judge_panel=models.panel,
                judge_votes=models.votes,
                folder=folder,
                tests=tests,
            )

    def _info(self, notes: tuple[str, ...] = ()) -> RunInfo:
        job, saved = self.job, self.job.judged.run
        judges = [name for suite in self.models for name in suite.judges]
        warnings = (warning for warning in saved.warnings if not model_family.is_outdated(warning, judges))
        digests = Digests(
            suites=saved.digests.suites,
            agents=saved.digests.agents,
            models=of_models(job.provider, (models.identity for models in self.models)),
            judge_prompt=templates.digest(*JUDGE_TEMPLATES),
            user_prompt=saved.digests.user_prompt,
            loops=saved.digests.loops,
        )
        return replace(
            saved,
            id=self._id,
            started_at=self._started,
            finished_at=self._now(),
            duration_seconds=time.perf_counter() - self._begun,
            status=self._conclusion.status(saved.status),
            stopped_because=self.stop.reason or saved.stopped_because,
            config=saved.config | dict(job.config) | {"provider": job.provider},
            environment=environment(job.ci),
            digests=digests,
            origin=_origin(saved),
            resumed=None,
            baseline_note=job.baseline.note,
            warnings=(*warnings, *self.checks.warnings(), *notes),
        )


def _trials(
    trials: Mapping[Trial, RejudgedTrial], suite: int, test: int, saved: TestResult
) -> Iterator[TrialResult]:
    for index, trial in enumerate(saved.trials, 1):
        rejudged = trials.get(Trial(suite, test, index))
        # One that was interrupted keeps its verdicts; who judged it then is no judge of this run.
        yield rejudged.result if rejudged else replace(trial, usage=usage_of_others(trial))


def _origin(saved: RunInfo) -> Origin:
    """The run that held the conversations: of one that was replayed or judged again, the one before it."""
    if saved.origin:
        return replace(saved.origin, how="rejudge")
    return Origin(how="rejudge", run=saved.id, started_at=saved.started_at)


def _unfinished(judged: Results) -> Iterator[str]:
    run = judged.run
    if run.status != "completed":
        yield f"the saved run was {run.status}" + (f": {run.stopped_because}" if run.stopped_because else "")
