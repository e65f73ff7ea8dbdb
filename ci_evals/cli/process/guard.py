"""Ends the program: after the user's mistake, a bug of ours or an interruption, each in its own way."""

import codecs
import decimal  # noqa: F401  # before any signal: imported again after one cut it off, it warns on stderr
import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from typer import BadParameter, TyperException

from ci_evals.adapters.github import command_files
from ci_evals.cli.process import supervision
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import Exit, UsageError, exhausted
from ci_evals.extension_registry import commands

_WITH_OUTPUTS = {"run", "comment"}
"""Commands of the core that write the action's outputs, however they end."""

_LACKS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Errors that are nobody's usage: a file that was named well cannot be opened all the same."""

_NOTHING = "did not run"

_IN_PLAIN = "ci-evals-in-plain"
_PLAIN = {"…": ".", "›": ">", "→": ">", "✓": "+", "✗": "x", "–": "-", "−": "-", "±": "~", "“": '"', "”": '"'}
"""Signs of our texts in ASCII, for terminals without UTF-8."""


def run_command(
    command: Callable[[], object], args: Sequence[str], context: RunContext | None = None
) -> NoReturn:
    """Run `command` and exit: 2 with one message for a `UsageError`, 70 for a bug, 130 when interrupted.

    A number that `command` gives back is the exit code; `args` are those of the command line. A `run`,
    `merge`, `rejudge` or `comment` in GitHub Actions that ends before it could publish anything still writes
    every output, as for an invalid run, and all but the last say in the step summary why.

    Commands that decide something do their work in a child process: see `supervision`.
    """
    context = context or RunContext()
    _mend_streams()
    command_files.watch(context.environ)
    if supervision.is_supervised(args) and (reason := supervision.fork_worker()):
        _exit_without_verdict(reason, args[0], context)
    before = command_files.lengths()
    # As process 1 of a container Python ignores SIGTERM unless there is a handler.
    signal.signal(signal.SIGTERM, _interrupt)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not under nohup
        signal.signal(signal.SIGHUP, _interrupt)
    ending = _ending(command, context)
    context.close()
    if ending.code == Exit.INTERRUPTED:
        # Another signal would only disturb what is left to do.
        for number in supervision.ENDING:
            signal.signal(number, signal.SIG_IGN)
    lacking = (
        ending.code not in (0, 1)
        and command_files.lengths() == before
        and bool(args)
        and _has_outputs(args[0])
    )
    if lacking and any(map(context.environ.get, command_files.REPORTS)):
        from ci_evals.cli.github import actions

        actions.write_invalid(context)
        if ending.why and args[0] != "comment":
            actions.explain(ending.heading, ending.why, context)
    if lacking and ending is _INTERRUPTED:
        with suppress(OSError, ValueError):
            sys.stderr.write(f"{ending.heading}: {ending.why}\n")
    command_files.restore()
    _close_streams()
    gc.freeze()  # what was imported would be looked through once more for garbage, for 0.2 s
    supervision.send_exit_code(ending.code)
    sys.exit(ending.code)


def _has_outputs(command: str) -> bool:
    """Return whether a command writes the action's outputs."""
    added = commands().get(command)
    return command in _WITH_OUTPUTS or (added is not None and added.facts.has_outputs)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Interrupt the command, once: further signals would only disturb how it ends."""
    for number in supervision.ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _exit_without_verdict(reason: str, command: str, context: RunContext) -> NoReturn:
    """End as invalid, after a worker that is gone without a verdict, whatever that has written."""
    from ci_evals.cli.github import actions

    _unblock_signals()
    command_files.restore()
    heading = "ended without a verdict"
    why = f"No verdict: the process that ran the command is gone: {reason}."
    if command == "run":
        why += " Finished trials are in the journal: run the same command with `resume=OUTPUT_DIR` to resume."
    actions.report_error(f"ci-evals {heading}. {why}", context)
    if _has_outputs(command):
        actions.write_invalid(context)
        if command != "comment":
            actions.explain(heading, why, context)
    _close_streams()
    os._exit(Exit.INVALID)


@dataclass(frozen=True)
class _Ending:
    """An exit code, and the error that led to it, if any."""

    code: int
    heading: str = ""
    why: str = ""


_INTERRUPTED = _Ending(
    Exit.INTERRUPTED, "interrupted", "The run was interrupted before there was anything to report."
)


def _exit_code(code: object) -> int:
    """Return the exit code of a command that raised `SystemExit` with this value."""
    match code:
        case None:
            return Exit.PASSED
        case int():
            return code
        case _:
            return Exit.BUG


def _ending(command: Callable[[], object], context: RunContext) -> _Ending:
    try:
        _unblock_signals()
        if (code := command()) == Exit.INTERRUPTED:
            raise KeyboardInterrupt  # noqa: TRY301  # Typer has made a number of it
    except SystemExit as end:
        return _Ending(_exit_code(end.code))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except UsageError as error:
        return _report_usage_error(error, context)
    except TyperException as error:
        return _report_bad_arguments(error, context)
    except BaseException as error:  # noqa: BLE001  # the top: whatever arrives here is a bug of ours
        return _report_bug(error, context)
    return _Ending(code if isinstance(code, int) else Exit.PASSED)


def _unblock_signals() -> None:
    """Unblock the signals that have waited, if the program has blocked them."""
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        signal.pthread_sigmask(signal.SIG_UNBLOCK, supervision.ENDING)


def _report_usage_error(error: UsageError, context: RunContext) -> _Ending:
    if isinstance(error.__cause__, OSError) and error.__cause__.errno in _LACKS:
        return _report_bug(error, context)
    from ci_evals.cli.github.actions import report_usage_error

    report_usage_error(error, context)
    return _Ending(Exit.USAGE, _NOTHING, str(error))


def _report_bad_arguments(error: TyperException, context: RunContext) -> _Ending:
    """Report an unreadable command line, and, except in GitHub Actions, the command's usage."""
    from ci_evals.cli.github.actions import report_error

    message, usage = _typer_message(error), getattr(error, "ctx", None)
    plain = f"Error: {message}"
    if usage and message == usage.get_help():
        message, plain = f"no command was given; {usage.command_path} --help lists them", message
    elif usage:
        plain = f"{usage.get_usage()}\nTry '{usage.command_path} -h' for help.\n\n{plain}"
    report_error(message, context, elsewhere=plain)
    return _Ending(Exit.USAGE, _NOTHING, message)


def _typer_message(error: TyperException) -> str:
    """Return Typer's message with the value, and with the variable only if that set the value."""
    from pydantic import ValidationError

    cause = error.__cause__
    if not (
        isinstance(error, BadParameter) and error.ctx and error.param and isinstance(cause, ValidationError)
    ):
        return error.format_message()
    source = error.ctx.get_parameter_source(error.param.name)
    by_variable = source is not None and source.name == "ENVIRONMENT"
    name = error.param.envvar if by_variable else error.param.opts[0]
    value, message = repr(cause.errors()[0]["input"]), error.message.removeprefix("Value error, ")
    if value not in message:
        message = f"{value}. {message}"
    return f"Invalid value for '{name}': {message}"


def _report_bug(error: BaseException, context: RunContext) -> _Ending:
    from ci_evals.cli.github.actions import report_error
    from ci_evals.cli.terminal.console import PLEASE_REPORT

    if lack := exhausted(error):
        why = f"On this machine {lack}. Finished trials are in the journal: `resume=` resumes from there."
        report_error(f"ci-evals ended without a verdict. {why}", context)
        return _Ending(Exit.INVALID, "ended without a verdict", why)
    context.console.say(traceback.format_exc())
    what = "".join(traceback.format_exception_only(error)).strip()
    report_error(f"{PLEASE_REPORT}\n{what}", context, elsewhere=PLEASE_REPORT)
    return _Ending(
        Exit.BUG, "ended by a bug in ci-evals", f"{what}\nPlease report it with the log of this step."
    )


def _mend_streams() -> None:
    """Mend streams that are closed or cannot encode some signs: they must not decide the exit code."""
    codecs.register_error(_IN_PLAIN, _in_plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  # open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_IN_PLAIN)


def _in_plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace signs of ours that an encoding lacks by plain ones of the same width, others by escapes."""
    if isinstance(error, UnicodeEncodeError) and (plain := _PLAIN.get(error.object[error.start])):
        return plain, error.start + 1
    return codecs.backslashreplace_errors(error)


def _close_streams() -> None:
    """Flush what is left; a reader that has gone (`| head`) or a full disk is no news by now."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # ValueError: somebody's code has closed it
            # Python would flush again at its end, and exit 120 over it.
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
