"""The study of noise: a sample of a run is played and judged again to estimate the sources of its noise."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from statistics import harmonic_mean

from ci_evals.domain.prices import PriceTable
from ci_evals.domain.progress import Listener
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.results.usage import Usage
from ci_evals.domain.verdict import UNUSABLE
from ci_evals.extension_support.rejudging import RejudgeJob, judges, rejudge, to_judge
from ci_evals.extension_support.rejudging.saved import saved_conversation
from ci_evals.extensions.noise.budget_allocation import RunSize, TrialCosts, advice
from ci_evals.extensions.noise.result import Noise
from ci_evals.extensions.noise.sample import PlayableTest, SamplePlan
from ci_evals.extensions.noise.sources import TestScores, sources_of
from ci_evals.gate.policy import Policy
from ci_evals.job import Job, Limits, evaluate
from ci_evals.runner import Options
from ci_evals.scoring.usage import summed, usage_of
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections

_FAILURES_IN_ROW = 10
"""Trials that broke off: after this many in a row whoever plays is taken to be gone."""
_LEAST_TESTS = 2


@dataclass(frozen=True)
class NoiseStudy:
    """A study of noise that may begin."""

    results: Results
    """The run whose noise it is."""
    file: Path
    sample: tuple[PlayableTest, ...]
    sample_plan: SamplePlan
    connections: Connections
    """Connections to agents and to the provider that plays and judges, with one vote on each criterion."""
    judge: JudgeUsed | None
    """The run's own, with its votes; None if nobody judges."""
    redactor: Redactor
    prices: PriceTable
    most_cost: float | None = None
    """US dollars, for all of it together."""
    parallel: int = 1
    retries: int = 1
    seed: int = 0


@dataclass(frozen=True)
class NoiseMeasurement:
    """The outcome of a study."""

    noise: Noise | None
    """None if fewer than two tests came to enough scores."""
    usage: Usage
    plays: int
    judgments: int


async def measure(
    study: NoiseStudy,
    *,
    listen: Listener = lambda _: None,
    judging: Callable[[int], Listener] = lambda _: lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> NoiseMeasurement:
    """Play the sample again and with fixed user words, judge it again, and estimate the sources of noise.

    `listen` hears of the conversations that are played; `judging` then how many are judged again, and gives
    who hears of these.

    Raises:
        UsageError: before anybody is asked: there is no key, an agent or model cannot be built, a budget is
            set and a model has no price, or a saved trial is none that a run leaves.
    """
    stop = stop or Stop()
    work = _rejudging(study, None)
    for trial in to_judge(study.sample_plan.judged):
        saved_conversation(work, trial)
    played = await evaluate(_job(study), study.connections, listen=listen, stop=stop, now=now)
    spent, rejudged = played.usage.cost_usd, None
    if spent is None and study.most_cost is not None:
        stop.request(f"the cost of the plays is unknown, so `max_cost={study.most_cost:g}` cannot be kept")
    if study.sample_plan.judged.suites and not stop.requested:
        heard = judging(len(to_judge(study.sample_plan.judged)))
        async with judges(study.connections, study.redactor) as panel:
            rejudged = (
                await rejudge(_rejudging(study, spent), panel, listen=heard, stop=stop, now=now)
            ).results
    return _measured(study, played, rejudged, now())


def _job(study: NoiseStudy) -> Job:
    return Job(
        plan=study.sample_plan.plan,
        policy=Policy(max_cost=study.most_cost),
        options=Options(parallel=study.parallel, retries=study.retries),
        redactor=study.redactor,
        limits=Limits(failures_in_row=_FAILURES_IN_ROW),
        prices=lambda: study.prices,
    )


def _rejudging(study: NoiseStudy, spent: float | None) -> RejudgeJob:
    most = study.most_cost
    return RejudgeJob(
        judged=study.sample_plan.judged,
        provider=study.connections.provider,
        policy=Policy(max_cost=most if most is None or spent is None else max(0.0, most - spent)),
        redactor=study.redactor,
        source=str(study.file),
        parallel=study.parallel,
        prices=study.prices,
    )


def _measured(study: NoiseStudy, played: Results, rejudged: Results | None, at: datetime) -> NoiseMeasurement:
    sample_plan, judged_suites = study.sample_plan, rejudged.suites if rejudged else ()
    fresh, fixed = _scores(played.suites, sample_plan.fresh), _scores(played.suites, sample_plan.fixed)
    judged = _scores(judged_suites, sample_plan.rejudged)
    usages = [played.usage]
    if rejudged:
        usages.append(rejudged.usage)
    usage = summed(usages)
    plays = sum(1 for _ in _trials(played.suites))
    judgments = sum(any(used.role == "judge" for used in trial.usage) for trial in _trials(judged_suites))
    tests = [
        TestScores(
            fresh=tuple(fresh.get(index, ())),
            fixed=tuple(fixed.get(index, ())) if index in sample_plan.fixed.values() else None,
            judged=tuple(judged.get(index, ())) if index in sample_plan.rejudged.values() else None,
        )
        for index in range(len(study.sample))
    ]
    usable = [test for test in tests if test.enough]
    if len(usable) < _LEAST_TESTS:
        return NoiseMeasurement(None, usage, plays, judgments)
    sources = sources_of(usable, study.seed)
    costs = _costs(
        [trial for trial in _trials(played.suites, sample_plan.fresh) if _counts(trial)], study.prices
    )
    best = advice(sources, _size(study), costs)
    scored = sum(len(scores) for kind in (fresh, fixed, judged) for scores in kind.values())
    noise = Noise(
        judge=study.judge,
        at=at,
        tests=len(usable),
        tests_left_out=len(tests) - len(usable),
        plays=plays,
        judgments=judgments,
        left_out=max(0, plays + judgments - scored),
        cost_usd=usage.cost_usd,
        parts=sources.parts,
        between_tests=sources.between,
        standard_error=best.standard_error,
        best=best.best,
        gains=best.gains,
        best_in_general=best.best_in_general,
        gains_in_general=best.in_general,
        gains_per=costs.per,
        why=" ".join([best.why, *_absent(tests)]),
    )
    return NoiseMeasurement(noise, usage, plays, judgments)


def _scores(suites: Sequence[SuiteResult], indexes: Mapping[tuple[int, int], int]) -> dict[int, list[float]]:
    """The scores of each test that count, by its index in the sample, in the order of the plan."""
    by_test: dict[int, list[float]] = {}
    for (suite, test), index in indexes.items():
        if suite < len(suites):
            trials = suites[suite].tests[test].trials
            scores = [float(trial.exact_score() or 0) for trial in trials if _counts(trial)]
            by_test.setdefault(index, []).extend(scores)
    return by_test


def _counts(trial: TrialResult) -> bool:
    """Tell whether a trial was played to its end and judged in full: its score then covers all criteria."""
    return trial.scored and not any(finding.cause in UNUSABLE for finding in trial.findings)


def _trials(
    suites: Sequence[SuiteResult], indexes: Mapping[tuple[int, int], int] | None = None
) -> Iterator[TrialResult]:
    """All trials, or those of the tests at these indexes."""
    for s, suite in enumerate(suites):
        for t, test in enumerate(suite.tests):
            if indexes is None or (s, t) in indexes:
                yield from test.trials


def _size(study: NoiseStudy) -> RunSize:
    """The size of the run. A test's noise is proportional to one over its trials, hence the harmonic mean."""
    tests = [test for suite in study.results.suites for test in suite.tests]
    scored = [count for test in tests if (count := sum(trial.scored for trial in test.trials))]
    return RunSize(len(scored), harmonic_mean(scored), study.judge.votes if study.judge else 1)


def _costs(trials: Sequence[TrialResult], prices: PriceTable) -> TrialCosts:
    """The mean costs of a trial: in US dollars if all prices are known, else in calls.

    In dollars an agent costs nothing, since nobody tells what it does; in calls each of its replies is one.
    """
    used = [one for one in usage_of(trials, prices).by_role if one.role != "agent"]
    judges = [one for one in used if one.role == "judge"]
    others = [one for one in used if one.role != "judge"]
    dollars = [[one.cost_usd for one in some] for some in (others, judges)]
    known = all(cost is not None for some in dollars for cost in some)
    conversation, vote = (fsum(cost or 0 for cost in some) / len(trials) for some in dollars)
    if known and (vote > 0 or (conversation > 0 and not judges)):
        return TrialCosts(conversation, vote, "dollar")
    replies = sum(len(trial.turns) for trial in trials)
    calls = [sum(one.calls for one in some) for some in (others, judges)]
    return TrialCosts((replies + calls[0]) / len(trials), calls[1] / len(trials), "call")


def _absent(samples: Sequence[TestScores]) -> Iterator[str]:
    """The sources that are known to be absent without being measured."""
    if all(one.judged is None for one in samples):
        yield "There was no judge, so it adds no noise."
    if all(one.fixed is None for one in samples):
        yield "The user is scripted, so it adds no noise."
