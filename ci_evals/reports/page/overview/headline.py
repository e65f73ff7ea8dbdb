"""The head of the page: the verdict, the line of numbers, and how sure they are."""

from collections.abc import Iterator
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Git, Results
from ci_evals.reports.story import changes, verdict, wording
from ci_evals.reports.story.advice import NextStep
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.verdict import Numbers, Trust
from ci_evals.reports.story.wording import COMMIT, RunOutcome, Tone, capitalized, sentence
from ci_evals.scoring.usage import agent_models

_CHECKS = 4
"""Checks that the head shows."""
_FEW = 5
"""Suites that it names."""


class Headline(NamedTuple):
    """The head of the page in plain text, neither sanitized nor escaped."""

    suites: str
    tone: str
    verdict: str
    numbers: Numbers
    reasons: list[str]
    """The reasons for the verdict that it does not name itself."""
    next_step: NextStep
    certainty: str
    details: list[str]
    """More on how sure the result is, in sentences."""
    warnings: tuple[str, ...]
    """Dropped requirements, and reasons to trust judge and simulated user less."""
    notes: list[str]
    facts: list[tuple[str, str]]


def of(story: Story) -> Headline:
    """The head of these results' page."""
    results = story.results
    outcome, trust = story.outcome, verdict.trust_of(results)
    names = [suite.name for suite in results.suites]
    tone = Tone.OPEN if trust is Trust.CONTRADICTORY else outcome.value.tone
    played = outcome is not RunOutcome.SKIPPED
    origin, weakened = story.notices.origin, story.notices.weakened
    dropped = weakened.sentences if weakened else ()
    return Headline(
        suites=", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else ""),
        tone=tone.value,
        verdict=story.verdict(trust),
        numbers=story.numbers,
        reasons=list(_reasons(story)),
        next_step=story.next_step,
        certainty=story.certainty.sentence if played else "",
        details=list(_details(story)) if played else [],
        warnings=(*dropped, *story.judging.warnings),
        notes=[*([origin] if origin else []), *story.notices.notes],
        facts=list(_facts(results)),
    )


def _reasons(story: Story) -> Iterator[str]:
    results = story.results
    outcome = story.outcome
    failing = story.other_failures if outcome is RunOutcome.FAILED else ()
    yield from (sentence(capitalized(failure)) for failure in failing[:_CHECKS])
    if len(failing) > _CHECKS:
        yield f"{numbers.count(len(failing) - _CHECKS, 'more check')} failed; the gate below has all."
    # The verdict names the first reason of a run without one.
    reasons = results.gate.reasons[outcome is RunOutcome.NO_VERDICT :]
    yield from (sentence(capitalized(reason)) for reason in reasons)
    yield from story.notices.checks_not_made


def _details(story: Story) -> Iterator[str]:
    results = story.results
    comparison = results.comparison
    yield story.certainty.score_and_change
    yield from story.certainty.decision
    if comparison and comparison.delta is not None:
        yield story.certainty.small_print
    if odds := story.certainty.odds:
        yield odds
    if from_cache := story.judging.cached_answers:
        yield sentence(capitalized(from_cache))
    if baseline := changes.baseline(results, results.run.baseline_note or ""):
        yield baseline
    for reason in changes.shown_reasons(comparison) if comparison else ():
        yield sentence(f"Not compared: {reason}")


def _facts(results: Results) -> Iterator[tuple[str, str]]:
    run = results.run
    commit = run.git.head_commit or run.git.commit
    suites = results.suites
    files = numbers.listed([suite.file for suite in suites], _FEW)
    judges = dict.fromkeys(judge for suite in suites for judge in suite.models.judges)
    users = dict.fromkeys(suite.user_model for suite in suites if suite.user_model)
    facts = (
        ("Commit", commit[:COMMIT] + wording.with_changes(run.git) if commit else None),
        _ref(run.git),
        ("Pull request", str(run.git.pull_request) if run.git.pull_request else None),
        ("Suite files" if len(suites) > 1 else "Suite file", files),
        ("Agent's models", numbers.listed(agent_models(results.usage), _FEW)),
        ("Judge", numbers.listed([*judges], _FEW)),
        ("Simulated user", numbers.listed([*users], _FEW)),
        ("Started", wording.moment(run.started_at)),
        ("Took", numbers.duration(run.duration_seconds)),
        ("Trials", f"{results.counts.played_trials:,}"),
        ("Cost", numbers.money(results.usage.cost_usd) if verdict.paid(results) else None),
        ("Run", run.id),
        ("Made by", f"{results.tool.name} {results.tool.version}"),
    )
    yield from ((label, value) for label, value in facts if value)


def _ref(git: Git) -> tuple[str, str | None]:
    """The branch or the tag that was tested. A pull request's ref says no more than its number."""
    ref = git.ref or ""
    if ref.startswith("refs/tags/"):
        return "Tag", ref.removeprefix("refs/tags/")
    return "Branch", git.branch
