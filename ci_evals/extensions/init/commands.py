"""The command `init`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.init.settings import InitSettings

_FACTS = CommandFacts(after="validate", is_supervised=False)


@takes("ci_evals.extensions.init.settings", "InitSettings", _FACTS)
def init(settings: "InitSettings", context: RunContext) -> None:
    """Write a starter suite and a workflow for pull requests.

    The default branch, the folder of suites and their adapter are taken from the repository. Existing files
    are never overwritten: then nothing is written.

    \b
    ci-evals init                     (an AUI agent)
    ci-evals init --adapter=python    (with a function that calls your agent)
    ci-evals init --adapter=http --start='python3 agent.py'
    ci-evals init --adapter=demo      (runs at once, without any key)
    """
    from ci_evals.extensions.init.starter import init as work

    work(settings, context)


COMMANDS = (init,)
