"""The facts of a run and its suites as named values for programs. Not yet sanitized."""

from math import floor

from ci_evals.domain import numbers
from ci_evals.domain.results.arms import Arm
from ci_evals.domain.results.comparison import SuiteComparison
from ci_evals.domain.results.run import Results
from ci_evals.reports.story import agents, certainty, gate, judging, notes
from ci_evals.reports.story.tables import SuiteRow


def of_run(results: Results) -> dict[str, str | None]:
    """Return the run's own facts. Other agents of it have one each."""
    comparison, odds, cost = results.comparison, results.odds, results.usage.cost_usd
    compared = comparison if comparison and comparison.delta is not None else None
    drop = compared.detectable if compared else None
    return {
        "run-score": numbers.score(results.score),
        "run-delta": numbers.changed_for_programs(compared.base, compared.head) if compared else None,
        "run-p": numbers.decimal(compared.p) if compared and certainty.shows_p(compared) else None,
        "run-detectable-drop": numbers.least(drop) if drop is not None else None,
        "run-odds": numbers.decimal(odds.share) if odds else None,
        "run-cost-usd": numbers.plain(round(cost, 6)) if cost is not None else None,
        **{f"arm: {arm.name}": _of_arm(arm) for arm in agents.other_arms(results)},
        "run-origin": notes.origin(results.run),
        "run-judge-check": ", ".join(
            f"{check.model} {check.right} of {check.asked}{'' if check.passed else ', not passed'}"
            for check in results.judge_checks
        ),
        "run-passes-on-absence": str(judging.passes_by_grounds(results)[0] or ""),
        "run-judge-cached": judging.cached_answers(results),
        **_agreement(results),
        "gate": gate.run_outcome(results).value.words,
        "gate-failed": ", ".join(check.name for check in gate.failing(results)),
        "gate-not-checked": " ".join(gate.warnings(results)),
    }


def of_suite(row: SuiteRow, baseline_commit: str | None) -> dict[str, str | None]:
    """Return the facts of one suite, without those of the run."""
    suite = row.suite
    most = max(suite.pass_hat_k, default=1)
    return {
        "score": numbers.score(suite.score),
        "interval-low": numbers.score(suite.interval.low) if suite.interval else None,
        "interval-high": numbers.score(suite.interval.high) if suite.interval else None,
        f"pass-hat-{most}": f"{floor(100 * suite.pass_hat_k[most] + 1e-9) / 100:g}" if most > 1 else None,
        **_change(row.became, baseline_commit),
        "agent": suite.agent_id,
        "adapter": suite.adapter,
        "judge-model": suite.judge_model,
        "judge-panel": ", ".join(suite.judge_panel),
        "judge-votes": str(suite.judge_votes) if suite.judge_votes > 1 else None,
        "invalid-users": str(suite.counts.invalid_users or ""),
        "user-model": suite.user_model,
        "embedding-model": suite.embedding_model,
    }


def _change(comparison: SuiteComparison | None, baseline_commit: str | None) -> dict[str, str | None]:
    if comparison is None or comparison.delta is None:
        return {}
    interval = comparison.interval
    return {
        "compared-score": numbers.score(comparison.head),
        "baseline-score": numbers.score(comparison.base),
        "delta": numbers.changed_for_programs(comparison.base, comparison.head),
        "delta-low": numbers.signed_for_programs(interval.low) if interval else None,
        "delta-high": numbers.signed_for_programs(interval.high) if interval else None,
        "p": numbers.decimal(comparison.p) if certainty.shows_p(comparison) else None,
        "baseline-commit": baseline_commit,
    }


def _of_arm(arm: Arm) -> str:
    """Return the score of another agent of the run, and its change from the first one."""
    if arm.delta is None:
        return f"{numbers.score(arm.score)}, not compared"
    chance = f", {numbers.p_value(arm.p_adjusted)}" if arm.p_adjusted is not None else ""
    return f"{numbers.score(arm.score)}, change {numbers.signed(arm.delta)}{chance}"


def _agreement(results: Results) -> dict[str, str | None]:
    agreement = results.vote_agreement
    if agreement is None:
        return {}
    share, alpha = agreement.whole.share, agreement.whole.alpha
    return {
        "run-vote-agreement": numbers.decimal(share.value) if share else None,
        "run-vote-alpha": numbers.coefficient(alpha.value) if alpha else None,
        "run-votes-disagree": ", ".join(part.name for part in agreement.criteria if part.low),
    }
