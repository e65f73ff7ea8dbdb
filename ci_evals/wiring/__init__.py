"""Where real parts are built: agents and models from what a suite and its user say."""

from ci_evals.wiring.cache import Cache
from ci_evals.wiring.connections import Connections
from ci_evals.wiring.keys import keys_of
from ci_evals.wiring.models import (
    DEFAULT_MODELS,
    LLM_TIMEOUT,
    PROVIDERS,
    TELLS_COST,
    WITHOUT_KEY,
    Models,
    embedding_model,
    llm_key_of,
    no_key,
    runs_here,
)
from ci_evals.wiring.panel import checked, names_in, panel_of, votes_of
from ci_evals.wiring.participants import RunParticipants, build_participants

__all__ = [
    "DEFAULT_MODELS",
    "LLM_TIMEOUT",
    "PROVIDERS",
    "TELLS_COST",
    "WITHOUT_KEY",
    "Cache",
    "Connections",
    "Models",
    "RunParticipants",
    "build_participants",
    "checked",
    "embedding_model",
    "keys_of",
    "llm_key_of",
    "names_in",
    "no_key",
    "panel_of",
    "runs_here",
    "votes_of",
]
