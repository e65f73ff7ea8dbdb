"""The verdict in words, the numbers below it, and the tests worth showing. Not yet sanitized."""

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import TestChange
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.gate.rule import Nature, wanting
from ci_evals.gate.rules import rule_of
from ci_evals.reports.story import certainty, changes, failures, gate, test_words
from ci_evals.reports.story.failures import FailedTest, News
from ci_evals.reports.story.outcome_labels import UNFINISHED, RunOutcome
from ci_evals.reports.story.phrases import capitalized, sentence
from ci_evals.scoring.comparison.compare import SUSPECT
from ci_evals.scoring.scores import deciding

_UNSCORED = {
    TestOutcome.UNDECIDED: "undecided",
    TestOutcome.ERROR: "errored",
    TestOutcome.NOT_RUN: "not run",
}
_MOST_CHECKS = 5
"""Failed checks that a sentence names."""


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
    """The score relative to the baseline's: `no change seen against main`."""
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
        return f"no change seen against {base}"
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
        flaky = sum(one.test is not None and one.test.flaky for one in news.broke)
        some = f" ({flaky} of them in some trials only)" if 0 < flaky < number else ""
        return f"{tests} broke {changes.since(results)}{some}"
    return f"{tests} {'fails' if number == 1 else 'fail'} that passed {changes.in_base(results)}"


def broke_title(results: Results) -> str:
    """The title over these tests."""
    if certainty.broke_for_sure(results):
        return f"Broke {changes.since(results)}"
    return f"Passed {changes.in_base(results)}, failed now"


def failed_checks(results: Results, news: News) -> str:
    """The failed checks in a sentence: `Failed checks: min-score; max-drop (the score fell by 26, …).`.

    The reason is left out where heading, numbers or tests that broke make it plain. Empty if the heading has
    all.
    """
    failing, told = gate.failing(results), {id(gate.run_floor(results)), id(_deciding(results, news))}
    if gate.run_outcome(results) is not RunOutcome.FAILED or all(id(check) in told for check in failing):
        return ""
    shown = []
    for check in failing:
        plain = id(check) in told or check.kind in {CheckKind.CRITICAL, CheckKind.REGRESSION}
        shown.append(gate.check_name(check) + ("" if plain else f" ({gate.failure(check, results)})"))
    noun = "check" if len(shown) == 1 else "checks"
    return f"Failed {noun}: {numbers.listed(shown, _MOST_CHECKS)}."


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
    others += test_words.set_aside_counts(counts)
    return ", ".join([f"{counts.passed:,} of {counts.deciding:,} {noun}", *others])


def _without_numbers(results: Results, tests: str) -> str:
    """The line where score and change would mislead; empty where they do not."""
    outcome = gate.run_outcome(results)
    if outcome is RunOutcome.SKIPPED:
        push = "To test this pull request, push its branch to this repository once you have read it."
        return f"{numbers.count(results.counts.tests, 'test')} did not run. {push}"
    if outcome not in UNFINISHED:
        return ""
    too_little = certainty.too_little_decided(results)
    return f"{tests}. {capitalized(too_little)}." if too_little else f"{tests}."


class Kind(Enum):
    """The kind of a group."""

    BROKE = "broke"
    UNJUDGED = "unjudged"
    WORSE = "worse"
    FAILED = "failed"
    FAILED_BEFORE = "failed-before"


@dataclass(frozen=True)
class FailedGroup:
    """Tests that fail."""

    kind: Kind
    title: str
    tests: tuple[FailedTest, ...]


@dataclass(frozen=True)
class ChangedGroup:
    """Tests that changed otherwise."""

    name: str
    title: str
    tests: tuple[TestChange, ...]
    good: bool


def failed_groups(results: Results, news: News) -> tuple[FailedGroup, ...]:
    """Return the groups of tests that fail, without empty ones.

    Without a verdict the causes of errors name the tests that were not judged.
    """
    base = changes.in_base(results)
    compared = results.comparison is not None and results.comparison.delta is not None
    unjudged = () if gate.run_outcome(results) in UNFINISHED else news.unjudged
    new = "New or changed tests that fail" if compared else "Failed"
    groups = (
        FailedGroup(Kind.BROKE, broke_title(results), news.broke),
        FailedGroup(Kind.UNJUDGED, f"Passed {base}, not judged now", unjudged),
        FailedGroup(Kind.WORSE, f"Failed {base} too, and worse now", news.worse),
        FailedGroup(Kind.FAILED, new, news.failed),
        FailedGroup(Kind.FAILED_BEFORE, f"Failed {base} too", news.failed_before),
    )
    return tuple(group for group in groups if group.tests)


def changed_groups(results: Results, news: News) -> tuple[ChangedGroup, ...]:
    """Return the groups of tests that were fixed or dropped, without empty ones."""
    fixed = f"Fixed {changes.since(results)}"
    groups = (
        ChangedGroup("fixed", fixed, news.fixed, good=True),
        ChangedGroup("dropped", f"Dropped by {SUSPECT} points or more", news.dropped, good=False),
    )
    return tuple(group for group in groups if group.tests)
