"""Which replies of the agent a check on its text looks at."""

from collections.abc import Sequence
from typing import Literal

from ci_evals.domain.transcript import Exchange
from ci_evals.domain.verdict import Cause, Verdict

Exchanges = Sequence[Exchange]

NO_REPLY = Verdict.undecided(Cause.NO_EVIDENCE, "the agent gave no reply")


def replies(turn: int | Literal["last", "any"], exchanges: Exchanges) -> Exchanges | Verdict:
    """The replies that `turn` names, at least one; where there is none, what that makes of the check."""
    if not exchanges:
        return NO_REPLY
    match turn:
        case "any":
            return exchanges
        case "last":
            return exchanges[-1:]
    named = [exchange for exchange in exchanges if exchange.index == turn]
    if named:
        return named
    reason = f"there is no reply {turn}: the agent replied {times(len(exchanges))}"
    return Verdict.undecided(Cause.NO_EVIDENCE, reason)


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count} times"
