"""Looking at what was played: scores, comparison and decision, and what the run as a whole was."""

import platform
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from ci_evals._version import __version__
from ci_evals.conversation import audit, simulated_user
from ci_evals.domain.base import instant
from ci_evals.domain.evaluation import compares_meanings
from ci_evals.domain.journal import Header
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.prices import NO_PRICES
from ci_evals.domain.results.run import Confirmation, Digests, Results, Resumed, RunInfo, Status, Tool
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import Suite
from ci_evals.grading import graded_criteria, judge
from ci_evals.job.job import Job
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.reports.names import folders_for
from ci_evals.runner import Participants
from ci_evals.scoring.conclude import conclude, unfinished
from ci_evals.scoring.gate.policy import Ending, Policy
from ci_evals.scoring.gate.selectors import Threshold
from ci_evals.scoring.scorecard import SuiteFacts, score
from ci_evals.scoring.scores import Counting
from ci_evals.scoring.usage import summed, usage_of_roles
from ci_evals.stop import Stop
from ci_evals.support import templates
from ci_evals.support.digest import digest, of_loops, of_models, of_tests
from ci_evals.support.redaction import Redactor
from ci_evals.wiring import Connections

JUDGE_TEMPLATES = (*judge.TEMPLATES, *graded_criteria.TEMPLATES, "adapters/prompts/json_answer.md.j2")
"""All that a judge may be shown besides the suite's own words and the conversation."""


class ResultsBuilder:
    """Makes results of what was played until now."""

    def __init__(
        self,
        job: Job,
        adapter: Connections | Participants,
        stop: Stop,
        now: Callable[[], datetime],
        *,
        skipped_because: str | None = None,
        notes: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._job, self._stop, self._clock, self._skipped_because = job, stop, now, skipped_because
        self._notes = notes
        self.resumed: Collection[Trial] = ()
        """The trials that are taken from the journal."""
        self.judge_checks: JudgeChecks | None = None
        """Control questions to the judges, if any are asked."""
        self._provider = adapter.provider if isinstance(adapter, Connections) else None
        self.counting = Counting(offline=isinstance(adapter, Connections) and adapter.offline)
        past = job.journal.past if job.journal else None
        self._id = past.header.run if past else uuid4().hex
        self._started = past.header.started_at if past else self.now()
        self._begun = time.perf_counter() - (past.elapsed if past else 0)
        self._facts = tuple(_facts(job, adapter, self._started))
        self._digests = _digests(job, adapter, self._facts)
        self._connection = _connection(adapter)

    @property
    def header(self) -> Header:
        """What the journal says of the run."""
        tool = Tool(version=__version__)
        return Header(
            tool=tool,
            run=self._id,
            started_at=self._started,
            digests=self._digests,
            origin=self._job.origin,
            tests=tuple(len(planned.tests) for planned in self._job.plan.suites),
            connection=self._connection,
            context=self._job.context,
        )

    def now(self) -> datetime:
        """Return the time by the run's clock, or the nearest that results can hold."""
        return instant(self._clock())

    @property
    def elapsed(self) -> float:
        """Seconds that the run has gone on, without the time in which it was broken off."""
        return time.perf_counter() - self._begun

    def at(
        self, plan: Plan, played: Sequence[TrialResult | None], confirmation: Confirmation | None = None
    ) -> Results:
        """Scores, comparison and decision, without secrets. `played` is in the order of the plan's trials."""
        try:
            return self._made(plan, played, confirmation, self._job.baseline)
        except Exception as bug:  # noqa: BLE001  # finished trials are paid for and must be reported
            self._stop.broke(bug)
            return self._made(plan, played, confirmation, None)

    def unfinished(self) -> Results:
        """Return the results of this run for as long as it goes on: nothing is played yet, nothing passed."""
        job = self._job
        nothing = [None] * len(job.plan.trials)
        card = score(job.plan, nothing, self._facts, self.counting, prices=NO_PRICES, shown=job.redactor.text)
        card = replace(card, suites=tuple(_clean(suite, job.redactor) for suite in card.suites))
        return redacted(unfinished(card, self._info(job.plan, None)), job.redactor)

    def _made(
        self,
        plan: Plan,
        played: Sequence[TrialResult | None],
        confirmation: Confirmation | None,
        baseline: Results | None,
    ) -> Results:
        job, stop, info = self._job, self._stop, self._info(plan, confirmation)
        card = score(plan, played, self._facts, self.counting, prices=job.prices(), shown=job.redactor.text)
        # Tests are compared by name, and those of a baseline have had their secrets taken out.
        card = replace(card, suites=tuple(_clean(suite, job.redactor) for suite in card.suites))
        checks = self.judge_checks
        if checks and checks.usage:
            own = usage_of_roles(checks.usage, job.prices())
            card = replace(card, usage=summed([card.usage, own]))
        ending = Ending(
            interrupted=stop.interrupted,
            stopped_because=stop.reason,
            failed_fast=stop.failed_fast,
            bug=stop.bug is not None,
            judge_checks=checks.checks if checks else (),
            judge_only_warned=bool(checks and checks.only_warn),
        )
        results = conclude(card, info, _named_as_shown(job.policy, job.redactor), ending, baseline)
        return redacted(results, job.redactor)

    def _cautions(self) -> tuple[str, ...]:
        past = self._job.journal.past if self._job.journal else None
        caution = self._job.context.caution(past.header.context) if past else None
        return (caution,) if caution else ()

    def _resumed(self, plan: Plan) -> Resumed | None:
        """What came from the journal."""
        past = self._job.journal.past if self._job.journal else None
        trials = sum(trial in self.resumed for trial in plan.trials)
        if not past or not trials:
            return None
        context = past.header.context
        return Resumed(
            trials=trials,
            written_at=past.written_at,
            attempt=context.attempt,
            commit=context.checkout or context.commit,
        )

    def _info(self, plan: Plan, confirmation: Confirmation | None) -> RunInfo:
        job, stop, skipped = self._job, self._stop, self._skipped_because
        ended: Status = "interrupted" if stop.interrupted else "stopped" if stop.reason else "completed"
        return RunInfo(
            id=self._id,
            started_at=self._started,
            finished_at=max(self.now(), self._started),
            duration_seconds=self.elapsed,
            status="skipped" if skipped else ended,
            stopped_because=skipped or stop.reason,
            config=dict(job.config) | {"provider": self._provider},
            git=job.git,
            environment={"python": platform.python_version(), "system": platform.system(), "ci": job.ci},
            digests=self._digests,
            confirmation=confirmation,
            shard=job.shard,
            origin=job.origin,
            resumed=self._resumed(plan),
            baseline_note=job.baseline_note,
            warnings=(
                *job.warnings,
                *self._cautions(),
                *(self.judge_checks.warnings() if self.judge_checks else ()),
                *self._notes(),
            ),
        )


def _named_as_shown(policy: Policy, redactor: Redactor) -> Policy:
    """The policy with its parts named as in the results, where secrets are taken out of names too."""

    def shown(thresholds: Sequence[Threshold]) -> tuple[Threshold, ...]:
        return tuple(
            replace(one, selector=replace(one.selector, name=redactor.text(one.selector.name)))
            for one in thresholds
        )

    return replace(policy, thresholds=shown(policy.thresholds), max_drops=shown(policy.max_drops))


def redacted(results: Results, redactor: Redactor) -> Results:
    """Return results without secrets; those of their suites have been taken out before."""
    return redactor.model(results.model_copy(update={"suites": ()})).model_copy(
        update={"suites": results.suites}
    )


def _clean(suite: SuiteResult, redactor: Redactor) -> SuiteResult:
    """The suite without secrets; out of its trials they were taken when each ended."""
    tests = tuple(
        redactor.model(test.model_copy(update={"trials": ()})).model_copy(update={"trials": test.trials})
        for test in suite.tests
    )
    return redactor.model(suite.model_copy(update={"tests": ()})).model_copy(update={"tests": tests})


@dataclass(frozen=True)
class Named:
    """The models of a suite; None where the user is scripted, nothing is judged, no meaning is compared."""

    judge: str | None = None
    """The judge, or the first of the panel."""
    user: str | None = None
    embedder: str | None = None
    panel: tuple[str, ...] = ()
    """The models that vote in turn, where several do."""
    votes: int = 1
    """On one criterion, at the most."""

    @property
    def judges(self) -> tuple[str, ...]:
        """All models that judge."""
        return self.panel or ((self.judge,) if self.judge else ())


def models_of(adapter: Connections | Participants, suite: Suite) -> Named:
    """The models that a suite is played with."""
    wanted = any(compares_meanings(evaluation) for test in suite.tests for evaluation in test.evaluations)
    if isinstance(adapter, Participants):
        judges = tuple(llm.model for llm in adapter.judges)
        return Named(
            judge=next(iter(judges), None),
            user=adapter.user_llm.model if adapter.user_llm else None,
            embedder=adapter.embedder.model if adapter.embedder and wanted else None,
            panel=judges if len(judges) > 1 else (),
            votes=adapter.judge_votes if judges else 1,
        )
    embedder = adapter.embedder if wanted else None
    models = adapter.models(suite)
    if models is None:
        return Named(embedder=embedder)
    return Named(models.judge, models.user, embedder, models.panel, models.votes)


def _facts(job: Job, adapter: Connections | Participants, started: datetime) -> list[SuiteFacts]:
    facts = []
    names = [job.redactor.text(planned.suite.name) for planned in job.plan.suites]
    for planned, folder in zip(job.plan.suites, folders_for(names, started), strict=True):
        models = models_of(adapter, planned.suite)
        facts.append(
            SuiteFacts(folder, models.judge, models.user, models.embedder, models.panel, models.votes)
        )
    return facts


def _digests(job: Job, adapter: Connections | Participants, facts: Sequence[SuiteFacts]) -> Digests:
    """What the scores depend on, each thing by itself. Secrets are taken out first."""
    suites = [planned.suite for planned in job.plan.suites]
    provider = adapter.provider if isinstance(adapter, Connections) else None
    scripted = all(fact.user_model is None for fact in facts)
    loops = [job.plan.loops_of(test) for planned in job.plan.suites for test in planned.tests]
    return Digests(
        suites=of_tests(one for planned in job.plan.suites for one in planned.test_digests),
        agents=digest(
            job.redactor.json(
                [[s.adapter, s.adapter_options, s.agent_id, s.base_url, s.model] for s in suites]
            )
        ),
        models=of_models(provider, ((fact.jury, fact.user_model, fact.embedding_model) for fact in facts)),
        judge_prompt=templates.digest(*JUDGE_TEMPLATES),
        user_prompt=digest("scripted") if scripted else _user_prompt(adapter),
        loops=of_loops(loops),
    )


def _connection(adapter: Connections | Participants) -> str:
    """How agents are reached, besides what suites say. Values of headers are secrets, and left out."""
    if not isinstance(adapter, Connections):
        return ""
    headers = sorted(name.lower() for name in adapter.headers)
    return digest([adapter.key_header.lower(), headers, adapter.agent_id_in, adapter.task_origin_type])


def _user_prompt(adapter: Connections | Participants) -> str:
    """The simulated user's, and the auditor's where one looks at it: it decides which trials count."""
    if isinstance(adapter, Connections):
        audited, model = adapter.audit_user, adapter.audit_model
    else:
        audited, model = bool(adapter.audit_llm), adapter.audit_llm.model if adapter.audit_llm else None
    told = templates.digest(*simulated_user.TEMPLATES, *(audit.TEMPLATES if audited else ()))
    return digest([told, model]) if model else told
