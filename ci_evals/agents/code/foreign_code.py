"""Calls of code that is not ours, functions and coroutines alike, and messages for its exceptions."""

import asyncio
import inspect
import queue
import sysconfig
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.support import payload
from ci_evals.support.redaction import Redactor

_OURS = Path(__file__).parents[2]
_MAX_CHARACTERS = 100_000
"""The part of a message of foreign code that is read: no more of it is ever shown."""
_INSTALLED = frozenset(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


class ForeignError(Exception):
    """Foreign code raised the exception that is this one's cause, be it one that would end the program."""


class CodeCaller:
    """Calls foreign code, one call at a time: functions in a thread that stays, coroutines in a loop.

    Each conversation has one of its own, so that a slow function holds nobody else up and finds what it kept
    for its thread. A thread cannot be stopped: one that is given up goes on until its
    function returns, but holds up neither this program nor its end.
    """

    def __init__(self, *, apart: bool = False) -> None:
        """With `apart` the coroutines of all callers share an event loop in a thread of its own.

        There one that blocks holds up no timeout and no end of ours. Without, they are awaited here, as what
        the caller's code has opened in its own loop wants it.
        """
        self._apart = apart
        self._jobs: queue.SimpleQueue[_CallJob | None] | None = None

    async def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Return the result of the function, awaited if awaitable; raise `ForeignError` if it raises."""
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        try:
            if _is_async(function):
                return await self._awaited(function(*args, **options))
            value = await self._in_thread(partial(function, *args, **options))
            return await self._awaited(value) if inspect.isawaitable(value) else value
        except asyncio.CancelledError as error:
            if task and task.cancelling() > before:
                raise
            raise ForeignError from error  # nobody cancelled us: the code did so to itself
        except ForeignError:
            raise
        except BaseException as error:
            raise ForeignError from error
        finally:
            # A bare `except:` in foreign code swallows what was meant for us.
            if task and task.cancelling() > before:
                raise asyncio.CancelledError

    def end(self) -> None:
        """Let the thread end, once its function has returned."""
        if self._jobs:
            self._jobs.put(None)
            self._jobs = None

    async def _awaited(self, value: Awaitable[Any]) -> Any:
        if not self._apart:
            return await value
        running = asyncio.run_coroutine_threadsafe(_caught(value), _loop_apart())
        outcome = await asyncio.wrap_future(running)
        if outcome.error:
            raise ForeignError from outcome.error
        return outcome.value

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        if self._jobs is None:
            jobs: queue.SimpleQueue[_CallJob | None] = queue.SimpleQueue()
            threading.Thread(target=_work, args=(jobs,), daemon=True, name="ci-evals agent").start()
            self._jobs = jobs  # only now: without a thread nobody would take a job from it
        job = _CallJob(work)
        self._jobs.put(job)
        try:
            await job.done
        except asyncio.CancelledError:
            self.end()  # the next call must not wait for a function that may never return
            raise
        if job.error:
            # The job is in the traceback: kept there, the error would live on, with all it holds.
            error, job.error = job.error, None
            raise ForeignError from error
        return job.value


def shares_loop() -> bool:
    """Return whether any coroutine has been called in the shared event loop."""
    return _loop_apart.cache_info().currsize > 0


async def shared_loop_answers(seconds: float) -> bool:
    """Return whether the shared event loop is free within so many seconds: a function may block it."""
    answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), _loop_apart()))
    done, _ = await asyncio.wait([answer], timeout=seconds)
    return bool(done)


@cache
def _loop_apart() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="ci-evals agents").start()
    return loop


@dataclass(frozen=True)
class _CallOutcome:
    value: Any = None
    error: BaseException | None = None


async def _caught(value: Awaitable[Any]) -> _CallOutcome:
    """The outcome as a value: some exceptions, raised in the shared loop, would end it."""
    try:
        return _CallOutcome(await value)
    except BaseException as error:  # raised again where it is waited for
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        return _CallOutcome(error=error)


class _CallJob:
    """One call in a thread, and its outcome."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self._work = work
        self._context = copy_context()

    def run(self) -> None:
        try:
            self.value = self._context.run(self._work)
        except BaseException as error:  # noqa: BLE001  # raised again where it is awaited
            self.error = error
        with suppress(RuntimeError):  # the program is ending, and nobody waits any more
            self.loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
        elif inspect.iscoroutine(self.value):
            self.value.close()  # nobody waits for it any more


def _work(jobs: "queue.SimpleQueue[_CallJob | None]") -> None:
    while job := jobs.get():
        job.run()
        del job  # what a conversation held must not live until the next one


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object may be asynchronous when it is called
    )


def takes(function: Callable[..., Any], *args: Any, **options: Any) -> bool:
    """Return whether the function can be called like this, as far as is known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*args, **options)
    except TypeError:
        return False
    return True


def positional_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that go by place; none if they are not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


@dataclass(frozen=True)
class ForeignMessage:
    """A message of ours around text of foreign code, which loses secrets before it is cut short."""

    before: str
    quoted: str = ""
    after: str = ""

    def around(self, before: str, after: str = "") -> "ForeignMessage":
        """Return the same within more text of ours."""
        return ForeignMessage(before + self.before, self.quoted, self.after + after)

    def shown(self, redactor: Redactor) -> str:
        """The message, short and without secrets."""
        return f"{self.before}{payload.shorten(redactor.text(self.quoted))}{self.after}"


class CodeError(AgentError):
    """A failure of an agent that is code."""

    def __init__(self, message: ForeignMessage, redactor: Redactor) -> None:
        super().__init__(message.shown(redactor))
        self.message = message


class CodeTimeoutError(AgentError):
    """An agent that is code took longer than it may."""


class CodeUsageError(UsageError):
    """Code that cannot be used as an agent."""

    def __init__(self, message: ForeignMessage, redactor: Redactor) -> None:
        super().__init__(message.shown(redactor))
        self.message = message


def message_of(error: BaseException) -> ForeignMessage:
    """An exception of foreign code on one line: its type, its message, and its location in that code."""
    if isinstance(error, ForeignError) and error.__cause__:
        error = error.__cause__
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    message, location = text_of(error)[:_MAX_CHARACTERS], _location(error)
    kind = type.__dict__["__name__"].__get__(type(error))  # a metaclass may answer by code of its own
    if message:
        kind += ": "
    return ForeignMessage(kind, message, f" ({location})" if location else "")


def text_of(error: BaseException) -> str:
    """The message of an exception, whose `__str__` may be foreign code; empty if it cannot be shown."""
    try:
        return str.__str__(str(error))  # a subclass of `str` is made one of ours
    except BaseException:  # noqa: BLE001  # be it one that would end the program
        return ""


def own_error(error: AgentError) -> AgentError:
    """The same error as one of our own classes: foreign code may have given it methods."""
    kind = AgentAccessError if isinstance(error, AgentAccessError) else AgentError
    return kind(text_of(error))


def _location(error: BaseException) -> str:
    """The last line of foreign code that was being run: the author's own before a library's."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(Path(error.filename))}:{error.lineno}"
    frames = [
        (Path(frame.f_code.co_filename), line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if "importlib" not in frame.f_code.co_filename
    ]
    frames = [frame for frame in frames if _OURS not in frame[0].parents]
    own = [frame for frame in frames if _INSTALLED.isdisjoint(frame[0].parents)]
    if not frames:
        return ""
    file, line, function = (own or frames)[-1]
    return f"{_shown(file)}:{line}" + ("" if function == "<module>" else f", in {function}")


def _shown(file: Path) -> str:
    with suppress(ValueError, OSError):
        return str(file.relative_to(Path.cwd()))
    return str(file)
