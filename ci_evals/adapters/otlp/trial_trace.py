"""The spans of one trial: which turn they belong to, and what is known of them when a turn is read."""

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_evals.adapters.otlp import evidence
from ci_evals.adapters.otlp.evidence import Progress, TurnEvidence, TurnSpan
from ci_evals.adapters.otlp.kinds import shows_calls
from ci_evals.adapters.otlp.spans import Span
from ci_evals.adapters.transport.trace_context import TraceContext

MAX_TURN_SPANS = 10_000
"""Limit of spans kept of one turn; those after it are dropped, and its evidence is incomplete."""
MAX_TURN_CHARACTERS = 32_000_000
_TOO_MANY = f"it has more than {MAX_TURN_SPANS:,} spans, or {MAX_TURN_CHARACTERS // 10**6} MB of them"
_REFUSED = "an export with spans was refused, as too large or unreadable, while it ran"
_SHARED = "its trace goes on over several conversations; begin a trace for each message (docs/traces.md)"


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
    turns: list[TurnSpan] = field(default_factory=list)
    pending: dict[str, Span] = field(default_factory=dict)
    """The spans that have arrived since the last turn was settled."""
    settled: dict[str, str] = field(default_factory=dict)
    """The turns of the spans before, by their ids."""
    without_evidence: set[str] = field(default_factory=set)
    """Turns whose spans do not matter: the session's beginning, and replies that have evidence already."""
    names: set[str] = field(default_factory=set)
    """The agent's own ids of the conversation, by which spans without our context are recognized."""
    belonging: Mapping[str, list[Span]] | None = None
    """The pending spans by turn, until another comes."""
    characters: int = 0
    dropped: bool = False
    refused: bool = False
    """True if an export was refused since the last turn was settled: nobody knows whose spans it held."""
    shared: bool = False
    """True if a trace has spans of other conversations too, so that some of its spans may be missing."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    last_arrival: float = 0.0

    def begin_turn(self, *, ignored: bool = False) -> TraceContext:
        """Begin a turn; return the context that makes the agent's spans its children (W3C Trace Context)."""
        turn = TurnSpan(secrets.token_hex(8), time.time_ns())
        self.turns.append(turn)
        self.belonging = None
        if ignored:
            self.ignore_turn()
        return TraceContext(
            {
                "traceparent": f"00-{self.trace_id}-{turn.span_id}-01",
                "baggage": f"ci_evals.trial={self.trace_id}",
            }
        )

    def ignore_turn(self) -> None:
        """Take no evidence from the latest turn."""
        self.without_evidence.add(self.turns[-1].span_id)

    def add(self, span: Span) -> None:
        """Keep a span that has arrived."""
        self.exporter.has_sent = True
        characters = self.characters + span.size
        if len(self.pending) >= MAX_TURN_SPANS or characters > MAX_TURN_CHARACTERS:
            self.dropped = True
        elif span.span_id not in self.settled:
            self.pending[span.span_id] = span
            self.characters = characters
            self.belonging = None
        self.last_arrival = time.monotonic()
        self.arrived.set()

    def progress(self, requests: int) -> Progress:
        """Return how much of the latest turn has arrived, in which the agent was sent so many requests."""
        turn_id = self.turns[-1].span_id
        return evidence.progress(self._by_turn()[turn_id], turn_id, requests)

    def settle(self) -> TurnEvidence | None:
        """Return the evidence of the latest turn, and forget its spans; None if none has arrived.

        It is incomplete if calls of an earlier turn came only now: that turn was read without them.
        """
        by_turn, turn_id = self._by_turn(), self.turns[-1].span_id
        own = by_turn[turn_id]
        before = {turn.span_id for turn in self.turns[:-1]} - self.without_evidence
        late = any(shows_calls(span) for turn in before for span in by_turn[turn])
        missing = evidence.LATE_PART if late or evidence.progress(own, turn_id, 0) < Progress.WHOLE else None
        missing = _TOO_MANY if self.dropped else _REFUSED if self.refused else missing
        missing = _SHARED if self.shared else missing
        self.settled |= {span.span_id: turn for turn, spans in by_turn.items() for span in spans}
        self.pending, self.belonging, self.characters = {}, None, 0
        self.dropped = self.refused = False
        return evidence.read(own, missing) if own or late else None

    def _by_turn(self) -> Mapping[str, list[Span]]:
        self.belonging = self.belonging or evidence.by_turn(self.pending, self.turns, self.settled)
        return self.belonging
