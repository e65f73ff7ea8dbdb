"""Files that grow by a line of JSON at a time, and hold whole lines whenever their writer is killed."""

import json
import os
from contextlib import suppress

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from ci_evals.domain.base import Record


def line(record: Record) -> bytes:
    """The record as a line."""
    try:
        return record.model_dump_json(by_alias=True).encode() + b"\n"
    except (PydanticSerializationError, UnicodeEncodeError):
        # Half of a surrogate pair, as JSON can carry one into a reply: UTF-8 cannot write it, an escape can.
        return json.dumps(record.model_dump(mode="json", by_alias=True)).encode() + b"\n"


def append(descriptor: int, data: bytes) -> None:
    """Writes a line at the end of a file that is open for appending: all of it, or nothing.

    Raises:
        OSError: it cannot be written.
    """
    size = os.fstat(descriptor).st_size
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def why(error: ValidationError) -> str:
    """The first reason why what a line holds is no such record, with its place in there."""
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, fault["loc"]))
    return f"{where}: {fault['msg']}" if where else fault["msg"]
