"""The connections of a run to its agents and models."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ci_evals.cli.files.suite_loading import headers_of
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run.elsewhere import plays_elsewhere
from ci_evals.cli.run.judge_cache import folder_of, refused
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.models import models_asked
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.providers import OFFLINE
from ci_evals.extension_registry import asked_after_run
from ci_evals.planning.parse import LoadedSuite
from ci_evals.reports.names import AGENT_LOG
from ci_evals.support.redaction import MIN_LENGTH
from ci_evals.support.secrets import is_dummy
from ci_evals.wiring.connections import Connections, keys_of
from ci_evals.wiring.providers import llm_key_of


def read_connections(settings: RunSettings, context: RunContext) -> Connections:
    """Read how agents and models are reached from the settings.

    Raises:
        UsageError: the options contradict one another, or one cannot be used.
    """
    for hook in asked_after_run(settings):
        hook.check(settings, context.environ)
    key, token = llm_key_of(settings.provider, settings.llm_key, context.environ)
    return replace(
        models_asked(settings),
        llm_key=key,
        llm_token=token,
        llm_timeout=settings.llm_timeout,
        judge_cache=_judge_cache(settings, context),
        headers=headers_of(settings.agent_headers),
        otlp=settings.otlp,
        otlp_host=settings.otlp_host,
        otlp_port=settings.otlp_port,
        agent_in_process=settings.agent_in_process,
        agent_log=(settings.output_dir / AGENT_LOG).absolute(),
        debug=settings.debug,
    )


def _judge_cache(settings: RunSettings, context: RunContext) -> Path | None:
    """Return the folder of the judge's answers; None if no judge is called, or by workers elsewhere."""
    folder = folder_of(settings.judge_cache, context)
    if settings.replay or plays_elsewhere(settings) or settings.provider == OFFLINE.name:
        return None
    return folder


def check_cache(connections: Connections, trust: FileTrust) -> tuple[Connections, tuple[str, ...]]:
    """Return the connections without a cache that anybody may have written, and a warning about that."""
    reason = trust.workspace_distrusted()
    if reason is None or connections.judge_cache is None:
        return connections, ()
    secret = connections.llm_key or connections.llm_token
    why = refused(connections.judge_cache, reason, secret, trust.github.context)
    return (replace(connections, judge_cache=None), (why,)) if why else (connections, ())


def warn_of_short_keys(connections: Connections, loaded: Sequence[LoadedSuite]) -> tuple[str, ...]:
    """Return a warning if a key is too short to be redacted."""
    keys = [key.strip() for key in keys_of(connections, loaded)]
    short = [key for key in keys if key and len(key) < MIN_LENGTH and not is_dummy(key)]
    if not short:
        return ()
    return (f"a key has fewer than {MIN_LENGTH} characters, too few to redact it in reports",)
