"""The spans of one trial: which turn they belong to, and what is known of them when a turn is read."""

import asyncio
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ci_evals.adapters.trace_context import TraceContext
from ci_evals.domain.transcript import Reply
from ci_evals.extension_support.span_reading import evidence
from ci_evals.extension_support.span_reading.belonging import TurnSpan, by_turn, unattributed
from ci_evals.extension_support.span_reading.evidence import Progress, TurnEvidence
from ci_evals.extension_support.span_reading.kinds import may_hold_calls
from ci_evals.extension_support.span_reading.spans import Span
from ci_evals.extensions.spans.contradiction import contradiction
from ci_evals.extensions.spans.gaps import LATE, Gaps
from ci_evals.support.documentation import see

BAGGAGE = "ci_evals.trial"
"""The key of the trial's trace in W3C Baggage; a span that has it as an attribute belongs to the trial."""
MAX_TURN_SPANS = 10_000
"""Limit of spans kept of one turn; those after it are dropped, and its evidence is incomplete."""
MAX_TURN_CHARACTERS = 32_000_000
_TOO_MANY = f"it has more than {MAX_TURN_SPANS:,} spans, or {MAX_TURN_CHARACTERS // 10**6} MB of them"
_REFUSED = "an export with spans was refused, as too large or unreadable, while it ran"
_NEVER = 2**63
_DOUBLED = "two spans that differ came under one id, so that others may be lost"
_SHARED = f"its trace goes on over several conversations; begin a trace for each message ({see('traces')})"


@dataclass
class Exporter:
    """What has been seen of how an agent exports its spans, in all of its trials."""

    has_sent: bool = False
    """True once a span of one of its trials has come, in time or late."""
    was_awaited: bool = False
    """True once a turn was waited for as long as any, and nothing came."""

    @property
    def is_silent(self) -> bool:
        """Return whether it seems to export nothing."""
        return self.was_awaited and not self.has_sent


@dataclass
class TrialTrace:
    """The trace of one trial."""

    trace_id: str
    exporter: Exporter = field(default_factory=Exporter)
    gaps: Gaps = field(default_factory=Gaps)
    turns: list[TurnSpan] = field(default_factory=list)
    pending: dict[str, Span] = field(default_factory=dict)
    """The spans that have arrived since the last turn was settled, and those of turns that were reported."""
    settled: dict[str, str] = field(default_factory=dict)
    """The turns of the spans before, by their ids."""
    known: set[int] = field(default_factory=set)
    """Fingerprints of the spans before, to recognize those that are sent again."""
    without_evidence: set[str] = field(default_factory=set)
    """Turns whose spans are not their evidence: the session's beginning, and those that were reported."""
    reported: dict[str, Reply] = field(default_factory=dict)
    """The replies that have evidence of their own, which spans may contradict, by turn."""
    names: set[str] = field(default_factory=set)
    """The ids of the conversation, and of the agent's own traces of it."""
    belonging: Mapping[str, list[Span]] | None = None
    """The pending spans by turn, until another comes."""
    characters: int = 0
    dropped: bool = False
    refused: bool = False
    """True if an export was refused since the last turn was settled: nobody knows whose spans it held."""
    shared: bool = False
    """True if a trace has spans of other conversations too, so that some of its spans may be missing."""
    released: bool = False
    """True once its spans are forgotten."""
    doubled: bool = False
    """True if two spans that differ came under one id since the last turn was settled."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    last_arrival: float = 0.0

    def begin_turn(self, *, ignored: bool = False) -> TraceContext:
        """Begin a turn; return the context that makes the agent's spans its children (W3C Trace Context)."""
        # Spans without our context are of what the agent was asked last: a message, if there was any.
        since = _NEVER if ignored and self.turns else time.time_ns()
        turn = TurnSpan(secrets.token_hex(8), since)
        self.turns.append(turn)
        self.belonging = None
        header = self._header(turn.span_id)
        if ignored:
            self.without_evidence.add(turn.span_id)
        else:
            self.gaps.begin(header)
        return TraceContext({"traceparent": header, "baggage": f"{BAGGAGE}={self.trace_id}"})

    def _header(self, turn_id: str) -> str:
        return f"00-{self.trace_id}-{turn_id}-01"

    def report_turn(self, reply: Reply) -> None:
        """Take the evidence of the latest turn from the reply itself; its spans may contradict it."""
        turn_id = self.turns[-1].span_id
        self.without_evidence.add(turn_id)
        self.reported[turn_id] = reply

    def add(self, span: Span) -> None:
        """Keep a span that has arrived."""
        self.exporter.has_sent = True
        self._keep(span)
        self.last_arrival = time.monotonic()
        self.arrived.set()

    def _keep(self, span: Span) -> None:
        before = self.pending.get(span.span_id)
        if before is not None or span.span_id in self.settled:
            if before == span or (before is None and fingerprints([span]) <= self.known):
                return  # sent again
            # Both are evidence, whatever id the other has.
            span = span._replace(span_id=f"{span.span_id}/{len(self.pending)}")
            self.doubled = True
        characters = self.characters + span.size
        if len(self.pending) >= MAX_TURN_SPANS or characters > MAX_TURN_CHARACTERS:
            self.dropped = True
            return
        self.pending[span.span_id] = span
        self.characters = characters
        self.belonging = None

    def progress(self, requests: int) -> Progress:
        """Return how much of the latest turn has arrived, in which the agent was sent so many requests."""
        turn_id = self.turns[-1].span_id
        return evidence.progress(self._by_turn()[turn_id], turn_id, requests)

    def settle(self) -> TurnEvidence | None:
        """Return the evidence of the latest turn, and forget its spans; None if none has arrived.

        It is incomplete if calls of an earlier turn came only now: that turn was read without them.
        """
        belonging, turn_id = self._by_turn(), self.turns[-1].span_id
        own = belonging[turn_id]
        late = self._note_late(belonging, {turn.span_id for turn in self.turns[:-1]})
        missing = evidence.LATE_PART if late or evidence.progress(own, turn_id, 0) < Progress.WHOLE else None
        missing = _TOO_MANY if self.dropped else _REFUSED if self.refused else missing
        missing = _SHARED if self.shared else _DOUBLED if self.doubled else missing
        for turn, spans in belonging.items():
            self.settled |= {span.span_id: turn for span in spans}
            self.known |= fingerprints(spans)
        self.pending = {span.span_id: span for turn in self.reported for span in belonging[turn]}
        self.characters, self.belonging = sum(span.size for span in self.pending.values()), None
        self.refused = False
        if not self.reported:  # else it may be about their spans, too
            self.dropped = self.doubled = False
        return evidence.read(own, missing) if own or late else None

    def end(self) -> None:
        """Note what has come since the last turn was read, and forget all but what later spans need."""
        turns = {turn.span_id for turn in self.turns}
        if self.pending:
            if any(map(may_hold_calls, self._unattributed())):
                self._note_late_in(turns - self.without_evidence)
            self._note_late(self._by_turn(), turns)
            if self._contradictions():
                self.gaps.suspect(self.trace_id)
            self.known |= fingerprints([*self.pending.values()])
        self.settled, self.belonging = {}, None
        if not self.reported:
            self.release()

    def add_after_end(self, span: Span) -> bool:
        """Note what a span that came after the end means for the turns; return whether it is new."""
        self.exporter.has_sent = True
        if fingerprints([span]) <= self.known:
            return False
        self.known |= fingerprints([span])
        shows = may_hold_calls(span)
        turns = {turn.span_id for turn in self.turns} - self.without_evidence
        if self.released:
            turns |= self.reported.keys()
        if shows:
            self._note_late_in({span.parent_id} if span.parent_id in turns else turns)
        if not self.released:
            self._keep(span)
            if shows and self._contradictions():
                self.gaps.suspect(self.trace_id)
        return shows

    def finish(self) -> None:
        """Note how the spans until now contradict the replies that have evidence of their own."""
        if self.pending:
            for turn, reason in self._contradictions().items():
                self.gaps.add(self._header(turn), reason)

    def release(self) -> None:
        """Forget all spans: those that still come are late, whatever they show."""
        self.finish()
        self.pending, self.belonging, self.released = {}, None, True

    def _note_late(self, belonging: Mapping[str, list[Span]], turns: set[str]) -> bool:
        """Note which of these turns were read without calls that their spans show."""
        late = [
            turn
            for turn in turns - self.without_evidence
            if any(may_hold_calls(each) for each in belonging[turn])
        ]
        self._note_late_in(late)
        return bool(late)

    def _note_late_in(self, turns: Iterable[str]) -> None:
        for turn in turns:
            self.gaps.add(self._header(turn), LATE)

    def _unattributed(self) -> list[Span]:
        return unattributed(self.pending, self.turns, self.settled)

    def _contradictions(self) -> dict[str, str]:
        """Return why spans contradict replies that have evidence of their own, or may, by turn."""
        belonging, found = self._by_turn(), {}
        lost = _TOO_MANY if self.dropped else _DOUBLED if self.doubled else None
        if any(map(may_hold_calls, self._unattributed())):
            lost = evidence.LATE_PART
        for turn, reply in self.reported.items():
            shown = evidence.read(belonging[turn])
            if reason := contradiction(reply, shown.calls) or shown.unnamed or lost:
                found[turn] = reason
        return found

    def _by_turn(self) -> Mapping[str, list[Span]]:
        self.belonging = self.belonging or by_turn(self.pending, self.turns, self.settled)
        return self.belonging


def fingerprints(spans: Sequence[Span]) -> set[int]:
    """Return a number for each span, which is the same if it is sent again."""
    return {hash((*span[:6], str(span.attributes), str(span.events))) for span in spans} if spans else set()
