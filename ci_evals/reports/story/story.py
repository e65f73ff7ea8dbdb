"""The story of a run: what every report says of it, computed once from its results."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from ci_evals.domain.errors import Exit
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult, TestOutcome
from ci_evals.domain.results.trial import TrialResult
from ci_evals.gate.checks import compares
from ci_evals.gate.rules.changes import CLOSE
from ci_evals.reports.story import (
    agents,
    certainty,
    changes,
    comparison_runs,
    failures,
    gate,
    judging,
    listed_tests,
    next_step,
    notes,
    properties,
    run_facts,
    scores,
    tables,
    test_words,
    verdict,
    weakened,
)
from ci_evals.reports.story.changes import Difference
from ci_evals.reports.story.comparison_runs import ALONE, ComparisonRun, ComparisonRuns
from ci_evals.reports.story.failures import News, TrialErrors
from ci_evals.reports.story.judging import JudgingStory
from ci_evals.reports.story.listed_tests import ListedTests
from ci_evals.reports.story.next_step import NextStep
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.process import ProcessStory, process
from ci_evals.reports.story.run_facts import RunStory
from ci_evals.reports.story.scores import Scored
from ci_evals.reports.story.table import Table
from ci_evals.reports.story.tables import SuiteRow
from ci_evals.reports.story.test_words import FlakyTests
from ci_evals.reports.story.verdict import ChangedGroup, FailedGroup, Numbers, Trust
from ci_evals.reports.story.weakened import WeakenedStory
from ci_evals.scoring.scores import ScoreRule, outcome_of
from ci_evals.scoring.statistics import ALPHA

THIS = "this run"
"""The name of the run beside others."""


@dataclass(frozen=True)
class ChangeStory:
    """Changes since the baseline."""

    news: News
    """The tests worth showing."""
    in_base: str
    """The baseline as a place: `on main`."""
    not_compared: str | None
    """Why there is no change to show, if nothing else says it."""
    compared: bool
    """True if there is a change of the score."""
    both_sides: bool
    """True if the other agent was played in this run."""
    failed: tuple[FailedGroup, ...]
    """The tests that fail, in groups; none is empty."""
    changed: tuple[ChangedGroup, ...]
    """The tests that were fixed or dropped, in groups; none is empty."""
    baseline: str
    """Which run it was compared with, or why with none, in a sentence; empty if nobody knows."""
    reasons: tuple[str, ...]
    """Why not all could be compared."""
    differences: tuple[Difference, ...]
    """The tests that were not compared."""
    pace: str | None
    """Cost and latency on both sides, in a sentence."""
    passed_before: str
    """The sentence on a test that newly fails, with the baseline's commit."""


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
    confirmed: str
    """The tests whose own drop is larger than chance explains, in a sentence; empty if there are none."""


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
    counts: Table | None
    """Remarks on suites besides their scores."""
    groups: tuple[tuple[str, Table], ...]
    """Scores by category, tag and so on, each with its suite's name."""
    usage: Table | None
    """Calls, tokens and cost by role and model."""
    latency: Table | None
    """How fast the agent's replies came, here and in the baseline."""
    scored: tuple[Scored, ...]
    """The exact scores of the run and its suites, for a chart."""


class LatencySummary(NamedTuple):
    """Two times that say how fast a run's replies came, in seconds."""

    whose: str
    median: float
    p95: float
    kind: str
    """`head` or `base`."""


@dataclass(frozen=True)
class Story:
    """The facts of a run in plain text and data, not yet sanitized. Reports are functions of it alone."""

    run: RunStory
    """The run itself."""
    outcome: RunOutcome
    own_verdict: str
    """The verdict in words, as the run itself gives it; `verdict` has that of foreign results."""
    numbers: Numbers
    failed_checks: str
    """The failed checks in a sentence, with reasons that nothing else gives; empty if the verdict has all."""
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

    process: ProcessStory
    flaky: FlakyTests
    """The tests whose trials disagree."""
    properties: Mapping[str, str | None]
    """The facts of the run as named values for programs."""
    rerun: str
    """`Rerun 2 of this commit: 36 trials in all`; empty if no earlier attempt is pooled."""
    drop_suspected: bool
    """True if a comparison was asked for, and shows a drop that is neither proven nor ruled out."""
    latency: tuple[LatencySummary, ...]
    """Median and 95th percentile of the replies in seconds, of this run and the baseline."""
    this_run: ComparisonRun
    """The run in numbers, beside others."""
    other_runs: tuple[ComparisonRun, ...]
    earlier_runs: tuple[ComparisonRun, ...]
    """The runs of the same branch before this one, the newest first."""
    base_suites: tuple[SuiteResult, ...]
    """The suites of the baseline, with their conversations; empty if it is not at hand."""
    rule: ScoreRule
    """Which trials count."""
    base_rule: ScoreRule

    @property
    def several_suites(self) -> bool:
        """True if tests are named with their suite."""
        return len(self.suites) > 1

    def verdict(self, trust: Trust = Trust.OWN) -> str:
        """The verdict in words, of results of this origin."""
        return verdict.of_origin(self.own_verdict, trust)

    def trust(self, commit: str | None = None, *, foreign: bool = False) -> Trust:
        """Return how far the results can be believed.

        Args:
            commit: The commit that they should be of, as far as the reader knows by himself.
            foreign: Whether a fork's own workflow run wrote them.
        """
        claimed = self.run.commit
        if self.run.contradictory:
            return Trust.CONTRADICTORY
        if commit and claimed and claimed != commit:
            return Trust.OTHER_COMMIT
        return Trust.FORK if foreign else Trust.OWN

    def outcome_of(self, trial: TrialResult, *, in_base: bool = False) -> TestOutcome:
        """The outcome that a test would have with this trial alone."""
        return outcome_of((trial,), 1, self.base_rule if in_base else self.rule)


def story_of(results: Results, runs: ComparisonRuns = ALONE) -> Story:
    """Compute the story of a run from its results, their comparison, and the runs beside it."""
    comparison, base_run = results.comparison, runs.baseline
    # Of a run that played the base agent too, that one's conversations stand beside.
    beside = results.base_side or base_run
    known_of_judge = judging.of_run(results)
    news = failures.news(results, known_of_judge.of_criteria)
    errors = failures.errors_by_cause(results.suites)
    suites = tables.suite_rows(results, failures.became(results, news))
    return Story(
        run=run_facts.of_run(results),
        outcome=gate.run_outcome(results),
        own_verdict=verdict.verdict(results, news),
        numbers=verdict.in_numbers(results, news),
        failed_checks=verdict.failed_checks(results, news),
        next_step=next_step.what_to_do(results, news, errors),
        certainty=CertaintyStory(
            sentence=certainty.certainty(results, news),
            too_little=certainty.too_little_decided(results),
            score_and_change=certainty.brief(results),
            exact_score=certainty.brief(results, why_not=False),
            small_print=certainty.small_print(results),
            decision=tuple(certainty.decision_sentences(results)),
            odds=certainty.odds(results),
            confirmed=certainty.confirmed(comparison) if comparison else "",
        ),
        change=ChangeStory(
            news=news,
            in_base=changes.in_base(results),
            not_compared=verdict.not_compared(results),
            compared=comparison is not None and comparison.delta is not None,
            both_sides=comparison is not None and comparison.method == "both-sides",
            failed=verdict.failed_groups(results, news),
            changed=verdict.changed_groups(results, news),
            baseline=changes.baseline(results),
            reasons=changes.shown_reasons(comparison) if comparison else (),
            differences=changes.differences(comparison) if comparison else (),
            pace=changes.pace(comparison) if comparison else None,
            passed_before=changes.passed_before(results),
        ),
        notices=Notices(
            weakened=weakened.of_run(results),
            origin=notes.origin(results.run),
            notes=notes.notes(results),
            checks_not_made=gate.warnings(results),
        ),
        errors=errors,
        suites=suites,
        listed=listed_tests.of_run(results),
        tables=RunTables(
            suites=tables.suites(suites),
            checks=tables.checks(results),
            agents=agents.table(results),
            counts=tables.suites_in_counts(results.suites),
            groups=tuple((suite.name, table) for suite in results.suites for table in tables.groups(suite)),
            usage=tables.usage(results),
            latency=tables.latency(results, base_run),
            scored=scores.scored_parts(results),
        ),
        judging=known_of_judge,
        process=process(results, base_run),
        flaky=test_words.flaky(results.suites),
        properties=properties.of_run(results),
        rerun=notes.rerun(results),
        drop_suspected=_drop_suspected(results),
        latency=tuple(_latency(results, base_run)),
        this_run=ComparisonRun.of(results, THIS, outcomes=False),
        other_runs=runs.others,
        earlier_runs=comparison_runs.earlier(results, runs),
        base_suites=beside.suites if beside else (),
        rule=ScoreRule(offline=results.run.offline),
        base_rule=ScoreRule(offline=(beside or results).run.offline),
    )


def _latency(results: Results, base_run: Results | None) -> Iterator[LatencySummary]:
    here = results.latency
    if here.median is None or here.p95 is None:
        return
    yield LatencySummary(THIS, here.median, here.p95, "head")
    median = p95 = None
    if base_run:
        median, p95 = base_run.latency.median, base_run.latency.p95
    elif results.comparison:
        efficiency = results.comparison.base_efficiency
        median, p95 = efficiency.median_latency_seconds, efficiency.p95_latency_seconds
    if median is not None and p95 is not None:
        yield LatencySummary("baseline", median, p95, "base")


class Conclusion(StrEnum):
    """The conclusion of a check run, as GitHub names it."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


def conclusion(story: Story, trust: Trust = Trust.OWN) -> Conclusion:
    """The conclusion. What somebody else reports is never a success."""
    outcome = story.outcome
    if outcome is RunOutcome.FAILED and story.run.gate.exit_code == Exit.FAILED:
        return Conclusion.FAILURE
    passed = outcome in {RunOutcome.PASSED, RunOutcome.UNCHECKED} and trust is Trust.OWN
    return Conclusion.SUCCESS if passed and not story.drop_suspected else Conclusion.NEUTRAL


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
    verdict = story.verdict(trust)
    if story.outcome is RunOutcome.SKIPPED:
        return verdict
    suspected = conclusion(story, trust) is Conclusion.NEUTRAL and story.drop_suspected
    drop = "a drop is suspected" if suspected else ""
    return " · ".join(filter(None, [verdict, story.numbers.beside_verdict, drop, story.rerun]))
