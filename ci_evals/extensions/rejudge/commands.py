"""The command `rejudge`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.rejudge.settings import RejudgeSettings

_FACTS = CommandFacts(after="comment", has_outputs=True)


@takes("ci_evals.extensions.rejudge.settings", "RejudgeSettings", _FACTS)
def rejudge(settings: "RejudgeSettings", context: RunContext) -> None:
    """Judge the conversations of a saved run again.

    Calls a judge, but no agent. Strict verdicts stay as they are. Shows which verdicts changed and how far
    the two judges agree. These options set the gate; exit codes as of run.

    \b
    ci-evals rejudge results/ --output-dir=again
    ci-evals rejudge results/ --output-dir=other --provider=anthropic
    """
    from ci_evals.extensions.rejudge.rejudge_run import rejudge_run

    rejudge_run(settings, context)


COMMANDS = (rejudge,)
