"""How the program ends: the user's mistake, a bug of ours and an interruption each in their own way."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn


def guarded(command: Callable[[], object], args: Sequence[str]) -> NoReturn:
    """Runs `command` and exits: 2 with one message for a `UsageError`, 70 for a bug, 130 when interrupted.

    A `run` in GitHub Actions that ends before it could publish anything still writes every output, as for an
    invalid run.
    """
    _mend_streams()
    outputs = Path(os.environ["GITHUB_OUTPUT"]) if os.environ.get("GITHUB_OUTPUT") else None
    before = _size(outputs)
    # As process 1 of a container Python ignores SIGTERM unless there is a handler.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = _code_of(command)
    if outputs and list(args[:1]) in (["run"], ["merge"]) and code not in (0, 1) and _size(outputs) == before:
        from ci_evals.cli.actions import refused

        refused(os.environ)
    _close_streams()
    sys.exit(code)


def _size(path: Path | None) -> int:
    return path.stat().st_size if path and path.is_file() else 0


def _code_of(command: Callable[[], object]) -> int:
    from ci_evals.domain.errors import Exit, UsageError

    try:
        command()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else Exit.HOLDS if end.code is None else Exit.BUG
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except UsageError as error:
        _tell(f"error: {error}")
        from ci_evals.cli.actions import complain

        complain(error, os.environ)
        return Exit.USAGE
    except Exception:  # noqa: BLE001  # the top: whatever arrives here is a bug of ours
        _tell(f"{traceback.format_exc()}\nThis is a bug in ci-evals. Please report it with the lines above.")
        return Exit.BUG
    return Exit.HOLDS


def _tell(text: str) -> None:
    from ci_evals.cli.console import error_console

    error_console(os.environ).say(text)


def _mend_streams() -> None:
    """A closed stream, or one that cannot spell what a test is called, must not decide the exit code."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  # open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _close_streams() -> None:
    """Flushes what is left; a reader that has gone (`| head`) or a full disk is no news by now."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            # Python would flush again at its end, and exit 120 over it.
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
