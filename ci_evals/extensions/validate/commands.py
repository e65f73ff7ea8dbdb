"""The command `validate`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import CommandFacts, takes

if TYPE_CHECKING:
    from ci_evals.extensions.validate.settings import ValidateSettings

_FACTS = CommandFacts(after="run")


@takes("ci_evals.extensions.validate.settings", "ValidateSettings", _FACTS)
def validate(settings: "ValidateSettings", context: RunContext) -> None:
    """Check suites: every problem with file, line and column.

    Exits with 2 if there is a problem. With --strict it also warns about weak suites: no strict check, a
    criterion that asks two things, only happy paths, a test without tags, guidelines that give the answer
    away. With --probe=RESULTS a judge finds criteria that pass in conversations of other tests too.
    """
    from ci_evals.extensions.validate.suite_check import validate_suites

    validate_suites(settings, context)


COMMANDS = (validate,)
