"""The command `backtest`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.backtest.settings import BacktestSettings

_FACTS = CommandFacts(after="comment")


@takes("ci_evals.extensions.backtest.settings", "BacktestSettings", _FACTS)
def backtest(settings: "BacktestSettings", context: RunContext) -> None:
    """Find out how often the gate failed an unchanged agent.

    Applies the gate to stored runs: of two consecutive runs of one branch with the same agent options, the
    earlier one is the baseline, and a failure of the later one is a false alarm. Compares their rate with
    the one that odds predicts, and other gates with this one. Calls no agent and no model.

    \b
    ci-evals backtest results/
    ci-evals backtest runs/ --from-github=acme/agent --branch=main --last=50
    ci-evals backtest runs/ --settings=gates.yaml

    Writes backtest.md, backtest.html and _backtest.json.

    Exit codes: 0 done, 2 wrong usage, 3 no two runs can be compared.
    """
    from ci_evals.extensions.backtest.command import backtest as work

    work(settings, context)


COMMANDS = (backtest,)
