"""The trials of earlier attempts at the same commit, which count with those of this run (`reruns=pool`).

A rerun adds evidence and does not replace it. An attempt is pooled only if nothing that scores depend on
differs. Of its trials those are taken that say something about the agent; errored ones are replaced by the
new ones. A trial is taken once, also if a later attempt had pooled it. If the artifact of an attempt is lost,
its trials are taken from a later one that pooled them. Of several lost artifacts of one attempt nobody knows
which was pooled: as many runs must have been.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from ci_evals.domain.errors import Exit
from ci_evals.domain.plan import BASE, Trial
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import PooledRun, Results, UnpooledRun
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.gate.rules.regression import is_chance
from ci_evals.job.chosen import Chosen
from ci_evals.job.conclude import BaselineResults
from ci_evals.job.job import Job
from ci_evals.job.playing import not_played
from ci_evals.job.pool import EarlierAttempt, Place, Pool, PooledTrials, Reruns, source_of
from ci_evals.scoring import scores
from ci_evals.scoring.comparison.pairing import differences, pair
from ci_evals.scoring.scores import ScoreRule, Validity, validity


def pooled(job: Job, chosen: Chosen, reruns: Reruns) -> Job:
    """Return the job with the trials of these attempts, as far as they may be pooled."""
    begun = replace(job, pool=Pool(reruns))
    head = not_played(begun, chosen, "")
    own = job.journal.past.header.run if job.journal and job.journal.past else None
    compared = _compared_with(job.baseline)
    fit: list[EarlierAttempt] = []
    not_pooled: list[UnpooledRun] = []
    for attempt in reruns.attempts:
        if attempt.results.run.id == own:
            # This run, which is resumed: its journal has the trials, or else they are not known here.
            if _lacks(job, head, attempt.results):
                why_unread = "this run is resumed from a journal that lacks trials of it"
                not_pooled.append(UnpooledRun(source=attempt.source, why=why_unread, unread=True))
            continue
        if attempt.results.run.id in compared:
            not_pooled.append(_is_compared(attempt.source, passed=attempt.results.gate.passed))
        elif why := _why_not(head, attempt.results):
            not_pooled.append(UnpooledRun(source=attempt.source, why="; ".join(why)))
        else:
            fit.append(attempt)
    for attempt in fit:
        not_pooled += [
            _is_compared(f"run {earlier.run} in {attempt.source}", passed=earlier.passed is True)
            for earlier in attempt.results.run.pooled
            if earlier.run in compared
        ]
    others = compared | ({own} if own else set())
    trials = _trials(job, head, fit, others)
    runs = tuple(sorted(_runs(fit, trials, others), key=lambda run: run.started_at))
    lost = _lost(reruns, runs)
    return replace(job, pool=Pool(reruns, runs, trials, (*lost, *not_pooled)))


def _lost(reruns: Reruns, pooled_runs: Iterable[PooledRun]) -> list[UnpooledRun]:
    """Return the attempts without results, except where a run is pooled for each artifact that is lost."""
    read = {attempt.results.run.id for attempt in reruns.attempts}
    known = Counter(
        source_of(run.ci_run, run.attempt) for run in pooled_runs if run.run not in read and run.attempt
    )
    lost = Counter(attempt.source for attempt in reruns.not_pooled)
    return [attempt for attempt in reruns.not_pooled if known[attempt.source] < lost[attempt.source]]


def _lacks(job: Job, head: Results, there: Results) -> bool:
    """Return whether the journal of the resumed run lacks trials that its earlier results would give."""
    past = job.journal.past if job.journal else None
    if past is None:
        return False
    suites = len(head.suites)
    for (arm, suite, number), test, rule in _tests(job, head, there):
        for trial in test.trials:
            place = Trial(suite=arm * suites + suite - 1, test=number - 1, index=trial.index)
            if trial.run is None and place not in past.done and _counts(test, trial, rule):
                return True
    return False


def _compared_with(baseline: BaselineResults) -> frozenset[str]:
    """The ids of the runs that this one is compared with, and of those that they have pooled."""
    runs = [results.run for results in (baseline.results, *baseline.history) if results]
    return frozenset([*(run.id for run in runs), *(pooled.run for run in runs for pooled in run.pooled)])


def _is_compared(source: str, *, passed: bool) -> UnpooledRun:
    """An attempt that this run is compared with. If it did not pass, this run cannot pass without it."""
    return UnpooledRun(source=source, why="this run is compared with it", unread=not passed)


def _why_not(head: Results, there: Results) -> list[str]:
    """Return the reasons why an attempt must not be pooled."""
    here, then = head.run, there.run
    if then.git.commit != here.git.commit or then.git.head_commit != here.git.head_commit:
        return [f"it tested commit {(then.git.commit or 'unknown')[:7]}, which is not the one of this run"]
    if then.git.repository != here.git.repository or then.git.pull_request != here.git.pull_request:
        return ["its results are of another repository or pull request"]
    if then.reruns is None:
        return ["it was not to pool its reruns"]
    if then.origin or then.shard or then.status in {"skipped", "unfinished"}:
        return ["it played nothing to its end"]
    return [*_changes(head, there)]


def _changes(head: Results, there: Results) -> Iterator[str]:
    reasons = [reason.replace("the baseline", "that attempt") for reason in differences(head, there)]
    yield from reasons
    here, then = head.run, there.run
    if here.digests.suites != then.digests.suites:
        yield "its suites or tests differ"
    if here.digests.agents != then.digests.agents or _setup(head) != _setup(there):
        yield "the options of its agents differ"
    if here.digests.models != then.digests.models and not reasons:
        yield "its judge, simulated user or embedding model differs"


def _setup(results: Results) -> str | None:
    return results.run.reruns.setup if results.run.reruns else None


def _trials(
    job: Job, head: Results, attempts: Sequence[EarlierAttempt], others: Collection[str]
) -> dict[Place, tuple[TrialResult, ...]]:
    """The trials that are pooled, those of each run each once however many files hold it.

    A run that was resumed left several files, and a later one may lack trials that an earlier one has. None
    of `others` is pooled.
    """
    found: dict[Place, dict[str, list[TrialResult]]] = {}
    for attempt in attempts:
        there = attempt.results
        for place, test, rule in _tests(job, head, there):
            of_runs = found.setdefault(place, {})
            for run, trials in _by_run(test, there.run.id).items():
                if run in others:
                    continue
                known = of_runs.setdefault(run, [])
                some = [trial for trial in trials if _counts(test, trial, rule)]
                known += [job.redactor.model(replace(trial, run=run)) for trial in _new(known, some)]
    return {
        place: tuple(trial for trials in of_runs.values() for trial in trials)
        for place, of_runs in found.items()
    }


def _new(known: Iterable[TrialResult], trials: Iterable[TrialResult]) -> list[TrialResult]:
    """The trials of one run in a file that are not among those of other files."""
    taken = Counter(map(_same, known))
    new = []
    for trial in trials:
        if taken[_same(trial)]:
            taken[_same(trial)] -= 1
        else:
            new.append(trial)
    return new


def _same(trial: TrialResult) -> tuple[float, bool]:
    """Equal for the same trial in two files: its number changes when it is pooled, its duration does not."""
    return trial.duration_seconds, scores.failed(trial)


def _tests(job: Job, head: Results, there: Results) -> Iterator[tuple[Place, TestResult, ScoreRule]]:
    """Yield the tests of all agents that both have."""
    rule = ScoreRule(offline=there.run.offline)
    sides = [(0, head, there)]
    if BASE in job.plan.arms:
        here, then = head.of_arm(BASE), there.of_arm(BASE)
        if here and then:
            sides.append((job.plan.arms.index(BASE), here, then))
    for arm, here, then in sides:
        for suite in pair(here, then):
            for both in suite.pairs:
                if both.base.taken_from is None:
                    yield (arm, *both.numbers), both.base, rule


def _by_run(test: TestResult, run: str) -> dict[str, tuple[TrialResult, ...]]:
    """The trials of a test by the run that played them."""
    of_runs: dict[str, tuple[TrialResult, ...]] = {}
    for trial in test.trials:
        played_in = trial.run or run
        of_runs[played_in] = (*of_runs.get(played_in, ()), trial)
    return of_runs


def _counts(test: TestResult, trial: TrialResult, rule: ScoreRule) -> bool:
    """Return whether a trial is pooled: a valid one, and one that shows a failure of the agent.

    A missing verdict takes nothing from one that failed, and an error of the agent nothing from a critical
    test: both were red when they were played.
    """
    if validity(trial, rule) is Validity.VALID:
        return True
    if not scores.failed(trial):
        return False
    return trial.counts or (test.critical and trial.complete)


def _runs(
    attempts: Sequence[EarlierAttempt], trials: PooledTrials, others: Collection[str]
) -> Iterator[PooledRun]:
    """Yield each pooled run but for `others`, as it describes itself or else as a later one does."""
    known: dict[str, PooledRun] = {}
    for attempt in attempts:
        known[attempt.results.run.id] = _described(attempt)
    for attempt in reversed(attempts):
        for earlier in attempt.results.run.pooled:
            if earlier.run not in others:
                known.setdefault(earlier.run, earlier)
    of_runs = [trial.run for (arm, _, _), some in trials.items() if arm == 0 for trial in some]
    for run in known.values():
        yield replace(run, trials=of_runs.count(run.run))


def _described(attempt: EarlierAttempt) -> PooledRun:
    results = attempt.results
    gate = results.gate
    undecided = bool(gate.reasons) or gate.exit_code not in {Exit.PASSED, Exit.FAILED}
    checks = () if undecided else gate.checks
    return PooledRun(
        run=results.run.id,
        ci_run=attempt.ci_run,
        attempt=attempt.attempt,
        trials=0,
        started_at=results.run.started_at,
        score=results.score,
        passed=None if undecided else gate.passed,
        drop=_drop(checks),
    )


def _drop(checks: Iterable[GateCheck]) -> bool | None:
    """Return True if a drop beyond chance was found; None if none was looked for."""
    looked = [check for check in checks if check.kind is CheckKind.REGRESSION and is_chance(check)]
    decided = [check for check in looked if check.passed is not None]
    return any(check.passed is False for check in decided) if decided else None
