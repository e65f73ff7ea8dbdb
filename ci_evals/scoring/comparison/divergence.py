"""The first turn in which the agent did something else than in another conversation of the same test."""

from collections.abc import Sequence
from itertools import islice, zip_longest

from ci_evals.domain.actions import AgentAction, LogicKind, actions_of, is_traced
from ci_evals.domain.results.comparison import Divergence, DivergentAction
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turn
from ci_evals.scoring.comparison.pairing import TestPair
from ci_evals.scoring.scores import Counting
from ci_evals.scoring.validity import CUT_OFF, outcome_of

MOST_ACTIONS = 50
"""Of each side: fewer show already what an agent began to do differently."""

_ByKey = dict[tuple[LogicKind, str, str], AgentAction]


def of_test(pair: TestPair, here: Counting, there: Counting) -> Divergence | None:
    """The divergence of the two trials that show a test's change.

    These are of this run the first trial that does not pass, or where all do the first; and of the baseline
    the first of which the contrary holds, or where there is none the first. Trials that broke off are looked
    at only where all did. None where a side has no trial, or that trial no trace.
    """
    head, base = _whole(pair.head.trials), _whole(pair.base.trials)
    if not head or not base:
        return None
    shown = next((trial for trial in head if not _passed(trial, here)), head[0])
    passed = _passed(shown, here)
    return between(shown, next((trial for trial in base if _passed(trial, there) is not passed), base[0]))


def between(head: TrialResult, base: TrialResult) -> Divergence | None:
    """The divergence of two conversations; None if one of them carries no trace."""
    here, there = head.turns.without_traces(), base.turns.without_traces()
    if not any(map(is_traced, here)) or not any(map(is_traced, there)):
        return None
    user_differs: int | None = None
    for number, (mine, theirs) in enumerate(zip_longest(here, there), start=1):
        if user_differs is None and mine and theirs and mine.user != theirs.user:
            user_differs = number
        actions, base_actions = _comparable(mine, theirs), _comparable(theirs, mine)
        if actions.keys() == base_actions.keys() and mine and theirs:
            continue
        return Divergence(
            head_trial=head.index,
            base_trial=base.index,
            turn=number,
            head=_without(actions, base_actions),
            base=_without(base_actions, actions),
            only=None if mine and theirs else "head" if mine else "base",
            user_differs=user_differs,
        )
    unknown = [mine.index for mine, theirs in zip(here, there, strict=True) if _is_unknown(mine, theirs)]
    pairs = enumerate(zip(here, there, strict=True), start=1)
    return Divergence(
        head_trial=head.index,
        base_trial=base.index,
        turn=None,
        user_differs=user_differs,
        agent_differs=next((number for number, (mine, theirs) in pairs if mine.agent != theirs.agent), None),
        unknown=tuple(unknown),
    )


def _passed(trial: TrialResult, counting: Counting) -> bool:
    """Whether the test would have passed with this trial alone."""
    return outcome_of((trial,), 1, counting) is TestOutcome.PASSED


def _whole(trials: Sequence[TrialResult]) -> list[TrialResult]:
    return [trial for trial in trials if trial.status not in CUT_OFF] or list(trials)


def _is_unknown(mine: Turn, theirs: Turn) -> bool:
    """Whether one of two replies reports a kind that the other does not, or neither reports any."""
    kinds = [
        {name for name in ("workflows", "params", "rules", "integrations") if getattr(one, name) is not None}
        for one in (mine, theirs)
    ]
    return kinds[0] != kinds[1] or not kinds[0]


def _comparable(reply: Turn | None, other: Turn | None) -> _ByKey:
    """The actions for a reply, of the kinds that `other` reports as well."""
    if reply is None:
        return {}
    others = actions_of(other) if other else None
    return {
        action.key: action
        for kind, actions in actions_of(reply).items()
        if others is None or others[kind] is not None
        for action in actions or ()
        if not action.is_empty
    }


def _without(actions: _ByKey, others: _ByKey) -> tuple[DivergentAction, ...]:
    """The actions that are not among the others."""
    left = (action for key, action in actions.items() if key not in others)
    return tuple(
        DivergentAction(kind=action.kind, name=action.name, value=action.value)
        for action in islice(left, MOST_ACTIONS)
    )
