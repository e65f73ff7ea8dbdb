"""Read what programs show in a terminal."""

import os
import select
import time


def read_until(terminal: int, text: str, key: bytes = b"") -> str:
    """Read until the terminal shows a text, pressing a key every two seconds; return all that it showed."""
    shown, end = "", time.monotonic() + 300
    while text not in shown:
        assert time.monotonic() < end, shown
        if key:
            os.write(terminal, key)
        while text not in shown and select.select([terminal], [], [], 2)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
    return shown
