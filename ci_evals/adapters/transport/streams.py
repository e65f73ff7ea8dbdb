"""Streamed answers: server-sent events, JSON lines and WebSocket messages, from bytes to JSON values. Pure.

A stream that is broken, cut off or too large is a `StreamError`, and nothing of it is used. If a server
answers with plain JSON instead of server-sent events, as many do to report an error, this is the only event.
`[DONE]` ends a stream and is no event.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import JsonValue

from ci_evals.support import payload

StreamFormat = Literal["sse", "ndjson", "websocket"]

MEDIA_TYPES: dict[StreamFormat, str] = {
    "sse": "text/event-stream",
    "ndjson": "application/x-ndjson",
    "websocket": "*/*",
}

MAX_EVENTS = 20_000

_DONE = b"[DONE]"
"""The end of a stream as OpenAI writes it. All other events must be JSON."""
_BOM = b"\xef\xbb\xbf"
_MAX_NAME_LENGTH = 100
_MAX_START = 2000


class Event(NamedTuple):
    """One event of a stream."""

    value: JsonValue
    type: str = ""
    """The name of a server-sent event; empty if it has none, and for JSON lines."""
    seconds: float = 0.0
    """Seconds from the request to the arrival of this event."""


IsLast = Callable[[Event], bool]
"""Returns whether an event completes the answer, so that nothing after it belongs to it."""


@dataclass(frozen=True)
class Stream:
    """A streamed answer that was read to its end."""

    events: tuple[Event, ...]
    """At least one."""
    seconds: float
    """Seconds from the request to the end, or to the event that completed the answer."""

    @property
    def values(self) -> list[JsonValue]:
        """The values of all events."""
        return [event.value for event in self.events]


class StreamError(Exception):
    """A stream that cannot be used; its text is a clause to go after the server's name."""

    def __init__(self, reason: str, excerpt: bytes | None = None, *, is_cut: bool = False) -> None:
        super().__init__(reason)
        self.is_cut = is_cut
        """True if the stream ended too early."""
        self.excerpt = excerpt
        """The part of the stream to show, with secrets."""


class StreamReader:
    """Collects the events of one answer from pieces of its body, which may be cut anywhere."""

    stream: Stream
    """The whole answer, after `end`."""

    def __init__(self, stream_format: StreamFormat, is_last: IsLast | None = None) -> None:
        """With `is_last` the answer is complete only once that event came, else when the stream ends."""
        self.format = stream_format
        self.is_last = is_last
        self.events: list[Event] = []
        self.is_complete = False
        """True if the last event or `[DONE]` came; nothing after it is read."""
        self._splitter = _SPLITTERS[stream_format]()
        self._lacks_last = is_last is not None
        self._start = b""
        self._values_left = payload.MAX_VALUES

    @property
    def progress(self) -> str:
        """The number of events so far, for messages."""
        return "1 event" if len(self.events) == 1 else f"{len(self.events):,} events"

    def begin(self, content_type: str) -> None:
        """Take note of the answer's media type."""
        media_type = content_type.partition(";")[0].strip().lower()
        is_json = media_type == "application/json" or media_type.endswith("+json")
        if self.format == "sse" and is_json:
            self._splitter = _Whole()

    def feed(self, piece: bytes, seconds: float) -> None:
        """Read a piece that came `seconds` after the request; raise `StreamError` for what cannot be read."""
        if len(self._start) < _MAX_START:
            self._start += piece[:_MAX_START]
        self._add(self._splitter.feed(piece), seconds)

    def end(self, seconds: float) -> None:
        """End the stream; raise `StreamError` if the answer is not complete."""
        try:
            self._add(self._splitter.end(), seconds)
        except StreamError as error:
            if self.events and error.excerpt is not None:
                reason = "ended its stream in the middle of an event"
                raise StreamError(reason, error.excerpt, is_cut=True) from None
            raise
        if not self.events:
            raise StreamError("sent a stream without an event", self._start)
        if self._lacks_last:
            reason = f"ended its stream before the answer was complete, after {self.progress}"
            raise StreamError(reason, is_cut=True)
        self.stream = Stream(tuple(self.events), self.events[-1].seconds if self.is_last else seconds)

    def _add(self, items: Iterable[tuple[str, bytes]], seconds: float) -> None:
        for name, data in items:
            if self.is_complete:
                return
            text = data.strip()
            if text == _DONE:
                self.is_complete = True
            elif text:
                event = Event(self._value(data), name, seconds)
                self.events.append(event)
                if len(self.events) > MAX_EVENTS:
                    raise StreamError(f"sent more than {MAX_EVENTS:,} events")
                if self.is_last and self.is_last(event):
                    self.is_complete, self._lacks_last = True, False
            elif name and self.is_last and _ends_by_name(Event(None, name, seconds), self.is_last):
                self.is_complete, self._lacks_last = True, False

    def _value(self, data: bytes) -> JsonValue:
        try:
            value = payload.parse(data, self._values_left)
        except payload.TooManyValuesError:
            raise StreamError(f"sent events of more than {payload.MAX_VALUES:,} values") from None
        except ValueError as error:
            raise StreamError(f"sent an event that cannot be read ({error})", data) from None
        self._values_left -= payload.count_values(data)
        return value


def completes(data: bytes, is_last: IsLast) -> bool:
    """Return whether a message completes an answer; one that cannot be read does not."""
    try:
        return is_last(Event(payload.parse(data)))
    except ValueError:
        return False


def _ends_by_name(event: Event, is_last: IsLast) -> bool:
    """Return whether an event without data is the last one, as servers end their streams.

    A ping is not, although `until: $[?@.event != 'token']` finds it, as it finds an event of any other name.
    """
    return is_last(event) and not is_last(event._replace(type="a name that no server gives"))


class _Splitter:
    """Splits a body into the names and data of events. Here each piece is one: a message of a WebSocket."""

    def feed(self, piece: bytes) -> Iterable[tuple[str, bytes]]:
        return [("", piece)]

    def end(self) -> Iterable[tuple[str, bytes]]:
        return []


class _Whole(_Splitter):
    """Takes a body that is no stream for one event."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, piece: bytes) -> Iterable[tuple[str, bytes]]:
        self._pieces.append(piece)
        return []

    def end(self) -> Iterable[tuple[str, bytes]]:
        return [("", b"".join(self._pieces))]


class _Lines(_Splitter):
    """Takes each line, which ends with LF, CR or both, for an event."""

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []
        self._after_cr, self._is_first = False, True

    def feed(self, piece: bytes) -> Iterable[tuple[str, bytes]]:
        if not piece:
            return
        if self._after_cr:
            piece = piece.removeprefix(b"\n")  # the other half of CR LF
        self._after_cr = piece.endswith(b"\r")
        for part in piece.splitlines(keepends=True):
            self._unfinished.append(part)
            if part.endswith((b"\n", b"\r")):
                yield from self._line(self._rest())

    def end(self) -> Iterable[tuple[str, bytes]]:
        return self._line(self._rest())

    def _rest(self) -> bytes:
        line = b"".join(self._unfinished).rstrip(b"\r\n")
        self._unfinished.clear()
        if self._is_first:
            self._is_first = False
            return line.removeprefix(_BOM)
        return line

    def _line(self, line: bytes) -> Iterable[tuple[str, bytes]]:
        return [("", line)]


class _Sse(_Lines):
    """Splits server-sent events, as the HTML standard defines them.

    Also yields those of a name alone, which the standard skips: some servers end their streams so.
    """

    def __init__(self) -> None:
        super().__init__()
        self._name = ""
        self._data: list[bytes] = []

    def end(self) -> Iterable[tuple[str, bytes]]:
        # Servers forget the blank line after the last event, and some the end of its last line.
        return [*self._line(self._rest()), *self._line(b"")]

    def _line(self, line: bytes) -> Iterable[tuple[str, bytes]]:
        if not line:
            event = self._name, b"\n".join(self._data)
            self._name, self._data = "", []
            return [event]
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value[:_MAX_NAME_LENGTH].decode(errors="replace")
        return []


_SPLITTERS: dict[StreamFormat, type[_Splitter]] = {"sse": _Sse, "ndjson": _Lines, "websocket": _Splitter}
