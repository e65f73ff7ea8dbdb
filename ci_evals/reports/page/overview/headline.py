"""The head of the page: the verdict, the line of numbers, and how sure they are."""

from collections.abc import Iterator
from typing import NamedTuple

from ci_evals.domain import numbers
from ci_evals.domain.results.run import Results
from ci_evals.reports.story import certainty, changes, gate, judging, verdict, wording
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
    numbers: Numbers | None
    """The line of numbers; None if nothing was played."""
    reasons: list[str]
    """The reasons for the verdict that it does not name itself."""
    certainty: str
    details: list[str]
    """More on how sure the result is, in sentences."""
    warnings: tuple[str, ...]
    """Reasons to trust judge and simulated user less."""
    notes: list[str]
    facts: list[tuple[str, str]]


def of(story: Story) -> Headline:
    """The head of these results' page."""
    results = story.results
    outcome, trust = gate.run_outcome(results), verdict.trust_of(results)
    names = [suite.name for suite in results.suites]
    tone = Tone.OPEN if trust is Trust.CONTRADICTORY else outcome.value.tone
    played = outcome is not RunOutcome.SKIPPED
    origin = verdict.origin(results.run)
    return Headline(
        suites=", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else ""),
        tone=tone.value,
        verdict=story.verdict(trust),
        numbers=story.numbers if played else None,
        reasons=list(_reasons(story)),
        certainty=story.certainty if played else "",
        details=list(_details(story)) if played else [],
        warnings=judging.warnings(results),
        notes=[*([origin] if origin else []), *verdict.notes(results)],
        facts=list(_facts(results)),
    )


def _reasons(story: Story) -> Iterator[str]:
    results = story.results
    outcome = story.outcome
    failing = story.other_checks if outcome is RunOutcome.FAILED else ()
    yield from (sentence(capitalized(gate.failure(check))) for check in failing[:_CHECKS])
    if len(failing) > _CHECKS:
        yield f"{numbers.count(len(failing) - _CHECKS, 'more check')} failed; the gate below has all."
    # The verdict names the first reason of a run without one.
    reasons = results.gate.reasons[outcome is RunOutcome.NO_VERDICT :]
    yield from (sentence(capitalized(reason)) for reason in reasons)
    if todo := story.what_to_do:
        yield todo
    yield from gate.warnings(results)


def _details(story: Story) -> Iterator[str]:
    results = story.results
    comparison = results.comparison
    yield certainty.brief(results)
    yield from certainty.decision_sentences(results)
    if comparison and comparison.delta is not None:
        yield certainty.small_print(comparison, results)
    if odds := story.odds:
        yield odds
    if from_cache := judging.cached_answers(results):
        yield sentence(capitalized(from_cache))
    yield from filter(None, [_baseline(results)])
    for reason in changes.shown_reasons(comparison) if comparison else ():
        yield sentence(f"Not compared: {reason}")


def _baseline(results: Results) -> str | None:
    """The run that this one was compared with, or why there is none."""
    comparison, note = results.comparison, capitalized((results.run.baseline_note or "").rstrip("."))
    if comparison is None:
        return sentence(note) if note else None
    if comparison.method == "both-sides":
        return None
    baseline = comparison.baseline
    which = f"commit {baseline.commit[:COMMIT]}" if baseline.commit else f"run {baseline.run_id[:80]}"
    when = f"{wording.moment(baseline.at)}, {changes.age(results, comparison)}"
    text = f"{note} ({when})" if note else f"Baseline: {which} of {when}"
    other = (
        f"; its score over all of its tests is {numbers.score(baseline.score)}"
        if changes.baseline_score_differs(comparison)
        else ""
    )
    return sentence(f"{text}{other}")


def _facts(results: Results) -> Iterator[tuple[str, str]]:
    run = results.run
    commit = run.git.head_commit or run.git.commit
    suites = results.suites
    files = numbers.listed([suite.file for suite in suites], _FEW)
    judges = dict.fromkeys(judge for suite in suites for judge in suite.models.judges)
    users = dict.fromkeys(suite.user_model for suite in suites if suite.user_model)
    facts = (
        ("Commit", commit[:40] if commit else None),
        ("Branch", run.git.ref),
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
