"""The command `attack`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes

if TYPE_CHECKING:
    from ci_evals.extensions.attack.settings import AttackSettings


@takes("ci_evals.extensions.attack.settings", "AttackSettings")
def attack(settings: "AttackSettings", context: RunContext) -> None:
    """Test whether prompt injection flips the judge's verdicts.

    Puts fake verdicts and instructions into replies that failed. Shows the share of verdicts that become a
    pass, by kind of attack, next to that of the same verdicts judged again without an attack. Calls no agent.
    Kept in the results and their reports.

    \b
    ci-evals attack results/ --verdicts=20
    """
    from ci_evals.extensions.attack.study import attack_judge

    attack_judge(settings.results, settings.verdicts, settings, context)


COMMANDS = (attack,)
