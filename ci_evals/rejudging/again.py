"""Judging again, from the saved run to new results."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ci_evals.adapters.models.sdk_llm import SdkLLM
from ci_evals.adapters.transport.rate_limiter import Waiting
from ci_evals.adapters.transport.waits import Waits, telling
from ci_evals.domain.errors import LLMAccessError, UsageError
from ci_evals.domain.prices import check_priced
from ci_evals.domain.progress import Listener
from ci_evals.domain.results.run import Results
from ci_evals.grading.voting import JudgePanel
from ci_evals.job.judge_check import CheckedJudge, JudgeChecks, JudgeCheckSettings
from ci_evals.ports import LLM
from ci_evals.rejudging.making import RejudgedResultsBuilder
from ci_evals.rejudging.runner import RejudgeRunner
from ci_evals.rejudging.work import Case, RejudgedTrial, RejudgeJob, case_of, is_judged, to_judge
from ci_evals.scoring.agreement.judges import Twice
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring import TELLS_COST, Cache, Connections
from ci_evals.wiring.llms import LLMs


@dataclass(frozen=True)
class Rejudged:
    """What came of judging again."""

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
    """Learns whether their key is good, where that costs nothing. Raises `LLMAccessError` where it is not."""
    waits: Waits = tuple
    """How long each neighbour is waited for now."""
    notes: Callable[[], tuple[str, ...]] = tuple
    """What a person should know of limits that were set to the rate."""
    uncached: Callable[[str], CheckedJudge] | None = None
    """Gives the model of a name for a judge check, past any cache of answers; None for `named` itself."""


@asynccontextmanager
async def judges(adapter: Connections, redactor: Redactor) -> AsyncIterator[Judges]:
    """The models of a provider, while in use.

    Raises:
        UsageError: there is no key, or the provider's program is not there.
    """
    async with AsyncExitStack() as stack:
        built = LLMs(adapter, redactor, stack)
        cache = Cache.of(adapter, redactor, "rejudge")
        stack.callback(cache.close)

        def named(model: str) -> LLM:
            return cache.before(built[model])

        def uncached(model: str) -> CheckedJudge:
            return CheckedJudge.cached(built[model], cache)

        async def check() -> None:
            # They have one key.
            if one := next((model for model in built.values() if isinstance(model, SdkLLM)), None):
                await one.check()

        def notes() -> tuple[str, ...]:
            told = (model.note() for model in built.values())
            return (*(note for note in told if note), *cache.notes())

        def waits() -> list[tuple[str, Waiting | None]]:
            return [model.waits() for model in built.values()]

        yield Judges(named, check, waits, notes, uncached)


async def rejudge(
    work: RejudgeJob,
    judges: Judges,
    *,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Rejudged:
    """Asks the judges for every judged criterion, and makes all numbers, comparison and decision anew.

    A judge is asked what the judge of the run was asked.

    Raises:
        UsageError: before anybody is asked: there is nothing to judge, what is saved is no conversation, or a
            budget is set and a judge has no price.
    """
    stop = stop or Stop()
    cases = tuple(case_of(work, trial) for trial in to_judge(work.judged))
    if not cases:
        raise UsageError(
            f"{work.source}: it holds no judged verdict, so that there is nothing to judge again"
        )
    juries = [work.jury_of(suite) for suite in work.judged.suites]
    sitting = {case.trial.suite: juries[case.trial.suite] for case in cases}
    if work.policy.max_cost is not None and work.provider not in TELLS_COST:
        check_priced({model for jury in sitting.values() for model in jury.models}, work.prices)
    benches = {
        suite: JudgePanel(tuple(map(judges.named, jury.models)), jury.votes)
        for suite, jury in sitting.items()
    }
    bench = RejudgeRunner(work, benches, stop, listen)
    names = dict.fromkeys(model for jury in sitting.values() for model in jury.models)
    checks = JudgeChecks(
        [judges.uncached(model) if judges.uncached else CheckedJudge(judges.named(model)) for model in names],
        JudgeCheckSettings(
            mode=work.judge_check,
            provider=work.provider,
            redactor=work.redactor,
            baseline=work.baseline,
            prices=lambda: work.prices,
            now=now,
        ),
    )
    started, begun = now(), time.perf_counter()
    if work.write_unfinished:
        work.write_unfinished(RejudgedResultsBuilder(work, juries, {}, stop, started).unfinished())
    try:
        await stop.cuts_off(judges.check())
    except LLMAccessError as error:
        stop.because(str(error), outage=True)
    async with telling(judges.waits, listen):
        await asyncio.gather(bench.judge(cases), stop.on_bug(_checked(checks, stop)))
    again = {case.trial: bench.result_of(case) for case in cases}
    made = RejudgedResultsBuilder(
        work, juries, again, stop, started, (*checks.warnings(), *judges.notes()), checks
    )
    return Rejudged(
        results=made.results(now(), time.perf_counter() - begun),
        verdicts=tuple(twice for case in cases for twice in _both(work.judged, case, again[case.trial])),
        not_judged=sum(verdict is None for one in again.values() for verdict in one.verdicts),
    )


async def _checked(checks: JudgeChecks, stop: Stop) -> None:
    if not stop.requested:
        await stop.cuts_off(checks.ask())
    if checks.refusal:
        stop.because(checks.refusal, outage=True)


def _both(judged: Results, case: Case, again: RejudgedTrial) -> Iterator[Twice]:
    """The verdicts on a conversation that were given anew, beside those that were there."""
    suite = judged.suites[case.trial.suite]
    pairs = [
        (before, after)
        for before, after in zip(case.saved.findings, again.result.findings, strict=True)
        if is_judged(before)
    ]
    for (before, after), verdict in zip(pairs, again.verdicts, strict=True):
        if verdict:
            yield Twice(suite.name, suite.tests[case.trial.test].name, case.saved.index, before, after)
