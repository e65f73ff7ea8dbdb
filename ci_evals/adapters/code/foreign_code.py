"""Calling code that is not ours: functions and coroutines alike, and what they raise in words."""

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

from ci_evals.adapters.transport import payload
from ci_evals.domain.errors import AgentAccessError, AgentError, UsageError
from ci_evals.support.redaction import Redactor

_OURS = Path(__file__).parents[2]
_MOST_CHARACTERS = 100_000
"""Of a message of foreign code that are looked at: no more of it is ever shown."""
_INSTALLED = frozenset(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


class ForeignError(Exception):
    """Foreign code raised the exception that is this one's cause, be it one that would end the program."""


class Lane:
    """Calls foreign code, one call at a time: functions in a thread that stays, coroutines in a loop.

    What belongs to one conversation has a lane of its own, so that a slow function holds nobody else up and
    finds what it kept for its thread. A thread cannot be stopped: one that is given up goes on until its
    function returns, but holds up neither this program nor its end.
    """

    def __init__(self, *, apart: bool = False) -> None:
        """With `apart` all lanes' coroutines share an event loop in a thread of its own.

        There one that blocks holds up no timeout and no end of ours. Without, they are awaited here, as what
        the caller's code has opened in its own loop wants it.
        """
        self._apart = apart
        self._jobs: queue.SimpleQueue[_Job | None] | None = None

    async def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """What the function gives; where that is to be awaited, what it gives then.

        Raises:
            ForeignError: it raised.
        """
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
        """Lets the thread end, once its function has returned."""
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
            jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
            threading.Thread(target=_work, args=(jobs,), daemon=True, name="ci-evals agent").start()
            self._jobs = jobs  # only now: without a thread nobody would take a job from it
        job = _Job(work)
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
    """Whether any coroutine has been called in the event loop of all lanes."""
    return _loop_apart.cache_info().currsize > 0


async def shared_loop_answers(seconds: float) -> bool:
    """Whether the event loop of all lanes is free within so many seconds: a function may block it."""
    answer = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), _loop_apart()))
    done, _ = await asyncio.wait([answer], timeout=seconds)
    return bool(done)


@cache
def _loop_apart() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="ci-evals agents").start()
    return loop


@dataclass(frozen=True)
class _Outcome:
    value: Any = None
    error: BaseException | None = None


async def _caught(value: Awaitable[Any]) -> _Outcome:
    """What comes of it, in whose loop nothing that it raises may be raised: some would end the loop."""
    try:
        return _Outcome(await value)
    except BaseException as error:  # raised again where it is waited for
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        return _Outcome(error=error)


class _Job:
    """One call in a thread, and what came of it."""

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


def _work(jobs: "queue.SimpleQueue[_Job | None]") -> None:
    while job := jobs.get():
        job.run()
        del job  # what a conversation held must not live until the next one


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object may be asynchronous when it is called
    )


def takes(function: Callable[..., Any], *args: Any, **options: Any) -> bool:
    """Whether the function can be called so. One that does not tell can."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*args, **options)
    except TypeError:
        return False
    return True


@dataclass(frozen=True)
class Words:
    """A message of ours around words of foreign code, which lose secrets before they are cut short."""

    before: str
    quoted: str = ""
    after: str = ""

    def around(self, before: str, after: str = "") -> "Words":
        """The same within more words of ours."""
        return Words(before + self.before, self.quoted, self.after + after)

    def shown(self, redactor: Redactor) -> str:
        """The message, short and without secrets."""
        return f"{self.before}{payload.shorten(redactor.text(self.quoted))}{self.after}"


class CodeError(AgentError):
    """A failure of an agent that is code."""

    def __init__(self, words: Words, redactor: Redactor) -> None:
        super().__init__(words.shown(redactor))
        self.words = words


class CodeTimeoutError(AgentError):
    """An agent that is code took longer than it may."""


class CodeUsageError(UsageError):
    """Code that cannot be used as an agent."""

    def __init__(self, words: Words, redactor: Redactor) -> None:
        super().__init__(words.shown(redactor))
        self.words = words


def words_of(error: BaseException) -> Words:
    """An exception of foreign code on one line: its type, its message, and the place in that code."""
    if isinstance(error, ForeignError) and error.__cause__:
        error = error.__cause__
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    message, where = text_of(error)[:_MOST_CHARACTERS], _place(error)
    kind = type.__dict__["__name__"].__get__(type(error))  # a metaclass may answer by code of its own
    return Words(f"{kind}{': ' if message else ''}", message, f" ({where})" if where else "")


def told(error: BaseException, redactor: Redactor) -> str:
    """The words of an exception of foreign code, short and without secrets."""
    return words_of(error).shown(redactor)


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


def _place(error: BaseException) -> str:
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
