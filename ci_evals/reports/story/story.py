"""The story of a run: what every report says of it, computed once from its results."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.gate.checks import compares
from ci_evals.gate.rules.changes import CLOSE
from ci_evals.reports.story import certainty, failures, gate, verdict, wording
from ci_evals.reports.story.failures import Became, News
from ci_evals.reports.story.verdict import Numbers, Trust
from ci_evals.reports.story.wording import ListedTests, RunOutcome
from ci_evals.scoring.statistics import ALPHA


@dataclass(frozen=True)
class Story:
    """The facts of a run in plain text and data, not yet sanitized. Reports are functions of it alone."""

    results: Results
    outcome: RunOutcome
    own_verdict: str
    """The verdict in words, as the run itself gives it; `verdict` has that of foreign results."""
    numbers: Numbers
    certainty: str
    """How sure the result is, in a sentence or two."""
    odds: str | None
    """How often the same agent would fail this gate; None for runs too small to tell."""
    news: News
    """The tests worth showing."""
    became: Mapping[tuple[str, str], Became]
    """The tests whose outcome changed since the baseline, by suite and name."""
    other_checks: tuple[GateCheck, ...]
    """The failed checks that neither verdict, numbers nor the tests that broke make plain."""
    not_compared: str | None
    """Why there is no change to show, if nothing else says it."""
    what_to_do: str
    """The next step; empty if none is known."""
    rerun_command: str
    """The command in it that repeats the first test that failed."""
    listed: ListedTests
    """The tests that reports list."""

    def verdict(self, trust: Trust = Trust.OWN) -> str:
        """The verdict in words, of results of this origin."""
        return verdict.of_origin(self.own_verdict, trust)


def story_of(results: Results) -> Story:
    """Compute the story of a run from its results and their comparison."""
    news = failures.news(results)
    return Story(
        results=results,
        outcome=gate.run_outcome(results),
        own_verdict=verdict.verdict(results, news),
        numbers=verdict.in_numbers(results, news),
        certainty=certainty.certainty(results, news),
        odds=certainty.odds(results),
        news=news,
        became=failures.became(results, news),
        other_checks=verdict.other_checks(results, news),
        not_compared=verdict.not_compared(results),
        what_to_do=verdict.what_to_do(results, news),
        rerun_command=verdict.rerun_command(results, news),
        listed=wording.listed_tests(results),
    )


class Conclusion(StrEnum):
    """The conclusion of a check run, as GitHub names it."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


def conclusion(story: Story, trust: Trust = Trust.OWN) -> Conclusion:
    """The conclusion. What somebody else reports is never a success."""
    results = story.results
    outcome = gate.run_outcome(results)
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


def check_title(story: Story, trust: Trust = Trust.OWN) -> str:
    """The verdict with score and change, which the verdict of a failed run leaves out; not yet sanitized."""
    results = story.results
    verdict, shown = story.verdict(trust), story.numbers
    if gate.run_outcome(results) is RunOutcome.SKIPPED:
        return verdict
    score = "" if shown.score_in_heading else shown.score
    change = f"{shown.change} against {shown.base_name}" if shown.base else ""
    numbers = ", ".join(filter(None, [score, change]))
    suspected = conclusion(story, trust) is Conclusion.NEUTRAL and _drop_suspected(results)
    return " · ".join(filter(None, [verdict, numbers, "a drop is suspected" if suspected else ""]))
