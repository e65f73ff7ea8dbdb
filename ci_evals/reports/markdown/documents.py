"""Results as Markdown: the run's summary, a suite's summary, and the whole story of one test."""

import json
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from pydantic import JsonValue

from ci_evals.domain import numbers
from ci_evals.domain.actions import AgentAction
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turn
from ci_evals.domain.verdict import Finding, Vote
from ci_evals.reports import sanitize
from ci_evals.reports.markdown import baseline
from ci_evals.reports.markdown import summary as run_summary
from ci_evals.reports.markdown.sections import (
    NO_CONTEXT,
    REASON_BYTES,
    REASON_LIMIT,
    Section,
    SummaryContext,
    joined,
    section,
    table_text,
    truncated,
)
from ci_evals.reports.story import failures, process, tables, test_words, turns, verdict_words
from ci_evals.reports.story.outcome_labels import OUTCOMES
from ci_evals.reports.story.phrases import NO_REASON
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.table import Room, Table, table_of
from ci_evals.reports.story.verdict_words import DIMENSIONS

_MOST_K = 10
"""Numbers of trials for which a test's own report tells how likely some and all of them pass."""
_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False)
_ON_MANY_LINES = json.JSONEncoder(ensure_ascii=False, indent=2)
_QUOTE_BYTES = 2_048
_STEP_ELSEWHERE = "The <code>summary.md</code> of this run has everything."


def summary(story: Story) -> str:
    """The run's summary, the text of a pull request's comment with nothing left out, and without links."""
    return joined(run_summary.sections(story))


def step_summary(story: Story, budget: int, context: SummaryContext = NO_CONTEXT) -> str:
    """The run's summary for a job's page, in at most `budget` bytes of UTF-8."""
    return truncated(run_summary.sections(story, context), budget, _STEP_ELSEWHERE)


def suite_summary(story: Story, suite: SuiteResult, stems: Sequence[str]) -> str:
    """A suite's `_summary.md`.

    Args:
        story: Of the suite's own results.
        suite: The one suite of them.
        stems: The names, without extension, of its tests' files.
    """
    sections = run_summary.present(
        Section(
            "the score",
            section(
                "suite_head", suite=suite, origin=story.notices.origin, cached=story.judging.cached_answers
            ),
        ),
        *run_summary.alerts(story),
        *run_summary.what_failed(story),
        *baseline.fixed(story),
        baseline.failed_before(story),
        baseline.lost(story),
        Section(
            "the tests",
            f"### Tests\n\n{_linked(tables.tests('Tests', story.suites[0].tests, Room.SOME), stems)}",
        ),
        *(Section("a group", run_summary.titled(table)) for _, table in story.tables.groups),
        *run_summary.causes(story.errors, "Errors and undecided"),
        Section(
            "the heading of certainty",
            f"### How sure is this?\n\n{sanitize.inline(story.certainty.sentence)}.",
        ),
        *run_summary.how_sure(story),
        *run_summary.numbers_behind(story),
        run_summary.process_measures(story),
        baseline.differing(story),
        *run_summary.run_facts(story, alone=True),
    )
    return joined(sections)


def comparison(story: Story) -> str:
    """The comparison with the baseline as a text of its own, with the gate's checks of it."""
    verdict = run_summary.heading(story) if story.tables.checks else "Compared with the baseline"
    reasons = (f"- {sanitize.inline(reason, REASON_LIMIT)}" for reason in story.run.gate.reasons[1:])
    score = sanitize.inline(story.certainty.score_and_change, REASON_LIMIT)
    sections = run_summary.present(
        Section("the verdict", "\n\n".join(filter(None, [f"## {verdict}", "\n".join(reasons), score]))),
        *run_summary.alerts(story),
        Section("the baseline's heading", "### Compared with the baseline"),
        run_summary.exact_suites(story) if story.change.compared else None,
        baseline.line(story),
        *baseline.reasons(story),
        *run_summary.what_failed(story),
        *baseline.fixed(story),
        baseline.failed_before(story),
        baseline.lost(story),
        run_summary.checks(story),
        baseline.pace(story),
        baseline.differing(story),
    )
    return joined(sections)


def test_report(story: Story, suite: SuiteResult, test: TestResult) -> Iterator[str]:
    """The whole story of one test: every trial's conversation, what the agent did, and each verdict.

    The text comes in parts: that of a thousand trials would be large.
    """
    warnings = story.judging.of_criteria.of_test(suite.name, test.name)
    yield section(
        "test",
        suite=suite,
        test=test,
        origin=story.notices.origin,
        trials=table_text(tables.trials(test)),
        repeated=len(test_words.pass_hat_k(test)) > 1,
        most_k=_MOST_K,
        user_info=_json_block(test.user_info) if test.user_info else None,
    )
    for trial in test.trials:
        yield "\n\n"
        yield section(
            "trial",
            trial=trial,
            several=len(test.trials) > 1,
            error=failures.trial_error(trial),
            process=" · ".join(_process(trial)),
            violations=_violations(trial),
            verdicts=[_verdict(finding, warnings) for finding in trial.findings],
            conversation=[(turn, _shown(turn)) for turn in trial.turns.without_traces()],
            state=[
                (name, probe.error, None if probe.error else _json_block(probe.value))
                for name, probe in trial.probes.items()
            ],
        )
    yield "\n"


def _linked(table: Table, stems: Sequence[str]) -> str:
    """A table of tests whose names lead to the tests' own reports."""
    head, line, *rows = table_text(table).split("\n")
    linked = []
    for row, stem in zip(rows, stems, strict=True):
        _, name, rest = row.split("|", 2)
        linked.append(f"| [{name.strip()}]({quote(stem)}.md) |{rest}")
    return "\n".join([head, line, *linked])


def _process(trial: TrialResult) -> Iterator[str]:
    """How the agent proceeded in a trial, and how the time was spent."""
    for label, value in (*process.of_trial(trial), *process.time_of_trial(trial)):
        yield f"{label} {sanitize.inline(value, REASON_LIMIT)}"


def _shown(turn: Turn) -> dict[str, str | None]:
    """The texts of a turn, sanitized."""
    return {
        "user": _quoted(turn.user),
        "agent": _quoted(turn.agent),
        "time": turns.reply_time(turn),
        "actions": " · ".join(_actions(turn)),
        "raw": None if turn.raw is None else _json_block(turn.raw),
    }


def _quoted(text: str) -> str:
    return sanitize.quote(text) if text.strip() else "(no text)"


def _actions(turn: Turn) -> tuple[str, ...]:
    out = [f"{found.label}: {', '.join(map(_action, found.actions))}" for found in turns.action_lists(turn)]
    if (error := turns.reply_error(turn)) is not None:
        out.append(f"**error response**: {sanitize.inline(error, REASON_LIMIT)}")
    return tuple(out) or (turns.no_actions(turn),)


def _action(action: AgentAction) -> str:
    call = action.tool
    facts = list(map(sanitize.inline, turns.call_facts(call))) if call else []
    if call and call.result is not None:
        facts.append(f"returned {sanitize.code(_ON_ONE_LINE.encode(call.result))}")
    return sanitize.code(turns.action_text(action)) + (f" ({', '.join(facts)})" if facts else "")


def _json_block(value: JsonValue) -> str:
    return sanitize.code_block(_ON_MANY_LINES.encode(value))


def _verdict(finding: Finding, warnings: Mapping[str, str]) -> tuple[str, str, str]:
    """The facts of a verdict, its reason, and its details; `warnings`: why criteria are less reliable."""
    return " · ".join(_facts(finding, warnings)), _reason(finding.reason), _details(finding)


def _facts(finding: Finding, warnings: Mapping[str, str]) -> Iterator[str]:
    sign = OUTCOMES[finding.outcome].sign
    yield f"{sign} **{sanitize.inline(finding.criterion)}**: {verdict_words.outcome_words(finding)}"
    yield sanitize.inline(verdict_words.verdict_kind(finding))
    yield f"weight {numbers.plain(finding.weight)}"
    if finding.category:
        yield f"category {sanitize.code(finding.category)}"
    if finding.aui_logic:
        yield f"AUI logic {', '.join(map(sanitize.code, finding.aui_logic))}"
    if on := verdict_words.rests_on(finding):
        yield f"rests on {on}"
    if warning := warnings.get(finding.criterion):
        yield f"⚠️ {sanitize.inline(warning)}"


def _reason(text: str) -> str:
    """The reason of a verdict or a vote as a quotation."""
    return sanitize.quote(sanitize.cut(text or NO_REASON, REASON_BYTES))


def _details(finding: Finding) -> str:
    """The quotes, grade and votes behind a verdict; empty if there is only its reason."""
    votes, grade = finding.votes or (), finding.grade
    unusable = [text for one in votes or (finding,) for text in one.unusable or ()]
    if not (finding.quotes or grade or votes or unusable):
        return ""
    return section(
        "verdict_details",
        quotes=[(quote.turn, _words(quote.text)) for quote in verdict_words.quotes_of(finding)],
        grade=verdict_words.grade_words(grade) if grade else None,
        dimensions=table_text(table_of("", DIMENSIONS, grade.dimensions)) if grade else "",
        votes=[(_vote(vote), _reason(vote.reason)) for vote in votes],
        tally=verdict_words.vote_tally(votes),
        unusable=[sanitize.code_block(text) for text in unusable],
    )


def _vote(vote: Vote) -> str:
    parts = [verdict_words.outcome_words(vote)]
    if vote.grade:
        parts.append(f"{numbers.grade(vote.grade.score, vote.grade.pass_at)} of 1")
    parts.append(sanitize.code(vote.model))
    if on := verdict_words.rests_on(vote):
        parts.append(f"rests on {on}")
    return f"{OUTCOMES[vote.outcome].sign} {', '.join(parts)}"


def _violations(trial: TrialResult) -> str:
    """Places where the trial's simulated user broke character, with the words that show it; may be empty."""
    found = trial.user_audit.violations if trial.user_audit else ()
    if not found:
        return ""
    shown = []
    for one in found:
        what = sanitize.inline(f"{failures.violation(one, trial)}: {one.reason}", 600)
        shown.append((what, _words(one.text) if one.text.strip() else ""))
    return section("violations", violations=shown)


def _words(text: str) -> str:
    """Words of the conversation, set off as a quotation."""
    return sanitize.quote(sanitize.cut(text, _QUOTE_BYTES))
