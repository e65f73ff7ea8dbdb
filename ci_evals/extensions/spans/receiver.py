"""The receiver of spans: OTLP over HTTP, on loopback unless told otherwise."""

import asyncio
import logging
import os
import secrets
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from ci_evals.adapters.trace_context import LATE_SECONDS
from ci_evals.domain.errors import UsageError
from ci_evals.extension_support.span_reading import spans
from ci_evals.extension_support.span_reading.dialects import conversation_id
from ci_evals.extension_support.span_reading.kinds import may_hold_calls, shows_calls
from ci_evals.extension_support.span_reading.spans import OtlpError, Span, TooLargeError
from ci_evals.extensions.spans.gaps import Gaps
from ci_evals.extensions.spans.packing import unpacked
from ci_evals.extensions.spans.trial_trace import BAGGAGE, Exporter, TrialTrace
from ci_evals.support import payload
from ci_evals.support.documentation import see
from ci_evals.support.redaction import Redactor
from ci_evals.threads import in_thread

PATH = "/v1/traces"
MOST_LATE_SECONDS = 5.0
_KEPT_SECONDS = 60.0
"""The time for which spans of a trial that has ended are kept, to be compared with the agent's own report."""
DEFAULT_PORT = 4318
_MAX_PORT = 65535
MAX_UNCLAIMED_SPANS = 5_000
"""Limit of spans kept until one of their trace names a conversation."""
_SMALL = 100_000
"""Bytes that are read at once; more are read in a thread, so that the run goes on."""
_SMALL_PACKED = 10_000
_CLOSING_SECONDS = 1.0
_JSON, _PROTOBUF = "application/json", "application/x-protobuf"


_LOST_EXPORT = "an export that may hold its spans was refused, as too large or unreadable"
_STRAY = (
    "a tool call in a trace of no conversation (from {}) may belong to the turn; let the agent continue the "
    f"trace in the header traceparent, and no other program export here (otlp-port; {see('traces')})"
)


@dataclass
class _Unclaimed:
    """Spans of a trace that no conversation has claimed yet."""

    spans: list[Span] = field(default_factory=list)
    turns: int = 0
    """The number of turns that had begun when the last of them came."""


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
        self.gaps = Gaps()
        self._ended: dict[str, TrialTrace] = {}
        self._unreleased: deque[tuple[float, TrialTrace]] = deque()
        """Ended trials whose spans are still compared with what their agents report, by their ends."""
        self._last_end = self._last_arrival = 0.0
        self._unclaimed: OrderedDict[str, _Unclaimed] = OrderedDict()
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
                "set `otlp_port=` to a free port, or to 0 for any, and `otlp_host=` to one of this machine"
            ) from None
        self._port = int(self._socket.getsockname()[1])

    @property
    def endpoint(self) -> str:
        """The address of this receiver for an agent on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104  # compared, not bound
        if ":" in host:
            host = f"[{host}]"
        return f"http://{host}:{self._port}"

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
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=_CLOSING_SECONDS,
            auto_decompress=False,
            logger=_silent_logger(),
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
        trial = TrialTrace(secrets.token_hex(16), exporter or Exporter(), self.gaps)
        self._trials[trial.trace_id] = trial
        return trial

    def name_conversation(self, trial: TrialTrace, name: str) -> None:
        """Let traces that name this conversation belong to a trial, unless another has the name too.

        The name must be one that nobody can guess, or spans of anybody would be evidence.
        """
        trial.names.add(name)
        self._conversations[name] = trial if self._conversations.get(name, trial) is trial else None

    def end_trial(self, trial: TrialTrace) -> None:
        """End a trial: spans that still arrive show only that its evidence is incomplete."""
        trial.end()
        self._unreleased.append((time.monotonic(), trial))
        while self._unreleased[0][0] < time.monotonic() - _KEPT_SECONDS:
            self._unreleased.popleft()[1].release()
        for name in (trial.trace_id, *trial.names):
            if self._trials.get(name) is trial:
                del self._trials[name]
                self._ended[name] = trial
            if self._conversations.get(name) is trial:
                del self._conversations[name]
        self._last_end = time.monotonic()
        if not self._trials:
            self._give_up_unclaimed()

    async def wait_for_late(self, quiet: float = LATE_SECONDS, most: float = MOST_LATE_SECONDS) -> None:
        """Wait until no span has come for a while after the last trial's end, if there was any."""
        began = time.monotonic()
        while self._ended:
            now = time.monotonic()
            until = min(max(self._last_end, self._last_arrival) + quiet, began + most)
            if now >= until:
                break
            await asyncio.sleep(until - now)

    def finish(self) -> None:
        """Note what the spans until now mean for trials that have ended."""
        self._give_up_unclaimed()
        for _, trial in self._unreleased:
            trial.finish()

    def notes(self, redactor: Redactor) -> Iterable[str]:
        """Return notes on tool calls that belong to no turn."""
        if self._late:
            yield (
                f"{self._late:,} spans with tool or model calls came after their conversation had ended: set "
                "OTEL_BSP_SCHEDULE_DELAY=200 for the agent, and let it end its spans before it replies"
            )
        self._give_up_unclaimed()
        if self._strays:
            makers = [payload.shorten(redactor.text(name)) or "unnamed" for name in [*self._strays][:3]]
            yield (
                f"{sum(self._strays.values()):,} spans with tool or model calls belong to no conversation "
                f"(from {', '.join(makers)}): let the agent continue the trace in the header traceparent of "
                f"each request ({see('traces')})"
            )

    async def _receive(self, request: web.Request) -> web.Response:
        try:
            body = await _body_of(request)
            encoding = request.headers.get("Content-Encoding", "")
            content_type = request.headers.get("Content-Type", "")
            if len(body) <= (_SMALL_PACKED if encoding else _SMALL):
                received = _read(body, encoding, content_type)
            else:
                async with self._reading:
                    received = await in_thread(_read, body, encoding, content_type)
        except OtlpError as error:
            self._lose_export()
            return web.Response(status=error.status, text=str(error))
        except Exception:
            self._lose_export()
            raise
        for span in received:
            self._add(span)
        self._last_arrival = time.monotonic()
        is_json = request.content_type == _JSON
        return web.Response(body=b"{}" if is_json else b"", content_type=_JSON if is_json else _PROTOBUF)

    def _lose_export(self) -> None:
        for trial in self._trials.values():
            trial.refused = True
        self._note_lost(self.gaps.turns, _LOST_EXPORT)

    def _note_lost(self, turns: int, reason: str) -> None:
        """Note that evidence of any of the first `turns` turns of the run may be lost."""
        self.gaps.add_before(turns, reason, self._under_way)

    @property
    def _under_way(self) -> set[str]:
        return {trial.trace_id for trial in self._trials.values()}

    def _add(self, span: Span) -> None:
        if trial := self._trial_of(span):
            trial.add(span)
        elif ended := self._ended.get(span.trace_id):
            self._late += ended.add_after_end(span)
        elif not span.trace_id or span.trace_id in self._shared:
            self._count_strays([span], self.gaps.turns)
        else:
            self._keep_unclaimed(span)

    def _trial_of(self, span: Span) -> TrialTrace | None:
        trial = self._trials.get(span.trace_id)
        if trial:  # in the agent's own traces several conversations may follow each other
            return trial if trial.trace_id == span.trace_id else self._of_shared(trial, span)
        if span.trace_id in self._ended:
            return None
        named = self._trials.get(span.text(BAGGAGE) or "") or self._conversations.get(
            conversation_id(span) or ""
        )
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
        unclaimed = self._unclaimed.pop(trace_id, _Unclaimed())
        self._unclaimed_count -= len(unclaimed.spans)
        for span in unclaimed.spans:
            trial.add(span)

    def _keep_unclaimed(self, span: Span) -> None:
        unclaimed = self._unclaimed.setdefault(span.trace_id, _Unclaimed())
        unclaimed.spans.append(span)
        unclaimed.turns = self.gaps.turns
        self._unclaimed_count += 1
        while self._unclaimed_count > MAX_UNCLAIMED_SPANS:
            trace_id, oldest = self._unclaimed.popitem(last=False)
            if len(self._evicted) < MAX_UNCLAIMED_SPANS:
                self._evicted.add(trace_id)
            self._unclaimed_count -= len(oldest.spans)
            self._count_strays(oldest.spans, oldest.turns)
        if may_hold_calls(span):  # a run that resumes cannot know whether somebody claimed it
            self.gaps.listen(self._under_way, earlier=True)

    def _give_up_unclaimed(self) -> None:
        """Count the spans that no conversation has claimed as strays."""
        for unclaimed in self._unclaimed.values():
            self._count_strays(unclaimed.spans, unclaimed.turns)
        self._unclaimed.clear()
        self._unclaimed_count = 0

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

    def _count_strays(self, strays: Iterable[Span], turns: int) -> None:
        """Count spans that belong to no conversation, which came when so many turns had begun."""
        for span in filter(shows_calls, strays):
            if may_hold_calls(span):
                self._note_lost(
                    turns, _STRAY.format(payload.shorten(span.scope) or "an unnamed instrumentation")
                )
            maker = span.scope if len(self._strays) < MAX_UNCLAIMED_SPANS else ""
            self._strays[maker] = self._strays.get(maker, 0) + 1


async def _body_of(request: web.Request) -> bytes:
    """Return the body as it came; raise `OtlpError` if it is too large or broken."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise TooLargeError(error.text or "it is too large") from None
    except ConnectionError:
        raise
    except Exception as error:  # noqa: BLE001  # a sender may break off in many ways
        raise OtlpError(f"the body cannot be read: {error}") from None


def _silent_logger() -> logging.Logger:
    """Return a logger that drops what a server logs of broken requests, with tracebacks."""
    logger = logging.getLogger("ci_evals.otlp")
    logger.disabled = True
    return logger


def _read(body: bytes, encoding: str, content_type: str) -> list[Span]:
    return spans.read(unpacked(body, encoding), content_type)


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
