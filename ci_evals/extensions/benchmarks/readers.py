"""The readers of this extension, the more definite formats first."""

from ci_evals.extensions.benchmarks import (
    agentbench,
    gaia,
    human_eval,
    lm_eval,
    swe_bench,
    tau2,
    webarena,
    webarena_verified,
)

_MODULES = (lm_eval, swe_bench, human_eval, tau2, webarena_verified, webarena, agentbench, gaia)

READERS = tuple(module.READER for module in _MODULES)
