"""An estimate of the tokens and time that a plan takes, as ranges; all its assumptions are named here.

The low end is a conversation that plays its fixed turns, after which the simulated user has nothing more to
say; the high end is one that uses all its turns. An agent that hands over or fails earlier takes less;
retried trials and questions take more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from math import ceil

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.domain.checks.evaluation import Graded
from ci_evals.domain.checks.strict.expected_answers import compares_meanings
from ci_evals.domain.suite import PlannedTurn, Suite, Test


@dataclass(frozen=True)
class Range:
    """The least and the most to expect."""

    low: float = 0
    high: float = 0

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Range") -> "Range":
        return Range(self.low * other.low, self.high * other.high)


CHARACTERS_PER_TOKEN = Range(2.5, 5)
"""English prose has four to five. JSON has fewer, and newer tokenizers make more tokens of the same text:
Anthropic gives 2.5 for its models since Opus 4.7."""

USER_CHARACTERS = Range(40, 200)
AGENT_CHARACTERS = Range(120, 700)
"""Characters of a message, as a mean over a run: a sentence, or a paragraph or two."""

USER_TOKENS = Range(20, 350)
JUDGE_TOKENS = Range(120, 1_000)
AUDITOR_TOKENS = Range(80, 800)
"""Written for one call: a message, or two to five sentences and what follows from them. At the high end with
hidden thinking, which is paid like what can be read."""

DIMENSION_TOKENS = Range(40, 150)
"""Written for each dimension of a rubric: a sentence or two, a quote, a level."""

AGENT_SECONDS = Range(1.5, 8)
USER_SECONDS = Range(1, 4)
JUDGE_SECONDS = Range(3, 12)
AUDITOR_SECONDS = Range(1, 8)
EMBEDDER_SECONDS = Range(0.1, 1)
"""For one call, at the high end with thinking. Rate limits of providers are not considered."""

EMBEDDED_AGENT_SECONDS = Range(0, 0.1)
"""An agent that the run serves itself has its answers ready."""


@dataclass(frozen=True)
class PromptSizes:
    """Characters in the prompts of one test, without the words of the conversation."""

    user: int
    """The simulated user's prompt before the first turn."""
    user_turn: int
    """Added by each turn, without its words."""
    judge: tuple[int, ...]
    """The judge's prompts, one for each judged criterion."""
    judge_turn: int
    auditor: int = 0
    """The auditor's prompt; 0 without an audit."""
    auditor_turn: int = 0


@dataclass(frozen=True)
class Spending:
    """Calls and tokens of a role or a model."""

    calls: Range = Range()
    input: Range = Range()
    output: Range = Range()

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(self.calls + other.calls, self.input + other.input, self.output + other.output)

    def between(self, counts: Range) -> "Spending":
        """Return the spending of doing this between `low` and `high` times."""
        return Spending(self.calls * counts, self.input * counts, self.output * counts)


@dataclass(frozen=True)
class Forecast:
    """Tokens and time of one trial."""

    user: Spending
    judge: Spending
    talking: Range
    """Seconds of its conversation, whose turns follow each other."""
    judging: Range
    """Seconds of its judgments, which run concurrently."""
    embedder: Spending = Spending()
    auditor: Spending = Spending()


def of_check(questions: int, characters: int, concurrent: int) -> Forecast:
    """Return the forecast of control questions to one judge; `characters` are those of all prompts."""
    calls, rounds = Range(questions, questions), ceil(questions / concurrent)
    return Forecast(
        user=Spending(),
        judge=Spending(calls, _tokens(Range(characters, characters)), calls * JUDGE_TOKENS),
        talking=Range(),
        judging=JUDGE_SECONDS * Range(rounds, rounds),
    )


def votes_of(index: int, models: int, most: int) -> Range:
    """Return the votes of one of several models that vote in turn: from those in a majority to all."""
    least = most // 2 + 1
    return Range(len(range(index, least, models)), len(range(index, most, models)))


def with_votes(trial: Forecast, most: int) -> Forecast:
    """Return the trial with up to this many votes on each criterion: after the first batch one by one."""
    if not trial.judge.calls.high:
        return trial
    return replace(trial, judging=trial.judging * Range(1, most // 2 + 1))


def of_trial(suite: Suite, test: Test, sizes: PromptSizes | None) -> Forecast:
    """Return the forecast of one trial; `sizes` is None if no LLM is asked and the user is scripted."""
    turns = suite.turns_of(test)
    fixed = suite.fewest_turns(test)
    kind = AGENT_KINDS.get(suite.adapter)
    agent = EMBEDDED_AGENT_SECONDS if kind and kind.embedded else AGENT_SECONDS
    requests = Range(1 + fixed, 1 + len(turns))
    embedder = _embedder(test, fixed, len(turns))
    comparing = EMBEDDER_SECONDS if embedder.calls.high else Range()
    if sizes is None:
        return Forecast(Spending(), Spending(), agent * requests, comparing, embedder)
    least = turns[:fixed]
    user = _user(turns[: fixed + 1], turns, sizes)
    auditor = _auditor(_conversation(least, turns, sizes.auditor_turn), turns, sizes)
    return Forecast(
        user=user,
        judge=_judge(_conversation(least, turns, sizes.judge_turn), test, sizes),
        embedder=embedder,
        auditor=auditor,
        # A conversation is audited before the next one takes its place.
        talking=agent * requests + USER_SECONDS * user.calls + AUDITOR_SECONDS * auditor.calls,
        judging=JUDGE_SECONDS if sizes.judge else comparing,
    )


def _conversation(least: Sequence[PlannedTurn], most: Sequence[PlannedTurn], per_turn: int) -> Range:
    return Range(
        sum(per_turn + _characters(turn).low for turn in least),
        sum(per_turn + _characters(turn).high for turn in most),
    )


def _characters(turn: PlannedTurn) -> Range:
    """Return the characters of a turn, user and agent together."""
    user = USER_CHARACTERS if turn.auto else Range(len(turn.user), len(turn.user))
    return user + AGENT_CHARACTERS


def _user(least: Sequence[PlannedTurn], most: Sequence[PlannedTurn], sizes: PromptSizes) -> Spending:
    calls = Range(sum(turn.auto for turn in least), sum(turn.auto for turn in most))
    characters = Range(
        _user_prompts([(turn, _characters(turn).low) for turn in least], sizes),
        _user_prompts([(turn, _characters(turn).high) for turn in most], sizes),
    )
    return Spending(calls, _tokens(characters), calls * USER_TOKENS)


def _user_prompts(turns: Sequence[tuple[PlannedTurn, float]], sizes: PromptSizes) -> float:
    """Return the characters of all prompts of the simulated user, each with all turns before it."""
    total = before = 0.0
    for turn, characters in turns:
        total += sizes.user + before if turn.auto else 0
        before += sizes.user_turn + characters
    return total


def _judge(conversation: Range, test: Test, sizes: PromptSizes) -> Spending:
    """Return one call for each judged criterion, with the levels that it writes for a rubric."""
    criteria, characters = len(sizes.judge), sum(sizes.judge)
    calls = Range(criteria, criteria)
    rubrics = [item.whole_rubric for item in test.evaluations if isinstance(item, Graded)]
    dimensions = sum(len(rubric.dimensions) for rubric in rubrics)
    return Spending(
        calls,
        _tokens(Range(characters, characters) + calls * conversation),
        calls * JUDGE_TOKENS + Range(dimensions, dimensions) * DIMENSION_TOKENS,
    )


def _auditor(conversation: Range, turns: Sequence[PlannedTurn], sizes: PromptSizes) -> Spending:
    """Return one call for each conversation with a turn of the simulated user."""
    if not sizes.auditor or not any(turn.auto for turn in turns):
        return Spending()
    characters = Range(sizes.auditor, sizes.auditor) + conversation
    return Spending(Range(1, 1), _tokens(characters), AUDITOR_TOKENS)


def _embedder(test: Test, least: int, most: int) -> Spending:
    """Return one call for each answer that is compared by its meaning, with replies and expected answers."""
    compared = [evaluation for evaluation in test.evaluations if compares_meanings(evaluation)]
    total = Range()
    for evaluation in compared:
        expected = sum(len(text) for text in evaluation.expected)
        replies = Range(least, most) if evaluation.turn == "any" else Range(1, 1)
        total += Range(expected, expected) + replies * AGENT_CHARACTERS
    return Spending(Range(len(compared), len(compared)), _tokens(total))


def _tokens(characters: Range) -> Range:
    return Range(characters.low / CHARACTERS_PER_TOKEN.high, characters.high / CHARACTERS_PER_TOKEN.low)


def duration(trials: Sequence[Forecast], parallel: int) -> Range:
    """Return the seconds that all trials take, in this order and with this many concurrent conversations."""
    return Range(
        _makespan(((trial.talking.low, trial.judging.low) for trial in trials), parallel),
        _makespan(((trial.talking.high, trial.judging.high) for trial in trials), parallel),
    )


def _makespan(trials: Iterable[tuple[float, float]], parallel: int) -> float:
    """Return the end of the last trial: as many trials may be judged at once as may talk."""
    talking, judging = [0.0] * parallel, [0.0] * parallel
    end = 0.0
    for talk_seconds, judge_seconds in trials:
        judged_from = max(talking[0] + talk_seconds, judging[0])
        heapreplace(talking, judged_from)
        heapreplace(judging, judged_from + judge_seconds)
        end = max(end, judged_from + judge_seconds)
    return end
