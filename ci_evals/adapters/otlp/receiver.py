"""The receiver of spans: OTLP over HTTP, on loopback unless told otherwise."""

import asyncio
import os
import secrets
import socket
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from ci_evals.adapters.otlp import evidence, spans
from ci_evals.adapters.otlp.dialects import conversation_id
from ci_evals.adapters.otlp.evidence import Progress, TurnEvidence, TurnSpan
from ci_evals.adapters.otlp.spans import OtlpError, Span, TooLargeError
from ci_evals.adapters.transport import payload
from ci_evals.adapters.transport.trace_context import TraceContext
from ci_evals.domain.errors import UsageError
from ci_evals.support.redaction import Redactor
from ci_evals.threads import in_thread

PATH = "/v1/traces"
DEFAULT_PORT = 4318
_MAX_PORT = 65535
MAX_TURN_SPANS = 10_000
"""Limit of spans kept of one turn; those after it are dropped, and its evidence is incomplete."""
MAX_TURN_CHARACTERS = 32_000_000
_TOO_MANY = f"it has more than {MAX_TURN_SPANS:,} spans, or {MAX_TURN_CHARACTERS // 10**6} MB of them"
_REFUSED = "an export with spans was refused, as too large or unreadable, while it ran"
_SHARED = "its trace goes on over several conversations; begin a trace for each message (docs/traces.md)"
MAX_UNCLAIMED_SPANS = 5_000
"""Limit of spans kept until one of their trace names a conversation."""
_SMALL = 100_000
"""Bytes that are read at once; more are read in a thread, so that the run goes on."""
_CLOSING_SECONDS = 1.0
_JSON, _PROTOBUF = "application/json", "application/x-protobuf"


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
        late = any(evidence.shows_calls(span) for turn in before for span in by_turn[turn])
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


class Receiver:
    """Receives spans and hands them to the trials that they belong to."""

    def __init__(self, host: str = "127.0.0.1", port: int = DEFAULT_PORT) -> None:
        """Take the port at once, 0 any free one; raise `UsageError` if it cannot be had."""
        self._trials: dict[str, TrialTrace] = {}
        self._conversations: dict[str, TrialTrace | None] = {}
        """None of a name that several trials have: it tells nothing."""
        self._shared: set[str] = set()
        """Traces that name several conversations."""
        self._evicted: set[str] = set()
        """Traces of which spans were dropped before anyone claimed them."""
        self._ended: dict[str, Exporter] = {}
        self._unclaimed: OrderedDict[str, list[Span]] = OrderedDict()
        self._unclaimed_count = 0
        self._strays: dict[str, int] = {}
        self._late = 0
        self._reading = asyncio.Semaphore(2)
        self._runner: web.AppRunner | None = None
        self._host = host
        try:
            self._socket = _listening(host, port)
        except (OSError, ValueError) as error:  # ValueError: a host or port that cannot be one
            raise UsageError(
                f"spans cannot be received on {host}:{port}: {getattr(error, 'strerror', None) or error}; "
                "set --otlp-port to a free port, or to 0 for any, and --otlp-host to one of this machine"
            ) from None
        self._port = int(self._socket.getsockname()[1])

    @property
    def endpoint(self) -> str:
        """The address of this receiver for an agent on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104  # compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return `environ` for an agent that we start: its exporter sends spans to us, and soon."""
        others = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"}
        return {
            "OTEL_BSP_SCHEDULE_DELAY": "200",
            **{name: value for name, value in environ.items() if name not in others},
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }

    async def start(self) -> None:
        """Begin to receive."""
        app = web.Application(client_max_size=spans.MAX_BYTES)
        app.router.add_post(PATH, self._receive)
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=_CLOSING_SECONDS
        )
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    async def end(self) -> None:
        """Stop listening."""
        if self._runner:
            await self._runner.cleanup()
        self._socket.close()

    def begin_trial(self, exporter: Exporter | None = None) -> TrialTrace:
        """Return the trace of a new trial, whose agent has this exporter."""
        trial = TrialTrace(secrets.token_hex(16), exporter or Exporter())
        self._trials[trial.trace_id] = trial
        return trial

    def name_conversation(self, trial: TrialTrace, name: str) -> None:
        """Let traces that name this conversation belong to a trial, unless another has the name too."""
        trial.names.add(name)
        self._conversations[name] = trial if self._conversations.get(name, trial) is trial else None

    def end_trial(self, trial: TrialTrace) -> None:
        """Forget a trial: spans that still arrive are dropped."""
        for ids in (self._trials, self._conversations):
            for name in [name for name in (trial.trace_id, *trial.names) if ids.get(name) is trial]:
                del ids[name]
        self._ended[trial.trace_id] = trial.exporter

    def notes(self, redactor: Redactor) -> Iterable[str]:
        """Return notes on tool calls that belong to no turn."""
        if self._late:
            yield (
                f"{self._late:,} spans with tool or model calls came after their conversation had ended: set "
                "OTEL_BSP_SCHEDULE_DELAY=200 for the agent, and let it end its spans before it replies"
            )
        for unclaimed in self._unclaimed.values():
            self._count_strays(unclaimed)
        self._unclaimed.clear()
        if self._strays:
            makers = [payload.shorten(redactor.text(name)) or "unnamed" for name in [*self._strays][:3]]
            yield (
                f"{sum(self._strays.values()):,} spans with tool or model calls belong to no conversation "
                f"(from {', '.join(makers)}): let the agent continue the trace in the header traceparent of "
                "each request (docs/traces.md)"
            )

    async def _receive(self, request: web.Request) -> web.Response:
        try:
            # aiohttp unpacks known encodings by itself, up to its limit.
            content_type = request.headers.get("Content-Type", "")
            body = await _body_of(request)
            if len(body) <= _SMALL:
                received = spans.read(body, content_type)
            else:
                async with self._reading:
                    received = await in_thread(spans.read, body, content_type)
        except OtlpError as error:
            for trial in self._trials.values():
                trial.refused = True
            return web.Response(status=error.status, text=str(error))
        for span in received:
            self._add(span)
        is_json = request.content_type == _JSON
        return web.Response(body=b"{}" if is_json else b"", content_type=_JSON if is_json else _PROTOBUF)

    def _add(self, span: Span) -> None:
        if trial := self._trial_of(span):
            trial.add(span)
        elif exporter := self._ended.get(span.trace_id):
            exporter.has_sent = True
            self._late += evidence.shows_calls(span)
        elif span.trace_id in self._shared:
            self._count_strays([span])
        else:
            self._keep_unclaimed(span)

    def _trial_of(self, span: Span) -> TrialTrace | None:
        trial = self._trials.get(span.trace_id)
        if trial:  # in the agent's own traces several conversations may follow each other
            return trial if trial.trace_id == span.trace_id else self._of_shared(trial, span)
        if span.trace_id in self._ended:
            return None
        named = self._conversations.get(conversation_id(span) or "")
        if named and span.trace_id in self._shared:
            named.shared = True
        elif named:
            self._claim(span.trace_id, named)
        return named

    def _claim(self, trace_id: str, trial: TrialTrace) -> None:
        """Let a trace of the agent's own belong to a trial, with the spans of it that have arrived."""
        self._trials[trace_id] = trial
        trial.names.add(trace_id)
        trial.dropped |= trace_id in self._evicted
        for span in self._unclaimed.pop(trace_id, ()):
            self._unclaimed_count -= 1
            trial.add(span)

    def _keep_unclaimed(self, span: Span) -> None:
        self._unclaimed.setdefault(span.trace_id, []).append(span)
        self._unclaimed_count += 1
        while self._unclaimed_count > MAX_UNCLAIMED_SPANS:
            trace_id, oldest = self._unclaimed.popitem(last=False)
            if len(self._evicted) < MAX_UNCLAIMED_SPANS:
                self._evicted.add(trace_id)
            self._unclaimed_count -= len(oldest)
            self._count_strays(oldest)

    def _of_shared(self, trial: TrialTrace, span: Span) -> TrialTrace | None:
        """Return the trial of a span in a trace of the agent's own, which belonged to this trial so far.

        If it names another conversation, what names none belongs to nobody from then on.
        """
        named = self._conversations.get(conversation_id(span) or "", trial)
        if named is trial:
            return trial
        del self._trials[span.trace_id]
        self._shared.add(span.trace_id)
        trial.shared = True
        if named:
            named.shared = True
        return named

    def _count_strays(self, strays: Iterable[Span]) -> None:
        for span in filter(evidence.shows_calls, strays):
            maker = span.scope if len(self._strays) < MAX_UNCLAIMED_SPANS else ""
            self._strays[maker] = self._strays.get(maker, 0) + 1


async def _body_of(request: web.Request) -> bytes:
    """Return the unpacked body; raise `OtlpError` if it is too large or cannot be unpacked."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise TooLargeError(error.text or "it is too large") from None
    except ConnectionError:
        raise
    except Exception as error:  # noqa: BLE001  # each packing has errors of its own
        raise OtlpError(f"the body cannot be unpacked: {error}") from None


def _listening(host: str, port: int) -> socket.socket:
    if port > _MAX_PORT:
        raise ValueError(f"the highest port is {_MAX_PORT}")
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    listening = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would let two programs listen on one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening
