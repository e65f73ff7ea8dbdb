"""Notes that a reader needs before the numbers: origin, reruns, missing judge, floors. Not yet sanitized."""

from collections.abc import Iterable, Iterator

from ci_evals.domain import numbers
from ci_evals.domain.results.run import PooledRun, Results, Resumed, RunInfo, UnpooledRun
from ci_evals.domain.results.suite import ScoreSummary, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.suite import planned_turns, unsent_lines
from ci_evals.domain.transcript import EndState
from ci_evals.domain.verdict import Cause
from ci_evals.reports.story import gate, phrases, test_words
from ci_evals.reports.story.advice import MERGE, REPORT_ONLY
from ci_evals.reports.story.outcome_labels import RunOutcome
from ci_evals.reports.story.phrases import capitalized, sentence
from ci_evals.scoring import null_score
from ci_evals.scoring.scores import deciding

_MOST_OFFICIAL = 10
"""Suites whose scores are shown."""
_SAME = 0.05
"""Points: what differs by less reads the same."""
_NAMED_ATTEMPTS = 3
"""Attempts that are not pooled and that reports name; of more their number is given."""


def origin(run: RunInfo) -> str | None:
    """The origin of conversations that were held earlier, in a sentence; None if they were not."""
    if (earlier := run.origin) is None:
        return _resumed(run.resumed) if run.resumed else None
    at = phrases.moment(earlier.started_at)
    match earlier.how:
        case "replay":
            return f"Replayed from a recording of {at}: no agent and no model was called."
        case "rejudge":
            return f"Judged again: the conversations are from the run of {at}; no agent was called."


def _resumed(part: Resumed) -> str:
    """The part of the run that came from its journal."""
    trials = "1 trial" if part.trials == 1 else f"{part.trials} trials"
    when = f", the last written {phrases.moment(part.written_at)}" if part.written_at else ""
    where = f", begun in attempt {part.attempt}" if part.attempt else ""
    return f"Resumed: {trials} came from the journal of this run{where}{when}."


def notes(results: Results) -> tuple[str, ...]:
    """Notes that a reader needs before the numbers: sentences, the gravest first.

    Why a run cannot be trusted is not among them: that is told with the verdict.
    """
    out = []
    if part := results.run.shard:
        shard = f"This is shard {part.index} of {part.of}"
        out.append(f"{shard}. {MERGE}")
    if gate.only_reported(results):
        out.append(REPORT_ONLY)
    out += _of_hand_overs(results)
    if missing := without_judge(results):
        out.append(_no_judge(results, missing))
    return (
        *out,
        *_of_reruns(results),
        *test_words.set_aside_notes(results),
        *_official_scores(results),
        *results.run.warnings,
        *_floors_that_guard_nothing(results),
    )


def _floors_that_guard_nothing(results: Results) -> Iterator[str]:
    """Yield a sentence for each floor that an agent reaches that does nothing."""
    floor = gate.run_floor(results)
    if floor is None or gate.only_reported(results):
        return
    found = [*null_score.reached_floor("min-score", floor.required or 0, results.run.null_score)]
    for suite in results.suites:
        score = null_score.mean(test.null_score for test in deciding(suite.tests))
        name = f"minScore of the suite “{suite.name}”"
        found += null_score.reached_floor(name, suite.min_score or 0, score)
    yield from map(sentence, found)


def _of_hand_overs(results: Results) -> Iterator[str]:
    """Yield in how many tests a hand-over that they allow kept lines from being sent, if in any."""
    tests = deciding(results.tests)
    kept = sum(any(_lacks_lines(test, trial) for trial in test.trials) for test in tests)
    if kept:
        yield (
            f"In {kept:,} of {numbers.count(len(tests), 'test')} the agent handed over to a person before "
            "lines that were then never sent, as these tests allow (mayEscalate)."
        )


def _lacks_lines(test: TestResult, trial: TrialResult) -> bool:
    """Return whether an allowed hand-over ended the trial before a fixed line of its test."""
    ended = test.may_escalate and trial.status is EndState.ESCALATED
    return ended and bool(unsent_lines(planned_turns(test.turns), len(trial.turns)))


def without_judge(results: Results) -> int:
    """The number of verdicts that are undecided because no judge was configured.

    Where a judge was wanted (not with the provider offline), those of trials that failed are left out.
    """
    offline = results.run.offline
    return sum(
        finding.cause is Cause.NO_JUDGE and (offline or trial.complete)
        for test in results.tests
        for trial in test.trials
        for finding in trial.findings
    )


def _no_judge(results: Results, missing: int) -> str:
    """Return what became of the verdicts for which no judge was configured."""
    criteria = numbers.count(missing, "criterion is", "criteria are")
    became = "left out of the score" if results.run.offline else "undecided"
    return f"No judge was configured: {criteria} {became}."


def _official_scores(results: Results) -> Iterator[str]:
    """Yield the official score of the run or of each suite, and why ours differs, if it does."""
    if results.official:
        yield _official_score("", results)
        return
    own = [suite for suite in results.suites if suite.official]
    for suite in own[:_MOST_OFFICIAL]:
        yield _official_score(f" of {suite.name}", suite)
    if len(own) > _MOST_OFFICIAL:
        yield f"{len(own) - _MOST_OFFICIAL} more suites have official scores, in the JSON."


def _official_score(of: str, scored: ScoreSummary) -> str:
    official = scored.official
    if official is None:
        return ""
    if official.value is None:
        return f"No official score{of}: the tool computes no {official.name} of these results."
    value = f"{numbers.score(100 * official.value)} %"
    counted = f" of {official.of:,}" if official.of else ""  # some tools do not state it
    power = "^" if official.name.startswith("pass^") else "@"  # all of k trials, or one of them
    also = ", ".join(
        f"pass{power}{k} {numbers.score(100 * share)} %" for k, share in (official.pass_at_k or {}).items()
    )
    text = f"Official score{of}: {official.name} {value}{counted}" + (f" ({also})." if also else ".")
    differs = scored.score is None or abs(100 * official.value - scored.score) >= _SAME
    if not differs:
        return text
    return f"{text} Ours is {numbers.score(scored.score)}." + (f" {official.rule}" if official.rule else "")


def rerun(results: Results) -> str:
    """`Rerun 2 of this commit: 36 trials in all`; empty if no earlier attempt is pooled."""
    reruns = len(results.run.pooled)
    if not reruns:
        return ""
    return f"Rerun {reruns} of this commit: {numbers.count(results.counts.trials, 'trial')} in all"


def _of_reruns(results: Results) -> Iterator[str]:
    """Yield what earlier attempts came to, what all trials together show, and which do not count."""
    if pooled := results.run.pooled:
        beginning = f"{rerun(results)} ({results.counts.played_trials:,} of them new)."
        parts = [beginning, _first(pooled[0]), _together(results)]
        yield " ".join(filter(None, parts))
    reruns = results.run.reruns
    yield from not_pooled(reruns.not_pooled if reruns else ())


def not_pooled(runs: Iterable[UnpooledRun]) -> Iterator[str]:
    """Yield why attempts do not count."""
    everyone = tuple(runs)
    for run in everyone[:_NAMED_ATTEMPTS]:
        problem = "cannot be read" if run.unread else "is not pooled"
        yield sentence(f"{capitalized(run.source)} {problem}: {run.why}")
    more = len(everyone) - _NAMED_ATTEMPTS
    if more > 0:
        yield f"Not counted: {numbers.count(more, 'more earlier attempt')} at this commit."


def _first(run: PooledRun) -> str:
    score = "" if run.score is None else f", score {numbers.score(run.score)}"
    match run.passed:
        case True:
            return f"The first attempt passed{score}."
        case False:
            return f"The first attempt failed{score}."
        case None:
            return f"The first attempt had no verdict{score}."


def _together(results: Results) -> str:
    before = [run.passed for run in results.run.pooled]
    match gate.run_outcome(results):
        case RunOutcome.PASSED | RunOutcome.UNCHECKED:
            if False in before:
                return "All trials together pass: what failed before was chance."
            return "All trials together pass."
        case RunOutcome.FAILED:
            if False in before:
                return "All trials together fail: it was not chance."
            return "All trials together fail."
        case _:
            return ""
