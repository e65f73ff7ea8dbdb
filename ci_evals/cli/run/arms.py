"""The agents that options have played beside the one that is tested."""

from pathlib import Path

from ci_evals.adapters.code import plugins
from ci_evals.cli.files.suite_loading import headers_of, options_file
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.suite_commands import RunSettings
from ci_evals.domain.choices import BothSides
from ci_evals.planning.adapter_options import OptionsFile
from ci_evals.planning.arms import Arm, read_against


def arms_of(settings: RunSettings, context: RunContext, *, masked: bool) -> tuple[Arm, ...]:
    """Read the agents; none if the settings name none. With `masked` no secret is read, as for a replay.

    Raises:
        UsageError: an option is unknown, or a file that it names cannot be read.
    """
    if settings.against is None or settings.both_sides is BothSides.NEVER:
        return ()

    def read_options(path: str) -> OptionsFile:
        return options_file(Path(path), context.environ, masked=masked)

    return (read_against(settings.against, read_options, headers_of, plugins.names()),)
