"""A run from its plan to its results: play, score, compare, decide, and play more trials if it was close."""

from ci_evals.job.conclude import NO_BASELINE, BaselineResults
from ci_evals.job.job import Job, RunFacts
from ci_evals.job.limits import Limits
from ci_evals.job.playing import evaluate, not_played

__all__ = ["NO_BASELINE", "BaselineResults", "Job", "Limits", "RunFacts", "evaluate", "not_played"]
