"""Saved conversations are judged again, by another judge or by the same once more. No agent is asked."""

from ci_evals.rejudging.again import Judges, Rejudged, judges, rejudge
from ci_evals.rejudging.work import Rejudging, to_judge

__all__ = ["Judges", "Rejudged", "Rejudging", "judges", "rejudge", "to_judge"]
