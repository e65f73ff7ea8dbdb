"""The spans of a turn for people to read. Pure."""

from collections.abc import Sequence

from pydantic import JsonValue

from ci_evals.extension_support.span_reading.spans import MAX_OTHER_TEXT, TOO_LONG, Span

_MAX_SHOWN = 500_000
"""Characters of a turn's spans for people."""
_MAX_REPEATED = 200
"""Characters of a text that is kept of every span, even where the span before has the same."""
AS_BEFORE = "(the same as in the span before)"
"""In place of a longer one: each call of a model repeats its instructions and tools."""


def for_people(ordered: Sequence[Span]) -> JsonValue:
    """Return the spans with their attributes, as many of these as people might read."""
    shown: list[JsonValue] = []
    size = 0
    before: dict[str, str] = {}
    for span in ordered:
        attributes: dict[str, JsonValue] = {}
        if span.attributes and (size := size + span.size) <= _MAX_SHOWN:
            attributes = {**span.attributes}
            for key, value in span.attributes.items():
                if isinstance(value, str) and len(value) > _MAX_REPEATED:
                    if before.get(key) == value:
                        attributes[key] = AS_BEFORE
                    elif len(value) > MAX_OTHER_TEXT:
                        attributes[key] = TOO_LONG
                    else:
                        before[key] = value
        one: dict[str, JsonValue] = {
            "name": span.name,
            "startMs": (span.start_ns - ordered[0].start_ns) / 1e6,
            "durationMs": (span.end_ns - span.start_ns) / 1e6,
            "attributes": attributes,
        }
        if span.failed:
            one["failed"] = True
        shown.append(one)
    return shown
