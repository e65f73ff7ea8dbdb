"""From a saved run to results by other judges."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ci_evals.adapters.transport.waits import Waits, report_waits
from ci_evals.domain.errors import LLMAccessError, UsageError
from ci_evals.domain.prices import check_priced
from ci_evals.domain.progress import Listener
from ci_evals.domain.results.run import Results
from ci_evals.grading.voting import JudgePanel
from ci_evals.job.judge_check import CheckedJudge, JudgeChecks, JudgeCheckSettings
from ci_evals.ports import LLM
from ci_evals.rejudging.results_builder import RejudgedResultsBuilder
from ci_evals.rejudging.runner import RejudgeRunner
from ci_evals.rejudging.saved import (
    RejudgedTrial,
    RejudgeJob,
    SavedConversation,
    is_judged,
    saved_conversation,
    to_judge,
)
from ci_evals.scoring.agreement.judges import Twice
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring import REPORTS_COST, Connections
from ci_evals.wiring.models import RunModels


@dataclass(frozen=True)
class Rejudged:
    """The outcome of judging again."""

    results: Results
    verdicts: tuple[Twice, ...]
    """The verdicts that were given anew, in the order of the results."""
    not_judged: int
    """Verdicts that the run ended too early for."""


async def _unchecked() -> None:
    """Nothing can be learned of a caller's own models beforehand."""


@dataclass(frozen=True)
class Judges:
    """The models that may judge."""

    named: Callable[[str], LLM]
    """Gives the model of a name; built when it is first asked for."""
    check: Callable[[], Coroutine[Any, Any, None]] = _unchecked
    """Learns whether their key is good, if that costs nothing. Raises `LLMAccessError` if it is not."""
    waits: Waits = tuple
    """The current waits for each server."""
    notes: Callable[[], tuple[str, ...]] = tuple
    """Notes about limits to the rate."""
    uncached: Callable[[str], CheckedJudge] | None = None
    """Gives the model of a name for a judge check, past any cache of answers; None for `named` itself."""


@asynccontextmanager
async def judges(connections: Connections, redactor: Redactor) -> AsyncIterator[Judges]:
    """The models of a provider, while in use.

    Raises:
        UsageError: there is no key, or the provider's program is missing.
    """
    async with AsyncExitStack() as stack:
        models = RunModels(connections, redactor, stack, "rejudge")

        def uncached(model: str) -> CheckedJudge:
            return CheckedJudge(models.llm(model), models.cache(model))

        yield Judges(models.judge, models.check, models.waits, models.notes, uncached)


async def rejudge(
    job: RejudgeJob,
    judges: Judges,
    *,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Rejudged:
    """Ask the judges for every judged criterion, and make all numbers, comparison and decision anew.

    A judge is asked what the judge of the run was asked.

    Raises:
        UsageError: before anybody is asked: there is nothing to judge, what is saved is no conversation, or a
            budget is set and a judge has no price.
    """
    stop = stop or Stop()
    conversations = tuple(saved_conversation(job, trial) for trial in to_judge(job.judged))
    if not conversations:
        raise UsageError(f"{job.source}: it holds no judged verdict, so that there is nothing to judge again")
    models = tuple(map(job.models_of, job.judged.suites))
    asked = {index: models[index] for index in {saved.trial.suite: None for saved in conversations}}
    names = dict.fromkeys(name for suite in asked.values() for name in suite.judges)
    if job.policy.max_cost is not None and job.provider not in REPORTS_COST:
        check_priced(names, job.prices)
    panels = {
        index: JudgePanel(tuple(map(judges.named, suite.judges)), suite.votes)
        for index, suite in asked.items()
    }
    checks = JudgeChecks(
        [judges.uncached(name) if judges.uncached else CheckedJudge(judges.named(name)) for name in names],
        JudgeCheckSettings(
            mode=job.judge_check,
            provider=job.provider,
            redactor=job.redactor,
            baseline=job.baseline,
            prices=lambda: job.prices,
            now=now,
        ),
    )
    runner = RejudgeRunner(job, panels, stop, listen)
    builder, begun = RejudgedResultsBuilder(job, models, stop, now(), checks), time.perf_counter()
    if job.write_unfinished:
        job.write_unfinished(builder.unfinished())
    try:
        await stop.run_until_stopped(judges.check())
    except LLMAccessError as error:
        stop.request(str(error), outage=True)
    async with report_waits(judges.waits, listen):
        await asyncio.gather(runner.judge(conversations), stop.stop_on_error(_check_judges(checks, stop)))
    trials = {saved.trial: runner.result_of(saved) for saved in conversations}
    pairs = (pair for saved in conversations for pair in _pairs(job.judged, saved, trials[saved.trial]))
    return Rejudged(
        results=builder.results(trials, now(), time.perf_counter() - begun, judges.notes()),
        verdicts=tuple(pairs),
        not_judged=sum(verdict is None for trial in trials.values() for verdict in trial.verdicts),
    )


async def _check_judges(checks: JudgeChecks, stop: Stop) -> None:
    if not stop.requested:
        await stop.run_until_stopped(checks.ask())
    if checks.refusal:
        stop.request(checks.refusal, outage=True)


def _pairs(judged: Results, saved: SavedConversation, rejudged: RejudgedTrial) -> Iterator[Twice]:
    """The verdicts on a conversation that were given anew, beside the earlier ones."""
    suite = judged.suites[saved.trial.suite]
    findings = [
        (before, after)
        for before, after in zip(saved.result.findings, rejudged.result.findings, strict=True)
        if is_judged(before)
    ]
    for (before, after), verdict in zip(findings, rejudged.verdicts, strict=True):
        if verdict:
            yield Twice(suite.name, suite.tests[saved.trial.test].name, saved.result.index, before, after)
