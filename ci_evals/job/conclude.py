"""From what was counted to results: the comparison, the gate's decision, the odds of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ci_evals._version import __version__
from ci_evals.domain.choices import WeakenedMode
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.comparison import Comparison, Method
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.results.judge import worst_check
from ci_evals.domain.results.run import Results, RunInfo, Status, Tool
from ci_evals.domain.results.weakened import Approval, Weakened
from ci_evals.domain.run_ending import RunEnding
from ci_evals.extension_registry import run_studies
from ci_evals.gate import weakened
from ci_evals.gate.decision import GateDecision, decide, decide_skipped
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.odds import evaluated_checks, odds_of
from ci_evals.gate.policy import Policy
from ci_evals.gate.rules.weakened import NotWeakened
from ci_evals.job import results_check
from ci_evals.job.judge_check import JudgeChecks
from ci_evals.reports.story.gate import reason_in_words
from ci_evals.scoring.comparison.arms import compared_arms
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.earlier_runs import EarlierRuns
from ci_evals.scoring.comparison.reruns import level_of
from ci_evals.scoring.comparison.rounds import Look
from ci_evals.scoring.coverage import compared
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor

_UNFINISHED = "it is still running, or was killed"
_LEFT_TO_MERGE = "of shards the comparison is made by merge"


@dataclass(frozen=True)
class BaselineResults:
    """The run to compare with, or the reason why there is none."""

    results: Results | None = None
    note: str | None = None
    """A sentence that names the baseline, or says why there is none."""
    missing: str = GateInput.no_baseline_reason
    """The reason why there is none, as a clause."""
    history: tuple[Results, ...] = ()
    """The newest runs of the base branch, oldest first, `results` among them."""
    may_have_baseline: bool = False
    """True if there is none here, but the base branch may have left one that was not found or not read."""
    blocks_verdict: bool = False
    """True if checks that need a baseline leave no verdict without one, as if the run named it."""
    approvals: tuple[Approval, ...] = ()
    """Comments that approve weakened suites, by people with write access."""
    of_base_commit: bool = False
    """True if `results` are known to be of the base commit of the pull request."""

    def redacted(self, redactor: Redactor) -> "BaselineResults":
        """The same without secrets."""
        results = redactor.model(self.results) if self.results else None
        history = tuple(map(redactor.model, self.history))
        return replace(self, results=results, missing=redactor.text(self.missing), history=history)


NO_BASELINE = BaselineResults()


@dataclass(frozen=True)
class Conclusion:
    """The way from a scorecard to results: compare, decide, and take secrets out."""

    policy: Policy
    redactor: Redactor
    stop: Stop
    baseline: BaselineResults = NO_BASELINE
    checks: JudgeChecks | None = None
    """Control questions to the judges, if any are asked."""
    incomplete: tuple[str, ...] = ()
    """Reasons why the saved run was not a whole one."""
    look: Look | None = None
    """The limits of a run in rounds."""
    screening: bool = False
    """True as long as earlier runs only say whether the base agent is to be played."""

    def results(self, card: Callable[[], Scorecard], info: Callable[[], RunInfo]) -> Results:
        """Compare and decide; after a bug of ours once more without the baseline."""
        try:
            return self._results(card(), info(), self.baseline)
        except Exception as bug:  # noqa: BLE001  # finished trials are paid for and must be reported
            self.stop.record_failure(bug)
            return self._results(card(), info(), replace(self.baseline, results=None))

    def unfinished(self, card: Scorecard, info: RunInfo) -> Results:
        """The results of a run that is still under way: no verdict."""
        info = replace(info, status="unfinished", stopped_because=_UNFINISHED, resumed=None)
        ending = RunEnding(incomplete=(f"the run has not finished: {_UNFINISHED}",))
        return self._redacted(conclude(card, info, Policy(), ending))

    def status(self, otherwise: Status) -> Status:
        """The status of a run that was cut short; otherwise the given one."""
        return "interrupted" if self.stop.interrupted else "stopped" if self.stop.reason else otherwise

    def _results(self, card: Scorecard, info: RunInfo, baseline: BaselineResults) -> Results:
        stop, checks = self.stop, self.checks
        ending = RunEnding(
            interrupted=stop.interrupted,
            stopped_because=stop.reason,
            failed_fast=stop.failed_fast,
            bug=stop.bug is not None,
            judge_checks=checks.checks if checks else (),
            judge_only_warned=bool(checks and checks.only_warn),
            incomplete=self.incomplete,
        )
        return self._redacted(
            conclude(card, info, self.policy, ending, baseline, look=self.look, screening=self.screening)
        )

    def _redacted(self, results: Results) -> Results:
        """Results without secrets; those of their suites have been taken out before."""
        bare = [replace(arm, suites=()) for arm in results.arms]
        redacted = self.redactor.model(replace(results, suites=(), arms=tuple(bare)))
        arms = tuple(
            replace(own, suites=arm.suites) for own, arm in zip(redacted.arms, results.arms, strict=True)
        )
        return replace(redacted, suites=results.suites, arms=arms)


def _compared(
    comparer: RunComparer, earlier: EarlierRuns | None, level: float, *, decides: bool
) -> Comparison:
    """The comparison as it stands in the results. Where earlier runs decide, p is theirs."""
    comparison = replace(comparer.comparison(), level=level)
    history = earlier.comparison() if earlier else None
    if not (earlier and history):
        return comparison
    broken, probably = earlier.named()
    comparison = replace(
        comparison,
        history=replace(history, decides=decides),
        broken=broken,
        probably_broken=probably,
    )
    if not decides:
        return comparison
    return replace(
        comparison,
        p=history.p,
        detectable=history.smallest_drop,
        # What one earlier run alone could show would contradict it.
        test=None,
        smallest_p=None,
        fewest_broken=None,
        trials_needed=None,
    )


def to_record(decision: GateDecision) -> Decision:
    """The decision as results record it, with its reasons in words."""
    return Decision(
        passed=decision.passed,
        exit_code=decision.exit_code,
        checks=decision.checks,
        reasons=tuple(map(reason_in_words, decision.reasons)),
    )


def weakened_since(
    results: Results, policy: Policy, baseline: BaselineResults, *, saved: bool = False
) -> Weakened | None:
    """Return where suites and gate require less than in the recorded baseline.

    The base agent is no baseline for that: it plays the suites of this run. None without a baseline, if both
    are of other tools, and if the policy does not want it. `saved`: as for `gate.weakened.compare`.
    """
    base = baseline.results
    if base is None or policy.rule(NotWeakened).weakened is WeakenedMode.OFF:
        return None
    if results.of_other_tools and base.of_other_tools:
        return None
    return weakened.compare(results, base, policy, baseline.approvals, saved=saved)


def conclude(
    card: Scorecard,
    info: RunInfo,
    policy: Policy,
    ending: RunEnding,
    baseline: BaselineResults = NO_BASELINE,
    *,
    look: Look | None = None,
    screening: bool = False,
) -> Results:
    """Decide the gate, and return the results of a run or of merged runs.

    A skipped run does not pass. It fails only if suites or gate may not be weakened, and are. A shard is not
    compared with a baseline, since the tests of the other shards would look as if they had been removed.

    Raises:
        ValidationError: by a bug of ours a number is out of its range or not finite.
    """
    if info.shard:
        baseline = BaselineResults(missing=_LEFT_TO_MERGE)
        policy = replace(policy, baseline_required=False, baseline_named=False)
    elif baseline.blocks_verdict:
        policy = replace(policy, baseline_named=True)
    skipped = info.status == "skipped"
    if policy.warnings:
        info = replace(info, warnings=tuple(dict.fromkeys((*policy.warnings, *info.warnings))))
    results = Results(
        tool=Tool(version=__version__),
        run=info,
        gate=Decision(passed=False, exit_code=Exit.PASSED),
        judge_check=worst_check(ending.judge_checks),
        judge_checks=ending.judge_checks,
        score=card.score,
        interval=card.interval,
        decided_share=card.decided_share,
        pass_at_k=card.pass_at_k,
        pass_hat_k=card.pass_hat_k,
        official=card.official,
        counts=card.counts,
        usage=card.usage,
        latency=card.latency,
        process=card.process,
        coverage=card.coverage,
        user_checks=card.user_checks,
        vote_agreement=card.vote_agreement,
        arms=card.arms,
        suites=card.suites,
    )
    if not skipped:
        results = replace(results, arms=tuple(compared_arms(results)))
    base_side = results.base_side
    # The base agent stands instead of a named baseline.
    policy = replace(policy, baseline_named=policy.baseline_named and not base_side)
    base = base_side or baseline.results
    earlier = EarlierRuns(results, baseline.history) if len(baseline.history) > 1 and not skipped else None
    decides = earlier if earlier and earlier.decide and not (base_side or screening) else None
    screens = earlier is not None and screening and earlier.together > 0
    method: Method = "recorded"
    if base_side:
        method = "both-sides"
    elif look and info.rounds and len(info.rounds.looks) > 1:
        method = "rounds"
    elif decides or screens:
        method = "history"
    of_base = baseline.of_base_commit and not base_side
    comparer = None
    if base and not skipped:
        comparer = RunComparer(results, base, method, of_base_commit=of_base)
    less = weakened_since(results, policy, baseline)
    level = level_of(info)
    gate_input = GateInput(
        results,
        comparer,
        baseline.missing,
        may_have_baseline=baseline.may_have_baseline,
        weakened=less,
        earlier=decides,
        look=look,
        level=level,
    )
    decide_run = decide_skipped if skipped else decide
    gate = to_record(decide_run(gate_input, policy, ending))
    noise = None
    if not (skipped or gate.reasons or ending.interrupted or ending.stopped_because):
        noise = odds_of(results, evaluated_checks(gate.checks))
    results = replace(
        results,
        gate=gate,
        weakened=less,
        comparison=_compared(comparer, earlier, level, decides=decides is not None) if comparer else None,
        odds=noise,
        coverage=compared(card.coverage, comparer.pairs) if comparer else card.coverage,
    )
    results = results.with_studies(*run_studies(results))
    results_check.check(results)
    return results
