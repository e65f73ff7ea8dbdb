"""The news of a run, in the order in which people want it: verdict, numbers, what changed, how sure it is.

The one place that derives them, for comment, console and page. All of it is plain text and data, not yet
sanitized. `verdict` is the heading, `Numbers.text` the line below it, `News` the tests to show, `certainty`
the sentence on how sure the result is, and `odds` a sentence for those who ask further.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain

from ci_evals.domain import numbers
from ci_evals.domain.providers import Provider
from ci_evals.domain.results.comparison import Comparison, TestChange
from ci_evals.domain.results.gate import CheckKind, GateCheck
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.gate.rule import Nature, wanting
from ci_evals.gate.rules import rule_of
from ci_evals.reports.story import failed_tests, gate, highlights, set_aside, trial_errors
from ci_evals.reports.story.comparison import arms, change, significance
from ci_evals.reports.story.failed_tests import FailedTest
from ci_evals.reports.story.judging.parts import capitalized, sentence
from ci_evals.reports.story.labels import UNFINISHED, RunOutcome
from ci_evals.reports.story.once_per_run import once_per_run
from ci_evals.scoring.scores import deciding

_UNSCORED = {
    TestOutcome.UNDECIDED: "undecided",
    TestOutcome.ERROR: "errored",
    TestOutcome.NOT_RUN: "not run",
}
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
_BUILD_FAILS = "Without a verdict the build fails: undecided never counts as passed."
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


def became(results: Results) -> dict[tuple[str, str], Became]:
    """The tests whose outcome changed since the baseline, by suite and name."""
    comparison = results.comparison
    if comparison is None:
        return {}
    unjudged = {(test.suite, test.name) for test in news(results).unjudged}
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
    failed_before: tuple[FailedTest, ...] = ()
    """Failed in the baseline and fail now. Those that fell by 15 points or more have their change."""
    fixed: tuple[TestChange, ...] = ()
    dropped: tuple[TestChange, ...] = ()
    """Fell by 15 points or more, and are in no other list."""

    @property
    def to_look_at(self) -> tuple[FailedTest, ...]:
        """The tests to look at first: those that fail, but for those that failed before."""
        return *self.broke, *self.failed


@once_per_run
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
    named = {(test.suite, test.name) for test in before}
    return News(
        broke=tuple(test for test in newly if test.outcome is TestOutcome.FAILED),
        unjudged=tuple(test for test in newly if test.outcome is not TestOutcome.FAILED),
        failed=fresh,
        failed_before=before,
        fixed=comparison.fixed,
        dropped=tuple(test for key, test in fell.items() if key not in named),
    )


def _has_score(failed: FailedTest) -> bool:
    return failed.test is None or failed.test.score is not None


def changed(results: Results) -> bool:
    """Return whether a test or the score changed since the baseline, or that is not known."""
    comparison = results.comparison
    if comparison is None or comparison.base is None or comparison.head is None:
        return True
    lists = (comparison.new, comparison.removed, comparison.changed)
    return bool(became(results) or any(lists)) or numbers.difference(comparison.base, comparison.head) != 0


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


def what_to_do(results: Results) -> str:
    """The next step without a verdict, after a failed one, or where tests broke; empty if none is known."""
    outcome = highlights.run_outcome(results)
    if outcome is RunOutcome.FAILED or (outcome is RunOutcome.PASSED and news(results).broke):
        return _after_failure(results)
    if outcome not in UNFINISHED:
        return ""
    if outcome is RunOutcome.INTERRUPTED:
        return f"Rerun to get a verdict. {_BUILD_FAILS}"
    limit = next((check for check in gate.failing(results) if check.kind is CheckKind.MAX_ERRORS), None)
    allowed = ""
    if limit and limit.seen is not None:
        most = numbers.count(int(limit.required or 0), "errored or undecided trial")
        was = "was" if limit.seen == 1 else "were"
        allowed = f" max-errors allows {most}; there {was} {int(limit.seen):,}."
    at_fault = trial_errors.at_fault(results.suites)
    look = f"Look first at {at_fault}. Fix that and rerun." if at_fault else "Fix the cause and rerun."
    if not at_fault and highlights.without_judge(results, results.suites):
        look = "Add strict checks, which need no judge, or choose a --provider for the judge."
    return f"{look}{allowed} {_BUILD_FAILS}"


def _after_failure(results: Results) -> str:
    """What to do about failed tests. Another tool's are not played here."""
    found, comparison, floor = news(results), results.comparison, _floor(results)
    if any(suite.of_other_tool for suite in results.suites):
        return ""
    advice = [rule_of(check).advice for check in gate.failing(results)]
    if advice and all(advice):
        return advice[0]
    if failed := found.to_look_at:
        proven = comparison is not None and significance.proven(comparison)
        if proven or all(map(_always_failed, failed)):
            return "Fix the failures. If the new behavior is intended, change the tests."
        where = " on your machine" if results.run.git.pull_request is not None else ""
        how = ", with the other options of this run" if _needs_more_options(results) else ""
        return (
            f"Read what failed. To see whether a test fails again, repeat it{where}{how}: "
            f"{rerun_command(results)}. If any trial fails, fix it.{_if_all_pass(results)}"
        )
    if found.failed_before and floor in gate.failing(results):
        return "Fix the tests that fail, or set a floor that this agent meets: ci-evals odds names one."
    return ""


def _if_all_pass(results: Results) -> str:
    if not gate.failing(results):
        return ""
    if _floor(results) in gate.failing(results) and _fails_mostly(results):
        return (
            " If all pass, note that a rerun would probably fail again, because the score is too close to "
            "min-score."
        )
    return " If all pass, rerun this check."


def rerun_command(results: Results) -> str:
    """The command that repeats the first test that failed, which shows how often it does.

    Names that a shell would read otherwise, or that reports would change, are left for the reader to fill in.
    """
    first = next(iter(news(results).to_look_at), None)
    files = [suite.file for suite in results.suites if first and suite.name == first.suite]
    file = files[0] if len(files) == 1 and _SAFE.fullmatch(files[0]) and " " not in files[0] else "SUITE"
    # --test takes several names, with commas between them.
    name = first.name if first and _SAFE.fullmatch(first.name) and "," not in first.name else None
    options = [
        f"{option}={_quoted(value)}" for option, value in _same_agent(results) if _SAFE.fullmatch(value)
    ]
    return " ".join(
        ["ci-evals run", file, f"--test={_quoted(name) if name else 'NAME'}", *options, "--loops=10"]
    )


def _same_agent(results: Results) -> Iterator[tuple[str, str]]:
    for key, option in _SAME_AGENT.items():
        value = results.run.config.get(key)
        if isinstance(value, str) and value and value != Provider.OPENAI:
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
    return test is not None and test.pass_rate == 0 and len(test.trials) >= _ODDS_TRIALS


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


def verdict(results: Results, trust: Trust = Trust.OWN) -> str:
    """The verdict in words, with what changed: `Evals failed: 2 tests broke in this PR`.

    It starts with `Evals passed`, `Evals failed`, `Evals skipped` or `No verdict`. `highlights.run_outcome`
    has the sign.
    """
    if trust is Trust.CONTRADICTORY:
        return f"No verdict: the {trust.value}"
    beginning, news = _verdict(results)
    origin = f" ({trust.value})" if trust is not Trust.OWN else ""
    return f"{beginning}{origin}: {news}" if news else f"{beginning}{origin}"


def _verdict(results: Results) -> tuple[str, str]:
    shard = f" in shard {results.run.shard.index} of {results.run.shard.of}" if results.run.shard else ""
    match highlights.run_outcome(results):
        case RunOutcome.PASSED | RunOutcome.UNCHECKED:
            return f"Evals passed{shard}", _passed(results)
        case RunOutcome.FAILED:
            return f"Evals failed{shard}", _failed(results)
        case RunOutcome.NO_VERDICT:
            return f"No verdict{shard}", next(iter(results.gate.reasons), "the run did not finish")
        case RunOutcome.INTERRUPTED:
            return f"No verdict{shard}", "the run was interrupted"
        case RunOutcome.SKIPPED:
            return "Evals skipped", (results.run.stopped_because or "").strip().rstrip(".")


def _passed(results: Results) -> str:
    broke = len(news(results).broke)
    parts = (
        _score_of_100(results),
        f"but {numbers.count(broke, 'test')} broke {since(results)}" if broke else _relative(results),
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


def _failed(results: Results) -> str:
    checks, deciding = gate.failing(results), _deciding(results)
    if not checks:
        return ""
    if deciding is None:
        return f"{numbers.count(len(news(results).broke), 'test')} broke {since(results)}"
    words = _below(deciding, results) if deciding is _floor(results) else gate.in_words(deciding)
    others = [check for check in checks if check is not deciding]
    critical = sum(check.kind is CheckKind.CRITICAL for check in others)
    counts = (
        numbers.count(critical, "critical test") if critical else "",
        numbers.count(len(others) - critical, "more check") if len(others) > critical else "",
    )
    return words + (f", and {' and '.join(filter(None, counts))} failed" if others else "")


def other_checks(results: Results) -> tuple[GateCheck, ...]:
    """The failed checks that neither the heading, the numbers nor the tests that broke make plain."""
    plain = {CheckKind.CRITICAL, CheckKind.REGRESSION}
    failing = [check for check in gate.failing(results) if check.kind not in plain]
    told = {id(_floor(results)), id(_deciding(results))}
    return tuple(check for check in failing if id(check) not in told)


def _deciding(results: Results) -> GateCheck | None:
    """The failed check that the heading names; None if it names tests that broke."""
    checks = gate.failing(results)
    if news(results).broke and any(rule_of(check).nature is not Nature.LIMIT for check in checks):
        return None
    floor = _floor(results)
    return floor if floor in checks else next(iter(checks), None)


def _floor(results: Results) -> GateCheck | None:
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


def in_numbers(results: Results) -> Numbers:
    """The numbers of a run."""
    comparison, floor, counts = results.comparison, _floor(results), results.counts
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
        or (outcome is RunOutcome.FAILED and floor is not None and _deciding(results) is floor),
        change_in_heading=passed and not news(results).broke,
    )


def certainty(results: Results) -> str:
    """How sure the result is, in a sentence or two without p or interval. Nothing else says it again."""
    trials = _trials(results)
    comparison = results.comparison
    if results.gate.reasons or change.too_little_decided(results):
        return trials
    if comparison and comparison.delta is not None and news(results).broke:
        sure = f"{_of_broken(results, comparison)} ({trials[0].lower()}{trials[1:]})"
        flaky = [one.name for one in news(results).broke if one.test is not None and one.test.flaky]
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


def _of_broken(results: Results, comparison: Comparison) -> str:
    """How sure it is that tests broke, and did not fail by chance."""
    if significance.proven(comparison):
        return "Sure that the score fell: the drop is larger than chance explains"
    if (comparison.delta or 0) >= 0:
        return "Not sure: the score did not fall, and single tests can fail by chance"
    sentence = f"Not sure that the score fell: {_of_change(results, comparison)}"
    most = (comparison.fewest_broken or 1) - 1
    if most < len(news(results).broke):
        return sentence
    return f"{sentence}; up to {numbers.count(most, 'test')} can break by chance"


def _of_change(results: Results, comparison: Comparison) -> str:
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
        return "the drop may be chance"
    drop = comparison.detectable
    if drop is None or drop >= 100:
        return "the scores vary too much to notice a drop"
    too_low = f"{base_name(results)} scores too low for a drop to show"
    unseen = f"drops below {numbers.at_least(drop)} points can go unseen"
    return too_low if drop > (comparison.base or 0) else unseen


def odds(results: Results) -> str | None:
    """The odds that the same agent fails this gate again; None for runs too small to tell."""
    proven = results.comparison is not None and significance.proven(results.comparison)
    large = _large_enough(results)
    return highlights.odds_sentence(results.odds) if results.odds and large and not proven else None


def _fails_mostly(results: Results) -> bool:
    """True if the same agent, run again, would fail this gate more often than not."""
    return _large_enough(results) and results.odds is not None and results.odds.share > 0.5


def _large_enough(results: Results) -> bool:
    return results.counts.tests >= _ODDS_TESTS and _least_trials(results) >= _ODDS_TRIALS


@once_per_run
def _numbers_of_trials(results: Results) -> Sequence[int]:
    return [len(test.trials) for test in chain.from_iterable(suite.tests for suite in results.suites)]


def _least_trials(results: Results) -> int:
    return min(_numbers_of_trials(results), default=0)


def _most_trials(results: Results) -> int:
    return max(_numbers_of_trials(results), default=0)
