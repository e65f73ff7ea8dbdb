"""The command `noise`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes

if TYPE_CHECKING:
    from ci_evals.extensions.noise.settings import NoiseSettings


@takes("ci_evals.extensions.noise.settings", "NoiseSettings")
def noise(settings: "NoiseSettings", context: RunContext) -> None:
    """Measure the noise of scores: from agent, user or judge?

    Judges a sample of the run again, plays it again with the same user messages, and plays it from the start.
    Shows each one's share of the variance, and whether the next dollar belongs in loops, votes or tests. Kept
    in the results and their reports.

    \b
    ci-evals noise results/ --tests=10 --plays=3
    """
    from ci_evals.extensions.noise.command import measure_noise

    measure_noise(settings, context)


COMMANDS = (noise,)
