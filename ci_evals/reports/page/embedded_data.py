"""The conversations of a page: compressed data that the browser unpacks when somebody opens a test.

Base 64 has no character that ends an element, so that nothing in it can.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import quote

from pydantic_core import to_json

from ci_evals.domain.results.suite import SuiteResult, TestOutcome, TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.reports.names import numbered
from ci_evals.reports.page import test_data
from ci_evals.reports.story.story import Story
from ci_evals.scoring.comparison.divergence import TracedConversation, counterpart
from ci_evals.support.text import whole

_Named = TypeVar("_Named", SuiteResult, TestResult)

_PACK = 256 * 1024
"""Bytes of JSON from which on a pack takes no further conversation.

Those of one test are much alike, so together they take a third of what they take apart. Nobody waits for as
much to be unpacked.
"""

_MOST_COMPARED = 20
"""Number of the baseline's trials with which each trial of a test is compared."""
_SOME = f"Of its {{}} trials, the first {_MOST_COMPARED}, the first that passed and the first that did not."
"""Which trials of the baseline a reader can choose, where these are not all."""
_KEPT = "!*'()"
"""Characters that JavaScript's `encodeURIComponent` keeps and `quote` does not."""
_WORST_FIRST = (TestOutcome.FAILED, TestOutcome.ERROR, TestOutcome.UNDECIDED)


@dataclass(frozen=True)
class TestView:
    """A test of a page, and the same test in the baseline."""

    number: int
    """Its place on the page, from 0.

    `t7` is the id of its data, `t7.1` that of its first pack of conversations, and `b7.1` that of the
    baseline's first pack.
    """
    suite: str
    """The suite's name, which here no other suite has: links are made of it."""
    name: str
    """The test's, likewise."""
    of: SuiteResult
    test: TestResult
    outcomes: tuple[TestOutcome, ...]
    """For each trial the outcome that the test would have with it alone."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """By criterion why it is less reliable; only those that are."""
    base: TestResult | None = None
    base_trials: tuple[TrialResult, ...] = ()
    """The baseline's trials that a reader can compare one of this run with."""
    base_outcomes: tuple[TestOutcome, ...] = ()
    """The outcome of each of these."""

    def address(self, trial: int | None = None, turn: int | None = None, base: int | None = None) -> str:
        """Its address on the page, of one of its trials, or of a turn in it: `#suite/test/2/3`.

        `base` is the trial of the baseline that stands beside it: `#suite/test/2/3/vs1`. `addressOf` of the
        script writes the same.
        """
        names = [quote(whole(part), safe=_KEPT) for part in (self.suite, self.name)]
        numbers = [str(number) for number in (trial, turn) if number is not None]
        beside = [] if base is None else [f"vs{base}"]
        return "#" + "/".join([*names, *numbers, *beside])

    @property
    def same(self) -> bool:
        """True if the baseline's test was defined in the same way."""
        return self.base is not None and self.base.digest == self.test.digest


def tests_of(story: Story) -> tuple[TestView, ...]:
    """Return the listed tests in the order of the results, each with its namesake of the baseline."""
    there = {
        (suite, name): test
        for suite, result in _named(story.base_suites)
        for name, test in _named(result.tests)
    }
    views: list[TestView] = []
    for suite, result in _named([row.suite for row in story.suites]):
        for name, test in _named(result.tests):
            if not story.listed.has(test):
                continue
            base = there.get((suite, name))
            compared = _compared(base.trials, story) if base else ()
            views.append(
                TestView(
                    number=len(views),
                    suite=suite,
                    name=name,
                    of=result,
                    test=test,
                    outcomes=tuple(map(story.outcome_of, test.trials)),
                    doubts=story.judging.of_criteria.of_test(result.name, test.name),
                    base=base,
                    base_trials=tuple(trial for trial, _ in compared),
                    base_outcomes=tuple(outcome for _, outcome in compared),
                )
            )
    return tuple(views)


def elements(tests: Iterable[TestView]) -> Iterator[str]:
    """The elements that hold the tests' data, a test at a time, its conversations in packs.

    Of a test it is what `test_data.of_test` gives, and `head`; if the baseline has the test also `base`,
    `divergences`, and `pairs`: for each trial and each of the baseline the index of their divergence. Both
    sides have `trials`, and `packs`: how many of these are in each pack. A pack is a list of trials, each the
    list of its turns.
    """
    for view in tests:
        data = test_data.of_test(view.test, view.base, view.of.file, same=view.same)
        base_packs, head_packs = _Packs(f"b{view.number}"), _Packs(f"t{view.number}")
        base_trials, conversations = [], []
        for trial, outcome in zip(view.base_trials, view.base_outcomes, strict=True):
            turns = trial.turns.with_trace_texts()
            base_trials.append(test_data.of_base_trial(trial, outcome))
            conversations.append(TracedConversation(trial.index, [turn for turn, _ in turns]))
            yield from base_packs.add(test_data.of_turns(turns))
        yield from base_packs.rest()
        head_trials, pairs = [], []
        divergences: dict[bytes, int] = {}
        for trial, outcome in zip(view.test.trials, view.outcomes, strict=True):
            turns = trial.turns.with_trace_texts()
            shown = test_data.of_trial(trial, outcome, view.doubts)
            if conversations:
                passed = outcome is TestOutcome.PASSED
                shown["counterpart"] = counterpart(view.base_trials, view.base_outcomes, passed=passed).index
                head = TracedConversation(trial.index, [turn for turn, _ in turns])
                texts = [_json(test_data.of_divergence(head, base)) for base in conversations]
                pairs.append([divergences.setdefault(text, len(divergences)) for text in texts])
            head_trials.append(shown)
            yield from head_packs.add(test_data.of_turns(turns))
        yield from head_packs.rest()
        if view.outcomes:
            data["worst"] = view.test.trials[_worst(view.outcomes)].index
        data["head"] = {"packs": head_packs.lengths, "trials": head_trials}
        if view.base:
            data["base"] = {"packs": base_packs.lengths, "trials": base_trials}
            if len(base_trials) < len(view.base.trials):
                data["base"]["note"] = _SOME.format(len(view.base.trials))
            data["pairs"] = pairs
        text = _json(data)[:-1] + b',"divergences":[' + b",".join(divergences) + b"]}"
        yield _element(f"t{view.number}", text)


def _worst(outcomes: Sequence[TestOutcome]) -> int:
    """The index of the first of the worst trials: it is the one that is shown first."""
    present = (outcome for outcome in _WORST_FIRST if outcome in outcomes)
    return outcomes.index(next(present, outcomes[0]))


class _Packs:
    """The conversations of one side of a test, as many in an element as fill it."""

    def __init__(self, name: str) -> None:
        self.lengths: list[int] = []
        """The number of trials in each element."""
        self._name = name
        self._trials: list[bytes] = []
        self._size = 0

    def add(self, turns: list[test_data.Data]) -> Iterator[str]:
        """The element that the turns of one more trial fill, if they do."""
        self._trials.append(_json(turns))
        self._size += len(self._trials[-1])
        if self._size > _PACK:
            yield from self.rest()

    def rest(self) -> Iterator[str]:
        """The element of what is left, if anything is."""
        if self._trials:
            self.lengths.append(len(self._trials))
            yield _element(f"{self._name}.{len(self.lengths)}", b"[" + b",".join(self._trials) + b"]")
            self._trials, self._size = [], 0


def _compared(trials: Sequence[TrialResult], story: Story) -> tuple[tuple[TrialResult, TestOutcome], ...]:
    """The baseline's trials to choose from, with their outcomes: all, or the first and the counterparts."""
    outcomes = [story.outcome_of(trial, in_base=True) for trial in trials]
    if len(trials) <= _MOST_COMPARED:
        return tuple(zip(trials, outcomes, strict=True))
    kept = {counterpart(trials, outcomes, passed=passed).index for passed in (True, False)}
    kept |= {trial.index for trial in trials[:_MOST_COMPARED]}
    pairs = zip(trials, outcomes, strict=True)
    return tuple((trial, outcome) for trial, outcome in pairs if trial.index in kept)


def _json(value: object) -> bytes:
    try:
        return to_json(value)
    except ValueError:
        # Half of a surrogate pair: UTF-8 cannot write it, an escape can, and the script shows U+FFFD for it.
        return json.dumps(value).encode()


def _element(name: str, data: bytes) -> str:
    text = base64.b64encode(zlib.compress(data, level=6)).decode("ascii")
    return f'<script type="application/octet-stream" id="{name}">{text}</script>\n'


def _named(items: Sequence[_Named]) -> Iterable[tuple[str, _Named]]:
    """Suites, or tests, with names of their own. Two have one name where a secret was taken out of both."""
    return zip(numbered([item.name for item in items]), items, strict=True)
