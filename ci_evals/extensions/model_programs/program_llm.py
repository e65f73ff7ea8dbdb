"""Models behind a program of this machine that answers questions by its own login, one process for each."""

import asyncio
import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from pydantic import JsonValue

from ci_evals.adapters.processes.child_process import ChildProcess
from ci_evals.adapters.processes.environments import environment_for_model
from ci_evals.adapters.transport import retry
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, fair_share
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, UsageError
from ci_evals.ports import Completion, Prompt
from ci_evals.support import payload
from ci_evals.support.digest import digest
from ci_evals.support.documentation import see
from ci_evals.support.redaction import Redactor

Events = dict[str, dict[str, JsonValue]]
"""The events of a program: the last of each type."""

_RESULT = "result"
"""The type of the event that ends a program's output."""
_TOO_MANY_REQUESTS, _OVERLOADED = 429, 529
_VERSION_SECONDS = 30
_USER_INFO = re.compile(r"//[^/@]*@")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Program:
    """A program, and what messages say about it."""

    name: str
    provider: str
    """The value of the option `provider`."""
    product: str
    vendor: str
    """What a login gives access to."""
    min_version: tuple[int, int, int]
    setup: str
    """Its address, or the command that installs it."""
    login: str
    """The command that logs in."""
    services: tuple[str, ...] = ()
    """Environment variables that have it ask another service than its vendor's."""

    @property
    def advice(self) -> str:
        """What to do if it cannot be used."""
        return f"install it ({self.setup}) and log in, or use another provider"


class ProgramLLM(ABC):
    """A model behind a program, one process for each question. Implements the port `LLM`."""

    program: ClassVar[Program]
    no_access: ClassVar[re.Pattern[str]]
    """The program's words for a missing or refused login."""

    def __init__(
        self,
        model: str,
        environ: Mapping[str, str],
        *,
        timeout: float = 120,
        redactor: Redactor | None = None,
        limiter: RateLimiter | None = None,
    ) -> None:
        """Find the program and check its version; raise `UsageError` if it is missing or too old.

        The program gets `environ` without our own variables. An answer may take `timeout` seconds from the
        start of its process. By default two processes run at once for each processor, and at least four.
        """
        self.model = model
        self._path = _find(self.program, environ)
        self._environ = self._environment(environment_for_model(environ))
        self.version = _version(self.program, self._path, frozenset(self._environ.items()))
        self.who = f"{self.program.name} {self.version}"
        """The name of the service in messages."""
        self.address = self._address()
        self._timeout = timeout
        self._redactor = redactor or Redactor()
        at_once = min(max(4, 2 * (os.cpu_count() or 1)), fair_share())
        self.limiter = limiter or RateLimiter(max_concurrent=at_once)

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask in a new process, and again after a rate limit that the program reports."""
        return await self.limiter.send(lambda _: self._attempt(prompt))

    def _address(self) -> str:
        """Return the program's name, with what its environment says of the service that it asks."""
        named = {
            name: _USER_INFO.sub("//", value)
            for name in self.program.services
            if (value := self._environ.get(name))
        }
        return f"{self.program.name} {digest(named)}" if named else self.program.name

    @abstractmethod
    def _environment(self, environ: dict[str, str]) -> dict[str, str]:
        """Return the program's environment, from one without variables of ours."""

    def _own_folders(self, folder: Path) -> dict[str, str]:  # noqa: ARG002  # most need none
        """Return variables that have the program keep what it writes in `folder`, which is then removed."""
        return {}

    @abstractmethod
    def _arguments(self, prompt: Prompt, folder: Path) -> list[str]:
        """Return the arguments. All users of a machine see them, so texts go to `folder` or to the input."""

    @abstractmethod
    def _input(self, prompt: Prompt) -> bytes:
        """Return the program's standard input."""

    def _final_refusal(self, event: dict[str, JsonValue]) -> str:  # noqa: ARG002  # most end by themselves
        """Return why the program's login is refused if an event shows that it asks in vain; else nothing."""
        return ""

    @abstractmethod
    def _read(self, events: Events, folder: Path) -> Completion:
        """Return the answer in the events, of which one is a `result`, and in the files in `folder`."""

    async def _attempt(self, prompt: Prompt) -> Completion:
        with TemporaryDirectory(prefix="ci-evals-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            return self._read(await self._answer(prompt, folder), folder)

    async def _answer(self, prompt: Prompt, folder: Path) -> Events:
        """Run the program in an empty folder and return its events."""
        empty = folder / "empty"
        empty.mkdir()
        try:
            process = await ChildProcess.start(
                [self._path, *self._arguments(prompt, folder)],
                self._environ | self._own_folders(folder),
                payload.MAX_ANSWER_MB * 2**20,
                str(empty),
            )
        except (OSError, ValueError) as error:
            raise LLMError(f"{self.who} could not be started: {self._one_line(str(error))}") from error
        try:
            process.write(self._input(prompt))
            process.end_input()
            async with asyncio.timeout(self._timeout):
                return await self._events(process)
        except TimeoutError:
            process.kill()
            raise LLMError(f"{self.who} did not answer within {self._timeout:g} s") from None
        except asyncio.CancelledError:
            process.kill()
            raise
        finally:
            await process.end()

    async def _events(self, process: ChildProcess) -> Events:
        """Read the output up to the `result`; lines that are no events are ignored."""
        events, other = Events(), b""
        while line := await process.line():
            try:
                event = payload.parse(line)
            except ValueError:
                other = line
                continue
            if isinstance(event, dict):
                if reason := self._final_refusal(event):
                    raise self._refused(reason)
                events[payload.name(event.get("type")) or ""] = event
            if _RESULT in events:
                await process.code()  # its files are complete by then
                return events
        raise await self._no_result(process, other)

    async def _no_result(self, process: ChildProcess, other: bytes) -> LLMError:
        """Return the reason for the end of a program without a last event."""
        if process.too_long:
            return LLMAnswerError(f"{self.who} answered with more than {payload.MAX_ANSWER_MB} MB")
        code = await process.code()
        output = self._one_line(
            process.last_words(self._redactor)[-payload.MAX_EXCERPT :], other.decode(errors="replace")
        )
        if self.no_access.search(output):
            return self._refused(output)
        if code == 0 and other:
            return LLMAnswerError(f"{self.who} gave an answer that cannot be read: {output}")
        return LLMError(f"{self.who} ended with exit code {code} and no answer{output and f': {output}'}")

    def _failure(self, reason: str, status: JsonValue, *, no_access: bool, used_up: bool) -> Exception:
        """Turn an error that the program reports into ours: retryable if it is about the rate of calls."""
        reason = self._one_line(reason)
        if no_access:
            return self._refused(reason)
        if used_up:
            return LLMAccessError(f"{self.who} cannot be used for now: {reason}")
        failure = LLMError(f"{self.who} failed: {reason}")
        if status == _TOO_MANY_REQUESTS:
            failure = LLMError(f"{self.who} limits the rate of calls (429): {reason}; lower parallel")
        if isinstance(status, int) and status in (_TOO_MANY_REQUESTS, _OVERLOADED):
            return RetryableError(failure, status, final=LLMAccessError(f"{failure}; {retry.BUDGET_SPENT}"))
        return failure

    def _refused(self, reason: str) -> LLMAccessError:
        hint = f"log in on this machine ({self.program.login}), or see {see('providers')}"
        return LLMAccessError(f"{self.who} has no access to {self.program.vendor}: {reason}; {hint}")

    def _one_line(self, *texts: str) -> str:
        return payload.shorten(" ".join(self._redactor.text(text) for text in texts))


def _find(program: Program, environ: Mapping[str, str]) -> str:
    if path := shutil.which(program.name, path=environ.get("PATH")):
        return str(Path(path).absolute())
    raise UsageError(
        f"`provider={program.provider}`: there is no program {program.name!r} on the PATH; {program.advice} "
        "(the container does not include it; there, use openai or anthropic with a key)"
    )


@cache
def _version(program: Program, path: str, environ: frozenset[tuple[str, str]]) -> str:
    """Return the program's version, asked once."""
    who = f"`provider={program.provider}`: {path!r}"
    try:
        run = subprocess.run(  # noqa: S603  # the program that the user's PATH names
            [path, "--version"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{who} cannot be run: {error}") from error
    output = payload.shorten(run.stdout.decode(errors="replace"))
    version = _VERSION.search(output)
    if run.returncode or not version:
        raise UsageError(
            f"{who} does not report its version, but {output!r}: is it {program.product}? {program.advice}"
        )
    if tuple(map(int, version.groups())) < program.min_version:
        minimum = ".".join(map(str, program.min_version))
        raise UsageError(f"{who} is {version[0]}, and {minimum} is needed at least: {program.name} update")
    return version[0]
