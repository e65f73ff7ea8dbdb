"""The faults that can be planted, each a pure function of a conversation.

A fault changes all evidence that an agent with that bug would change, and nothing else. It is planted
once, at the first place where it applies. A function returns None where it does not apply.
"""

from collections.abc import Callable
from typing import NamedTuple

from ci_evals.domain.transcript import Transcript
from ci_evals.extensions.mutate.faults import calls, end_state, hand_overs, logic, replies
from ci_evals.extensions.mutate.faults.conversation import Conversation


class Fault(NamedTuple):
    """A kind of fault."""

    title: str
    """The bug in a clause: `skips a call`."""
    plant: Callable[[Conversation], Transcript | None]
    needs: str
    """What a conversation must have for the fault to apply, for the docs."""

    @property
    def kind(self) -> str:
        """The name in options and files."""
        return self.plant.__name__


FAULTS: tuple[Fault, ...] = (
    Fault("skips a call, and goes on as if it had made it", calls.call_dropped, "a call"),
    Fault("calls with a wrong argument", calls.call_changed, "a call with a plain argument"),
    Fault("makes a call twice", calls.call_repeated, "a call"),
    Fault(
        "also calls a tool that the task has no use for",
        calls.call_forbidden,
        "another test of the suite with a call of another tool",
    ),
    Fault("takes no notice of a failed call", calls.call_failed, "a call that did not fail"),
    Fault("says that it hands over, and never does", hand_overs.hand_over_dropped, "a hand-over"),
    Fault(
        "hands over to a person at once",
        hand_overs.hand_over_added,
        "a first reply that is known not to hand over",
    ),
    Fault("a rule no longer fires", logic.rule_dropped, "a rule that fired"),
    Fault(
        "understands a value wrongly, and calls with it",
        logic.param_changed,
        "an extracted parameter with a plain value",
    ),
    Fault(
        "its calls report success and change nothing",
        end_state.state_unchanged,
        "a probe whose value changed since before the first message",
    ),
    Fault("refuses everything, and does nothing", replies.reply_refused, "a reply"),
    Fault("claims that all is done, and does nothing", replies.reply_claims, "a reply"),
    Fault("gives the reply of another conversation", replies.reply_swapped, "another test of the suite"),
    Fault("its reply breaks off", replies.reply_cut, "a reply of three words"),
    Fault("gets a number, a date or an amount wrong", replies.fact_changed, "a reply with a digit"),
    Fault(
        "gives away another user's data",
        replies.data_told,
        "another test whose `userInfo` has a value that this conversation lacks",
    ),
)
"""All kinds, in the order of reports."""

KINDS = {fault.kind: fault for fault in FAULTS}
