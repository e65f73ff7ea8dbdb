"""The cases of reports for programs: how each test ended, one line of why, and its trials."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Finding, Outcome
from ci_evals.reports import sanitize
from ci_evals.reports.names import numbered
from ci_evals.reports.story import failures, phrases, test_words, verdict_words
from ci_evals.reports.story.failures import Became, FailedCriterion
from ci_evals.reports.story.outcome_labels import CAUSES, OUTCOMES, RunOutcome
from ci_evals.reports.story.phrases import NO_REASON
from ci_evals.reports.story.story import Story
from ci_evals.reports.story.tables import TestRow
from ci_evals.reports.story.verdict_words import verdict_details, verdict_kind

_MESSAGE_LIMIT = 500
"""Characters: readers show messages in a list, on one line each."""
_REASON_BYTES = 4_096


def class_names(suites: Sequence[SuiteResult]) -> list[str]:
    """Return unique names of suites, with the file if need be: readers drop test cases that look alike."""
    names = Counter(sanitize.one_line(suite.name) for suite in suites)
    shown = []
    for suite in suites:
        name = sanitize.one_line(suite.name)
        shown.append(f"{name} ({sanitize.one_line(suite.file)})" if names[name] > 1 else name)
    return [sanitize.xml(name) for name in numbered(shown)]


class Ending(Enum):
    """The end of a test, as far as formats for programs differ on it."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Errored, undecided, or not run."""
    OPEN = "open"
    """Undecided for lack of a judge, or excluded: whoever counts errors must not see one."""
    SKIPPED = "skipped"
    """Not played on purpose, or in quarantine."""


@dataclass(frozen=True)
class Case:
    """A test, sanitized for XML and JSON."""

    ending: Ending
    message: str = ""
    """Why it did not pass, in one line; empty if it did."""
    text: str = ""
    """The same in full; may be empty."""
    kind: str = ""
    """The kind of the criterion that failed first, or of the error."""


def ending_of(row: TestRow, story: Story) -> Ending:
    """Return how a test ended, without the texts of its case."""
    test = row.test
    if story.outcome is RunOutcome.SKIPPED or test.quarantine:
        return Ending.SKIPPED
    if _set_aside(test) or test_words.only_model_missing(test):
        return Ending.OPEN
    match test.outcome:
        case TestOutcome.PASSED:
            return Ending.SKIPPED if test.taken_from else Ending.PASSED
        case TestOutcome.FAILED:
            return Ending.FAILED
        case TestOutcome.NOT_RUN if not test.not_run:
            return Ending.SKIPPED
        case _:
            return Ending.ERROR


def case_of(row: TestRow, story: Story) -> Case:
    """Return the case of a test."""
    test, ending = row.test, ending_of(row, story)
    if ending is Ending.PASSED:
        return Case(ending)
    if story.outcome is RunOutcome.SKIPPED:
        return Case(ending, message_line(story.verdict()))
    source = test_words.taken_from(test)
    brief = f"passed; {source}" if test.outcome is TestOutcome.PASSED else ""
    if brief := _set_aside(test) or brief:
        return Case(ending, message_line(brief))
    failed = failures.failed_criteria(test)  # once for a test, as it looks through all trials
    warnings = warnings_of(row, story)
    newly = row.became in {Became.BROKE, Became.UNJUDGED}
    parts = [source, story.change.passed_before if newly else None]
    parts += [_trial_text(test, trial, failed, warnings) for trial in test.trials]
    text = sanitize.xml("\n\n".join(filter(None, parts)))
    kind = phrases.spaced(test.outcome)
    if failed and ending is Ending.FAILED:
        kind = name_line(verdict_kind(failed[0].finding))
    return Case(ending, _reason_line(test, failed), text, kind)


def warnings_of(row: TestRow, story: Story) -> dict[str, str]:
    """Return why criteria of a test are less reliable, by criterion."""
    return story.judging.of_criteria.of_test(row.suite.name, row.test.name)


def run_failure(story: Story, *, shown: bool) -> tuple[str, str] | None:
    """Return a case of the run as a whole, for readers that count cases: its name, and why it failed.

    Args:
        story: Of the run.
        shown: Whether the cases of tests show already that it did not pass.
    """
    if story.run.unfinished is not None:
        return "run unfinished", message_line(story.run.unfinished)
    if story.run.gate.exit_code == Exit.PASSED or shown:
        return None
    return "gate", message_line("; ".join([story.verdict(), *story.run.gate.reasons[1:]]))


def _reason_line(test: TestResult, failed: Sequence[FailedCriterion]) -> str:
    """Return why a test did not pass in one line, never empty: readers drop a failure without one."""
    match test.outcome:
        case "failed":
            reasons = [f"{each.finding.criterion}: {each.finding.reason}" for each in failed]
            rest = numbers.count(len(reasons) - 1, "more failed criterion", "more failed criteria")
            text = reasons[0] if reasons else "the test failed"
            text += f" (and {rest})" if len(reasons) > 1 else ""
        case "not_run":
            text = "not run"
        case "undecided" if missing := test_words.only_model_missing(test):
            tally = verdict_words.tally(f for trial in test.trials for f in trial.findings)
            text = f"{CAUSES[missing]} ({tally})"
        case _:
            ended = [(phrases.spaced(trial.status), failures.trial_error(trial)) for trial in test.trials]
            reasons = [f"{status}: {why}" for status, why in ended if why]
            reasons += [
                f"undecided: {finding.criterion}: {finding.reason}"
                for trial in test.trials
                for finding in trial.findings
                if finding.outcome is Outcome.UNDECIDED
            ]
            reasons += [phrases.spaced(trial.status) for trial in test.trials if not trial.scored]
            text = reasons[0] if reasons else "the test could not be decided"
    return message_line(text)


def message_line(text: str) -> str:
    """Return a message in one line, cut to what lists show."""
    return sanitize.xml(sanitize.one_line(text, _MESSAGE_LIMIT))


def name_line(text: str) -> str:
    """Return a name in one line."""
    return sanitize.xml(sanitize.one_line(text))


def _set_aside(test: TestResult) -> str | None:
    """Return why a test decides nothing: it is in quarantine, or no simulated user stayed in character."""
    if quarantine := test_words.quarantine(test):
        return f"{OUTCOMES[test.outcome].words}; {quarantine}"
    if {trial.status for trial in test.trials} != {EndState.INVALID_USER} or test.not_run:
        return None
    trials = numbers.count(len(test.trials), "trial")
    reason = failures.trial_error(test.trials[0]) or "the simulated user broke character"
    return f"{trials} excluded: {reason}"


def _trial_text(
    test: TestResult,
    trial: TrialResult,
    all_failed: Sequence[FailedCriterion],
    warnings: Mapping[str, str],
) -> str:
    """Return one trial: why it ended early, its verdicts, and the turns that failed ones rest on."""
    head = f"Trial {trial.index}: {phrases.spaced(trial.status)}"
    why = failures.trial_error(trial)
    lines = [head + (f": {sanitize.cut(why, _REASON_BYTES)}" if why else "")]
    if early_end := failures.early_end(test, trial):
        lines.append(early_end)
    lines += [verdict_text(finding, warnings) for finding in trial.findings]
    failed = [criterion for criterion in all_failed if criterion.trial is trial]
    shown = {turn.index: turn for criterion in failed if (turn := criterion.turn)}
    for turn in shown.values():
        messages = f"  user: {turn.user}\n  agent: {turn.agent}"
        lines += ["", f"Turn {turn.index}, which shows it", sanitize.cut(messages, _REASON_BYTES)]
    return "\n".join(lines)


def verdict_text(finding: Finding, warnings: Mapping[str, str]) -> str:
    """Return a verdict with its reason and details."""
    weight = "" if finding.weight == 1 else f", weight {numbers.plain(finding.weight)}"
    reason = sanitize.cut(finding.reason or NO_REASON, _REASON_BYTES)
    head = f"{finding.outcome.upper()}  {finding.criterion} ({verdict_kind(finding)}{weight}): {reason}"
    details = verdict_details(finding, warnings.get(finding.criterion))
    return "\n".join([head, *(f"    {sanitize.one_line(line)}" for line in details)])
