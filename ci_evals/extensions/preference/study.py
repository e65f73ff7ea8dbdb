"""`prefer`: two runs' conversations of the same tests, before a judge that says which is better."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.comparison import TestName
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.results.trial import TrialResult
from ci_evals.extension_support.asking import Asking, spread_evenly
from ci_evals.extension_support.conversations import is_usable
from ci_evals.extension_support.judging import judging
from ci_evals.extension_support.rejudging.saved import is_judged, transcript_of, turns_of
from ci_evals.extension_support.settings import JudgeSettings
from ci_evals.extensions.preference.conversation_pair import (
    TEMPLATES,
    ComparedConversation,
    ConversationPair,
)
from ci_evals.extensions.preference.result import Preference
from ci_evals.extensions.preference.tally import ComparedPair, Round, decided, preference
from ci_evals.scoring.comparison.pairing import pair
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


def compare_runs(head: Path, base: Path, most: int, settings: JudgeSettings, context: RunContext) -> None:
    """Compare two runs by at most so many pairs, show the outcome, and keep it with the results of the first.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    judge = judging(head, settings, context)
    paired_runs = pair_runs(judge.run, SavedRun.open(base, judge.redactor), most, settings.seed)
    for line in _left_out(paired_runs):
        context.console.say(line)
    preferred, asking = judge.carry_out(lambda asking: prefer(asking, paired_runs, datetime.now(UTC)), "pair")
    judge.finish(asking, preferred, decided=preferred.pairs - preferred.undecided)


def _left_out(paired_runs: PairedRuns) -> Iterator[str]:
    """Tests and conversations that are not compared, and why."""
    for names, why in (
        (paired_runs.only_in_head, "in A only"),
        (paired_runs.only_in_base, "in B only"),
        (paired_runs.changed, "defined differently in the two runs"),
    ):
        if names:
            some = ", ".join(name.name for name in names[:3]) + (", …" if len(names) > 3 else "")
            yield f"Not compared, since {why}: {numbers.count(len(names), 'test')} ({some})"
    available, compared = paired_runs.available, len(paired_runs.pairs)
    if available > compared:
        yield f"Of {available:,} pairs of conversations {compared:,} are compared (--pairs)"


def pair_runs(head: SavedRun, base: SavedRun, most: int, seed: int) -> PairedRuns:
    """The pairs to compare: at most so many, spread over the tests that are defined alike in both runs.

    Raises:
        UsageError: they are one run, or have no conversation of the same test.
    """
    if head.results.run.id == base.results.run.id:
        raise UsageError(f"{head.file} and {base.file} are the same run: name two that are to be compared")
    played = [run.origin.run if run.origin else run.id for run in (head.results.run, base.results.run)]
    if played[0] == played[1]:
        raise UsageError(
            f"{head.file} and {base.file} hold the same conversations: one was made of the other's, by "
            "judging again or from its recording"
        )
    suites = pair(head.results, base.results)
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
    if not tests:
        raise UsageError(
            f"{head.file} and {base.file} have no test in common that is defined alike in both: tests are "
            "paired by suite, name and definition"
        )
    if not available:
        raise UsageError(
            f"{head.file} and {base.file} have no pair of conversations of the same test that were both "
            "played to their end"
        )
    return PairedRuns(
        head=head,
        base=base,
        pairs=tuple(sorted(spread_evenly(groups, most, f"prefer {seed}"), key=lambda one: one.place)),
        available=available,
        only_in_head=tuple(name for suite in suites for name in suite.new),
        only_in_base=tuple(name for suite in suites for name in suite.removed),
        changed=tuple(name for suite in suites for name in suite.changed),
    )


async def prefer(asking: Asking, paired_runs: PairedRuns, at: datetime) -> Preference:
    """Ask the judge about each pair in both orders, and sum up its answers.

    Raises:
        UsageError: a trial is none that a run leaves; nobody was asked then.
    """
    conversation_pairs = [_conversation_pair(asking, one, paired_runs) for one in paired_runs.pairs]

    async def ask(index: int) -> ComparedPair:
        trial_pair, conversation_pair = paired_runs.pairs[index], conversation_pairs[index]
        suite, test = trial_pair.suite, trial_pair.tests[0].name
        if conversation_pair.identical:
            same = Round("tie", "tie", "the conversations are the same")
            return ComparedPair(suite, test, (same,), votes=1)
        rounds = await _rounds(asking, conversation_pair, index)
        return ComparedPair(suite, test, rounds, asking.votes, counted=asking.votes // 2 + 1)

    answers = await asking.each(range(len(conversation_pairs)), ask, _missing)
    run = paired_runs.base.results.run
    judge = replace(asking.used, prompt=templates.digest(*_SHOWN))
    return preference([answer for answer in answers if answer], judge, at, run.id, run.git)


def _conversation_pair(asking: Asking, pair: TrialPair, paired_runs: PairedRuns) -> ConversationPair:
    head, base = (
        ComparedConversation(turns_of(test, trial, str(run.file)), transcript_of(trial))
        for test, trial, run in zip(
            pair.tests, pair.trials, (paired_runs.head, paired_runs.base), strict=True
        )
    )
    return ConversationPair(
        redactor=asking.redactor,
        test=pair.tests[0],
        criteria=[finding.criterion for finding in pair.trials[0].findings if is_judged(finding)],
        one=head,
        other=base,
    )


async def _rounds(asking: Asking, conversation_pair: ConversationPair, index: int) -> tuple[Round, ...]:
    """Ask as many rounds at once as a majority takes, then one at a time while they could still decide."""
    llms = asking.llms

    async def once(number: int) -> Round:
        llm, sample_id = llms[number % len(llms)], f"prefer/{index}/{number}"
        straight, swapped = await asyncio.gather(
            *(conversation_pair.ask(llm, swapped=swapped, sample_id=sample_id) for swapped in (False, True))
        )
        failure = next((answer.reason for answer in (straight, swapped) if answer.better is None), None)
        return Round(straight.better, swapped.better, failure or straight.reason)

    rounds: Sequence[Round] = await asyncio.gather(*map(once, range(asking.votes // 2 + 1)))
    while not decided(rounds, asking.votes):
        rounds = [*rounds, await once(len(rounds))]
    return tuple(rounds)


def _missing(pair: ComparedPair) -> str | None:
    """Return why the judge could not be asked, where no round came to anything."""
    return pair.rounds[-1].reason if all(one.result is None for one in pair.rounds) else None
