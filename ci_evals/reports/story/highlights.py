"""The facts that a reader looks for first: the verdict in words, the notes on it, and the tests.

Facts only, in plain words and not yet sanitized; each report puts them into its own form.
"""

from collections.abc import Iterable, Iterator

from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.gate import CheckKind, CheckOdds, Odds
from ci_evals.domain.results.run import Results, Resumed, RunInfo
from ci_evals.domain.results.suite import SuiteResult, TestResult
from ci_evals.domain.suite import is_bundled
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.gate.odds import WORTH_TELLING
from ci_evals.reports.story import advice, gate, official, set_aside
from ci_evals.reports.story.comparison import change
from ci_evals.reports.story.labels import OUTCOMES, RunOutcome
from ci_evals.scoring import scores

_MOSTLY = 2 / 3
"""The part of all failures from which on one check is named for them."""


def run_outcome(results: Results) -> RunOutcome:
    """The verdict on the run."""
    if results.run.status == "skipped":
        return RunOutcome.SKIPPED
    match results.gate.exit_code, results.gate.passed:
        case Exit.INTERRUPTED, _:
            return RunOutcome.INTERRUPTED
        case Exit.INVALID | Exit.BUG, _:
            return RunOutcome.NO_VERDICT
        case _, True:
            return RunOutcome.UNCHECKED if gate.not_made(results) else RunOutcome.PASSED
        case _:
            return RunOutcome.FAILED


def origin(run: RunInfo) -> str | None:
    """The origin of conversations that were held earlier, in a sentence; None if they were not."""
    if (earlier := run.origin) is None:
        return _resumed(run.resumed) if run.resumed else None
    at = change.moment(earlier.started_at)
    match earlier.how:
        case "replay":
            return f"Replayed from a recording of {at}: no agent and no model was called."
        case "rejudge":
            return f"Judged again: the conversations are from the run of {at}; no agent was called."


def _resumed(part: Resumed) -> str:
    """The part of the run that came from its journal."""
    trials = "1 trial" if part.trials == 1 else f"{part.trials} trials"
    when = f", the last written {change.moment(part.written_at)}" if part.written_at else ""
    where = f", begun in attempt {part.attempt}" if part.attempt else ""
    return f"Resumed: {trials} came from the journal of this run{where}{when}."


def only_reported(results: Results) -> bool:
    """Return whether the gate failed without failing the run, as the option `no_gate` asks."""
    return run_outcome(results) is RunOutcome.FAILED and results.gate.exit_code == Exit.PASSED


def file_of(suite: SuiteResult) -> str | None:
    """The suite's file; None of a bundled suite or another tool's results, which no repository has."""
    return None if is_bundled(suite.file) or suite.of_other_tool else suite.file


def notes(results: Results) -> tuple[str, ...]:
    """Notes that a reader needs before the numbers: sentences, the gravest first.

    Why a run cannot be trusted is not among them: that is told with the verdict.
    """
    out = []
    if part := results.run.shard:
        shard = f"This is shard {part.index} of {part.of}"
        out.append(f"{shard}. {advice.MERGE}")
    if only_reported(results):
        out.append(advice.REPORT_ONLY)
    if missing := without_judge(results, results.suites):
        out.append(no_judge(results, missing))
    return (*out, *set_aside.sentences(results), *official.sentences(results), *results.run.warnings)


def paid(results: Results) -> bool:
    """Return whether there is a cost to show: it is known, and a model was asked."""
    return results.usage.cost_usd is not None and results.usage.calls > 0


def odds_sentence(odds: Odds) -> str:
    """The odds that the same agent fails the gate in another run, and the floor that it would pass."""
    failing = sorted((check for check in odds.checks if check.share), key=lambda check: -check.share)
    if not failing or odds.share < 0.01:
        return "The same agent, run again, would fail this gate in fewer than 1 % of runs."
    first, *others = failing
    if not others:
        which = first.name
    elif first.share > _MOSTLY * odds.share:
        which = f"mostly {first.name}"
    else:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        which = f"{first.name}, {others[0].name}{more}"
    about = "" if odds.share > 0.99 else "about "
    share = f"{about}{numbers.odds(odds.share)}"
    sentence = f"The same agent, run again, would fail this gate in {share} of runs ({which})"
    if not _is_run_floor(first) or first.share <= WORTH_TELLING or not odds.floor:
        return f"{sentence}."
    return f"{sentence}. It would score below {numbers.plain(odds.floor)} in fewer than 5 % of runs."


def _is_run_floor(check: CheckOdds) -> bool:
    return check.kind is CheckKind.MIN_SCORE and check.suite is None and check.test is None


def without_judge(results: Results, suites: Iterable[SuiteResult]) -> int:
    """The number of verdicts of these suites that are undecided because no judge was configured.

    Where a judge was wanted (not with the provider offline), those of trials that failed are left out.
    """
    offline = results.run.offline
    return sum(
        finding.cause is Cause.NO_JUDGE and (offline or trial.complete)
        for suite in suites
        for test in suite.tests
        for trial in test.trials
        for finding in trial.findings
    )


def no_judge(results: Results, missing: int) -> str:
    """Return what became of the verdicts for which no judge was configured."""
    criteria = numbers.count(missing, "criterion is", "criteria are")
    became = "left out of the score" if results.run.offline else "undecided"
    return f"No judge was configured: {criteria} {became}."


def only_judge_missing(test: TestResult) -> bool:
    """Return whether only a judge was missing to decide this test."""
    undecided = [f for trial in test.trials for f in trial.findings if f.outcome is Outcome.UNDECIDED]
    return test.outcome == "undecided" and {finding.cause for finding in undecided} == {Cause.NO_JUDGE}


def result(test: TestResult) -> str:
    """A test's outcome with what else is to be said of it: `failed (critical test, flaky)`."""
    findings = [finding for trial in test.trials for finding in trial.findings]
    causes = [finding.cause for finding in findings if finding.outcome is Outcome.UNDECIDED]
    marks = [mark for mark, holds in (("critical test", test.critical), ("flaky", test.flaky)) if holds]
    if causes and test.outcome == "passed":
        # As with the provider offline, where a missing judge is no fault of the test.
        became = "not judged" if set(causes) == {Cause.NO_JUDGE} else "undecided"
        marks.append(f"{numbers.count(len(causes), 'criterion', 'criteria')} {became}")
    marks += set_aside.marks(test)
    words = "not scored" if test.outcome == "passed" and test.score is None else OUTCOMES[test.outcome].words
    return f"{words} ({', '.join(marks)})" if marks else words


def trials(test: TestResult) -> str:
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


def flaky(suites: Iterable[SuiteResult]) -> tuple[str, list[tuple[TestResult, str]]]:
    """A title for the tests whose trials disagree, and each of them with how often it passed."""
    tests = [test for suite in suites for test in suite.tests if test.flaky]
    title = f"{numbers.count(len(tests), 'flaky test')}: not all trials agree"
    return title, [(test, f"{passes(test)} trials passed") for test in tests]


def pass_hat_k(test: TestResult) -> dict[int, float]:
    """By k how likely all of k trials pass."""
    return test.statistics.pass_hat_k if test.statistics else {}


def tests_of(results: Results, *outcomes: str) -> Iterator[tuple[SuiteResult, TestResult]]:
    """The tests with one of these outcomes, in the order of the run, without those in quarantine."""
    for suite in results.suites:
        for test in scores.deciding(suite.tests):
            if test.outcome in outcomes:
                yield suite, test
