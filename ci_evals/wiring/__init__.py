"""Builds the real agents and models that settings and suites ask for."""

from ci_evals.wiring.connections import (
    Connections,
    checked,
    keys_of,
    names_in,
    panel_of,
    process_environment,
    votes_of,
)
from ci_evals.wiring.models import JudgeCache
from ci_evals.wiring.participants import RunParticipants, build_participants, participants_for
from ci_evals.wiring.providers import (
    DEFAULT_EMBEDDING_MODELS,
    DEFAULT_MODELS,
    LLM_TIMEOUT,
    PROVIDERS,
    REPORTS_COST,
    WITHOUT_KEY,
    embedding_model,
    llm_key_of,
    no_key,
    runs_here,
)

__all__ = [
    "DEFAULT_EMBEDDING_MODELS",
    "DEFAULT_MODELS",
    "LLM_TIMEOUT",
    "PROVIDERS",
    "REPORTS_COST",
    "WITHOUT_KEY",
    "Connections",
    "JudgeCache",
    "RunParticipants",
    "build_participants",
    "checked",
    "embedding_model",
    "keys_of",
    "llm_key_of",
    "names_in",
    "no_key",
    "panel_of",
    "participants_for",
    "process_environment",
    "runs_here",
    "votes_of",
]
