"""The command `prefer`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes

if TYPE_CHECKING:
    from ci_evals.extensions.preference.settings import PreferSettings


@takes("ci_evals.extensions.preference.settings", "PreferSettings")
def prefer(settings: "PreferSettings", context: RunContext) -> None:
    """Let a judge compare the conversations of two runs.

    Test by test: each pair is shown twice, in both orders; an answer that follows the order is a tie. Shows
    wins, losses and ties with an interval, and how much the order biases the judge. Calls no agent. Kept in
    A's results and reports.

    \b
    ci-evals prefer results/ main/
    """
    from ci_evals.extensions.preference.study import compare_runs

    compare_runs(settings.head, settings.base, settings.pairs, settings, context)


COMMANDS = (prefer,)
