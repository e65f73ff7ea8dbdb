"""The steps and probes of a world, each by its kind: request, statement, program, function or file."""

import asyncio
import re
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import httpx2
from pydantic import JsonValue

from ci_evals.adapters.processes import functions
from ci_evals.adapters.processes.child_process import ChildProcess
from ci_evals.adapters.processes.environments import environment_for_step
from ci_evals.adapters.transport import addresses, http_client
from ci_evals.domain.errors import UsageError, WorldError
from ci_evals.domain.transcript import ProbeResult
from ci_evals.domain.world import (
    SESSION_ID,
    FileRead,
    HttpCall,
    Names,
    SqlQuery,
    Step,
    World,
    probe_result,
)
from ci_evals.extensions.worlds.sql import SqlError, Statement
from ci_evals.ports import FunctionError
from ci_evals.support import payload, placeholders
from ci_evals.support.payload import AnswerTooLargeError
from ci_evals.support.redaction import Redactor
from ci_evals.threads import begin, in_thread

_JSON = re.compile(r"application/(?:[\w.-]+\+)?json")
_MAX_MB = 10
_MAX_BYTES = _MAX_MB * 1_000_000


class _StepError(Exception):
    """A step failed. Its text is a clause after the step's name."""


class WorldSteps:
    """Does the steps of a run's worlds. Implements the port of that name."""

    def __init__(self, environ: Mapping[str, str], redactor: Redactor, base_url: str = "") -> None:
        """Programs and functions get `environ` without what is meant for ci-evals alone.

        Requests to a path go to `base_url`, the agent's address.
        """
        self._environ, self._redactor, self._base_url = environ, redactor, base_url.rstrip("/")
        self._failed_teardowns = 0
        self._first_failure = ""

    async def set_up(self, world: World, names: Names) -> None:
        """Do the setup in order; raise `WorldError` at the first step that fails."""
        for number, step in enumerate(world.setup):
            try:
                await self._do(step, names)
            except WorldError as error:
                raise WorldError(f"setup[{number}]: {error}") from error

    async def probe_before(self, world: World, names: Names) -> dict[str, ProbeResult]:
        """Return what each probe returns, or why it failed."""
        return await self.probe(world, names)

    async def probe(self, world: World, names: Names) -> dict[str, ProbeResult]:
        """Return what each probe returns, or why it failed."""
        results = await asyncio.gather(*(self._probe(step, names) for step in world.probes.values()))
        return dict(zip(world.probes, results, strict=True))

    async def tear_down(self, world: World, names: Names) -> None:
        """Do every step of the teardown, in order; what fails is in `notes`."""
        failures = []
        number = 0
        try:
            for number, step in enumerate(world.teardown):
                try:
                    await self._do(step, names)
                except WorldError as error:
                    failures.append(f"teardown[{number}]: {error}")
        except asyncio.CancelledError:
            failures.append(f"teardown[{number}]: was cut off, as the run ended")
            raise
        finally:
            if failures:
                self._failed_teardowns += 1
                self._first_failure = self._first_failure or failures[0]

    def notes(self) -> tuple[str, ...]:
        """Return a warning about teardowns that failed, if any did."""
        if not self._failed_teardowns:
            return ()
        times = "once" if self._failed_teardowns == 1 else f"{self._failed_teardowns} times"
        why = f"so later ones may have seen its data: {self._first_failure}"
        return (f"the teardown of a conversation failed {times}, {why}",)

    async def _probe(self, step: Step, names: Names) -> ProbeResult:
        try:
            value = await self._do(step, names)
        except WorldError as error:
            return ProbeResult(error=str(error))
        return probe_result(value)

    async def _do(self, step: Step, names: Names) -> JsonValue:
        """Do a step with its `{{names}}` replaced, and return its result; raise `WorldError` if it fails."""
        try:
            async with asyncio.timeout(step.timeout):
                return await self._result(step, names)
        except TimeoutError:
            why = f"did not end within {step.timeout:g} s"
        except (_StepError, FunctionError, SqlError, UsageError) as error:
            why = str(error)
        except UnicodeError as error:  # half of a surrogate pair, in the user's data
            why = f"could not be written: {error}"
        raise WorldError(self._redactor.text(f"the {step} step {why}"))

    async def _result(self, step: Step, names: Names) -> JsonValue:
        if step.http:
            return await self._request(step.http, names)
        if step.sql:
            return await _query(step.sql, names, step.timeout)
        if step.command:
            return await self._run([_text(part, names) for part in step.command])
        if step.python:
            arguments = {
                "user_info": names["userInfo"],
                "trial_id": names["trial"]["id"],
                "session_id": placeholders.member(names, SESSION_ID),
            }
            return await functions.call(
                step.python, arguments, self._environ, self._redactor, timeout=step.timeout
            )
        assert step.file is not None  # noqa: S101  # a step has one kind
        return await in_thread(_read, step.file, _text(step.file.path, names))

    async def _request(self, call: HttpCall, names: Names) -> JsonValue:
        url = placeholders.text(call.url, _lookup(names), lambda text: quote(text, safe=""))
        if url.startswith("/"):
            if not self._base_url:
                raise _StepError(
                    f"names the path {call.url} of an agent without an address; write the full URL"
                )
            url = self._base_url + url
        host = addresses.host_of(url)
        headers = {
            name: addresses.header_value(_text(value, names), f"the header {name}")
            for name, value in call.headers.items()
        }
        try:
            async with http_client.new_client(proxy=addresses.proxy_for(url), max_mb=_MAX_MB) as client:
                body = _filled(call.json_, names)
                response = await client.request(call.method, url, headers=headers, json=body)
        except AnswerTooLargeError as error:
            raise _StepError(f"failed: {host} {error}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            why = payload.shorten(self._redactor.text(str(error) or type(error).__name__))
            raise _StepError(f"got no answer from {host}: {why}") from None
        if not response.is_success:
            detail = payload.error_detail(response.content, self._redactor)
            raise _StepError(f"was answered by {host} with status {response.status_code}: {detail}")
        value = _json_or_text(response.content)
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_text = isinstance(value, str) and value and not response.content.startswith(b'"')
        if is_text and _JSON.fullmatch(media_type):
            raise _StepError(f"failed: {host} said {media_type}, and sent what is no JSON; it may be cut off")
        return value

    async def _run(self, command: list[str]) -> JsonValue:
        try:
            process = await ChildProcess.start(command, environment_for_step(self._environ), _MAX_BYTES)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise _StepError(f"could not start {command[0]}: {why}") from None
        lines: list[bytes] = []
        size, code = 0, None
        try:
            process.end_input()
            while size <= _MAX_BYTES and (line := await process.line()) is not None:
                lines.append(line)
                size += len(line)
            await process.wait()  # it may have closed its output, and fail all the same
            code = await process.code()
        finally:
            process.kill()
            await process.end()
        if process.too_long or size > _MAX_BYTES:
            raise _StepError(f"failed: {command[0]} printed more than {_MAX_MB} MB")
        if code is None:
            raise _StepError(f"failed: nobody knows how {command[0]} ended")
        if code:
            words = process.last_words(self._redactor)
            raise _StepError(f"failed: {command[0]} ended with code {code}{f': {words}' if words else ''}")
        return _json_or_text(b"\n".join(lines))


def _lookup(names: Names) -> placeholders.Lookup:
    def lookup(name: str) -> JsonValue:
        if name == SESSION_ID and "session" not in names:
            raise _StepError("names {{session.id}}, which is unknown: the agent's session has no id")
        return placeholders.member(names, name)

    return lookup


def _text(template: str, names: Names) -> str:
    return placeholders.text(template, _lookup(names))


def _filled(value: JsonValue, names: Names) -> JsonValue:
    return placeholders.filled(value, _lookup(names))


async def _query(sql: SqlQuery, names: Names, seconds: float) -> JsonValue:
    url = placeholders.text(sql.url, _lookup(names), lambda text: quote(text, safe=""))
    parameters = {name: _filled(value, names) for name, value in sql.parameters.items()}
    statement = Statement(url, sql.statement, parameters, seconds)
    try:
        return await in_thread(statement.run)
    except asyncio.CancelledError:
        with suppress(RuntimeError):  # no thread can be started
            begin(statement.cancel)
        raise


def _read(file: FileRead, name: str) -> JsonValue:
    folder = Path.cwd().resolve()
    try:
        path = Path(name).resolve()
        if not path.is_relative_to(folder):
            raise _StepError(f"may not read {name}: it is outside of {folder}")
        if not stat.S_ISREG(path.stat().st_mode):
            raise _StepError(f"could not read {name}: it is not a file")
        with path.open("rb") as opened:
            content = opened.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _StepError(f"could not read {name}: {error.strerror}") from None
    except ValueError as error:  # a null character
        raise _StepError(f"could not read {name!r}: {error}") from None
    if len(content) > _MAX_BYTES:
        raise _StepError(f"failed: {name} has more than {_MAX_MB} MB")
    if file.format == "text":
        return content.decode(errors="replace")
    try:
        return payload.parse(content)
    except ValueError as error:
        raise _StepError(f"could not read {name}: {error}") from None


def _json_or_text(content: bytes) -> JsonValue:
    try:
        return payload.parse(content)
    except ValueError:
        return content.decode(errors="replace").strip()
