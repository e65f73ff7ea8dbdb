"""The check run of a commit on GitHub: its conclusion and its title."""

from enum import StrEnum

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.run import Results
from ci_evals.gate.checks import compares
from ci_evals.gate.rules.changes import CLOSE
from ci_evals.reports.story import highlights
from ci_evals.reports.story.headline import Trust
from ci_evals.reports.story.labels import RunOutcome
from ci_evals.reports.story.story import Story
from ci_evals.scoring.statistics import ALPHA


class Conclusion(StrEnum):
    """The conclusion of a check run, as GitHub names it."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


def conclusion(story: Story, trust: Trust = Trust.OWN) -> Conclusion:
    """The conclusion. What somebody else reports is never a success."""
    results = story.results
    outcome = highlights.run_outcome(results)
    if outcome is RunOutcome.FAILED and results.gate.exit_code == Exit.FAILED:
        return Conclusion.FAILURE
    passed = outcome in {RunOutcome.PASSED, RunOutcome.UNCHECKED} and trust is Trust.OWN
    return Conclusion.SUCCESS if passed and not _drop_suspected(results) else Conclusion.NEUTRAL


def _drop_suspected(results: Results) -> bool:
    """Return whether a comparison was asked for, and shows a drop that is neither proven nor ruled out."""
    checks = [check for check in results.gate.checks if compares(check)]
    comparison = results.comparison
    chances = [comparison.p] if comparison else []
    chances += [check.seen for check in checks if check.required == ALPHA]
    return bool(checks) and any(p is not None and ALPHA < p <= CLOSE for p in chances)


def title(story: Story, trust: Trust = Trust.OWN) -> str:
    """The verdict with score and change, which the verdict of a failed run leaves out; not yet sanitized."""
    results = story.results
    verdict, shown = story.verdict(trust), story.numbers
    if highlights.run_outcome(results) is RunOutcome.SKIPPED:
        return verdict
    score = "" if shown.score_in_heading else shown.score
    change = f"{shown.change} against {shown.base_name}" if shown.base else ""
    numbers = ", ".join(filter(None, [score, change]))
    suspected = conclusion(story, trust) is Conclusion.NEUTRAL and _drop_suspected(results)
    return " · ".join(filter(None, [verdict, numbers, "a drop is suspected" if suspected else ""]))
