"""How the program ends: the user's mistake, a bug of ours and an interruption each in their own way."""

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn


def guarded(command: Callable[[], object], args: Sequence[str]) -> NoReturn:
    """Runs `command` and exits: 2 with one message for a `UsageError`, 70 for a bug, 130 when interrupted.

    In GitHub Actions a `run` that was refused still writes every output, `result=invalid` among them.
    """
    code = _code_of(command)
    if code in (2, 70) and list(args[:1]) == ["run"]:
        from ci_evals.cli.actions import refused  # noqa: PLC0415

        refused(os.environ)
    sys.stdout.flush()
    sys.exit(code)


def _code_of(command: Callable[[], object]) -> int:
    from ci_evals.domain.errors import CiEvalsError  # noqa: PLC0415

    try:
        command()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 70
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is left to tell it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except CiEvalsError as error:
        _tell(f"error: {error}")
        return 2
    except Exception:  # noqa: BLE001  # the top: whatever arrives here is a bug of ours
        _tell(f"{traceback.format_exc()}\nThis is a bug in ci-evals. Please report it with the lines above.")
        return 70
    return 0


def _tell(text: str) -> None:
    from ci_evals.cli.console import error_console  # noqa: PLC0415

    error_console(os.environ).say(text)
