"""Single keys from the terminal, while something else goes on."""

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

_LOOK_SECONDS = 0.05


class Keys(Protocol):
    """The source of keys."""

    works: bool
    """True as long as a key may come."""

    def wait(self, seconds: float) -> str:
        """Return the next key, in lower case; empty if none is pressed within this time."""


class NoKeys:
    """Waits, without a terminal."""

    works = False

    def wait(self, seconds: float) -> str:
        """Wait, and return no key."""
        time.sleep(seconds)
        return ""


class TerminalKeys:
    """Keys from a terminal that hands over each at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.works = True

    def wait(self, seconds: float) -> str:
        """Return the next key; empty if none is pressed within this time, or the terminal is gone."""
        if not self.works:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return ""
        data = b""
        with suppress(OSError):
            data = os.read(self._descriptor, 1)
        self.works = bool(data)
        return data.decode(errors="replace").lower()


class WindowsKeys:
    """Keys from the console of Windows."""

    works = True

    def wait(self, seconds: float) -> str:
        """Return the next key; empty if none is pressed within this time."""
        if sys.platform != "win32":
            return ""
        import msvcrt  # noqa: PLC0415  # only Windows has it

        deadline = time.monotonic() + seconds
        while not msvcrt.kbhit():
            if time.monotonic() > deadline:
                return ""
            time.sleep(_LOOK_SECONDS)
        return msvcrt.getwch().lower()


@contextmanager
def keys() -> Iterator[Keys]:
    """Take single keys from standard input, if that is a terminal of ours, and restore it afterwards."""
    if sys.stdin is None or not sys.stdin.isatty():
        yield NoKeys()
        return
    if sys.platform == "win32":
        yield WindowsKeys()
        return
    import termios  # noqa: PLC0415  # not on Windows
    import tty  # noqa: PLC0415  # likewise

    descriptor = sys.stdin.fileno()
    if os.tcgetpgrp(descriptor) != os.getpgrp():  # in the background, where the keys are another program's
        yield NoKeys()
        return
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield TerminalKeys(descriptor)
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
