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

from ci_evals import __version__, templates
from ci_evals.conversation import simulated_user
from ci_evals.domain.plan import Plan
from ci_evals.domain.prices import NO_PRICES, PriceTable
from ci_evals.domain.progress import Extended, Listener
from ci_evals.domain.results import (
    Confirmation,
    Digests,
    Git,
    Results,
    RunInfo,
    SuiteResult,
    Tool,
    TrialResult,
)
from ci_evals.grading import judge
from ci_evals.planning.selection import digest
from ci_evals.redaction import Redactor
from ci_evals.reports import layout
from ci_evals.runner import Cast, Options, Stop, run
from ci_evals.scoring.compare import Pairing
from ci_evals.scoring.gate import Case, Ending, Policy, close_calls, decide
from ci_evals.scoring.odds import odds_of
from ci_evals.scoring.pairing import Side
from ci_evals.scoring.scorecard import SuiteFacts, score
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
    """Plays a plan, scores it, and lets the gate decide. Secrets are taken out of what it gives back."""
    stop = stop or Stop()
    async with _cast(job, adapter) as cast:
        look = _Look(job, adapter, stop, now)
        play = partial(run, casts=cast, options=job.options, redactor=job.redactor, listen=listen, stop=stop)
        played = await play(job.plan)
        results = look.at(job.plan, played)
        close = close_calls(results.gate) if job.confirm else ()
        if not close:
            return results
        plan = replace(job.plan, more=job.confirm)
        done = {trial: result for trial, result in zip(job.plan.trials, played, strict=True) if result}
        listen(Extended(plan, close))
        played = await play(plan, done=done)
        return look.at(plan, played, Confirmation(trials=job.confirm, because=close))


@asynccontextmanager
async def _cast(job: Job, adapter: Adapter | Cast) -> AsyncIterator[Sequence[Cast]]:
    if isinstance(adapter, Cast):
        yield [adapter] * len(job.plan.suites)
        return
    async with casts(job.plan, adapter, job.redactor) as built:
        yield built


class _Look:
    """Makes results of what was played until now."""

    def __init__(self, job: Job, adapter: Adapter | Cast, stop: Stop, now: Callable[[], datetime]) -> None:
        self._job, self._stop, self._now = job, stop, now
        self._provider = adapter.provider if isinstance(adapter, Adapter) else None
        self._offline = isinstance(adapter, Adapter) and adapter.offline
        self._id, self._started, self._begun = uuid4().hex, now(), time.perf_counter()
        self._facts = tuple(_facts(job, adapter, self._started))
        self._digests = _digests(job, adapter, self._facts)

    def at(
        self, plan: Plan, played: Sequence[TrialResult | None], confirmation: Confirmation | None = None
    ) -> Results:
        """Scores, comparison and decision, without secrets. `played` is in the order of the plan's trials."""
        job, stop, info = self._job, self._stop, self._info(confirmation)
        card = score(plan, played, self._facts, Counting(offline=self._offline), prices=job.prices)
        # Tests are compared by name, and those of a baseline have had their secrets taken out.
        card = replace(card, suites=tuple(_clean(suite, job.redactor) for suite in card.suites))
        head = Side(info, card.score, card.usage, card.latency, card.suites)
        pairing = Pairing(head, Side.of(job.baseline)) if job.baseline else None
        ending = Ending(interrupted=stop.interrupted, stopped_because=stop.reason, bug=stop.bug is not None)
        gate = decide(Case(card, job.policy, offline=self._offline, pairing=pairing), ending)
        results = Results(
            tool=Tool(version=__version__),
            run=info,
            score=card.score,
            interval=card.interval,
            pass_at_k=card.pass_at_k,
            pass_hat_k=card.pass_hat_k,
            counts=card.counts,
            gate=gate,
            comparison=pairing.comparison() if pairing else None,
            odds=None
            if gate.reasons or stop.requested
            else odds_of(card.suites, gate.checks, offline=self._offline, seed=info.id),
            usage=card.usage,
            latency=card.latency,
            suites=(),
        )
        return job.redactor.model(results).model_copy(update={"suites": card.suites})

    def _info(self, confirmation: Confirmation | None) -> RunInfo:
        job, stop = self._job, self._stop
        return RunInfo(
            id=self._id,
            started_at=self._started,
            finished_at=self._now(),
            duration_seconds=time.perf_counter() - self._begun,
            status="interrupted" if stop.interrupted else "stopped" if stop.reason else "completed",
            stopped_because=stop.reason,
            config=dict(job.config) | {"provider": self._provider},
            git=job.git,
            environment={"python": platform.python_version(), "system": platform.system(), "ci": job.ci},
            digests=self._digests,
            confirmation=confirmation,
            warnings=job.warnings,
        )


def _clean(suite: SuiteResult, redactor: Redactor) -> SuiteResult:
    """The suite without secrets; out of its trials they were taken when each ended."""
    tests = tuple(
        redactor.model(test.model_copy(update={"trials": ()})).model_copy(update={"trials": test.trials})
        for test in suite.tests
    )
    return redactor.model(suite.model_copy(update={"tests": ()})).model_copy(update={"tests": tests})


def _facts(job: Job, adapter: Adapter | Cast, started: datetime) -> list[SuiteFacts]:
    taken: set[str] = set()
    facts = []
    for planned in job.plan.suites:
        models = adapter.models(planned.suite) if isinstance(adapter, Adapter) else None
        folder = layout.folder_for(job.redactor.text(planned.suite.name), started, taken)
        taken.add(folder)
        judge_model, user_model = (models.judge, models.user) if models else (None, None)
        facts.append(SuiteFacts(folder=folder, judge_model=judge_model, user_model=user_model))
    return facts


def _digests(job: Job, adapter: Adapter | Cast, facts: Sequence[SuiteFacts]) -> Digests:
    """What the scores depend on, each thing by itself. Secrets are taken out first."""
    suites = [planned.suite for planned in job.plan.suites]
    provider = adapter.provider if isinstance(adapter, Adapter) else type(adapter.agent).__qualname__
    scripted = isinstance(adapter, Adapter) and adapter.offline
    loops = [job.plan.loops_of(test) for planned in job.plan.suites for test in planned.tests]
    return Digests(
        suites=digest([one for planned in job.plan.suites for one in planned.test_digests]),
        agents=digest(job.redactor.json([[s.adapter, s.agent_id, s.base_url, s.model] for s in suites])),
        models=digest([provider, [(fact.judge_model, fact.user_model) for fact in facts]]),
        judge_prompt=templates.digest(*JUDGE_TEMPLATES),
        user_prompt=digest("scripted") if scripted else templates.digest(*simulated_user.TEMPLATES),
        loops=digest(loops),
    )
