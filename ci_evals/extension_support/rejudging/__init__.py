"""Saved conversations are judged again, by another judge or by the same once more. No agent is asked."""

from ci_evals.extension_support.rejudging.judge_again import Rejudged, judges, rejudge
from ci_evals.extension_support.rejudging.saved import RejudgeJob, to_judge

__all__ = ["RejudgeJob", "Rejudged", "judges", "rejudge", "to_judge"]
