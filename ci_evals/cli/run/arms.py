"""The agents that options have played beside the one that is tested."""

from collections.abc import Sequence
from pathlib import Path

from ci_evals.adapters.code import plugins
from ci_evals.adapters.suites import ENDINGS, read_text
from ci_evals.cli.files.suite_loading import headers_of, options_file
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.suite_commands import PlanSettings
from ci_evals.domain.choices import BothSides
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import BASE, Plan
from ci_evals.planning.adapter_options import OptionsFile
from ci_evals.planning.arms import Arm, ArmReader, with_arms, with_first_arm


def arms_of(settings: PlanSettings, context: RunContext, *, masked: bool) -> tuple[Arm, ...]:
    """Read the agents; none if the settings name none. With `masked` no secret is read, as for a replay.

    Raises:
        UsageError: an option is unknown, or a file that it names cannot be read.
    """

    def read_options(path: str) -> OptionsFile:
        return options_file(Path(path), context.environ, masked=masked)

    reader = ArmReader(context.environ, read_options, headers_of, plugins.names(), masked=masked)
    if settings.arms and settings.against:
        raise UsageError("--arms, --against: both name agents to play beside this one. Omit one of them.")
    if settings.arms:
        file = settings.arms.as_posix()
        if settings.arms.suffix.lower() not in ENDINGS:
            raise UsageError(f"--arms: {file}: the file ends in none of {', '.join(ENDINGS)}.")
        return reader.file(read_text(settings.arms, file), file)
    if settings.against is None and settings.both_sides is BothSides.ALWAYS:
        raise UsageError("--both-sides=always: there is no base agent to play. Name one with --against.")
    if settings.against is None or settings.both_sides is BothSides.NEVER:
        return ()
    return (reader.against(settings.against),)


def with_agents(plan: Plan, arms: Sequence[Arm], *, unasked: bool) -> Plan:
    """The plan with these agents; the first one of several is tested in place of the suites' own."""
    first = arms[0] if arms and arms[0].name != BASE else None
    if first:
        plan = with_first_arm(plan, first, unasked=unasked)
    return with_arms(plan, arms[1:] if first else arms, unasked=unasked)
