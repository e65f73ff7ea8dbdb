"""Results of a run that was judged again: every number, the comparison and the decision anew."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import uuid4

from ci_evals.domain.plan import Trial
from ci_evals.domain.results.run import Digests, Origin, Results, RunInfo
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite_models import SuiteModels
from ci_evals.domain.transcript import Turns
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.job.results_builder import JUDGE_TEMPLATES, Conclusion, environment
from ci_evals.planning import model_family
from ci_evals.rejudging.saved import RejudgedTrial, RejudgeJob, usage_of_others
from ci_evals.reports.names import folders_for
from ci_evals.scoring.coverage import wanted_in
from ci_evals.scoring.scorecard import Scorecard, recounted, total
from ci_evals.scoring.scores import UndecidedRule
from ci_evals.scoring.usage import summed, usage_of, usage_of_roles, with_other
from ci_evals.stop import Stop
from ci_evals.support import templates
from ci_evals.support.digest import of_models

_RULE = UndecidedRule(offline=False)


@dataclass(frozen=True)
class RejudgedResultsBuilder:
    """Makes results of the trials that were judged again, and of those that are as they were."""

    job: RejudgeJob
    models: Sequence[SuiteModels]
    """The models of each suite, with its new judges."""
    stop: Stop
    started: datetime
    checks: JudgeChecks
    run_id: str = field(default_factory=lambda: uuid4().hex)

    def results(
        self,
        trials: Mapping[Trial, RejudgedTrial],
        finished: datetime,
        seconds: float,
        notes: tuple[str, ...] = (),
    ) -> Results:
        """Score, compare and decide, without secrets. `notes` are about how judging went."""
        return self._conclusion.results(
            lambda: self._scorecard(trials), lambda: self._info(finished, seconds, notes)
        )

    def unfinished(self) -> Results:
        """Return the results for as long as the judges are asked: the saved trials, and nothing passed."""
        judged = self.job.judged
        card = total(tuple(self._suites({})), judged.usage, _RULE, wanted_in([judged]))
        return self._conclusion.unfinished(card, self._info(self.started, 0))

    @property
    def _conclusion(self) -> Conclusion:
        job = self.job
        incomplete = (*_unfinished(job.judged), *job.incomplete)
        return Conclusion(job.policy, job.redactor, self.stop, job.baseline, self.checks, incomplete)

    def _scorecard(self, trials: Mapping[Trial, RejudgedTrial]) -> Scorecard:
        judged, prices = self.job.judged, self.job.prices
        suites = tuple(recounted(suite, _RULE) for suite in self._suites(trials))
        played = [trial for suite in suites for test in suite.tests for trial in test.trials]
        usage = usage_of(map(_only_judging, played), prices)
        if self.checks.usage:
            usage = summed([usage, usage_of_roles(self.checks.usage, prices)])
        return total(suites, with_other(judged.usage, "judge", usage), _RULE, wanted_in([judged]))

    def _suites(self, trials: Mapping[Trial, RejudgedTrial]) -> Iterator[SuiteResult]:
        suites = self.job.judged.suites
        folders = folders_for((suite.name for suite in suites), self.started)
        for s, (suite, models, folder) in enumerate(zip(suites, self.models, folders, strict=True)):
            tests = tuple(
                test.model_copy(update={"trials": tuple(_trials(trials, s, t, test))})
                for t, test in enumerate(suite.tests)
            )
            judges = {"judge_model": models.judge, "judge_panel": models.panel, "judge_votes": models.votes}
            yield suite.model_copy(update={**judges, "folder": folder, "tests": tests})

    def _info(self, finished: datetime, seconds: float, notes: tuple[str, ...] = ()) -> RunInfo:
        job, saved = self.job, self.job.judged.run
        judges = [name for suite in self.models for name in suite.judges]
        return RunInfo(
            id=self.run_id,
            started_at=self.started,
            finished_at=finished,
            duration_seconds=seconds,
            status=self._conclusion.status(saved.status),
            stopped_because=self.stop.reason or saved.stopped_because,
            config=saved.config | dict(job.config) | {"provider": job.provider},
            git=saved.git,
            environment=environment(job.ci),
            digests=self._digests(),
            confirmation=saved.confirmation,
            shard=saved.shard,
            origin=_origin(saved),
            baseline_note=job.baseline_note,
            warnings=(
                *(warning for warning in saved.warnings if not model_family.is_outdated(warning, judges)),
                *self.checks.warnings(),
                *notes,
            ),
        )

    def _digests(self) -> Digests:
        saved = self.job.judged.run.digests
        return Digests(
            suites=saved.suites,
            agents=saved.agents,
            models=of_models(self.job.provider, (models.identity for models in self.models)),
            judge_prompt=templates.digest(*JUDGE_TEMPLATES),
            user_prompt=saved.user_prompt,
            loops=saved.loops,
        )


def _trials(
    trials: Mapping[Trial, RejudgedTrial], suite: int, test: int, saved: TestResult
) -> Iterator[TrialResult]:
    for index, trial in enumerate(saved.trials, 1):
        rejudged = trials.get(Trial(suite, test, index))
        # One that was interrupted keeps its verdicts; who judged it then is no judge of this run.
        yield rejudged.result if rejudged else trial.model_copy(update={"usage": usage_of_others(trial)})


def _origin(saved: RunInfo) -> Origin:
    """The run that held the conversations: of one that was replayed or judged again, the one before it."""
    if saved.origin:
        return saved.origin.model_copy(update={"how": "rejudge"})
    return Origin(how="rejudge", run=saved.id, started_at=saved.started_at)


def _only_judging(trial: TrialResult) -> TrialResult:
    judging = tuple(usage for usage in trial.usage if usage.role == "judge")
    return trial.model_copy(update={"usage": judging, "turns": Turns()})


def _unfinished(judged: Results) -> Iterator[str]:
    """Reasons why the saved run was not a whole one."""
    run = judged.run
    if run.status != "completed":
        yield f"the saved run was {run.status}" + (f": {run.stopped_because}" if run.stopped_because else "")
