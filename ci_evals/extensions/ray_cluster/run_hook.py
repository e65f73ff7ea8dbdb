"""The option `--cluster` of `run`: play the trials on other processors."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Group, Names, Option
from ci_evals.support.documentation import extra

if TYPE_CHECKING:  # every run imports this module, for its option
    from ci_evals.domain.plan import Plan
    from ci_evals.job.job import PlayElsewhere

OPTIONS = (
    Option(
        name="cluster",
        kind=str,
        metavar="ray|ray://HOST:PORT",
        help="Run the trials on a Ray cluster.\n\n"
        f"`ray` uses all processors of this machine. Needs the extra `ray`: `{extra('ray')}`. "
        "`--parallel` is the number of conversations on all machines together.",
        names=Names.ADDRESS,
        group=Group.LIMITS,
    ),
)


def is_asked(settings: Any) -> bool:
    """Return whether the options name a cluster."""
    return settings.cluster is not None


def check(settings: Any, plan: "Plan") -> None:
    """Raise `UsageError` if the options ask for what a cluster cannot do."""
    from ci_evals.extensions.ray_cluster.on_ray import LOCAL, check_address  # noqa: PLC0415  # few runs need it

    check_address(settings.cluster)
    suites = [planned.suite for planned in plan.suites]
    starts = any(suite.start for suite in suites)
    refused = {
        "`record=`": (settings.record, "answers are recorded by one process"),
        "`replay=`": (settings.replay, "a replay calls nobody and is quick"),
        "`agent_in_process=`": (settings.agent_in_process, "the agent would run in the workers"),
        "`otlp=`": (
            settings.otlp or any(suite.trace == "otlp" for suite in suites),
            "spans are received by one process",
        ),
        "`judge_cache=`": (
            settings.judge_cache not in {"auto", "off"},
            "workers have no folder in common",
        ),
        "`start=`": (
            starts and settings.cluster != LOCAL,
            "workers on other machines cannot reach an agent that is started here",
        ),
    }
    for option, (wanted, why) in refused.items():
        if wanted:
            raise UsageError(f"`cluster=`, {option}: {why}. Omit one of them.")


@contextmanager
def elsewhere(settings: Any) -> "Iterator[PlayElsewhere]":
    """Start or reach the cluster that the settings name, and leave it at the end."""
    from ci_evals.extensions.ray_cluster.on_ray import RayCluster  # noqa: PLC0415  # as above
    from ci_evals.extensions.ray_cluster.player import played_on  # noqa: PLC0415  # as above

    with RayCluster(settings.cluster) as cluster:
        yield partial(played_on, cluster)
