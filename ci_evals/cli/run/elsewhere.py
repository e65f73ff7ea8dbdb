"""Trials that an extension plays on other processors, if an option of its asks for that."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.plan import Plan
from ci_evals.extension_registry import run_hooks
from ci_evals.job.chosen import Chosen
from ci_evals.job.job import Elsewhere
from ci_evals.wiring.connections import Connections


def plays_elsewhere(settings: RunSettings) -> bool:
    """Return whether the trials are played by other processes, which share no folder with this one."""
    return _hook(settings) is not None


def check_elsewhere(settings: RunSettings, plan: Plan) -> None:
    """Raise `UsageError` if the options ask for what cannot be played elsewhere."""
    if hook := _hook(settings):
        hook.check(settings, plan)


@contextmanager
def elsewhere(settings: RunSettings, chosen: Chosen) -> Iterator[Chosen]:
    """Yield who plays the run: other processes, if that is asked for, which end afterwards."""
    hook = _hook(settings)
    if hook is None or not isinstance(chosen, Connections):
        yield chosen
        return
    with hook.elsewhere(settings) as start:
        yield Elsewhere(chosen, start)


def _hook(settings: RunSettings) -> Any:
    return next((hook for hook in run_hooks() if hook.is_asked(settings)), None)
