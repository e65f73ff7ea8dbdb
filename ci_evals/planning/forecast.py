"""What playing a plan takes: tokens and time, as ranges. An estimate; all that it assumes is named here.

The low end is a conversation that plays its fixed turns, after which the simulated user has nothing more to
say; the high end is one that uses all its turns. An agent that hands over or fails earlier takes less; trials
that are played again, and questions that are asked twice, take more.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from math import ceil

from ci_evals.domain.evaluation import Graded, compares_meanings
from ci_evals.domain.suite import PlannedTurn, Suite, Test


@dataclass(frozen=True)
class Range:
    """From the least to the most that is to be expected."""

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
"""Of a message, as a mean over a run: a sentence, or a paragraph or two."""

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
"""For one call, at the high end with thinking. Providers' limits of calls a minute are not reckoned with."""

DEMO_AGENT_SECONDS = Range(0, 0.1)
"""The embedded agent has its answers ready."""


@dataclass(frozen=True)
class PromptSizes:
    """Characters in the prompts of one test, apart from what will be said in the conversation."""

    user: int
    """The simulated user's, before anything was said."""
    user_turn: int
    """What each turn adds to it, without its words."""
    judge: tuple[int, ...]
    """The judge's, for each judged criterion."""
    judge_turn: int
    auditor: int = 0
    """Of the model that looks at the simulated user; 0 where that is not wanted."""
    auditor_turn: int = 0


@dataclass(frozen=True)
class Spending:
    """Calls and tokens of a role or a model."""

    calls: Range = Range()
    input: Range = Range()
    output: Range = Range()

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(self.calls + other.calls, self.input + other.input, self.output + other.output)

    def times(self, count: int) -> "Spending":
        """What so many trials of the same kind use."""
        return self.between(Range(count, count))

    def between(self, counts: Range) -> "Spending":
        """What it uses to do this once, so many times."""
        return Spending(self.calls * counts, self.input * counts, self.output * counts)


@dataclass(frozen=True)
class Forecast:
    """What one trial takes."""

    user: Spending
    judge: Spending
    talking: Range
    """Seconds of its conversation, whose turns follow each other."""
    judging: Range
    """Seconds of its judgements, which are asked for together."""
    embedder: Spending = Spending()
    auditor: Spending = Spending()


def of_check(questions: int, characters: int, at_a_time: int) -> Forecast:
    """What control questions to one judge take, so many under way; `characters` are those of all prompts."""
    calls, rounds = Range(questions, questions), ceil(questions / at_a_time)
    return Forecast(
        user=Spending(),
        judge=Spending(calls, _tokens(Range(characters, characters)), calls * JUDGE_TOKENS),
        talking=Range(),
        judging=JUDGE_SECONDS * Range(rounds, rounds),
    )


def votes_of(place: int, models: int, most: int) -> Range:
    """Votes of one of several models that vote in turn: from what a majority takes to all that are wanted."""
    least = most // 2 + 1
    return Range(len(range(place, least, models)), len(range(place, most, models)))


def voted(trial: Forecast, most: int) -> Forecast:
    """The trial with so many votes on each judged criterion, at most: after the first batch one by one."""
    if not trial.judge.calls.high:
        return trial
    return replace(trial, judging=trial.judging * Range(1, most // 2 + 1))


def of_trial(suite: Suite, test: Test, sizes: PromptSizes | None) -> Forecast:
    """What one trial of a test takes; `sizes` is None where no model is asked and the user is scripted."""
    turns = suite.turns_of(test)
    least = next((place for place, turn in enumerate(turns) if place and turn.auto), len(turns))
    agent = DEMO_AGENT_SECONDS if suite.adapter == "demo" else AGENT_SECONDS
    requests = Range(1 + least, 1 + len(turns))
    embedder = _embedder(test, least, len(turns))
    comparing = EMBEDDER_SECONDS if embedder.calls.high else Range()
    if sizes is None:
        return Forecast(Spending(), Spending(), agent * requests, comparing, embedder)
    user, auditor = _user(turns[: least + 1], turns, sizes), _auditor(turns[:least], turns, sizes)
    return Forecast(
        user=user,
        judge=_judge(turns[:least], turns, sizes) + _levels(test),
        embedder=embedder,
        auditor=auditor,
        # A conversation is looked at before the next one begins in its place.
        talking=agent * requests + USER_SECONDS * user.calls + AUDITOR_SECONDS * auditor.calls,
        judging=JUDGE_SECONDS if sizes.judge else comparing,
    )


def _user(least: Sequence[PlannedTurn], most: Sequence[PlannedTurn], sizes: PromptSizes) -> Spending:
    calls = Range(sum(turn.auto for turn in least), sum(turn.auto for turn in most))
    characters = Range(_asked(least, sizes, _shortest), _asked(most, sizes, _longest))
    return Spending(calls, _tokens(characters), calls * USER_TOKENS)


def _asked(turns: Sequence[PlannedTurn], sizes: PromptSizes, words: Callable[[PlannedTurn], float]) -> float:
    """Characters of all prompts of the simulated user: each has all that was said before it."""
    total = said = 0.0
    for turn in turns:
        total += sizes.user + said if turn.auto else 0
        said += sizes.user_turn + words(turn)
    return total


def _judge(least: Sequence[PlannedTurn], most: Sequence[PlannedTurn], sizes: PromptSizes) -> Spending:
    criteria, asked = len(sizes.judge), sum(sizes.judge)
    calls = Range(criteria, criteria)
    said = Range(
        sum(sizes.judge_turn + _shortest(turn) for turn in least),
        sum(sizes.judge_turn + _longest(turn) for turn in most),
    )
    return Spending(calls, _tokens(Range(asked, asked) + calls * said), calls * JUDGE_TOKENS)


def _levels(test: Test) -> Spending:
    """What a judge writes more where it names a level for each dimension."""
    rubrics = [item.whole_rubric for item in test.evaluations if isinstance(item, Graded)]
    count = sum(len(rubric.dimensions) for rubric in rubrics)
    return Spending(output=Range(count, count) * DIMENSION_TOKENS)


def _auditor(least: Sequence[PlannedTurn], most: Sequence[PlannedTurn], sizes: PromptSizes) -> Spending:
    """One call for each conversation in which the simulated user has a say."""
    if not sizes.auditor or not any(turn.auto for turn in most):
        return Spending()
    said = Range(
        sum(sizes.auditor_turn + _shortest(turn) for turn in least),
        sum(sizes.auditor_turn + _longest(turn) for turn in most),
    )
    return Spending(Range(1, 1), _tokens(Range(sizes.auditor, sizes.auditor) + said), AUDITOR_TOKENS)


def _embedder(test: Test, least: int, most: int) -> Spending:
    """One call for each answer that is compared by its meaning, with the replies and what was expected."""
    compared = [evaluation for evaluation in test.evaluations if compares_meanings(evaluation)]
    total = Range()
    for evaluation in compared:
        expected = sum(len(text) for text in evaluation.expected)
        replies = Range(least, most) if evaluation.turn == "any" else Range(1, 1)
        total += Range(expected, expected) + replies * AGENT_CHARACTERS
    return Spending(Range(len(compared), len(compared)), _tokens(total))


def _shortest(turn: PlannedTurn) -> float:
    """Characters of a turn, user and agent together."""
    return (USER_CHARACTERS.low if turn.auto else len(turn.user)) + AGENT_CHARACTERS.low


def _longest(turn: PlannedTurn) -> float:
    return (USER_CHARACTERS.high if turn.auto else len(turn.user)) + AGENT_CHARACTERS.high


def _tokens(characters: Range) -> Range:
    return Range(characters.low / CHARACTERS_PER_TOKEN.high, characters.high / CHARACTERS_PER_TOKEN.low)


def duration(trials: Sequence[Forecast], parallel: int) -> Range:
    """Seconds that all trials take, played in this order and so many conversations at a time."""
    return Range(
        _makespan(((trial.talking.low, trial.judging.low) for trial in trials), parallel),
        _makespan(((trial.talking.high, trial.judging.high) for trial in trials), parallel),
    )


def _makespan(trials: Iterable[tuple[float, float]], parallel: int) -> float:
    """When the last trial ends by the runner's schedule: no more are judged at a time than may talk."""
    talking, judging = [0.0] * parallel, [0.0] * parallel
    end = 0.0
    for talk, judge in trials:
        asked = max(talking[0] + talk, judging[0])
        heapreplace(talking, asked)
        heapreplace(judging, asked + judge)
        end = max(end, asked + judge)
    return end
