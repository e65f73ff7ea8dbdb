"""Where real parts are built: agents and models from what a suite and its user say."""

from ci_evals.wiring.adapter import Adapter
from ci_evals.wiring.casts import casts
from ci_evals.wiring.models import (
    DEFAULT_MODELS,
    OFFLINE,
    PROVIDERS,
    TELLS_COST,
    WITHOUT_KEY,
    Models,
    no_key,
    own_key,
    own_token,
)
from ci_evals.wiring.objects import cast_of

__all__ = [
    "DEFAULT_MODELS",
    "OFFLINE",
    "PROVIDERS",
    "TELLS_COST",
    "WITHOUT_KEY",
    "Adapter",
    "Models",
    "cast_of",
    "casts",
    "no_key",
    "own_key",
    "own_token",
]
