"""Streamed answers: server-sent events, JSON lines and WebSocket messages, from bytes to JSON values. Pure.

An adapter calls `AgentServer.stream`, which sends a request and returns the whole answer as a `Stream`:

    stream = await server.stream(client, request, "sse", is_last=lambda event: event.type == "done")
    for event in stream.events:
        event.value    # the JSON value
        event.type     # the event's name, if it has one
        event.seconds  # when it came, from the request on

It raises `AgentError` if the stream is broken, cut off, endless or too large, and returns nothing of it.
If the server answers with plain JSON instead of server-sent events, as many do to report an error, this is
the only event. `[DONE]` ends a stream and is no event. A WebSocket stays open for the conversation; its
answers need `is_last`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from secrets import randbits
from typing import Literal, NamedTuple, Protocol

from pydantic import JsonValue

from ci_evals.adapters.transport import payload

StreamFormat = Literal["sse", "ndjson", "websocket"]

MEDIA_TYPES: dict[StreamFormat, str] = {
    "sse": "text/event-stream",
    "ndjson": "application/x-ndjson",
    "websocket": "*/*",
}

MAX_EVENTS = 20_000

_DONE = b"[DONE]"
"""The end of a stream as OpenAI writes it. All other events must be JSON."""
_IS_JSON = re.compile(r"application/json|application/[\w.-]+\+json")
_SEPARATOR = randbits(60)
"""Stands between events that are parsed at once. No server can know it, and so write it into an event."""
_WHOLE_EVENTS = re.compile(rb"(?:data: [^\r\n]++\n\n)++")
"""Server-sent events of one line of data each. It never goes back over what it matched."""
_BOM = b"\xef\xbb\xbf"
_MAX_TYPE_LENGTH = 100
_MAX_START = 2000


class Event(NamedTuple):
    """One event of a stream."""

    value: JsonValue
    type: str = ""
    """The name of a server-sent event; empty if it has none, and for JSON lines."""
    seconds: float = 0.0
    """Seconds from the request to the arrival of this event."""


_UNKNOWN = "no name of any server"
"""The name of an event, to see what `until` finds in any other."""

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

    def __init__(self, stream_format: StreamFormat, is_last: IsLast | None = None) -> None:
        """With `is_last` the answer is complete only once that event came, else when the stream ends."""
        self.format = stream_format
        self._splitter: _Splitter = _SPLITTERS[stream_format]()
        self.is_last = is_last
        self._needs_last = is_last is not None
        self._start = b""
        self._values_left = payload.MAX_VALUES
        self._stream: Stream | None = None
        self.events: list[Event] = []
        self.is_complete = False
        """True if the last event or `[DONE]` came; nothing after it is read."""

    @property
    def stream(self) -> Stream:
        """The whole answer, after `end`."""
        if self._stream is None:
            raise RuntimeError("the stream has not ended")
        return self._stream

    @property
    def progress(self) -> str:
        """The number of events so far, for messages."""
        return "1 event" if len(self.events) == 1 else f"{len(self.events):,} events"

    def begin(self, content_type: str) -> None:
        """Take note of the answer's media type."""
        media_type = content_type.partition(";")[0].strip().lower()
        if isinstance(self._splitter, _Sse) and _IS_JSON.fullmatch(media_type):
            self._splitter = _Whole()

    def feed(self, piece: bytes, seconds: float) -> None:
        """Read a piece that came `seconds` after the request; raise `StreamError` for what cannot be read."""
        if len(self._start) < _MAX_START:
            self._start += piece[:_MAX_START]
        self._add(self._splitter.feed(piece), seconds)

    def end(self, seconds: float) -> None:
        """End the stream; raise `StreamError` if the answer is not complete."""
        if not self.is_complete:
            try:
                self._add(self._splitter.end(), seconds)
            except StreamError as error:
                if self.events and error.excerpt is not None:
                    reason = "ended its stream in the middle of an event"
                    raise StreamError(reason, error.excerpt, is_cut=True) from None
                raise
        if not self.events:
            raise StreamError("sent a stream without an event", self._start)
        if self._needs_last:
            reason = f"ended its stream before the answer was complete, after {self.progress}"
            raise StreamError(reason, is_cut=True)
        self._stream = Stream(tuple(self.events), self.events[-1].seconds if self.is_last else seconds)

    def _add(self, items: Iterable[tuple[str, bytes]], seconds: float) -> None:
        items = [*items]
        together = self._values_together([data for _, data in items])
        for number, (name, data) in enumerate(items):
            if self.is_complete:
                return
            if data.strip() == _DONE:
                self.is_complete = True
                return
            known = number < len(together)
            event = Event(together[number] if known else self._value(data) if data else None, name, seconds)
            if data:
                self.events.append(event)
            if len(self.events) > MAX_EVENTS:
                raise StreamError(f"sent more than {MAX_EVENTS:,} events")
            if self.is_last and self.is_last(event) and (data or self._ends_by_name(event)):
                self.is_complete, self._needs_last = True, False

    def _ends_by_name(self, event: Event) -> bool:
        """Return whether an event without data is the last one by its own name.

        `until: $[?@.event != 'token']` finds any other, such as a ping.
        """
        return self.is_last is not None and not self.is_last(event._replace(type=_UNKNOWN))

    def _values_together(self, items: list[bytes]) -> list[JsonValue]:
        """Return the values of the first events, parsed at once; none if one of these cannot be read."""
        objects = [*takewhile(_is_usual, items)]
        if len(objects) < 2:
            return []
        text, between = b"[%b]" % (b",%d," % _SEPARATOR).join(objects), len(objects) - 1
        try:
            values = payload.parse(text, self._values_left)
        except ValueError:
            return []
        if not isinstance(values, list) or values[1::2] != [_SEPARATOR] * between:
            return []  # two broken events made a whole one
        self._values_left -= payload.count_values(text) - between
        return values[::2]

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


def _is_usual(data: bytes) -> bool:
    """Return whether an event looks like an object, and none so deep that a list around it would matter."""
    shallow = len(data) < payload.MAX_DEPTH or data.count(b"{") + data.count(b"[") < payload.MAX_DEPTH
    return data[:1] == b"{" and data[-1:] == b"}" and shallow


class _Splitter(Protocol):
    """Yields the names and data of events."""

    def feed(self, piece: bytes) -> Iterable[tuple[str, bytes]]: ...

    def end(self) -> Iterable[tuple[str, bytes]]: ...


class _Lines:
    """Splits pieces into lines, which end with LF, CR or both."""

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []
        self._after_cr = False

    def feed(self, piece: bytes) -> list[bytes]:
        if self._after_cr and piece:
            piece = piece.removeprefix(b"\n")  # the other half of CR LF
            self._after_cr = False
        if not piece:
            return []
        self._after_cr = piece.endswith(b"\r")
        lines = piece.splitlines()
        rest = None if piece.endswith((b"\n", b"\r")) else lines.pop()
        if lines and self._unfinished:
            lines[0] = b"".join([*self._unfinished, lines[0]])
            self._unfinished.clear()
        if rest is not None:
            self._unfinished.append(rest)
        return lines

    @property
    def is_inside(self) -> bool:
        """True if the next piece continues a line, or the end of one."""
        return bool(self._unfinished) or self._after_cr

    def end(self) -> list[bytes]:
        return [b"".join(self._unfinished)] if self._unfinished else []


class _Sse:
    """Splits server-sent events, as the HTML standard defines them, into their names and data.

    Also yields those of a name alone, which the standard skips: some servers end their streams so.
    """

    def __init__(self) -> None:
        self._lines = _Lines()
        self._type, self._data = "", list[bytes]()
        self._is_first = True

    def feed(self, piece: bytes) -> Iterable[tuple[str, bytes]]:
        # Most pieces are whole events of one line each.
        if self._is_between_events and _WHOLE_EVENTS.fullmatch(piece):
            self._is_first = False
            return [("", data) for data in piece[6:-2].split(b"\n\ndata: ")]
        return self._read(piece)

    @property
    def _is_between_events(self) -> bool:
        return not (self._data or self._type or self._lines.is_inside)

    def _read(self, piece: bytes) -> Iterable[tuple[str, bytes]]:
        for line in self._lines.feed(piece):
            if line.startswith(b"data: ") and not self._is_first:  # most lines
                self._data.append(line[6:])
            elif line:
                self._read_field(line)
            elif event := self._event():
                yield event

    def end(self) -> Iterable[tuple[str, bytes]]:
        """Yield the last event, after which servers forget the blank line."""
        for line in self._lines.end():
            self._read_field(line)
        if event := self._event():
            yield event

    def _read_field(self, line: bytes) -> None:
        if self._is_first:
            self._is_first, line = False, line.removeprefix(_BOM)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._type = value[:_MAX_TYPE_LENGTH].decode(errors="replace")

    def _event(self) -> tuple[str, bytes] | None:
        name, data = self._type, b"\n".join(self._data)
        self._type = ""
        self._data.clear()
        return (name, data) if data or name else None


class _JsonLines:
    """Splits JSON lines. Blank lines are left out."""

    def __init__(self) -> None:
        self._lines = _Lines()

    def feed(self, piece: bytes) -> Iterable[tuple[str, bytes]]:
        return [("", line) for line in self._lines.feed(piece) if line.strip()]

    def end(self) -> Iterable[tuple[str, bytes]]:
        return [("", line) for line in self._lines.end() if line.strip()]


class _Messages:
    """Takes each piece as an event. Blank ones are left out."""

    def feed(self, piece: bytes) -> Iterable[tuple[str, bytes]]:
        return [("", piece)] if piece.strip() else []

    def end(self) -> Iterable[tuple[str, bytes]]:
        return ()


class _Whole:
    """A body that is no stream."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, piece: bytes) -> Iterable[tuple[str, bytes]]:
        self._pieces.append(piece)
        return ()

    def end(self) -> Iterable[tuple[str, bytes]]:
        return [("", b"".join(self._pieces))]


_SPLITTERS: dict[StreamFormat, Callable[[], _Splitter]] = {
    "sse": _Sse,
    "ndjson": _JsonLines,
    "websocket": _Messages,
}
