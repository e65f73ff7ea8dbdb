"""A run from its plan to its results: play, score, compare, decide, and look twice where it is close."""

import platform
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

from pydantic import JsonValue

from ci_evals import templates
from ci_evals.conversation import simulated_user
from ci_evals.domain.digest import digest, of_models, of_tests
from ci_evals.domain.errors import UsageError
from ci_evals.domain.evaluation import compares_meanings
from ci_evals.domain.plan import Plan
from ci_evals.domain.prices import NO_PRICES, PriceTable, unpriced
from ci_evals.domain.progress import Extended, Listener
from ci_evals.domain.results import (
    Confirmation,
    Digests,
    Git,
    Results,
    RunInfo,
    Status,
    SuiteResult,
    TrialResult,
)
from ci_evals.domain.suite import Suite
from ci_evals.grading import judge
from ci_evals.planning.estimate import of_suite
from ci_evals.redaction import Redactor
from ci_evals.reports import layout
from ci_evals.runner import Cast, Options, Stop, run
from ci_evals.scoring.conclude import conclude
from ci_evals.scoring.gate import Ending, Policy, close_calls
from ci_evals.scoring.scorecard import SuiteFacts, score
from ci_evals.scoring.selectors import Threshold
from ci_evals.scoring.share import Counting
from ci_evals.wiring import Adapter, casts

JUDGE_TEMPLATES = (*judge.TEMPLATES, "adapters/prompts/json_answer.md.j2")
"""All that a judge may be shown besides the conversation."""


@dataclass(frozen=True)
class Job:
    """Everything a run needs besides the parts that play it."""

    plan: Plan
    policy: Policy
    options: Options
    redactor: Redactor
    baseline: Results | None = None
    baseline_note: str | None = None
    """Which baseline was found, or why there is none."""
    confirm: int = 0
    """Further trials of each test where the first look is close."""
    prices: PriceTable = NO_PRICES
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    git: Git = field(default_factory=Git)
    ci: str | None = None
    warnings: tuple[str, ...] = ()


async def evaluate(
    job: Job,
    adapter: Adapter | Cast,
    *,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """Plays a plan, scores it, and lets the gate decide. Secrets are taken out of what it gives back.

    Raises:
        UsageError: before anything is played: a budget is set and a model has no price.
    """
    stop = stop or Stop()
    if job.policy.max_cost is not None:
        _check_prices(job, adapter)
    async with _cast(job, adapter) as cast:
        look = _Look(job, adapter, stop, now)
        play = partial(run, casts=cast, options=job.options, redactor=job.redactor, listen=listen, stop=stop)
        played = await play(job.plan)
        results = look.at(job.plan, played)
        close = close_calls(results.gate) if job.confirm and not stop.requested else ()
        if not close:
            return results
        plan = replace(job.plan, more=job.confirm)
        if _too_dear(job, results, len(plan.trials)):
            said = "the first look was close, but more trials would not stay within --max-cost"
            info = results.run.model_copy(update={"warnings": (*results.run.warnings, said)})
            return results.model_copy(update={"run": info})
        done = {trial: result for trial, result in zip(job.plan.trials, played, strict=True) if result}
        listen(Extended(plan, close))
        played = await play(plan, done=done)
        return look.at(plan, played, Confirmation(trials=job.confirm, because=close))


def not_played(
    job: Job,
    adapter: Adapter | Cast,
    why: str,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """The results of a run that was skipped: what was planned, none of it played, and no verdict."""
    look = _Look(job, adapter, Stop(), now, skipped_because=why)
    return look.at(job.plan, [None] * len(job.plan.trials))


def _check_prices(job: Job, adapter: Adapter | Cast) -> None:
    """A budget that cannot be counted would guard nothing."""
    if isinstance(adapter, Adapter) and adapter.tells_cost:
        return
    models: set[str] = set()
    for suite in job.plan.suites:
        named, work = _models(adapter, suite.suite), of_suite(job.plan, suite)
        models |= {named.user} if named.user and work.user_calls else set()
        models |= {named.judge} if named.judge and work.judge_calls else set()
        models |= {named.embedder} if named.embedder and work.embedder_calls else set()
    if missing := unpriced(models, job.prices):
        raise UsageError(
            f"--max-cost: there is no price for {', '.join(missing)}; name a file with its price by --prices"
        )


def _too_dear(job: Job, results: Results, trials: int) -> bool:
    """Whether so many trials in all, each like those played, would cost more than is allowed."""
    allowed, cost = job.policy.max_cost, results.usage.cost_usd
    return allowed is not None and cost is not None and cost * trials / results.counts.trials > allowed


@asynccontextmanager
async def _cast(job: Job, adapter: Adapter | Cast) -> AsyncIterator[Sequence[Cast]]:
    if isinstance(adapter, Cast):
        yield [adapter] * len(job.plan.suites)
        return
    async with casts(job.plan, adapter, job.redactor) as built:
        yield built


class _Look:
    """Makes results of what was played until now."""

    def __init__(
        self,
        job: Job,
        adapter: Adapter | Cast,
        stop: Stop,
        now: Callable[[], datetime],
        *,
        skipped_because: str | None = None,
    ) -> None:
        self._job, self._stop, self._now, self._skipped_because = job, stop, now, skipped_because
        self._provider = adapter.provider if isinstance(adapter, Adapter) else None
        self._offline = isinstance(adapter, Adapter) and adapter.offline
        self._id, self._started, self._begun = uuid4().hex, now(), time.perf_counter()
        self._facts = tuple(_facts(job, adapter, self._started))
        self._digests = _digests(job, adapter, self._facts)

    def at(
        self, plan: Plan, played: Sequence[TrialResult | None], confirmation: Confirmation | None = None
    ) -> Results:
        """Scores, comparison and decision, without secrets. `played` is in the order of the plan's trials."""
        try:
            return self._made(plan, played, confirmation, self._job.baseline)
        except Exception as bug:  # noqa: BLE001  # finished trials are paid for and must be reported
            self._stop.bug = self._stop.bug or bug
            self._stop.because(f"a bug in ci-evals: {type(bug).__name__}: {bug}")
            return self._made(plan, played, confirmation, None)

    def _made(
        self,
        plan: Plan,
        played: Sequence[TrialResult | None],
        confirmation: Confirmation | None,
        baseline: Results | None,
    ) -> Results:
        job, stop, info = self._job, self._stop, self._info(confirmation)
        card = score(plan, played, self._facts, Counting(offline=self._offline), prices=job.prices)
        # Tests are compared by name, and those of a baseline have had their secrets taken out.
        card = replace(card, suites=tuple(_clean(suite, job.redactor) for suite in card.suites))
        ending = Ending(interrupted=stop.interrupted, stopped_because=stop.reason, bug=stop.bug is not None)
        results = conclude(card, info, _named_as_shown(job.policy, job.redactor), ending, baseline)
        return job.redactor.model(results.model_copy(update={"suites": ()})).model_copy(
            update={"suites": card.suites}
        )

    def _info(self, confirmation: Confirmation | None) -> RunInfo:
        job, stop, skipped = self._job, self._stop, self._skipped_because
        ended: Status = "interrupted" if stop.interrupted else "stopped" if stop.reason else "completed"
        return RunInfo(
            id=self._id,
            started_at=self._started,
            finished_at=self._now(),
            duration_seconds=time.perf_counter() - self._begun,
            status="skipped" if skipped else ended,
            stopped_because=skipped or stop.reason,
            config=dict(job.config) | {"provider": self._provider},
            git=job.git,
            environment={"python": platform.python_version(), "system": platform.system(), "ci": job.ci},
            digests=self._digests,
            confirmation=confirmation,
            baseline_note=job.baseline_note,
            warnings=job.warnings,
        )


def _named_as_shown(policy: Policy, redactor: Redactor) -> Policy:
    """The policy with its parts named as in the results, where secrets are taken out of names too."""

    def shown(thresholds: Sequence[Threshold]) -> tuple[Threshold, ...]:
        return tuple(
            replace(one, selector=replace(one.selector, name=redactor.text(one.selector.name)))
            for one in thresholds
        )

    return replace(policy, thresholds=shown(policy.thresholds), max_drops=shown(policy.max_drops))


def _clean(suite: SuiteResult, redactor: Redactor) -> SuiteResult:
    """The suite without secrets; out of its trials they were taken when each ended."""
    tests = tuple(
        redactor.model(test.model_copy(update={"trials": ()})).model_copy(update={"trials": test.trials})
        for test in suite.tests
    )
    return redactor.model(suite.model_copy(update={"tests": ()})).model_copy(update={"tests": tests})


@dataclass(frozen=True)
class _Named:
    """The models of a suite; None where the user is scripted, nothing is judged, no meaning is compared."""

    judge: str | None = None
    user: str | None = None
    embedder: str | None = None


def _models(adapter: Adapter | Cast, suite: Suite) -> _Named:
    wanted = any(compares_meanings(evaluation) for test in suite.tests for evaluation in test.evaluations)
    if isinstance(adapter, Cast):
        llms = (adapter.judge_llm, adapter.user_llm, adapter.embedder if wanted else None)
        return _Named(*(llm.model if llm else None for llm in llms))
    embedder = adapter.embedder if wanted else None
    models = adapter.models(suite)
    return _Named(models.judge, models.user, embedder) if models else _Named(embedder=embedder)


def _facts(job: Job, adapter: Adapter | Cast, started: datetime) -> list[SuiteFacts]:
    taken: set[str] = set()
    facts = []
    for planned in job.plan.suites:
        models = _models(adapter, planned.suite)
        folder = layout.folder_for(job.redactor.text(planned.suite.name), started, taken)
        taken.add(folder)
        facts.append(SuiteFacts(folder, models.judge, models.user, models.embedder))
    return facts


def _digests(job: Job, adapter: Adapter | Cast, facts: Sequence[SuiteFacts]) -> Digests:
    """What the scores depend on, each thing by itself. Secrets are taken out first."""
    suites = [planned.suite for planned in job.plan.suites]
    provider = adapter.provider if isinstance(adapter, Adapter) else None
    scripted = all(fact.user_model is None for fact in facts)
    loops = [job.plan.loops_of(test) for planned in job.plan.suites for test in planned.tests]
    return Digests(
        suites=of_tests(one for planned in job.plan.suites for one in planned.test_digests),
        agents=digest(
            job.redactor.json(
                [[s.adapter, s.adapter_options, s.agent_id, s.base_url, s.model] for s in suites]
            )
        ),
        models=of_models(
            provider, ((fact.judge_model, fact.user_model, fact.embedding_model) for fact in facts)
        ),
        judge_prompt=templates.digest(*JUDGE_TEMPLATES),
        user_prompt=digest("scripted") if scripted else templates.digest(*simulated_user.TEMPLATES),
        loops=digest(loops),
    )
