"""The story of a run: what every report says of it, computed once from its results."""

from collections.abc import Mapping
from dataclasses import dataclass

from ci_evals.domain.results.gate import GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.reports.story import headline, highlights, listed_tests, next_step
from ci_evals.reports.story.headline import Became, News, Numbers, Trust
from ci_evals.reports.story.labels import RunOutcome
from ci_evals.reports.story.listed_tests import ListedTests


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
        return headline.of_origin(self.own_verdict, trust)


def story_of(results: Results) -> Story:
    """Compute the story of a run from its results and their comparison."""
    news = headline.news(results)
    return Story(
        results=results,
        outcome=highlights.run_outcome(results),
        own_verdict=headline.verdict(results, news),
        numbers=headline.in_numbers(results, news),
        certainty=headline.certainty(results, news),
        odds=headline.odds(results),
        news=news,
        became=headline.became(results, news),
        other_checks=headline.other_checks(results, news),
        not_compared=headline.not_compared(results),
        what_to_do=next_step.what_to_do(results, news),
        rerun_command=next_step.rerun_command(results, news),
        listed=listed_tests.of_run(results),
    )
