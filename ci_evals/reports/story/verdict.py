"""The verdict in words, the numbers below it, notes on both, and what to do next. Not yet sanitized."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ci_evals.domain import numbers
from ci_evals.domain.providers import OPENAI
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results, Resumed, RunInfo
from ci_evals.domain.results.suite import ScoreSummary, SuiteResult, TestOutcome
from ci_evals.domain.verdict import Cause, Outcome
from ci_evals.gate.rule import Nature, wanting
from ci_evals.gate.rules import rule_of
from ci_evals.reports.story import (
    advice,
    certainty,
    changes,
    failures,
    gate,
    phrases,
    reruns,
    set_aside_tests,
)
from ci_evals.reports.story.advice import (
    FIX_FAILURES,
    MERGE,
    NO_JUDGE,
    REPLAYED,
    REPORT_ONLY,
    NextStep,
    PartKind,
    StepPart,
)
from ci_evals.reports.story.failures import FailedTest, News
from ci_evals.reports.story.outcome_labels import UNFINISHED, RunOutcome
from ci_evals.reports.story.phrases import capitalized, sentence
from ci_evals.scoring import null_score
from ci_evals.scoring.scores import deciding

_UNSCORED = {
    TestOutcome.UNDECIDED: "undecided",
    TestOutcome.ERROR: "errored",
    TestOutcome.NOT_RUN: "not run",
}
_MOST_OFFICIAL = 10
"""Suites whose scores are shown."""
_SAME = 0.05
"""Points: what differs by less reads the same."""
_ENOUGH_TRIALS = 3
"""Trials of a test from which on a rerun shows nothing new if none passed."""
_SAFE = re.compile(r"(?!.*(?:::|##|  ))[\w./](?:[\w ./:;'()#@+=,?&-]*[\w./)])?")
"""Texts that a shell takes between double quotes as they are, and that no report has to change."""
_SAME_AGENT = {
    "adapter": "--adapter",
    "agentId": "--agent-id",
    "baseUrl": "--base-url",
    "start": "--start",
    "provider": "--provider",
    "userModel": "--user-model",
    "judgeModel": "--judge-model",
}
"""Options by their key in the run's config, without which another agent or judge would be asked."""
_OTHER_AGENT = ("adapterOptions", "arms", "against", "replay", "judgePanel", "embeddingModel", "waitFor")
"""Keys of options that do the same, and are more than a word."""


class Trust(Enum):
    """The origin of results, where it limits what their verdict is worth."""

    OWN = ""
    FORK = "reported by the fork, unverified"
    OTHER_COMMIT = "results of another commit"
    CONTRADICTORY = "results contradict their own checks"


def changed(results: Results, news: News) -> bool:
    """Return whether a test or the score changed since the baseline, or that is not known."""
    comparison = results.comparison
    if comparison is None or comparison.base is None or comparison.head is None:
        return True
    lists = (comparison.new, comparison.removed, comparison.changed)
    less = results.weakened is not None and bool(results.weakened.items)
    if failures.became(results, news) or any(lists) or less:
        return True
    return numbers.difference(comparison.base, comparison.head) != 0


def not_compared(results: Results) -> str | None:
    """The reason why there is no change to show, if a baseline was looked for and nothing else says it."""
    comparison = results.comparison
    if results.score is None:
        return None
    if comparison is None:
        note = None if gate.not_made(results) else results.run.baseline_note
        return sentence(capitalized(note)) if note else None
    why = changes.why_not(comparison).rstrip(".")
    if comparison.delta is not None or any(why in warning for warning in gate.warnings(results)):
        return None
    return f"Not compared with {changes.base_name(results)}: {why}."


def verdict(results: Results, news: News) -> str:
    """The verdict in words, with what changed: `Evals failed: 2 tests broke in this PR`.

    It starts with `Evals passed`, `Evals failed`, `Evals skipped` or `No verdict`. `highlights.run_outcome`
    has the sign.
    """
    beginning, why = _verdict(results, news)
    return f"{beginning}: {why}" if why else beginning


def of_origin(verdict: str, trust: Trust) -> str:
    """The verdict with the origin of the results, if that limits what it is worth."""
    if trust is Trust.CONTRADICTORY:
        return f"No verdict: the {trust.value}"
    if trust is Trust.OWN:
        return verdict
    beginning, colon, why = verdict.partition(":")
    return f"{beginning} ({trust.value}){colon}{why}"


def _verdict(results: Results, news: News) -> tuple[str, str]:
    shard = f" in shard {results.run.shard.index} of {results.run.shard.of}" if results.run.shard else ""
    match gate.run_outcome(results):
        case RunOutcome.PASSED | RunOutcome.UNCHECKED:
            return f"Evals passed{shard}", _passed(results, news)
        case RunOutcome.FAILED:
            return f"Evals failed{shard}", _failed(results, news)
        case RunOutcome.NO_VERDICT:
            return f"No verdict{shard}", next(iter(results.gate.reasons), "the run did not finish")
        case RunOutcome.INTERRUPTED:
            return f"No verdict{shard}", "the run was interrupted"
        case RunOutcome.SKIPPED:
            return "Evals skipped", (results.run.stopped_because or "").strip().rstrip(".")


def _passed(results: Results, news: News) -> str:
    parts = (
        _score_of_100(results),
        f"but {broke(results, news)}" if news.broke else _relative(results),
    )
    return ", ".join(part for part in parts if part)


def _score_of_100(results: Results) -> str:
    if certainty.too_little_decided(results):
        return "strict checks only, without a judge" if results.run.offline else "most criteria undecided"
    return "nothing was scored" if results.score is None else f"{numbers.points(results.score)} / 100"


def _relative(results: Results) -> str:
    """The score relative to the baseline's: `same as main`."""
    comparison = results.comparison
    if certainty.too_little_decided(results):
        return ""
    if comparison is None:
        return "no baseline" if results.run.baseline_note or gate.not_made(results) else ""
    base = changes.base_name(results)
    if comparison.base is None or comparison.head is None:
        return f"not comparable with {base}"
    difference = numbers.difference(comparison.base, comparison.head)
    if difference == 0:
        return f"same as {base}"
    points = abs(numbers.points_between(comparison.base, comparison.head))
    amount = numbers.count(points, "point") if points else "less than a point"
    return f"{amount} {'above' if difference > 0 else 'below'} {base}"


def _failed(results: Results, news: News) -> str:
    checks, deciding = gate.failing(results), _deciding(results, news)
    if not checks:
        return ""
    if deciding is None:
        return broke(results, news)
    words = (
        _below(deciding, results) if deciding is gate.run_floor(results) else gate.failure(deciding, results)
    )
    others = [check for check in checks if check is not deciding]
    critical = sum(check.kind is CheckKind.CRITICAL for check in others)
    counts = (
        numbers.count(critical, "critical test") if critical else "",
        numbers.count(len(others) - critical, "more check") if len(others) > critical else "",
    )
    return words + (f", and {' and '.join(filter(None, counts))} failed" if others else "")


def broke(results: Results, news: News) -> str:
    """The number of tests that passed in the baseline and fail now: `2 tests broke in this PR`.

    Where chance may have it, `2 tests fail that passed on main`.
    """
    number = len(news.broke)
    tests = numbers.count(number, "test")
    if certainty.broke_for_sure(results):
        return f"{tests} broke {changes.since(results)}"
    return f"{tests} {'fails' if number == 1 else 'fail'} that passed {changes.in_base(results)}"


def broke_title(results: Results) -> str:
    """The title over these tests."""
    if certainty.broke_for_sure(results):
        return f"Broke {changes.since(results)}"
    return f"Passed {changes.in_base(results)}, failed now"


def other_failures(results: Results, news: News) -> tuple[str, ...]:
    """The failed checks in clauses, but for those that heading, numbers or tests that broke make plain."""
    plain = {CheckKind.CRITICAL, CheckKind.REGRESSION}
    failing = [check for check in gate.failing(results) if check.kind not in plain]
    told = {id(gate.run_floor(results)), id(_deciding(results, news))}
    return tuple(gate.failure(check, results) for check in failing if id(check) not in told)


def _deciding(results: Results, news: News) -> GateCheck | None:
    """The failed check that the heading names; None if it names tests that broke."""
    checks = gate.failing(results)
    if news.broke and any(rule_of(check).nature is not Nature.LIMIT for check in checks):
        return None
    floor = gate.run_floor(results)
    return floor if floor in checks else next(iter(checks), None)


def _below(floor: GateCheck, results: Results) -> str:
    decisive = floor.seen_if_undecided_failed if wanting(floor) else results.score
    undecided = " if undecided counts as failed" if wanting(floor) else ""
    score, required = numbers.points(decisive), numbers.plain(floor.required)
    return f"{score} / 100{undecided}, {required} required"


@dataclass(frozen=True)
class Numbers:
    """The line of numbers, such as `78 / 100 (85 required), main has 94 (−16). 6 of 8 tests pass.`.

    It leaves out what the heading has.
    """

    lead: str
    """The score at its start; empty if the heading has it."""
    rest: str
    """The line behind its lead."""
    base_name: str
    """`main`, `the baseline`."""
    beside_verdict: str
    """Score and change for a title with nothing but the verdict: `78 / 100, −16 against main`."""

    @property
    def text(self) -> str:
        """The whole line."""
        return f"{self.lead}{self.rest}"


def in_numbers(results: Results, news: News) -> Numbers:
    """The numbers of a run."""
    comparison, floor, outcome = results.comparison, gate.run_floor(results), gate.run_outcome(results)
    passed = outcome in {RunOutcome.PASSED, RunOutcome.UNCHECKED}
    too_little = certainty.too_little_decided(results)
    score, tests = _shown_score(results), _tests_that_pass(results)
    is_floor_missed = outcome is RunOutcome.FAILED and floor and _deciding(results, news) is floor
    if is_floor_missed or (passed and not too_little):  # the heading has it
        score = ""
    base_name, change = changes.base_name(results), ""
    compared = comparison if comparison and comparison.delta is not None and not too_little else None
    if compared:
        change = numbers.points_changed(compared.base, compared.head)
    beside = ", ".join(filter(None, [score, f"{change} against {base_name}" if change else ""]))
    if only := _without_numbers(results, tests):
        return Numbers("", only, base_name, beside)
    remarks = []
    if floor and floor.required and not passed:
        remarks.append(f"{numbers.plain(floor.required)} required")
    if floor and wanting(floor) and not too_little:
        decisive = numbers.points(floor.seen_if_undecided_failed)
        remarks.append(f"{decisive} if undecided counts as failed")
    parts = [f"{score} ({'; '.join(remarks)})" if score and remarks else score]
    if compared:
        base = f"{base_name} has {numbers.points(compared.base)} ({change})"
        if part := changes.compared_part(results, compared):
            parts.append(f"compared on {part}: {numbers.points(compared.head)}, {base}")
        elif not passed or news.broke:
            parts.append(base)
    first = capitalized(", ".join(filter(None, parts)))
    line = f"{first}. {tests}." if first else f"{tests}."
    return Numbers(score, line.removeprefix(score), base_name, beside)


def _shown_score(results: Results) -> str:
    """`78 / 100`, or why there is none; empty if nothing was scored."""
    if too_little := certainty.too_little_decided(results):
        return capitalized(too_little)
    return "" if results.score is None else _score_of_100(results)


def _tests_that_pass(results: Results) -> str:
    """`6 of 8 tests pass`, with the number of those that were not scored."""
    counts = results.counts
    noun = "test passes" if counts.passed == counts.deciding == 1 else "tests pass"
    by_outcome = Counter(test.outcome for test in deciding(results.tests))
    others = [f"{by_outcome[name]:,} {words}" for name, words in _UNSCORED.items() if by_outcome[name]]
    others += set_aside_tests.counts(counts)
    return ", ".join([f"{counts.passed:,} of {counts.deciding:,} {noun}", *others])


def _without_numbers(results: Results, tests: str) -> str:
    """The line where score and change would mislead; empty where they do not."""
    outcome, score = gate.run_outcome(results), _shown_score(results)
    if outcome is RunOutcome.SKIPPED:
        push = "To test this pull request, push its branch to this repository once you have read it."
        return f"{numbers.count(results.counts.tests, 'test')} did not run. {push}"
    if outcome not in UNFINISHED:
        return ""
    if not score or certainty.too_little_decided(results):
        return f"{tests}. {score}.".removesuffix(" .")
    return f"{tests}. The part that was judged scores {score}."


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
    if missing := without_judge(results, results.suites):
        out.append(no_judge(results, missing))
    return (
        *out,
        *reruns.notes(results),
        *set_aside_tests.notes(results),
        *official_scores(results),
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


def paid(results: Results) -> bool:
    """Return whether there is a cost to show: it is known, and a model was asked."""
    return results.usage.cost_usd is not None and results.usage.calls > 0


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


def official_scores(results: Results) -> Iterator[str]:
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


def what_to_do(results: Results, news: News) -> NextStep:
    """The next step without a verdict, after a failed one, or where tests broke; empty if none is known."""
    return NextStep(tuple(_next_step(results, news)))


def _next_step(results: Results, news: News) -> Iterator[StepPart]:
    outcome = gate.run_outcome(results)
    if outcome in UNFINISHED:
        yield from _without_verdict(results, outcome)
    elif outcome is RunOutcome.FAILED:
        yield from _after_failure(results, news)
        yield from advice.exit_code(results)
    elif outcome is RunOutcome.PASSED and news.broke:
        yield from _after_failure(results, news)


def _without_verdict(results: Results, outcome: RunOutcome) -> Iterator[StepPart]:
    if outcome is RunOutcome.INTERRUPTED:
        yield StepPart("Rerun to get a verdict.")
        yield from advice.build_fails(results)
        return
    at_fault = failures.at_fault(results.suites)
    if at_fault:
        yield StepPart(f"Look first at {at_fault}. Fix that and rerun.")
    elif without_judge(results, results.suites):
        yield StepPart(NO_JUDGE)
    else:
        yield StepPart("Fix the cause and rerun.")
    if failures.errors_by_cause(results.suites):
        yield from advice.read_errors()
    if certainty.too_little_decided(results) or results.score is None:
        yield from _evidence(results)
    limit = next((check for check in gate.failing(results) if check.kind is CheckKind.MAX_ERRORS), None)
    if limit and limit.seen is not None:
        most = numbers.count(int(limit.required or 0), "errored or undecided trial")
        was = "was" if limit.seen == 1 else "were"
        yield StepPart(f"max-errors allows {most}; there {was} {int(limit.seen):,}.")
    yield from advice.build_fails(results)


def _evidence(results: Results) -> Iterator[StepPart]:
    """What would give the evidence that undecided criteria lack."""
    causes = {
        finding.cause
        for test in results.tests
        for trial in test.trials
        if trial.complete
        for finding in trial.findings
        if finding.outcome is Outcome.UNDECIDED and finding.cause is not None
    }
    if text := advice.evidence_for(causes):
        yield StepPart(text)


def _after_failure(results: Results, news: News) -> Iterator[StepPart]:
    """What to do about failed tests. Another tool's are not played here."""
    floor, failing = gate.run_floor(results), gate.failing(results)
    if any(suite.of_other_tool for suite in results.suites):
        if news.to_look_at:
            yield from advice.read_failures()
            yield StepPart(FIX_FAILURES)
        return
    of_rules = [rule_of(check).advice for check in failing]
    if of_rules and all(of_rules):
        yield StepPart(of_rules[0])
        return
    if floor in failing and certainty.too_little_decided(results):
        evidence = tuple(_evidence(results))
        if evidence:
            yield from evidence
            return
    if news.to_look_at:
        yield from advice.read_failures()
        yield from _about_failures(results, news)
    elif news.failed_before and floor in failing:
        yield from advice.other_floor()


def _about_failures(results: Results, news: News) -> Iterator[StepPart]:
    comparison = results.comparison
    proven = comparison is not None and certainty.proven(comparison)
    if proven or all(map(_always_failed, news.to_look_at)):
        yield StepPart(FIX_FAILURES)
        return
    if results.run.origin and results.run.origin.how == "replay":
        yield StepPart(REPLAYED)
        return
    where = " on your machine" if results.run.git.pull_request is not None else ""
    how = ", with the other options of this run" if _needs_more_options(results) else ""
    yield StepPart(f"To see whether a test fails again, repeat it{where}{how}:")
    yield StepPart(rerun_command(results, news), PartKind.COMMAND)
    yield StepPart(f". If any trial fails, fix it.{_if_all_pass(results)}")


def _if_all_pass(results: Results) -> str:
    if not gate.failing(results):
        return ""
    if gate.run_floor(results) in gate.failing(results) and certainty.fails_mostly(results):
        return (
            " If all pass, note that a rerun would probably fail again, because the score is too close to "
            "min-score."
        )
    return " If all pass, rerun this check."


def rerun_command(results: Results, news: News) -> str:
    """The command that repeats the first test that failed, which shows how often it does.

    Names that a shell would read otherwise, or that reports would change, are left for the reader to fill in.
    """
    first = next(iter(news.to_look_at), None)
    files = [suite.file for suite in results.suites if first and suite.name == first.suite]
    file = files[0] if len(files) == 1 and _SAFE.fullmatch(files[0]) and " " not in files[0] else "SUITE"
    name = first.name if first and _SAFE.fullmatch(first.name) else None
    options = [
        f"{option}={_quoted(value)}" for option, value in _same_agent(results) if _SAFE.fullmatch(value)
    ]
    return " ".join(
        ["ci-evals run", file, f"--test={_quoted(name) if name else 'NAME'}", *options, "--loops=10"]
    )


def _same_agent(results: Results) -> Iterator[tuple[str, str]]:
    for key, option in _SAME_AGENT.items():
        value = results.run.config.get(key)
        if isinstance(value, str) and value and value != OPENAI.name:
            yield option, value


def _needs_more_options(results: Results) -> bool:
    """True if the command of `rerun_command` lacks options that say which agent or judge is asked."""
    config = results.run.config
    unsafe = any(not _SAFE.fullmatch(value) for _, value in _same_agent(results))
    return unsafe or any(map(config.get, _OTHER_AGENT))


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[\w./:@+=,-]+", text) else f'"{text}"'


def _always_failed(failed: FailedTest) -> bool:
    """True if so many trials failed, and none passed, that a rerun would show nothing new."""
    test = failed.test
    return test is not None and test.pass_rate == 0 and len(test.trials) >= _ENOUGH_TRIALS
