"""`attack`: what instructions in the agent's replies do to the judge of a run."""

from datetime import UTC, datetime

from ci_evals.cli.run_context import RunContext
from ci_evals.studies.asking import Asking
from ci_evals.studies.attack.result import Attacks
from ci_evals.studies.attack.settings import AttackSettings
from ci_evals.studies.attack.study import attack as put
from ci_evals.studies.attack.study import targets
from ci_evals.studies.judge_command import carry_out, finish
from ci_evals.studies.judging import judging


def attack(settings: AttackSettings, context: RunContext) -> None:
    """Attack the judge, show the outcome, and keep it with the results.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    judge = judging(settings.results, settings, context)
    found = targets(judge.run, settings.verdicts, settings.seed)

    async def work(asking: Asking) -> Attacks:
        return await put(asking, found, settings.seed, datetime.now(UTC))

    attacks, asking = carry_out(judge, settings, "verdict", work, context)
    finish(judge, asking, context, attacks, decided=attacks.whole.tried)
