"""The words that all reports share: outcomes, verdicts, actions, tests, moments. Not yet sanitized."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from itertools import islice
from typing import NamedTuple, Protocol

from ci_evals.domain import numbers
from ci_evals.domain.results.reused import TakenFrom
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import Counts, SuiteResult, TestOutcome, TestResult
from ci_evals.domain.suite import is_bundled
from ci_evals.domain.transcript import EndState, FailureCause
from ci_evals.domain.verdict import Cause, Finding, Outcome, Vote
from ci_evals.reports import sanitize
from ci_evals.scoring import scores

CAUSES = {
    Cause.NO_TRACE: "no spans of the agent arrived",
    Cause.NO_EVIDENCE: "no evidence to decide it on",
    Cause.JUDGE_ERROR: "a model gave no usable answer",
    Cause.VOID_ANSWER: "the judge's answer does not count",
    Cause.NO_JUDGE: "no judge",
    Cause.NO_MODEL: "no embedding model",
    Cause.CANNOT_TELL: "the judge cannot tell",
    Cause.NOT_REACHED: "the agent ended the conversation before; counts as failed",
}
"""Reasons why a verdict is undecided."""
ENDINGS = {
    EndState.COMPLETED: "All planned turns were played.",
    EndState.STOPPED: "The simulated user said that it was done.",
    EndState.ESCALATED: "The agent handed over to a person.",
    EndState.AGENT_ERROR: "The agent answered with an error.",
    EndState.FAILED: "The conversation failed.",
    EndState.INVALID_USER: "Excluded from every score, since the simulated user broke character.",
    EndState.INTERRUPTED: "The run was stopped while this trial was under way.",
}
"""End states of a conversation, in a sentence each."""
ERRORS = {
    EndState.AGENT_ERROR: "errored",
    EndState.FAILED: "errored",
    EndState.INTERRUPTED: "interrupted",
    EndState.INVALID_USER: "excluded, since the simulated user broke character",
}
"""End states of excluded trials, to follow their number: `2 trials failed`."""
AT_FAULT = {
    EndState.AGENT_ERROR: "the agent, which answered with an error",
    EndState.FAILED: "the agent or model that the error names",
    EndState.INVALID_USER: "the simulated user: its guidelines or its model",
    FailureCause.AGENT_FAILED: "the agent or its network",
    FailureCause.MODEL_FAILED: "the simulated user's model or its network",
    FailureCause.SETUP_FAILED: "the suite's setup",
    Cause.NO_TRACE: "the agent's traces",
    Cause.NO_EVIDENCE: "what the agent reports, or the suite that asks for more",
    Cause.JUDGE_ERROR: "the judge's model or its network",
    Cause.VOID_ANSWER: "the judge's model",
    Cause.NO_MODEL: "the settings: no embedding model is set",
    Cause.CANNOT_TELL: "the suite: the judge cannot decide by the criterion's words",
}
"""Where to look first for the cause of errors and undecided verdicts."""
ROLES = {
    "user": "simulated user",
    "judge": "judge",
    "auditor": "auditor of the user",
    "embedder": "embedding model",
    "agent": "agent",
}
"""Roles that use tokens."""
COMMIT = 7
"""Characters of a commit's id that people know it by."""
NO_REASON = "no reason was given"
_SHORT_BYTES = 1_024
"""Bytes of a vote's reason, or of a quote, in a log."""
_MOST_SET_ASIDE = 5
"""Tests that have a sentence each."""
MOST_TESTS = 1_000
"""Tests of other tools up to which reports list all and each gets a file. All are in the results file."""
_WORST_FIRST = (
    TestOutcome.FAILED,
    TestOutcome.ERROR,
    TestOutcome.UNDECIDED,
    TestOutcome.NOT_RUN,
    TestOutcome.PASSED,
)


class Tone(Enum):
    """The tone of a piece of news: good, bad, or open."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True)
class OutcomeLabel:
    """The words, sign and tone of an outcome."""

    words: str
    sign: str
    tone: Tone


OUTCOMES = {
    "passed": OutcomeLabel("passed", "✅", Tone.GOOD),
    "failed": OutcomeLabel("failed", "❌", Tone.BAD),
    "error": OutcomeLabel("errored", "⚠️", Tone.OPEN),
    "undecided": OutcomeLabel("undecided", "❔", Tone.OPEN),
    "not_run": OutcomeLabel("not run", "⏸️", Tone.OPEN),
}
"""Labels of tests and of verdicts."""


class RunOutcome(Enum):
    """The outcome of a run as a whole.

    `UNCHECKED`: nothing failed, and a check that was asked for could not be made.
    """

    PASSED = OutcomeLabel("passed", "✅", Tone.GOOD)
    UNCHECKED = OutcomeLabel("passed, some checks not made", "⚠️", Tone.OPEN)
    FAILED = OutcomeLabel("failed", "❌", Tone.BAD)
    NO_VERDICT = OutcomeLabel("no verdict", "⚠️", Tone.OPEN)
    INTERRUPTED = OutcomeLabel("interrupted", "⚠️", Tone.OPEN)
    SKIPPED = OutcomeLabel("skipped", "⏭️", Tone.OPEN)


UNFINISHED = frozenset({RunOutcome.NO_VERDICT, RunOutcome.INTERRUPTED})
"""Outcomes without a verdict."""


def spaced(name: str) -> str:
    """A name of an end state, a rule or an attack as people read it: `agent error`."""
    return name.replace("_", " ")


def sentence(text: str) -> str:
    """`text` with one full stop at its end."""
    return f"{text.strip().rstrip('.')}."


def capitalized(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def moment(at: datetime) -> str:
    """`2026-11-20 09:30 UTC`."""
    return f"{utc(at).isoformat(sep=' ', timespec='minutes')[:16]} UTC"


def utc(at: datetime) -> datetime:
    """The moment in UTC, which is assumed where it has no zone."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def verdict_kind(finding: Finding) -> str:
    """`judged`, `judged claims`, or `strict tool_used`."""
    if finding.strict:
        return f"strict {finding.strict}"
    return "judged claims" if finding.claims else finding.kind


def tally(findings: Iterable[Finding | Vote]) -> str:
    """`3 passed, 1 failed`."""
    counts = Counter(finding.outcome for finding in findings)
    return (
        ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome]) or "no verdicts"
    )


def vote_tally(found: Sequence[Vote]) -> str:
    """The outcome of the votes: `3 votes: 2 passed, 1 failed`."""
    return f"{numbers.count(len(found), 'vote')}: {tally(found)}"


def verdict_details(finding: Finding, warning: str | None) -> Iterator[str]:
    """The details of a verdict in lines for a log; `warning`: why the criterion is less reliable."""
    if warning:
        yield f"! {warning}"
    if finding.rests_on == "absence":
        yield f"rests on what is absent from turn {', '.join(map(str, finding.evidence))}"
    for quote in finding.quotes:
        if quote.text.strip():
            yield f"turn {quote.turn}: “{_short(quote.text)}”"
    if grade := finding.grade:
        floor = "" if grade.pass_at is None else f", passed from {numbers.plain(grade.pass_at)} on"
        yield f"graded {numbers.grade(grade.score, grade.pass_at)}{floor}"
        for one in grade.dimensions:
            yield f"{one.name}: {one.level} ({numbers.grade(one.score)}): {_short(one.reason)}"
    if finding.votes:
        yield vote_tally(finding.votes)
        disagree = len({vote.outcome for vote in finding.votes}) > 1
        for vote in finding.votes if disagree else ():
            yield f"{vote.outcome}, {vote.model}: {_short(vote.reason)}"


def _short(text: str) -> str:
    return sanitize.cut(text, _SHORT_BYTES, "…")


def file_of(suite: SuiteResult) -> str | None:
    """The suite's file; None of a bundled suite or another tool's results, which no repository has."""
    return None if is_bundled(suite.file) or suite.of_other_tool else suite.file


def only_judge_missing(test: TestResult) -> bool:
    """Return whether only a judge was missing to decide this test."""
    undecided = [f for trial in test.trials for f in trial.findings if f.outcome is Outcome.UNDECIDED]
    return test.outcome == "undecided" and {finding.cause for finding in undecided} == {Cause.NO_JUDGE}


def test_result(test: TestResult) -> str:
    """A test's outcome with what else is to be said of it: `failed (critical test, flaky)`."""
    findings = [finding for trial in test.trials for finding in trial.findings]
    causes = [finding.cause for finding in findings if finding.outcome is Outcome.UNDECIDED]
    marks = [mark for mark, holds in (("critical test", test.critical), ("flaky", test.flaky)) if holds]
    if causes and test.outcome == "passed":
        # As with the provider offline, where a missing judge is no fault of the test.
        became = "not judged" if set(causes) == {Cause.NO_JUDGE} else "undecided"
        marks.append(f"{numbers.count(len(causes), 'criterion', 'criteria')} {became}")
    marks += set_aside_marks(test)
    words = "not scored" if test.outcome == "passed" and test.score is None else OUTCOMES[test.outcome].words
    return f"{words} ({', '.join(marks)})" if marks else words


def trial_counts(test: TestResult) -> str:
    """The number of its trials that passed, and of those that decide nothing: `1 of 3, 2 errored`."""
    counted = sum(trial.counts for trial in test.trials)
    excluded = sum(trial.excluded for trial in test.trials)
    failed = sum(trial.counts and scores.failed(trial) for trial in test.trials)
    others = (
        (max(0, counted - _passed(test) - failed), "undecided"),
        (len(test.trials) - counted - excluded, "errored"),
        (excluded, "excluded"),
        (test.not_run, "not run"),
    )
    return ", ".join([trials_passed(test), *(f"{number} {words}" for number, words in others if number)])


def trials_passed(test: TestResult) -> str:
    """The number of all its trials that passed: `1 of 3`."""
    return f"{_passed(test)} of {len(test.trials) + test.not_run}"


def _passed(test: TestResult) -> int:
    return round((test.pass_rate or 0) * sum(trial.scored for trial in test.trials))


def passes(test: TestResult) -> str:
    """The number of scored trials that passed every evaluation: `2 of 3`."""
    return f"{_passed(test)} of {sum(trial.scored for trial in test.trials)}"


class FlakyTests(NamedTuple):
    """The tests whose trials disagree."""

    title: str
    tests: tuple[tuple[TestResult, str], ...]
    """Each with how often it passed."""


def flaky(suites: Iterable[SuiteResult]) -> FlakyTests:
    """Return the tests whose trials disagree."""
    tests = [test for suite in suites for test in suite.tests if test.flaky]
    title = f"{numbers.count(len(tests), 'flaky test')}: not all trials agree"
    return FlakyTests(title, tuple((test, f"{passes(test)} trials passed") for test in tests))


def pass_hat_k(test: TestResult) -> dict[int, float]:
    """By k how likely all of k trials pass."""
    return test.statistics.pass_hat_k if test.statistics else {}


def tests_of(results: Results, *outcomes: str) -> Iterator[tuple[SuiteResult, TestResult]]:
    """The tests with one of these outcomes, in the order of the run, without those in quarantine."""
    for suite in results.suites:
        for test in scores.deciding(suite.tests):
            if test.outcome in outcomes:
                yield suite, test


def passed_of(counts: Counts) -> str:
    """The tests that passed, of those that could: `6 of 8`."""
    return f"{counts.passed:,} of {counts.deciding:,}"


def set_aside_marks(test: TestResult) -> tuple[str, ...]:
    """The words to follow a test's outcome."""
    marks = (("in quarantine", test.quarantine), ("not played", test.taken_from))
    return tuple(mark for mark, holds in marks if holds)


def set_aside_counts(counts: Counts) -> tuple[str, ...]:
    """How many tests of a run count otherwise."""
    numbered = ((counts.quarantined, "in quarantine"), (counts.taken, "not played"))
    return tuple(f"{number:,} {words}" for number, words in numbered if number)


def set_aside_notes(results: Results) -> Iterator[str]:
    """Yield what a reader must know of these tests."""
    yield from _taken_notes(results)
    yield from _quarantine_notes(results)


def set_aside_facts(test: TestResult) -> tuple[str, ...]:
    """What a reader must know of one of these tests."""
    said = []
    if source := test.taken_from:
        said.append(f"This test was not played: its trials are of {_source(source)}.")
    if why := quarantine(test):
        said.append(f"This test is {why}.")
    return tuple(said)


def taken_from(test: TestResult) -> str | None:
    """Where the trials of a test are from; None if it was played."""
    return f"not played, taken from {_source(test.taken_from)}" if test.taken_from else None


def quarantine(test: TestResult) -> str | None:
    """Until when a test is in quarantine, and why; None for one that decides."""
    if (why := test.quarantine) is None:
        return None
    owner = f" (owner: {why.owner})" if why.owner else ""
    return f"in quarantine until {why.until}, so it decides nothing: {why.reason.rstrip('.')}{owner}"


def _taken_notes(results: Results) -> Iterator[str]:
    counted = Counter(test.taken_from for test in results.tests if test.taken_from)
    whole = numbers.count(results.counts.tests, "test")
    for source, number in counted.items():
        were, they, depend = "were", "they", "depend"
        if number == 1:
            were, they, depend = "was", "it", "depends"
        not_played = f"{number:,} of {whole} {were} not played"
        taken = f"taken from {_source(source)}"
        match source.reason:
            case "passed":
                looks = "A flaky test that is rerun until it passes looks sound."
                yield f"{not_played}: {taken}, in which {they} passed. {looks}"
            case "unchanged":
                yield f"{not_played}, since no change touches what {they} {depend} on: {taken}."


def _source(source: TakenFrom) -> str:
    commit, began = commit_name(source), moment(source.started_at)
    return f"the run of {began} (commit {commit})" if commit else f"the run of {began}"


class OfCommit(Protocol):
    """A run, as far as its commit is known."""

    @property
    def commit(self) -> str | None:
        """The commit's id."""

    @property
    def uncommitted_changes(self) -> bool:
        """True if files differed from the commit."""


def commit_name(run: OfCommit) -> str:
    """Return the commit that a run tested, shortened, such as `abc1234 with changes`; empty if unknown."""
    return f"{run.commit[:COMMIT]}{with_changes(run)}" if run.commit else ""


def with_changes(run: OfCommit) -> str:
    """Return what follows a commit's id if files differed from it; empty if they did not."""
    return " with changes" if run.uncommitted_changes else ""


def _quarantine_notes(results: Results) -> Iterator[str]:
    found = [
        (f"{suite.name} › {test.name}" if len(results.suites) > 1 else test.name, test)
        for suite in results.suites
        for test in suite.tests
        if test.quarantine
    ]
    for name, test in found[:_MOST_SET_ASIDE]:
        yield f"“{name}” ({OUTCOMES[test.outcome].words}) is {quarantine(test)}."
    if (more := len(found) - _MOST_SET_ASIDE) > 0:
        yield f"{numbers.count(more, 'more test')} {'is' if more == 1 else 'are'} in quarantine."


def lists_some_tests(results: Results) -> bool:
    """Return whether reports list only some tests: all suites are another tool's, and there are many."""
    return sum(len(suite.tests) for suite in results.suites) > MOST_TESTS and all(
        suite.of_other_tool for suite in results.suites
    )


@dataclass(frozen=True)
class ListedTests:
    """The tests that reports list: those that changed, then the worst."""

    listed: frozenset[int] | None = None
    """The identities of their results; None for all."""
    left_out: Mapping[TestOutcome, int] = field(default_factory=dict)
    """Tests that are not listed, by outcome."""
    most: int | None = None
    """Tests of any further list up to which each is shown; None for all."""

    def of(self, tests: Iterable[TestResult]) -> tuple[TestResult, ...]:
        """Those of the tests that are listed, in their order."""
        return tuple(test for test in tests if self.has(test))

    def has(self, test: TestResult) -> bool:
        """Return whether the test is listed."""
        return self.listed is None or id(test) in self.listed

    @property
    def note(self) -> str | None:
        """How many of each outcome are not listed, in a sentence; None if all are listed."""
        if self.listed is None:
            return None
        left = (
            f"{self.left_out[outcome]:,} {OUTCOMES[outcome].words}"
            for outcome in _WORST_FIRST
            if self.left_out.get(outcome)
        )
        return (
            f"{numbers.count(sum(self.left_out.values()), 'test')} not listed: {', '.join(left)}. "
            "All tests are in _results.json."
        )


def listed_tests(results: Results) -> ListedTests:
    """Return the tests of a run to list: of many at most `MOST_TESTS`."""
    if not lists_some_tests(results):
        return ListedTests()
    comparison = results.comparison
    broke = {(test.suite, test.name) for test in comparison.regressed} if comparison else set()
    fixed = {(test.suite, test.name) for test in comparison.fixed} if comparison else set()
    ranked: dict[int, list[TestResult]] = {}
    for suite in results.suites:
        for test in suite.tests:
            rank = 2 * _WORST_FIRST.index(test.outcome)
            name = (suite.name, test.name)
            if name in broke:
                rank = -1
            elif name in fixed:
                rank -= 1
            ranked.setdefault(rank, []).append(test)
    ordered = (test for rank in sorted(ranked) for test in ranked[rank])
    listed = frozenset(map(id, islice(ordered, MOST_TESTS)))
    return ListedTests(listed, Counter(test.outcome for test in ordered), MOST_TESTS)
