"""The command `attack` and its options."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes
from ci_evals.cli.settings.shared import Run
from ci_evals.studies.settings import JudgeSettings


@dataclass(frozen=True, kw_only=True)
class AttackSettings(JudgeSettings):
    """The options of `attack`."""

    results: Run
    verdicts: Annotated[
        int,
        typer.Option(min=1, max=1_000, help="Maximum failed verdicts to attack, for each attack."),
    ] = 10


@takes(AttackSettings)
def attack(settings: AttackSettings, context: RunContext) -> None:
    """Test whether prompt injection flips the judge's verdicts.

    Puts fake verdicts and instructions into replies that failed. Shows the share of verdicts that become a
    pass, by kind of attack, next to that of the same verdicts judged again without an attack. Calls no agent.
    Kept in the results and their reports.

    \b
    ci-evals attack results/ --verdicts=20
    """
    from ci_evals.studies.attack.study import attack_judge

    attack_judge(settings.results, settings.verdicts, settings, context)


COMMANDS = (attack,)
