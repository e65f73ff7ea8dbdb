"""The command `merge`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.merge.settings import MergeSettings

_FACTS = CommandFacts(after="comment", has_outputs=True)


@takes("ci_evals.extensions.merge.settings", "MergeSettings", _FACTS)
def merge(settings: "MergeSettings", context: RunContext) -> None:
    """Merge the results of several jobs into one run.

    All numbers are computed again from the trials, and these options set the gate: run the shards
    with --no-gate. Exit codes as of run; also 3 if a shard is missing (see --shards), stopped or interrupted.

    \b
    ci-evals merge shards/ --min-score=85 --output-dir=merged
    ci-evals merge hr/ retail/ --max-drop=2 --baseline=main/
    """
    from ci_evals.extensions.merge.merge_runs import merge_runs

    merge_runs(settings, context)


COMMANDS = (merge,)
