"""The story of a run: what every report says of it, computed once from its results."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.run import Results
from ci_evals.gate.checks import compares
from ci_evals.gate.rules.changes import CLOSE
from ci_evals.reports.story import (
    certainty,
    changes,
    failures,
    gate,
    judging,
    reruns,
    tables,
    verdict,
    weakened,
    wording,
)
from ci_evals.reports.story.advice import NextStep
from ci_evals.reports.story.failures import Became, News, TrialErrors
from ci_evals.reports.story.judging import CriterionWarnings, Remark
from ci_evals.reports.story.table import Table
from ci_evals.reports.story.tables import SuiteRow
from ci_evals.reports.story.verdict import Numbers, Trust
from ci_evals.reports.story.weakened import WeakenedStory
from ci_evals.reports.story.wording import ListedTests, RunOutcome
from ci_evals.scoring.statistics import ALPHA


@dataclass(frozen=True)
class ChangeStory:
    """Changes since the baseline."""

    news: News
    """The tests worth showing."""
    became: Mapping[tuple[str, str], Became]
    """The tests whose outcome changed, by suite and name."""
    in_base: str
    """The baseline as a place: `on main`."""
    since: str
    """The words that say what tests broke in: `in this PR`."""
    broke: str
    """`2 tests broke in this PR`."""
    broke_title: str
    """The title over these tests."""
    not_compared: str | None
    """Why there is no change to show, if nothing else says it."""


@dataclass(frozen=True)
class CertaintyStory:
    """How sure the result is."""

    sentence: str
    """In a sentence or two."""
    too_little: str | None
    """Why the score is no headline: too little was decided; None where it is one."""
    score_and_change: str
    """The exact score, its change, and what that is worth."""
    exact_score: str
    """The same without why nothing was compared."""
    small_print: str
    """What these numbers mean; empty if nothing was compared."""
    decision: tuple[str, ...]
    """How the run came to its decision: rounds, the base agent, earlier runs."""
    odds: str | None
    """How often the same agent would fail this gate; None for runs too small to tell."""


@dataclass(frozen=True)
class Notices:
    """Sentences to read before the numbers."""

    weakened: WeakenedStory | None
    """Requirements dropped since the baseline, or that they are unknown; None if there are none."""
    origin: str | None
    """The origin of conversations that were held earlier, in a sentence."""
    notes: tuple[str, ...]
    """The gravest first."""
    checks_not_made: tuple[str, ...]
    """A sentence for each reason why checks could not be made."""


@dataclass(frozen=True)
class RunTables:
    """The tables of the run as a whole."""

    suites: Table
    """The suites' exact scores and changes."""
    checks: Table | None
    agents: Table | None
    """The agents that were played side by side."""


@dataclass(frozen=True)
class JudgingStory:
    """What is known of judge and simulated user."""

    remarks: tuple[Remark, ...]
    tables: tuple[Table, ...]
    """The numbers behind these remarks."""
    warnings: tuple[str, ...]
    """Reasons to trust judge or simulated user less, each with what to do."""
    of_criteria: CriterionWarnings
    cached_answers: str | None
    """The share of the judge's answers that came from the cache."""


@dataclass(frozen=True)
class Story:
    """The facts of a run in plain text and data, not yet sanitized. Reports are functions of it alone."""

    results: Results
    """The run's own data. What follows is all that is derived from them."""
    outcome: RunOutcome
    own_verdict: str
    """The verdict in words, as the run itself gives it; `verdict` has that of foreign results."""
    numbers: Numbers
    other_failures: tuple[str, ...]
    """The failed checks in clauses, but for those that verdict, numbers or tests that broke make plain."""
    next_step: NextStep
    """The next step, with the command that repeats the first test that failed."""
    certainty: CertaintyStory
    change: ChangeStory
    notices: Notices
    errors: tuple[TrialErrors, ...]
    """Trials that broke off and criteria that are undecided, each cause once."""
    suites: tuple[SuiteRow, ...]
    """The suites with their tests, and what became of each since the baseline."""
    listed: ListedTests
    """The tests that reports list."""
    tables: RunTables
    judging: JudgingStory

    @property
    def several_suites(self) -> bool:
        """True if tests are named with their suite."""
        return len(self.results.suites) > 1

    def verdict(self, trust: Trust = Trust.OWN) -> str:
        """The verdict in words, of results of this origin."""
        return verdict.of_origin(self.own_verdict, trust)


def story_of(results: Results) -> Story:
    """Compute the story of a run from its results and their comparison."""
    news = failures.news(results)
    became = failures.became(results, news)
    suites = tables.suite_rows(results, became)
    return Story(
        results=results,
        outcome=gate.run_outcome(results),
        own_verdict=verdict.verdict(results, news),
        numbers=verdict.in_numbers(results, news),
        other_failures=verdict.other_failures(results, news),
        next_step=verdict.what_to_do(results, news),
        certainty=CertaintyStory(
            sentence=certainty.certainty(results, news),
            too_little=certainty.too_little_decided(results),
            score_and_change=certainty.brief(results),
            exact_score=certainty.brief(results, why_not=False),
            small_print=certainty.small_print(results),
            decision=tuple(certainty.decision_sentences(results)),
            odds=certainty.odds(results),
        ),
        change=ChangeStory(
            news=news,
            became=became,
            in_base=changes.in_base(results),
            since=changes.since(results),
            broke=verdict.broke(results, news),
            broke_title=verdict.broke_title(results),
            not_compared=verdict.not_compared(results),
        ),
        notices=Notices(
            weakened=weakened.of_run(results),
            origin=verdict.origin(results.run),
            notes=verdict.notes(results),
            checks_not_made=gate.warnings(results),
        ),
        errors=failures.errors_by_cause(results.suites),
        suites=suites,
        listed=wording.listed_tests(results),
        tables=RunTables(
            suites=tables.suites(suites), checks=tables.checks(results), agents=tables.agents(results)
        ),
        judging=JudgingStory(
            remarks=judging.remarks(results),
            tables=judging.tables(results),
            warnings=judging.warnings(results),
            of_criteria=CriterionWarnings.of_run(results),
            cached_answers=judging.cached_answers(results),
        ),
    )


class Conclusion(StrEnum):
    """The conclusion of a check run, as GitHub names it."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


def conclusion(story: Story, trust: Trust = Trust.OWN) -> Conclusion:
    """The conclusion. What somebody else reports is never a success."""
    results, outcome = story.results, story.outcome
    if outcome is RunOutcome.FAILED and results.gate.exit_code == Exit.FAILED:
        return Conclusion.FAILURE
    passed = outcome in {RunOutcome.PASSED, RunOutcome.UNCHECKED} and trust is Trust.OWN
    return Conclusion.SUCCESS if passed and not _drop_suspected(results) else Conclusion.NEUTRAL


def _drop_suspected(results: Results) -> bool:
    """Return whether a comparison was asked for, and shows a drop that is neither proven nor ruled out."""
    checks = [check for check in results.gate.checks if compares(check)]
    comparison = results.comparison
    chances = [comparison.p] if comparison else []
    level = comparison.level if comparison else ALPHA
    chances += [check.seen for check in checks if check.required == level]
    return bool(checks) and any(p is not None and level < p <= CLOSE for p in chances)


def check_title(story: Story, trust: Trust = Trust.OWN) -> str:
    """The verdict with score and change, which the verdict of a failed run leaves out; not yet sanitized."""
    verdict, shown = story.verdict(trust), story.numbers
    if story.outcome is RunOutcome.SKIPPED:
        return verdict
    score = "" if shown.score_in_heading else shown.score
    change = f"{shown.change} against {shown.base_name}" if shown.base else ""
    numbers = ", ".join(filter(None, [score, change]))
    suspected = conclusion(story, trust) is Conclusion.NEUTRAL and _drop_suspected(story.results)
    rerun = reruns.headline(story.results)
    return " · ".join(filter(None, [verdict, numbers, "a drop is suspected" if suspected else "", rerun]))
