"""`odds`: how often an unchanged agent would fail the gate, by the noise of a saved run."""

from collections import defaultdict, deque
from collections.abc import Sequence

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.policy import limits_in, recorded_limits
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.gate import GateCheck, Odds
from ci_evals.extensions.odds.extent import extent
from ci_evals.extensions.odds.settings import OddsSettings
from ci_evals.gate.checks import checks_of
from ci_evals.gate.gate_input import GateInput
from ci_evals.gate.odds import odds_of
from ci_evals.gate.policy import Policy
from ci_evals.gate.rules import rule_of
from ci_evals.reports import sanitize
from ci_evals.reports.columns import table, wrapped
from ci_evals.reports.story import certainty, gate

_NAME = 200
"""Characters of a name of a check."""


def odds(settings: OddsSettings, context: RunContext) -> None:
    """Print how often an unchanged agent would fail the gate.

    Raises:
        UsageError: the file is not there or is none of ours, an option cannot be read, or nothing was scored.
    """
    results = SavedRun.open(settings.results, context.hide()).results
    limits = limits_in(settings)
    policy = Policy.from_options(recorded_limits(results.run.config) | limits)
    for warning in policy.warnings:
        context.console.say(f"warning: {warning}")
    # A recorded floor may be of a part that this run did not select; one that is asked for now must be there.
    Policy.from_options(limits).check_names(results.suites)
    checks = checks_of(GateInput(results), policy)
    estimate = odds_of(results, checks)
    if estimate is None:
        raise UsageError(
            f"{settings.results}: nothing was scored, so its noise is unknown. Name a run with scores."
        )
    context.show(odds_text(estimate, checks, extent(results, estimate.loops), width=context.width))


def odds_text(
    odds: Odds, checks: Sequence[GateCheck], played: str | None = None, *, width: int | None = None
) -> str:
    """Return the odds that another run fails each of these checks and the gate, and what they mean.

    `played` says how much such a run plays; None if that is not a range.
    """
    shares: dict[object, deque[float]] = defaultdict(deque)
    for one in odds.checks:
        shares[one.key].append(one.share)
    cells = [
        [
            _name(check),
            gate.required(check),
            numbers.odds(shares[check.key].popleft()) if shares[check.key] else "not estimated",
        ]
        for check in checks
    ]
    cells.append(["any check", "", numbers.odds(odds.share)])
    trials = numbers.count(odds.loops, "trial")
    floor = numbers.NONE if odds.floor is None else numbers.plain(odds.floor)
    lines = [
        sanitize.log_line(certainty.odds_sentence(odds)),
        f"The highest min-score that fewer than 5 % of such runs would miss: {floor}.",
        f"Simulated from the noise of the saved run, with up to {trials} of each test."
        if odds.loops > 1
        else "Each test has one trial, so its own noise is unknown. It is estimated from how tests differ: "
        "too high rather than too low. Run several trials per test to measure it (set loops).",
    ]
    lines += [played] if played else []
    if left := [check for check in checks if check.key not in {one.key for one in odds.checks}]:
        lines.append(f"Not estimated: {', '.join(map(_not_estimated, left))}.")
    return wrapped(
        "\n\n".join([table(("check", "required", "would fail"), cells, width), "\n".join(lines)]) + "\n",
        width,
    )


def _not_estimated(check: GateCheck) -> str:
    """A check that noise is not estimated for, in words."""
    return rule_of(check).beyond_odds(check) or _name(check)


def _name(check: GateCheck) -> str:
    return sanitize.log_line(check.name, _NAME)
