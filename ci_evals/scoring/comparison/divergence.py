"""Where two conversations of one test part: the first turn in which the agent did something else."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from ci_evals.domain.results.comparison import Divergence, DivergentAction
from ci_evals.domain.results.process import LogicKind
from ci_evals.domain.results.suite import TestOutcome
from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import Turn, is_empty
from ci_evals.scoring.comparison.pairing import TestPair
from ci_evals.scoring.scores import Counting
from ci_evals.scoring.validity import CUT_OFF, outcome_of
from ci_evals.support.json_text import canonical

MOST_ACTIONS = 50
"""Of each side in a `Parting`; who reads it sees what an agent began to do differently in fewer."""

_Key = tuple[LogicKind, str, str]


def of_test(pair: TestPair, here: Counting, there: Counting) -> Divergence | None:
    """Where a test's conversations part, told by the two trials that show its change.

    These are of this run the first trial that does not pass, or where all do the first; and of the baseline
    the first of which the contrary holds, or where there is none the first. Trials that broke off are looked
    at only where all did. None where a side has no trial, or that trial no trace.
    """
    head, base = _whole(pair.head.trials), _whole(pair.base.trials)
    if not head or not base:
        return None
    one = next((trial for trial in head if not _passed(trial, here)), head[0])
    passed = _passed(one, here)
    return between(one, next((trial for trial in base if _passed(trial, there) is not passed), base[0]))


def between(head: TrialResult, base: TrialResult) -> Divergence | None:
    """Where two conversations part, as `Parting` says; None where one of them carries no trace."""
    here, there = head.turns.without_traces(), base.turns.without_traces()
    if not any(map(_traced, here)) or not any(map(_traced, there)):
        return None
    user_differs: int | None = None
    for place, (mine, theirs) in enumerate(zip_longest(here, there), start=1):
        if user_differs is None and mine and theirs and mine.user != theirs.user:
            user_differs = place
        did, had = _actions(mine, theirs), _actions(theirs, mine)
        if did.keys() == had.keys() and mine and theirs:
            continue
        return Divergence(
            head_trial=head.index,
            base_trial=base.index,
            turn=place,
            head=_without(did, had),
            base=_without(had, did),
            only=None if mine and theirs else "head" if mine else "base",
            user_differs=user_differs,
        )
    unknown = [mine.index for mine, theirs in zip(here, there, strict=True) if _is_unknown(mine, theirs)]
    said = enumerate(zip(here, there, strict=True), start=1)
    return Divergence(
        head_trial=head.index,
        base_trial=base.index,
        turn=None,
        user_differs=user_differs,
        agent_differs=next((place for place, (mine, theirs) in said if mine.agent != theirs.agent), None),
        unknown=tuple(unknown),
    )


def _passed(trial: TrialResult, counting: Counting) -> bool:
    """Whether the test would have passed with this trial alone."""
    return outcome_of((trial,), 1, counting) is TestOutcome.PASSED


def _whole(trials: Sequence[TrialResult]) -> list[TrialResult]:
    return [trial for trial in trials if trial.status not in CUT_OFF] or list(trials)


def _traced(reply: Turn) -> bool:
    told = (reply.workflows, reply.params, reply.rules, reply.integrations)
    return any(part is not None for part in told) or bool(reply.named_params)


def _is_unknown(mine: Turn, theirs: Turn) -> bool:
    """Whether one of two replies reports a kind that the other does not, or neither reports any."""
    kinds = [
        {name for name in ("workflows", "params", "rules", "integrations") if getattr(one, name) is not None}
        for one in (mine, theirs)
    ]
    return kinds[0] != kinds[1] or not kinds[0]


def _actions(reply: Turn | None, other: Turn | None) -> dict[_Key, DivergentAction]:
    """What was done for a reply, of what the `other` tells as well: what is not told was not left out."""
    deeds = _told(reply, other) if reply else ()
    return {(deed.kind, deed.name, canonical(deed.value)): deed for deed in deeds}


def _told(reply: Turn, other: Turn | None) -> Iterator[DivergentAction]:
    if reply.workflows is not None and not (other and other.workflows is None):
        yield from (DivergentAction(kind=LogicKind.WORKFLOW, name=name) for name in reply.workflows)
    if not (other and other.params is None and not other.named_params):
        for name, value in (reply.params or {}).items():
            if not is_empty(value):
                yield DivergentAction(kind=LogicKind.PARAMETER, name=name, value=value)
        yield from (DivergentAction(kind=LogicKind.PARAMETER, name=name) for name in reply.named_params)
    if reply.rules is not None and not (other and other.rules is None):
        yield from (DivergentAction(kind=LogicKind.RULE, name=code) for code in reply.rules)
    if reply.integrations is not None and not (other and other.integrations is None):
        for call in reply.integrations:
            yield DivergentAction(kind=LogicKind.INTEGRATION, name=call.code, value=call.status)


def _without(
    deeds: dict[_Key, DivergentAction], others: dict[_Key, DivergentAction]
) -> tuple[DivergentAction, ...]:
    return tuple(deed for key, deed in deeds.items() if key not in others)[:MOST_ACTIONS]
