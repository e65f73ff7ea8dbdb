"""Conversations of a saved run for a terminal, with the findings at the turns that show them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_evals.domain import numbers
from ci_evals.domain.actions import AgentAction
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turn
from ci_evals.domain.verdict import Finding
from ci_evals.reports import sanitize
from ci_evals.reports.columns import wrapped
from ci_evals.reports.story import failures, phrases, test_words, turns
from ci_evals.reports.story.outcome_labels import CAUSES, OUTCOMES, Tone
from ci_evals.reports.story.phrases import NO_REASON

_NAME, _REASON, _MESSAGE = 200, 600, 4_000
"""Characters of a name and of a reason; bytes of a message."""
_SIGNS = {Tone.GOOD: "✓", Tone.BAD: "✗", Tone.OPEN: "!"}
_PAINT = {Tone.GOOD: "\x1b[32m", Tone.BAD: "\x1b[31m", Tone.OPEN: "\x1b[33m"}
_RESET = "\x1b[0m"


@dataclass(frozen=True)
class ShownTest:
    """A test, and those of its trials that are shown."""

    suite: SuiteResult
    test: TestResult
    trials: Sequence[TrialResult]


def render(tests: Sequence[ShownTest], *, width: int | None = None, color: bool = False) -> Iterator[str]:
    """Yield the text a trial at a time, each ending in a newline.

    Args:
        tests: In the order in which they are shown.
        width: Of the terminal; without one no line is broken.
        color: Whether to paint it.
    """
    for shown in tests:
        yield wrapped("\n".join(_head(shown, color=color)) + "\n", width)
        for trial in shown.trials:
            yield wrapped("\n".join(_trial(shown.test, trial, color=color)) + "\n\n", width)


def _head(shown: ShownTest, *, color: bool) -> Iterator[str]:
    test = shown.test
    sign = _sign(OUTCOMES[test.outcome].tone, color=color)
    name = sanitize.log_line(f"{shown.suite.name} › {test.name}", _NAME)
    trials = numbers.count(len(test.trials) + test.not_run, "trial")
    yield f"{sign} {name}"
    yield f"  {test_words.test_result(test)}, score {numbers.score(test.score)}, {trials}"


def _trial(test: TestResult, trial: TrialResult, *, color: bool) -> Iterator[str]:
    score = numbers.score(trial.score)
    yield f"  Trial {trial.index}: {phrases.spaced(trial.status)}, score {score}"
    if early_end := failures.early_end(test, trial):
        yield f"    {early_end}"
    if error := failures.trial_error(trial):
        yield f"    {sanitize.log_line(error, _REASON)}"
    at_turns = _by_turn(trial)
    for turn in trial.turns.without_traces():
        yield from _turn(turn)
        for finding in at_turns.pop(turn.index, ()):
            yield from _finding(finding, color=color)
    for findings in at_turns.values():
        for finding in findings:
            yield from _finding(finding, color=color)


def _by_turn(trial: TrialResult) -> dict[int, list[Finding]]:
    """The findings by the turn that shows them; those of a trial without turns under 0."""
    found: dict[int, list[Finding]] = defaultdict(list)
    for finding in trial.findings:
        turn = trial.turn_of(finding)
        found[turn.index if turn else 0].append(finding)
    return found


def _turn(turn: Turn) -> Iterator[str]:
    yield ""
    yield f"    {turn.index} User: {_message(turn.user)}"
    yield f"    {turn.index} Agent ({turns.reply_time(turn)}): {_message(turn.agent)}"
    for found in turns.action_lists(turn):
        texts = [_action(action) for action in found.actions]
        yield f"      {found.label}: {', '.join(texts)}"
    if (error := turns.reply_error(turn)) is not None:
        yield f"      error response: {sanitize.log_line(error, _REASON)}"


def _action(action: AgentAction) -> str:
    text = turns.action_text(action)
    facts = turns.call_facts(action.tool) if action.tool else ()
    if facts:
        text = f"{text} ({', '.join(facts)})"
    return sanitize.log_line(text, _REASON)


def _message(text: str) -> str:
    """A message, its further lines indented."""
    lines = sanitize.log(sanitize.cut(text, _MESSAGE)).strip().split("\n")
    return "\n        ".join(lines) if any(lines) else "(no text)"


def _finding(finding: Finding, *, color: bool) -> Iterator[str]:
    label = OUTCOMES[finding.outcome]
    name = sanitize.log_line(finding.criterion, _NAME)
    cause = f" ({CAUSES[finding.cause]})" if finding.cause else ""
    reason = sanitize.log_line(finding.reason, _REASON) or NO_REASON
    yield f"      {_sign(label.tone, color=color)} {name}: {label.words}{cause}"
    yield f"        {reason}"


def _sign(tone: Tone, *, color: bool) -> str:
    sign = _SIGNS[tone]
    return f"{_PAINT[tone]}{sign}{_RESET}" if color else sign
