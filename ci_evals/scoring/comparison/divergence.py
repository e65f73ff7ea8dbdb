"""The first turn in which the agent did something other than in another conversation of the same test."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

from ci_evals.domain.actions import LogicKind, is_traced, shown_actions
from ci_evals.domain.results.comparison import Divergence, DivergentAction
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turn
from ci_evals.scoring.comparison.pairing import TestPair
from ci_evals.scoring.scores import ScoreRule, outcome_of
from ci_evals.support.json_text import canonical

MOST_ACTIONS = 50
"""The most actions of each side: fewer show already what an agent began to do differently."""

Difference: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The indexes of the actions in a turn that only this run's conversation has, or the baseline's."""


def of_test(pair: TestPair, here: ScoreRule, there: ScoreRule) -> Divergence | None:
    """The divergence of the two trials that show a test's change.

    These are the first trial of this run that does not pass, or else its first, and its `counterpart`. Trials
    that broke off are looked at only if all did. None if a side has no trial, or that trial no trace.
    """
    head = [trial for trial in pair.head.trials if trial.complete] or pair.head.trials
    if not head or not pair.base.trials:
        return None
    shown = next((trial for trial in head if not _passed(trial, here)), head[0])
    outcomes = [outcome_of((trial,), 1, there) for trial in pair.base.trials]
    return between(shown, counterpart(pair.base.trials, outcomes, passed=_passed(shown, here)))


def counterpart(base: Sequence[TrialResult], outcomes: Sequence[TestOutcome], *, passed: bool) -> TrialResult:
    """The trial of the baseline to compare one with: the first with the opposite outcome, else the first.

    Trials that broke off are looked at only if all did.
    """
    trials = list(zip(base, outcomes, strict=True))
    whole = [(trial, outcome) for trial, outcome in trials if trial.complete] or trials
    opposite = (trial for trial, outcome in whole if (outcome is TestOutcome.PASSED) is not passed)
    return next(opposite, whole[0][0])


def between(head: TrialResult, base: TrialResult) -> Divergence | None:
    """The divergence of two conversations; None if one of them carries no trace."""
    here, there = (TracedConversation(trial.index, trial.turns.without_traces()) for trial in (head, base))
    return here.divergence(there, tuple(here.differences(there)))


class ConversationTurn:
    """One turn with the actions for its reply, prepared to be compared with others."""

    __slots__ = ("actions", "keys", "reported", "turn")

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        by_kind = shown_actions(turn)
        self.actions = tuple(action for actions in by_kind.values() for action in actions or ())
        self.reported = frozenset(kind for kind, actions in by_kind.items() if actions is not None)
        self.keys = tuple(None if action.is_empty else action.key for action in self.actions)

    def missing_in(self, other: "ConversationTurn | None") -> tuple[int, ...]:
        """The indexes of the actions that `other` lacks, of the kinds that it reports; of None all."""
        if other is not None and other.keys == self.keys:
            return ()
        others = frozenset(other.keys) if other else frozenset()
        # Arguments that are unknown on one side make no difference.
        tools = {key[:2] for key in others if key and key[0] is LogicKind.WORKFLOW}
        vague = {key[:2] for key in others if key and key[0] is LogicKind.WORKFLOW and key[2] == _UNKNOWN}
        return tuple(
            index
            for index, key in enumerate(self.keys)
            if key
            and key not in others
            and (other is None or key[0] in other.reported)
            and key[:2] not in (tools if key[2] == _UNKNOWN else vague)
        )

    def divergent(self, indexes: Sequence[int]) -> tuple[DivergentAction, ...]:
        """These of its actions, without repetitions."""
        by_key = {self.keys[index]: self.actions[index] for index in indexes}
        return tuple(
            DivergentAction(kind=action.kind, name=action.name, value=action.value)
            for action in [*by_key.values()][:MOST_ACTIONS]
        )


_UNKNOWN = canonical(None)


class TracedConversation:
    """The turns of a trial, prepared to be compared with those of several others."""

    def __init__(self, trial: int, turns: Iterable[Turn]) -> None:
        self.trial = trial
        """The trial's index."""
        self.turns = tuple(map(ConversationTurn, turns))
        self.traced = any(is_traced(one.turn) for one in self.turns)

    def differences(self, base: "TracedConversation") -> Iterator[Difference]:
        """The difference of each turn that one of them has."""
        for mine, theirs in zip_longest(self.turns, base.turns):
            yield mine.missing_in(theirs) if mine else (), theirs.missing_in(mine) if theirs else ()

    def divergence(self, base: "TracedConversation", differences: Sequence[Difference]) -> Divergence | None:
        """The first of their `differences`; None if one of the conversations carries no trace."""
        if not self.traced or not base.traced:
            return None
        user_differs: int | None = None
        pairs = zip_longest(self.turns, base.turns)
        for number, ((mine, theirs), (head, other)) in enumerate(
            zip(pairs, differences, strict=True), start=1
        ):
            if user_differs is None and mine and theirs and mine.turn.user != theirs.turn.user:
                user_differs = number
            if mine and theirs and not head and not other:
                continue
            return Divergence(
                head_trial=self.trial,
                base_trial=base.trial,
                turn=number,
                head=mine.divergent(head) if mine else (),
                base=theirs.divergent(other) if theirs else (),
                only=None if mine and theirs else "head" if mine else "base",
                user_differs=user_differs,
            )
        turns = [(mine.turn, theirs.turn) for mine, theirs in zip(self.turns, base.turns, strict=True)]
        return Divergence(
            head_trial=self.trial,
            base_trial=base.trial,
            turn=None,
            user_differs=user_differs,
            agent_differs=next(
                (number for number, (mine, theirs) in enumerate(turns, 1) if mine.agent != theirs.agent), None
            ),
            unknown=tuple(mine.index for mine, theirs in turns if _is_unknown(mine, theirs)),
        )


def _passed(trial: TrialResult, rule: ScoreRule) -> bool:
    """Return whether the test would have passed with this trial alone."""
    return outcome_of((trial,), 1, rule) is TestOutcome.PASSED


def _is_unknown(mine: Turn, theirs: Turn) -> bool:
    """Return whether one of two replies reports a kind that the other does not, or neither reports any."""
    reported = _reported_kinds(mine)
    return reported != _reported_kinds(theirs) or not any(reported)


def _reported_kinds(turn: Turn) -> list[bool]:
    evidence = (turn.workflows, turn.params, turn.rules, turn.integrations)
    return [part is not None for part in evidence]
