"""The option `--cluster`: play the trials on other processors."""

from collections.abc import Iterator
from contextlib import contextmanager

from ci_evals.cli.settings.suite_commands import RunSettings
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan
from ci_evals.ports import Cluster


def check_cluster(settings: RunSettings, plan: Plan) -> None:
    """Raise `UsageError` if the options ask for what a cluster cannot do."""
    if settings.cluster is None:
        return
    from ci_evals.adapters.ray_cluster import LOCAL, check_address  # noqa: PLC0415  # few runs need it

    check_address(settings.cluster)
    suites = [planned.suite for planned in plan.suites]
    starts = any(suite.start for suite in suites)
    refused = {
        "--record": (settings.record, "answers are recorded by one process"),
        "--replay": (settings.replay, "a replay calls nobody and is quick"),
        "--agent-in-process": (settings.agent_in_process, "the agent would run in the workers"),
        "--otlp": (
            settings.otlp or any(suite.trace == "otlp" for suite in suites),
            "spans are received by one process",
        ),
        "--judge-cache": (
            settings.judge_cache not in {"auto", "off"},
            "workers have no folder in common",
        ),
        "--start": (
            starts and settings.cluster != LOCAL,
            "workers on other machines cannot reach an agent that is started here",
        ),
    }
    for option, (wanted, why) in refused.items():
        if wanted:
            raise UsageError(f"--cluster, {option}: {why}. Omit one of them.")


@contextmanager
def cluster_of(settings: RunSettings) -> Iterator[Cluster | None]:
    """Start or reach the cluster that the settings name, if they name one, and leave it at the end."""
    if settings.cluster is None:
        yield None
        return
    from ci_evals.adapters.ray_cluster import RayCluster  # noqa: PLC0415  # as above

    with RayCluster(settings.cluster) as cluster:
        yield cluster
