"""From what was counted to results: the comparison, the gate's decision, the odds of it."""

from dataclasses import replace

from ci_evals._version import __version__
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import Decision
from ci_evals.domain.results.run import Results, RunInfo, Tool
from ci_evals.reports.facts.invalid_run import in_words
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.pairing import Side
from ci_evals.scoring.coverage import compared
from ci_evals.scoring.gate.checks import GateInput
from ci_evals.scoring.gate.decision import GateDecision, decide
from ci_evals.scoring.gate.invalid_run import worst
from ci_evals.scoring.gate.odds import evaluated_checks, odds_of
from ci_evals.scoring.gate.policy import Policy, RunEnding
from ci_evals.scoring.scorecard import Scorecard

UNFINISHED = "it is still running, or was killed"

LEFT_TO_MERGE = "with --shard the comparison is made by merge"


def _why_no_baseline(info: RunInfo) -> str:
    """The reason that the search for a baseline gave, or that there is none."""
    why = (info.baseline_note or "").removeprefix("no baseline: ").rstrip(".")
    return why or GateInput.unpaired


def to_record(decision: GateDecision) -> Decision:
    """The decision as results record it, with its reasons in words."""
    return Decision(
        passed=decision.passed,
        exit_code=decision.exit_code,
        checks=decision.checks,
        reasons=tuple(map(in_words, decision.reasons)),
    )


def unfinished(card: Scorecard, info: RunInfo) -> Results:
    """Return the results of a run for as long as it goes on: no verdict."""
    update = {"status": "unfinished", "stopped_because": UNFINISHED, "resumed": None}
    ending = RunEnding(incomplete=(f"the run has not finished: {UNFINISHED}",))
    return conclude(card, info.model_copy(update=update), Policy(), ending)


def conclude(
    card: Scorecard, info: RunInfo, policy: Policy, ending: RunEnding, baseline: Results | None = None
) -> Results:
    """Decide the gate, and return the results of a run or of merged runs.

    A skipped run gets no checks: it neither passes nor fails. A shard is not compared with a baseline, since
    the tests of the other shards would look as if they had been removed.
    """
    baseline = None if info.shard else baseline
    head = Side(info, card.score, card.usage, card.latency, card.suites)
    skipped = info.status == "skipped"
    comparer = RunComparer(head, Side.of(baseline)) if baseline and not skipped else None
    gate = Decision(passed=False, exit_code=Exit.HOLDS)
    if not skipped:
        unpaired = LEFT_TO_MERGE if info.shard else _why_no_baseline(info)
        if info.shard:
            policy = replace(policy, baseline_required=False)
        gate_input = GateInput(card, policy, offline=info.offline, comparer=comparer, unpaired=unpaired)
        gate = to_record(decide(gate_input, ending))
    more = info.confirmation.trials if info.confirmation else 0
    noise = None
    if not (skipped or gate.reasons or ending.interrupted or ending.stopped_because):
        checks = evaluated_checks(gate.checks)
        noise = odds_of(card.suites, checks, offline=info.offline, seed=info.id, beyond=more)
    return Results(
        tool=Tool(version=__version__),
        run=info,
        score=card.score,
        interval=card.interval,
        decided_share=card.decided_share,
        pass_at_k=card.pass_at_k,
        pass_hat_k=card.pass_hat_k,
        counts=card.counts,
        gate=gate,
        comparison=comparer.comparison() if comparer else None,
        odds=noise,
        usage=card.usage,
        latency=card.latency,
        process=card.process,
        coverage=compared(card.coverage, comparer.pairs) if comparer else card.coverage,
        judge_check=worst(ending.judge_checks),
        judge_checks=ending.judge_checks,
        vote_agreement=card.vote_agreement,
        user_checks=card.user_checks,
        suites=card.suites,
    )
