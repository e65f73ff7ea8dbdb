"""The options of `demo-agent`."""

from dataclasses import dataclass
from typing import Annotated

from ci_evals.domain.options import Names, OptionSpec


@dataclass(frozen=True)
class DemoAgentSettings:
    """Options of `demo-agent`."""

    port: Annotated[int, OptionSpec("Port; 0 takes any free one.", minimum=0, maximum=65535)] = 8080
    host: Annotated[str, OptionSpec("Address to listen on.", names=Names.ADDRESS, metavar="ADDRESS")] = (
        "127.0.0.1"
    )
    noise: Annotated[
        float,
        OptionSpec(
            "Share of messages (0–1) at which the agent errs.\n\n"
            "It answers as if it had not understood, or ignores its rules.",
            metavar="SHARE",
            minimum=0,
            maximum=1,
        ),
    ] = 0
    seed: Annotated[
        int, OptionSpec("Seed of these errors.\n\nThe same conversations get the same errors, in any order.")
    ] = 0
    drift: Annotated[
        float,
        OptionSpec(
            "Let the noise differ from day to day.\n\n"
            "The standard deviation of its logarithm: with 0.7 a usual day halves or doubles it.",
            metavar="SD",
            minimum=0,
        ),
    ] = 0
    day: Annotated[
        int, OptionSpec("The day of `--drift`.\n\nAll servers of one day have the same noise.")
    ] = 0
    break_: Annotated[
        str | None,
        OptionSpec(
            "Workflows without rules and integrations, such as RETURN_REQUEST.",
            names=Names.TEXT,
            metavar="WORKFLOW,...",
        ),
    ] = None
    misbehave: Annotated[
        str | None,
        OptionSpec("Misbehavior in every conversation, see above.", names=Names.TEXT, metavar="KIND,..."),
    ] = None
