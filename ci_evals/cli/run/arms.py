"""The agents that are played in the same run as the one that is tested."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ci_evals.adapters.suite_paths import ENDINGS
from ci_evals.adapters.suites import read_text
from ci_evals.agents import plugins
from ci_evals.cli.files.suite_loading import headers_of, options_file
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.settings.plan_settings import PlanSettings
from ci_evals.domain.choices import BothSides
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import BASE, Plan
from ci_evals.planning.adapter_options import OptionsFile
from ci_evals.planning.arms import Arm, ArmReader, with_arms, with_arms_alone


def arms_of(settings: PlanSettings, trust: FileTrust, *, masked: bool) -> tuple[Arm, ...]:
    """Read the agents; none if the settings name none. With `masked` no secret is read, as for a replay.

    Raises:
        UsageError: an option is unknown, or a file that it names cannot be read, or is not trusted.
    """
    context = trust.github.context

    def read_options(path: str) -> OptionsFile:
        return options_file(Path(path), context.environ, masked=masked)

    reader = ArmReader(
        context.environ, read_options, headers_of, trust.check_agent, plugins.names(), masked=masked
    )
    if settings.arms and settings.against:
        raise UsageError("`arms=`, `against=`: both name further agents. Omit one of them.")
    if settings.arms:
        file = settings.arms.as_posix()
        if settings.arms.suffix.lower() not in ENDINGS:
            raise UsageError(f"`arms=`: {file}: the file ends in none of {', '.join(ENDINGS)}.")
        arms = reader.file(read_text(settings.arms, file), file)
        names = [arm.name for arm in arms]
        if settings.gate_arm not in {None, *names}:
            raise UsageError(
                f"`gate_arm=`: {settings.gate_arm!r} is no agent of {file}. Agents: {', '.join(names)}."
            )
        return arms
    if settings.gate_arm is not None:
        raise UsageError("`gate_arm=`: it names an agent of `arms=`, which is not given.")
    if settings.against is None and settings.both_sides is BothSides.ALWAYS:
        raise UsageError(
            f"`both_sides={settings.both_sides}`: there is no base agent to play. Name one with `against=`."
        )
    if settings.against is None:
        return ()
    return (reader.against(settings.against),)


def with_agents(plan: Plan, arms: Sequence[Arm], gate_arm: str | None, *, unasked: bool) -> Plan:
    """The plan with these agents. Of `--arms` one is tested, instead of the suites' own: else the second."""
    if not arms or arms[0].name == BASE:
        return with_arms(plan, arms, unasked=unasked)
    gated = next((arm for arm in arms if arm.name == gate_arm), arms[1])
    others = [arm for arm in arms if arm is not gated]
    plan = with_arms_alone(plan, [gated, *others], unasked=unasked)
    return replace(plan, reference=None if gated is arms[0] else arms[0].name)
