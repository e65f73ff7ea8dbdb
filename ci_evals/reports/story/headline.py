"""The news of a run, in the order in which people want it: verdict, numbers, what changed, how sure it is.

The one place that derives them, for comment, console and page. All of it is plain text and data, not yet
sanitized. `verdict` is the heading, `Numbers.text` the line below it, `News` the tests to show, `certainty`
the sentence on how sure the result is, and `odds` a sentence for those who ask further.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain

from ci_evals.domain import numbers
from ci_evals.domain.results.comparison import Comparison, TestChange
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.gate.rule import Nature, wanting
from ci_evals.gate.rules import rule_of
from ci_evals.reports.story import failed_tests, gate, highlights, set_aside
from ci_evals.reports.story.comparison import arms, change, significance
from ci_evals.reports.story.failed_tests import FailedTest
from ci_evals.reports.story.judging.parts import capitalized, sentence
from ci_evals.reports.story.labels import RunOutcome
from ci_evals.scoring.scores import deciding

_UNSCORED = {
    TestOutcome.UNDECIDED: "undecided",
    TestOutcome.ERROR: "errored",
    TestOutcome.NOT_RUN: "not run",
}
_NAMED = 3
"""Tests that a sentence names."""
_ODDS_TESTS, _ODDS_TRIALS = 10, 3
"""The size of a run from which on the odds of its gate mean something."""


class Trust(Enum):
    """The origin of results, where it limits what their verdict is worth."""

    OWN = ""
    FORK = "reported by the fork, unverified"
    OTHER_COMMIT = "results of another commit"
    CONTRADICTORY = "results contradict their own checks"


def trust_of(results: Results, commit: str | None = None, *, foreign: bool = False) -> Trust:
    """Return how far these results can be believed.

    Args:
        results: What may be somebody else's file.
        commit: The commit that they should be of, as far as the reader knows by himself.
        foreign: Whether a fork's own workflow run wrote them.
    """
    claimed = results.run.git.head_commit or results.run.git.commit
    if results.gate.passed and gate.failing(results):
        return Trust.CONTRADICTORY
    if commit and claimed and claimed != commit:
        return Trust.OTHER_COMMIT
    return Trust.FORK if foreign else Trust.OWN


class Became(Enum):
    """The change of a test's outcome since the baseline."""

    BROKE = "broke"
    """It passed in the baseline, and fails now."""
    UNJUDGED = "not judged"
    """It passed in the baseline, and nothing failed now; a trial broke off or could not be judged."""
    FIXED = "fixed"
    """It failed in the baseline, and passes now."""
    DROPPED = "dropped"
    """Its score fell far, without such a change of its outcome."""


def became(results: Results, news: "News") -> dict[tuple[str, str], Became]:
    """The tests whose outcome changed since the baseline, by suite and name."""
    comparison = results.comparison
    if comparison is None:
        return {}
    unjudged = {(test.suite, test.name) for test in news.unjudged}
    failing = {
        (test.suite, test.name): Became.UNJUDGED if (test.suite, test.name) in unjudged else Became.BROKE
        for test in comparison.regressed
    }
    dropped = {(test.suite, test.name): Became.DROPPED for test in comparison.suspects}
    fixed = {(test.suite, test.name): Became.FIXED for test in comparison.fixed}
    return dropped | fixed | failing


@dataclass(frozen=True)
class News:
    """The tests worth showing, each in one list. Those that only passed again are in none."""

    broke: tuple[FailedTest, ...] = ()
    """Passed in the baseline and fail now; critical ones first, then the worst."""
    unjudged: tuple[FailedTest, ...] = ()
    """Passed in the baseline; now a trial broke off or could not be judged."""
    failed: tuple[FailedTest, ...] = ()
    """Fail and have no counterpart in the baseline: all that fail if there is no baseline."""
    worse: tuple[FailedTest, ...] = ()
    """Failed in the baseline, fail now, and fell by 15 points or more."""
    failed_before: tuple[FailedTest, ...] = ()
    """Failed in the baseline and fail now, much as before."""
    fixed: tuple[TestChange, ...] = ()
    dropped: tuple[TestChange, ...] = ()
    """Fell by 15 points or more, and are in no other list."""

    @property
    def to_look_at(self) -> tuple[FailedTest, ...]:
        """The tests to look at first: those that fail, but for those that failed before."""
        return *self.broke, *self.worse, *self.failed


def news(results: Results) -> News:
    """The tests worth showing."""
    comparison = results.comparison
    newly = failed_tests.newly_failing(results)
    others = failed_tests.others(results, newly)
    if results.gate.reasons:  # tests that ended in an error are named with what kept the run from a verdict
        newly, others = (tuple(filter(_has_score, found)) for found in (newly, others))
    if comparison is None:
        return News(failed=others)
    uncompared = {(test.suite, test.name) for test in (*comparison.new, *comparison.changed)}
    if base := results.base_side:  # it may not have played some of the tests
        uncompared |= {
            (suite.name, test.name) for suite in base.suites for test in suite.tests if not test.trials
        }
    nothing_compared = comparison.delta is None
    fresh = tuple(test for test in others if nothing_compared or (test.suite, test.name) in uncompared)
    fell = {(test.suite, test.name): test for test in change.suspects(comparison)}
    before = (
        ()
        if nothing_compared
        else tuple(
            replace(test, change=fell.get((test.suite, test.name)))
            for test in others
            if (test.suite, test.name) not in uncompared
        )
    )
    worse = tuple(test for test in before if test.change)
    named = {(test.suite, test.name) for test in before}
    return News(
        broke=tuple(test for test in newly if test.outcome is TestOutcome.FAILED),
        unjudged=tuple(test for test in newly if test.outcome is not TestOutcome.FAILED),
        failed=fresh,
        worse=worse,
        failed_before=tuple(test for test in before if not test.change),
        fixed=comparison.fixed,
        dropped=tuple(test for key, test in fell.items() if key not in named),
    )


def _has_score(failed: FailedTest) -> bool:
    return failed.test is None or failed.test.score is not None


def changed(results: Results, news: News) -> bool:
    """Return whether a test or the score changed since the baseline, or that is not known."""
    comparison = results.comparison
    if comparison is None or comparison.base is None or comparison.head is None:
        return True
    lists = (comparison.new, comparison.removed, comparison.changed)
    if became(results, news) or any(lists):
        return True
    return numbers.difference(comparison.base, comparison.head) != 0


def base_name(results: Results) -> str:
    """The name of the baseline in a sentence: its branch, `the baseline`, or the other agent."""
    comparison = results.comparison
    if comparison and comparison.method == "both-sides":
        return arms.base_agent(results)
    branch = comparison.baseline.branch if comparison else None
    return branch or "the baseline"


def not_compared(results: Results) -> str | None:
    """The reason why there is no change to show, if a baseline was looked for and nothing else says it."""
    comparison = results.comparison
    if results.score is None:
        return None
    if comparison is None:
        note = None if gate.not_made(results) else results.run.baseline_note
        return sentence(capitalized(note)) if note else None
    why = change.why_not(comparison).rstrip(".")
    if comparison.delta is not None or any(why in warning for warning in gate.warnings(results)):
        return None
    return f"Not compared with {base_name(results)}: {why}."


def in_base(results: Results) -> str:
    """The baseline as a place: `on main`, `in the baseline`, `with the base agent`."""
    comparison = results.comparison
    if comparison and comparison.method == "both-sides":
        return f"with {arms.base_agent(results)}"
    branch = comparison.baseline.branch if comparison else None
    return f"on {branch}" if branch else "in the baseline"


def since(results: Results) -> str:
    """The words that say what tests broke in: `in this PR`, or `since main` if an earlier commit may have.

    Of two agents that were played in one run, `compared with` the other, unless that is the base agent.
    """
    comparison = results.comparison
    both_sides = comparison is not None and comparison.method == "both-sides"
    of_base = comparison is not None and (both_sides or comparison.baseline.of_base_commit)
    if results.run.git.pull_request is not None and of_base and not arms.others(results):
        return "in this PR"
    return f"{'compared with' if both_sides else 'since'} {base_name(results)}"


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
    match highlights.run_outcome(results):
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
    if change.too_little_decided(results):
        return "strict checks only, without a judge" if results.run.offline else "most criteria undecided"
    return "nothing was scored" if results.score is None else f"{numbers.points(results.score)} / 100"


def _relative(results: Results) -> str:
    """The score relative to the baseline's: `same as main`."""
    comparison = results.comparison
    if change.too_little_decided(results):
        return ""
    if comparison is None:
        return "no baseline" if results.run.baseline_note or gate.not_made(results) else ""
    base = base_name(results)
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
    words = _below(deciding, results) if deciding is run_floor(results) else gate.in_words(deciding)
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
    if broke_for_sure(results):
        return f"{tests} broke {since(results)}"
    return f"{tests} {'fails' if number == 1 else 'fail'} that passed {in_base(results)}"


def broke_title(results: Results) -> str:
    """The title over these tests."""
    if broke_for_sure(results):
        return f"Broke {since(results)}"
    return f"Passed {in_base(results)}, failed now"


def broke_for_sure(results: Results) -> bool:
    """Return whether tests broke as far as this gate is concerned, so that chance is no excuse."""
    comparison = results.comparison
    if comparison is not None and significance.proven(comparison):
        return True
    natures = {rule_of(check).nature for check in gate.failing(results)}
    return not natures.isdisjoint({Nature.FLOOR, Nature.TEST})


def other_checks(results: Results, news: News) -> tuple[GateCheck, ...]:
    """The failed checks that neither the heading, the numbers nor the tests that broke make plain."""
    plain = {CheckKind.CRITICAL, CheckKind.REGRESSION}
    failing = [check for check in gate.failing(results) if check.kind not in plain]
    told = {id(run_floor(results)), id(_deciding(results, news))}
    return tuple(check for check in failing if id(check) not in told)


def _deciding(results: Results, news: News) -> GateCheck | None:
    """The failed check that the heading names; None if it names tests that broke."""
    checks = gate.failing(results)
    if news.broke and any(rule_of(check).nature is not Nature.LIMIT for check in checks):
        return None
    floor = run_floor(results)
    return floor if floor in checks else next(iter(checks), None)


def run_floor(results: Results) -> GateCheck | None:
    """The floor of the whole run, if it has one."""
    checks = (check for check in results.gate.checks if check.kind is CheckKind.MIN_SCORE)
    return next((check for check in checks if check.suite is None and check.test is None), None)


def _below(floor: GateCheck, results: Results) -> str:
    decisive = floor.seen_if_undecided_failed if wanting(floor) else results.score
    undecided = " if undecided counts as failed" if wanting(floor) else ""
    score, required = numbers.points(decisive), numbers.plain(floor.required)
    return f"{score} / 100{undecided}, {required} required"


@dataclass(frozen=True)
class Numbers:
    """The numbers of a run as text. What is not known is empty."""

    score: str
    """`78 / 100`, or why there is none; empty if nothing was scored."""
    if_undecided_failed: str
    """The score that decides, where undecided verdicts make a difference: `76`."""
    base_name: str
    """`main`, `the baseline`."""
    base: str
    """The baseline's score over the compared tests: `94`."""
    change: str
    """`−16`, `+2`, `±0`."""
    compared: str
    """The part that was compared, where it is not all: `12 of 17 tests`."""
    compared_score: str
    """This run's score over that part."""
    required: str
    """The floor of the whole run, if it failed: `85`."""
    tests: str
    """`6 of 8 tests pass`, with the number of those that were not scored."""
    score_in_heading: bool
    """True if `verdict` has the score and its floor."""
    change_in_heading: bool
    """True if `verdict` has the change since the baseline."""

    @property
    def lead(self) -> str:
        """The score at the start of the line; empty if the heading has it."""
        return "" if self.score_in_heading else self.score

    @property
    def rest(self) -> str:
        """The line behind its lead."""
        base = f"{self.base_name} has {self.base} ({self.change})" if self.base else ""
        if self.compared and base:
            base = f"compared on {self.compared}: {self.compared_score}, {base}"
        elif self.change_in_heading:
            base = ""
        beside = [
            f"{self.required} required" if self.required else "",
            f"{self.if_undecided_failed} if undecided counts as failed" if self.if_undecided_failed else "",
        ]
        remarks = "; ".join(remark for remark in beside if remark)
        parts = [f"{self.lead}{f' ({remarks})' if remarks else ''}" if self.lead else "", base]
        first = ", ".join(part for part in parts if part)
        sentences = [f"{first[:1].upper()}{first[1:]}." if first else "", f"{self.tests}."]
        return " ".join(part for part in sentences if part)[len(self.lead) :]

    @property
    def text(self) -> str:
        """The whole line, such as `78 / 100 (85 required), main has 94 (−16). 6 of 8 tests pass.`.

        It leaves out what the heading has.
        """
        return f"{self.lead}{self.rest}"


def in_numbers(results: Results, news: News) -> Numbers:
    """The numbers of a run."""
    comparison, floor, counts = results.comparison, run_floor(results), results.counts
    outcome = highlights.run_outcome(results)
    passed = outcome in {RunOutcome.PASSED, RunOutcome.UNCHECKED}
    too_little = change.too_little_decided(results)
    compared = comparison if comparison and comparison.delta is not None and not too_little else None
    score = too_little[0].upper() + too_little[1:] if too_little else _score_of_100(results)
    by_outcome = Counter(test.outcome for test in deciding(results.tests))
    others = [f"{by_outcome[name]:,} {words}" for name, words in _UNSCORED.items() if by_outcome[name]]
    others += set_aside.others(counts)
    noun = "test passes" if counts.passed == counts.deciding == 1 else "tests pass"
    tests = f"{counts.passed:,} of {counts.deciding:,} {noun}"
    undecided = floor if floor and wanting(floor) and not too_little else None
    return Numbers(
        score="" if results.score is None else score,
        if_undecided_failed=numbers.points(undecided.seen_if_undecided_failed) if undecided else "",
        base_name=base_name(results),
        base=numbers.points(compared.base) if compared else "",
        change=numbers.points_changed(compared.base, compared.head) if compared else "",
        compared=change.compared_part(results, compared) if compared else "",
        compared_score=numbers.points(compared.head) if compared else "",
        required=numbers.plain(floor.required) if floor and floor.required and not passed else "",
        tests=", ".join([tests, *others]),
        score_in_heading=(passed and not too_little)
        or (outcome is RunOutcome.FAILED and floor is not None and _deciding(results, news) is floor),
        change_in_heading=passed and not news.broke,
    )


def certainty(results: Results, news: News) -> str:
    """How sure the result is, in a sentence or two without p or interval. Nothing else says it again."""
    trials = _trials(results)
    comparison = results.comparison
    if results.gate.reasons or change.too_little_decided(results):
        return trials
    if comparison and comparison.delta is not None and news.broke:
        sure = f"{_of_broken(results, comparison, news)} ({trials[0].lower()}{trials[1:]})"
        flaky = [one.name for one in news.broke if one.test is not None and one.test.flaky]
        some = f"Passed in some trials, and may pass in a rerun: {numbers.listed(flaky, _NAMED)}"
        return f"{sure}. {some}" if flaky and significance.proven(comparison) else sure
    if comparison is None or comparison.delta is None:
        more = "" if _least_trials(results) > 1 else ": a rerun may differ"
        return f"{trials}{more}"
    return f"{trials}; {_of_change(results, comparison)}"


def _trials(results: Results) -> str:
    least, most = _least_trials(results), _most_trials(results)
    rounds = results.run.rounds
    played = f"{least} to {most}" if least < most else f"{most}"
    if rounds and rounds.played < rounds.looks[-1]:
        return f"{played} of at most {rounds.looks[-1]} trials per test"
    return "One trial per test" if least == most == 1 else f"{played} trials per test"


def _of_broken(results: Results, comparison: Comparison, news: News) -> str:
    """What is proven where tests broke, and what is not: a sentence each."""
    if significance.proven(comparison):
        return "Proven: the score fell by more than chance explains"
    decided = _decided_alone(results)
    proven = f"{decided}. " if decided else ""
    if (comparison.delta or 0) >= 0:
        return f"{proven}The score did not fall, and single tests can fail by chance"
    sentence = f"{proven}A drop of the score is not proven: {_of_change(results, comparison, drop='it')}"
    most = (comparison.fewest_broken or 1) - 1
    if most < len(news.broke):
        return sentence
    return f"{sentence}; up to {numbers.count(most, 'test')} can break by chance"


def _decided_alone(results: Results) -> str:
    """What fails the run whatever chance has to do with the change; empty if nothing does."""
    failing = gate.failing(results)
    critical = sum(check.kind is CheckKind.CRITICAL for check in failing)
    floors = sum(rule_of(check).nature is Nature.FLOOR for check in failing)
    parts = []
    if critical:
        parts.append("a critical test failed" if critical == 1 else f"{critical} critical tests failed")
    if floors:
        parts.append("the score missed its floor" if floors == 1 else f"{floors} floors were missed")
    return capitalized(f"{' and '.join(parts)}, which decides") if parts else ""


def _of_change(results: Results, comparison: Comparison, drop: str = "the drop") -> str:
    if significance.proven(comparison) or significance.rose(comparison):
        return f"the {'rise' if (comparison.delta or 0) > 0 else 'drop'} is larger than chance explains"
    fell = (comparison.delta or 0) < 0
    if fell and _most_trials(results) == 1 and comparison.interval and comparison.delta is not None:
        low, high = comparison.interval.low, comparison.interval.high
        spread = max(comparison.delta - low, high - comparison.delta)
        if spread > 0:
            return f"in a rerun the change may differ by up to {numbers.at_least(spread)} points"
    if significance.too_few(comparison):
        return "too few trials to tell a drop from chance"
    if fell:
        return f"{drop} may be chance"
    least = comparison.detectable
    if least is None or least >= 100:
        return "the scores vary too much to notice a drop"
    too_low = f"{base_name(results)} scores too low for a drop to show"
    unseen = f"drops below {numbers.at_least(least)} points can go unseen"
    return too_low if least > (comparison.base or 0) else unseen


def odds(results: Results) -> str | None:
    """The odds that the same agent fails this gate again; None for runs too small to tell."""
    proven = results.comparison is not None and significance.proven(results.comparison)
    large = _large_enough(results)
    return highlights.odds_sentence(results.odds) if results.odds and large and not proven else None


def fails_mostly(results: Results) -> bool:
    """True if the same agent, run again, would fail this gate more often than not."""
    return _large_enough(results) and results.odds is not None and results.odds.share > 0.5


def _large_enough(results: Results) -> bool:
    return results.counts.tests >= _ODDS_TESTS and _least_trials(results) >= _ODDS_TRIALS


def _numbers_of_trials(results: Results) -> Sequence[int]:
    return [len(test.trials) for test in chain.from_iterable(suite.tests for suite in results.suites)]


def _least_trials(results: Results) -> int:
    return min(_numbers_of_trials(results), default=0)


def _most_trials(results: Results) -> int:
    return max(_numbers_of_trials(results), default=0)
