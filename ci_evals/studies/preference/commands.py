"""The command `prefer` and its options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.studies.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class PreferSettings(JudgeSettings):
    """The options of `prefer`."""

    head: Annotated[Path, typer.Argument(metavar="A", help="The run.")]
    base: Annotated[Path, typer.Argument(metavar="B", help="The run to compare it with.")]
    pairs: Annotated[
        int, typer.Option(min=1, max=10_000, help="Maximum number of pairs of conversations to compare.")
    ] = 100


@takes(PreferSettings)
def prefer(settings: PreferSettings, context: RunContext) -> None:
    """Let a judge compare the conversations of two runs.

    Test by test: each pair is shown twice, in both orders; an answer that follows the order is a tie. Shows
    wins, losses and ties with an interval, and how much the order biases the judge. Calls no agent. Kept in
    A's results and reports.

    \b
    ci-evals prefer results/ main/
    """
    from ci_evals.studies.preference.study import compare_runs

    compare_runs(settings.head, settings.base, settings.pairs, settings, context)


COMMANDS = (prefer,)
