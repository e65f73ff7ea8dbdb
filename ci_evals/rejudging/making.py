"""Results of a run that was judged again: every number, the comparison and the decision anew."""

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from ci_evals.domain.plan import Trial
from ci_evals.domain.results.run import Digests, Origin, Results, RunInfo, Status
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turns
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.job.results_builder import JUDGE_TEMPLATES, redacted
from ci_evals.planning import model_family
from ci_evals.rejudging.runner import not_judging
from ci_evals.rejudging.work import Jury, RejudgedTrial, RejudgeJob
from ci_evals.reports.names import folder_for
from ci_evals.scoring.conclude import conclude, unfinished
from ci_evals.scoring.coverage import wanted_of
from ci_evals.scoring.gate.policy import Ending
from ci_evals.scoring.scorecard import recounted, total
from ci_evals.scoring.scores import Counting
from ci_evals.scoring.usage import summed, usage_of, usage_of_roles, with_other
from ci_evals.stop import Stop
from ci_evals.support import templates
from ci_evals.support.digest import jury as voting
from ci_evals.support.digest import of_models


@dataclass(frozen=True)
class RejudgedResultsBuilder:
    """Makes results of the trials that were judged again, and of those that are as they were."""

    work: RejudgeJob
    juries: Sequence[Jury]
    """Who judges each suite."""
    again: Mapping[Trial, RejudgedTrial]
    stop: Stop
    started: datetime
    notes: tuple[str, ...] = ()
    """What a person should know of how judging went."""
    checks: JudgeChecks | None = None
    """Control questions to the judges, if any were asked."""

    def results(self, finished: datetime, seconds: float) -> Results:
        """Scores, comparison and decision, without secrets."""
        info = self._info(finished, seconds)
        try:
            return self._made(info, self.work.baseline)
        except Exception as error:  # noqa: BLE001  # verdicts are paid for and must be reported
            self.stop.broke(error)
            return self._made(self._info(finished, seconds), None)

    def unfinished(self) -> Results:
        """Return the results for as long as the judges are asked: what is saved, and nothing passed."""
        work = self.work
        suites = tuple(self._suites())
        card = total(suites, work.judged.usage, Counting(offline=False), wanted_of([work.judged]))
        return redacted(unfinished(card, self._info(self.started, 0)), work.redactor)

    def _made(self, info: RunInfo, baseline: Results | None) -> Results:
        work, stop, counting = self.work, self.stop, Counting(offline=False)
        suites = tuple(recounted(suite, counting) for suite in self._suites())
        trials = [trial for suite in suites for test in suite.tests for trial in test.trials]
        own = usage_of((_only_judging(trial) for trial in trials), work.prices)
        if self.checks and self.checks.usage:
            own = summed([own, usage_of_roles(self.checks.usage, work.prices)])
        usage = with_other(work.judged.usage, "judge", own)
        card = total(suites, usage, counting, wanted_of([work.judged]))
        ending = Ending(
            interrupted=stop.interrupted,
            stopped_because=stop.reason,
            bug=stop.bug is not None,
            judge_checks=self.checks.checks if self.checks else (),
            judge_only_warned=bool(self.checks and self.checks.only_warn),
            incomplete=(*_unfinished(work.judged), *work.incomplete),
        )
        results = conclude(card, info, work.policy, ending, baseline)
        return redacted(results, work.redactor)

    def _suites(self) -> Iterator[SuiteResult]:
        taken: set[str] = set()
        for s, suite in enumerate(self.work.judged.suites):
            folder = folder_for(suite.name, self.started, taken)
            taken.add(folder)
            tests = tuple(
                test.model_copy(update={"trials": tuple(self._trials(Trial(s, t, 0), test))})
                for t, test in enumerate(suite.tests)
            )
            jury = self.juries[s]
            judges = {"judge_model": jury.models[0], "judge_panel": jury.panel, "judge_votes": jury.votes}
            yield suite.model_copy(update={**judges, "folder": folder, "tests": tests})

    def _trials(self, place: Trial, test: TestResult) -> Iterator[TrialResult]:
        for index, trial in enumerate(test.trials, 1):
            again = self.again.get(Trial(place.suite, place.test, index))
            # One that was interrupted keeps its verdicts; who judged it then is no judge of this run.
            yield again.result if again else trial.model_copy(update={"usage": not_judging(trial)})

    @property
    def _judges(self) -> list[str]:
        return [model for jury in self.juries for model in jury.models]

    def _info(self, finished: datetime, seconds: float) -> RunInfo:
        work, stop, saved = self.work, self.stop, self.work.judged.run
        ended: Status = "interrupted" if stop.interrupted else "stopped" if stop.reason else saved.status
        return RunInfo(
            id=uuid4().hex,
            started_at=self.started,
            finished_at=finished,
            duration_seconds=seconds,
            status=ended,
            stopped_because=stop.reason or saved.stopped_because,
            config=saved.config | dict(work.config) | {"provider": work.provider},
            git=saved.git,
            environment={"python": platform.python_version(), "system": platform.system(), "ci": work.ci},
            digests=self._digests(),
            confirmation=saved.confirmation,
            shard=saved.shard,
            origin=_origin(saved),
            baseline_note=work.baseline_note,
            warnings=(
                *(one for one in saved.warnings if not model_family.is_outdated(one, self._judges)),
                *self.notes,
            ),
        )

    def _digests(self) -> Digests:
        saved, suites = self.work.judged.run.digests, self.work.judged.suites
        return Digests(
            suites=saved.suites,
            agents=saved.agents,
            models=of_models(
                self.work.provider,
                (
                    (voting(jury.models[0], jury.panel, jury.votes), suite.user_model, suite.embedding_model)
                    for jury, suite in zip(self.juries, suites, strict=True)
                ),
            ),
            judge_prompt=templates.digest(*JUDGE_TEMPLATES),
            user_prompt=saved.user_prompt,
            loops=saved.loops,
        )


def _origin(saved: RunInfo) -> Origin:
    """The run that held the conversations: of one that was replayed or judged again, the one before it."""
    if saved.origin:
        return saved.origin.model_copy(update={"how": "rejudge"})
    return Origin(how="rejudge", run=saved.id, started_at=saved.started_at)


def _only_judging(trial: TrialResult) -> TrialResult:
    judging = tuple(usage for usage in trial.usage if usage.role == "judge")
    return trial.model_copy(update={"usage": judging, "turns": Turns()})


def _unfinished(judged: Results) -> Iterator[str]:
    """Why the run that is judged again was not a whole one."""
    run = judged.run
    if run.status != "completed":
        yield f"the saved run was {run.status}" + (f": {run.stopped_because}" if run.stopped_because else "")
