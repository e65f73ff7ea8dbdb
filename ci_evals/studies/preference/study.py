"""Two runs' conversations of the same tests, before a judge that says which is better."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.comparison import TestName
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.rejudging.saved import is_judged, transcript_of, turns_of
from ci_evals.scoring.comparison.pairing import Side, pair
from ci_evals.studies.asking import Asking, spread_evenly
from ci_evals.studies.conversations import is_usable
from ci_evals.studies.preference.conversation_pair import (
    TEMPLATES,
    ComparedConversation,
    ConversationPair,
    JudgedPreference,
)
from ci_evals.studies.preference.result import Preference
from ci_evals.studies.preference.tally import ComparedPair, Round, decided, preference
from ci_evals.support import templates

_SHOWN = (*TEMPLATES, "adapters/prompts/json_answer.md.j2")
"""Templates of all that a judge may be shown besides the conversations."""


@dataclass(frozen=True)
class TrialPair:
    """Two trials of one test, one of each run."""

    place: tuple[int, int]
    """The indexes of the test among the paired ones and of the trial in it: the order of results."""
    suite: str
    tests: tuple[TestResult, TestResult]
    trials: tuple[TrialResult, TrialResult]


@dataclass(frozen=True)
class PairedRuns:
    """Two runs, and the conversations to compare."""

    head: SavedRun
    base: SavedRun
    pairs: tuple[TrialPair, ...]
    """The sample, in the order of the results."""
    available: int
    """The number of pairs, sampled or not."""
    only_in_head: tuple[TestName, ...]
    only_in_base: tuple[TestName, ...]
    changed: tuple[TestName, ...]


def pair_runs(head: SavedRun, base: SavedRun, most: int, seed: int) -> PairedRuns:
    """The pairs to compare: at most so many, spread over the tests that are defined alike in both runs.

    Raises:
        UsageError: they are one run, or have no conversation of the same test.
    """
    if head.results.run.id == base.results.run.id:
        raise UsageError(f"{head.file} and {base.file} are the same run: name two that are to be compared")
    if _held_by(head) == _held_by(base):
        raise UsageError(
            f"{head.file} and {base.file} hold the same conversations: one was made of the other's, by "
            "judging again or from its recording"
        )
    suites = pair(Side.of(head.results), Side.of(base.results))
    tests = [(suite.name, test) for suite in suites for test in suite.pairs]
    groups = [
        [
            TrialPair((place, index), suite, (test.head, test.base), both)
            for index, both in enumerate(zip(test.head.trials, test.base.trials, strict=False))
            if all(map(is_usable, both))
        ]
        for place, (suite, test) in enumerate(tests)
    ]
    available = sum(map(len, groups))
    if not available:
        raise UsageError(_nothing(head, base, bool(tests)))
    return PairedRuns(
        head=head,
        base=base,
        pairs=tuple(sorted(spread_evenly(groups, most, f"prefer {seed}"), key=lambda one: one.place)),
        available=available,
        only_in_head=tuple(name for suite in suites for name in suite.new),
        only_in_base=tuple(name for suite in suites for name in suite.removed),
        changed=tuple(name for suite in suites for name in suite.changed),
    )


def _held_by(run: SavedRun) -> str:
    """The run in which its conversations were held."""
    info = run.results.run
    return info.origin.run if info.origin else info.id


def _nothing(head: SavedRun, base: SavedRun, same_tests: bool) -> str:
    if same_tests:
        return (
            f"{head.file} and {base.file} have no pair of conversations of the same test that were both "
            "played to their end"
        )
    return (
        f"{head.file} and {base.file} have no test in common that is defined alike in both: tests are "
        "paired by suite, name and definition"
    )


async def prefer(asking: Asking, paired_runs: PairedRuns, at: datetime) -> Preference:
    """Ask the judge about each pair in both orders, and sum up its answers.

    Raises:
        UsageError: a trial is none that a run leaves; nobody was asked then.
    """
    conversation_pairs = [_conversation_pair(asking, one, paired_runs) for one in paired_runs.pairs]

    async def ask(place: int) -> ComparedPair:
        one, conversation_pair = paired_runs.pairs[place], conversation_pairs[place]
        suite, test = one.suite, one.tests[0].name
        if conversation_pair.identical:
            return ComparedPair(
                suite, test, (Round("tie", "tie", "the conversations are the same"),), votes=1
            )
        rounds = await _rounds(asking, conversation_pair, place)
        return ComparedPair(suite, test, rounds, asking.votes, counted=asking.votes // 2 + 1)

    answers = await asking.each(range(len(conversation_pairs)), ask, _missing)
    told = [answer for answer in answers if answer]
    run = paired_runs.base.results.run
    judge = asking.used.model_copy(update={"prompt": templates.digest(*_SHOWN)})
    return preference(told, judge, at, run.id, run.git)


def _conversation_pair(asking: Asking, one: TrialPair, paired_runs: PairedRuns) -> ConversationPair:
    here, there = one.tests
    return ConversationPair(
        redactor=asking.redactor,
        test=here,
        criteria=[finding.criterion for finding in one.trials[0].findings if is_judged(finding)],
        one=_talk(here, one.trials[0], str(paired_runs.head.file)),
        other=_talk(there, one.trials[1], str(paired_runs.base.file)),
    )


def _talk(test: TestResult, trial: TrialResult, source: str) -> ComparedConversation:
    return ComparedConversation(turns_of(test, trial, source), transcript_of(trial))


async def _rounds(asking: Asking, conversation_pair: ConversationPair, place: int) -> tuple[Round, ...]:
    """Ask as many rounds at once as a majority takes, then one at a time while they could still decide."""
    llms = asking.llms

    async def once(index: int) -> Round:
        llm, sample_id = llms[index % len(llms)], f"prefer/{place}/{index}"
        straight, swapped = await asyncio.gather(
            *(conversation_pair.ask(llm, swapped=swapped, sample_id=sample_id) for swapped in (False, True))
        )
        return _round(straight, swapped)

    rounds: Sequence[Round] = await asyncio.gather(*map(once, range(asking.votes // 2 + 1)))
    while not decided(rounds, asking.votes):
        rounds = [*rounds, await once(len(rounds))]
    return tuple(rounds)


def _round(straight: JudgedPreference, swapped: JudgedPreference) -> Round:
    unasked = next((choice.reason for choice in (straight, swapped) if choice.better is None), None)
    return Round(straight.better, swapped.better, unasked or straight.reason)


def _missing(pair: ComparedPair) -> str | None:
    """Return why the judge could not be asked, where no round came to anything."""
    return pair.rounds[-1].reason if all(one.result is None for one in pair.rounds) else None
