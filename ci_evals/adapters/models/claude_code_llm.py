"""`claude-code`: Claude behind the program `claude`, with that program's login.

The program is an agent and is restricted to being a model: no tools, one turn, an empty folder, none of its
user's settings. Options and results: https://code.claude.com/docs/en/cli-reference and
https://code.claude.com/docs/en/headless; errors: https://code.claude.com/docs/en/errors.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import JsonValue

from ci_evals.adapters.models.sdk_llm import tokens
from ci_evals.adapters.transport import connections, payload, retry
from ci_evals.adapters.transport.process import ChildProcess, environment_for_program
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError, Waiting
from ci_evals.domain.base import token_count
from ci_evals.domain.errors import LLMAccessError, LLMAnswerError, LLMError, Paid, UsageError
from ci_evals.ports import Completion, Prompt
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import whole

PROGRAM = "claude"
MIN_VERSION = (2, 1, 248)
"""The first version that obeys `client_composed`; earlier ones read files that a message names by `@path`.

`--safe-mode` exists since 2.1.169."""

_INSTALL = "install it (https://code.claude.com/docs/en/setup) and log in, or take another --provider"
_VERSION_SECONDS = 30
_TURNS, _TURNS_WITH_SCHEMA = 1, 4
"""A structured answer is a tool call, which takes a turn, and another each time that it does not fit."""
_NO_MODEL_ANSWER = frozenset({"error_max_turns", "error_max_structured_output_retries"})

_NO_ACCESS = re.compile(
    r"not logged in|/login\b|invalid api key|oauth token|failed to authenticate|has been disabled"
    r"|disabled claude subscription|credit balance",
    re.IGNORECASE,
)
_LIMITED = (429, 529)
_USED_UP = re.compile(r"\bhit your\b.{0,40}\blimit|usage limit", re.IGNORECASE)
_INPUT_KINDS = ("", "cache_creation_", "cache_read_")
_MAX_DOLLARS = 1_000_000
"""Maximum plausible cost of one answer."""
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


class ClaudeCodeLLM:
    """A model behind the program `claude`, one process for each question. Implements the port `LLM`."""

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
        self._program = _find_program(environ)
        self._environ = environment_for_program(environ)
        self._environ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
        # With this it would take itself for a part of the session that started us.
        self._environ.pop("CLAUDECODE", None)
        self.version = _version(self._program, frozenset(self._environ.items()))
        self._who = f"{PROGRAM} {self.version}"
        self._timeout = timeout
        self._redactor = redactor or Redactor()
        at_once = min(max(4, 2 * (os.cpu_count() or 1)), connections.fair_share())
        self._limiter = limiter or RateLimiter(max_concurrent=at_once)

    async def complete(self, prompt: Prompt) -> Completion:
        """Ask in a new process; again if the program has given up on a rate limit."""
        return await self._limiter.send(lambda _: self._attempt(prompt))

    def waits(self) -> tuple[str, Waiting | None]:
        """Return the name of the service and the current wait for it."""
        return self._who, self._limiter.waiting()

    def note(self) -> str | None:
        """Return a sentence on rate limits; None if there were none."""
        return self._limiter.note(f"{self._who} ({self.model})")

    async def _attempt(self, prompt: Prompt) -> Completion:
        with TemporaryDirectory(prefix="ci-evals-", ignore_cleanup_errors=True) as folder:
            return self._read(await self._answer(prompt, Path(folder)), prompt)

    async def _answer(self, prompt: Prompt, folder: Path) -> dict[str, JsonValue]:
        """Run the program and return its `result` event."""
        empty = folder / "empty"
        empty.mkdir()
        try:
            process = await ChildProcess.start(
                [self._program, *self._arguments(prompt, folder)],
                self._environ,
                payload.MAX_ANSWER_MB * 2**20,
                str(empty),
            )
        except (OSError, ValueError) as error:
            raise LLMError(f"{self._who} could not be started: {self._one_line(str(error))}") from error
        try:
            process.write(_message(prompt))
            process.end_input()
            async with asyncio.timeout(self._timeout):
                return await self._result(process)
        except TimeoutError:
            process.kill()
            raise LLMError(f"{self._who} did not answer within {self._timeout:g} s") from None
        except asyncio.CancelledError:
            process.kill()
            raise
        finally:
            await process.end()

    def _arguments(self, prompt: Prompt, folder: Path) -> list[str]:
        """Return the arguments, with texts in files: all users of a machine see its programs' arguments."""
        arguments = ["-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose"]
        arguments += [f"--model={self.model}", "--tools", "", "--no-session-persistence"]
        # Not --bare, which knows no login, nor --setting-sources, which may hold what the login needs.
        arguments += ["--safe-mode", "--strict-mcp-config", "--disable-slash-commands"]
        if prompt.system:
            file = folder / "system.md"
            file.write_text(whole(prompt.system), encoding="utf-8", newline="")
            arguments += [f"--system-prompt-file={file}"]
        else:
            arguments += ["--system-prompt", ""]
        if prompt.schema is None:
            return [*arguments, f"--max-turns={_TURNS}"]
        return [*arguments, f"--max-turns={_TURNS_WITH_SCHEMA}", f"--json-schema={json.dumps(prompt.schema)}"]

    async def _result(self, process: ChildProcess) -> dict[str, JsonValue]:
        """Return the `result` event and ignore other output."""
        other = b""
        while line := await process.line():
            try:
                event = payload.parse(line)
            except ValueError:
                other = line
            else:
                if isinstance(event, dict) and event.get("type") == "result":
                    return event
                if _keeps_being_refused(event):
                    raise self._no_access(f"{payload.name(payload.member(event, 'error'))} (401)")
        raise await self._no_result(process, other)

    async def _no_result(self, process: ChildProcess, other: bytes) -> LLMError:
        if process.too_long:
            return LLMAnswerError(f"{self._who} answered with more than {payload.MAX_ANSWER_MB} MB")
        code = await process.code()
        output = self._one_line(
            process.last_words(self._redactor)[-payload.MAX_EXCERPT :], other.decode(errors="replace")
        )
        if _NO_ACCESS.search(output):
            return self._no_access(output)
        if code == 0 and other:
            return LLMAnswerError(f"{self._who} gave an answer that cannot be read: {output}")
        return LLMError(f"{self._who} ended with exit code {code} and no answer{output and f': {output}'}")

    def _read(self, result: dict[str, JsonValue], prompt: Prompt) -> Completion:
        subtype, text = result.get("subtype"), result.get("result")
        if isinstance(subtype, str) and subtype in _NO_MODEL_ANSWER:
            raise LLMAnswerError(f"{self._who} gave no answer of the wanted form ({subtype})", _paid(result))
        if result.get("is_error") or subtype != "success":
            failure, status = self._failure(result), result.get("api_error_status")
            if status in _LIMITED and not isinstance(failure, LLMAccessError):
                final = LLMAccessError(f"{failure}; {retry.GAVE_UP}")
                raise RetryableError(failure, int(status), final=final)
            raise failure
        structured = result.get("structured_output")
        if prompt.schema is not None and structured is not None:
            text = json.dumps(structured, ensure_ascii=False)
        if not isinstance(text, str) or not text.strip():
            raise LLMAnswerError(f"{self._who} gave an empty answer", _paid(result))
        return Completion.of(text, _paid(result))

    def _failure(self, result: dict[str, JsonValue]) -> LLMError:
        status = result.get("api_error_status")
        reason = payload.explain(result.get("result")) or payload.explain(result.get("errors"))
        reason = self._one_line(reason or f"{result.get('subtype')}, status {status}")
        if status == 401 or _NO_ACCESS.search(reason):
            return self._no_access(reason)
        if _USED_UP.search(reason):
            return LLMAccessError(f"{self._who} may not be used any more for now: {reason}")
        if status == 429:
            return LLMError(f"{self._who} says that calls are limited (429): {reason}; lower --parallel")
        return LLMError(f"{self._who} failed: {reason}")

    def _no_access(self, reason: str) -> LLMAccessError:
        hint = f"log in on this machine ({PROGRAM} auth login), or see docs/providers.md"
        return LLMAccessError(f"{self._who} has no access to Claude: {reason}; {hint}")

    def _one_line(self, *texts: str) -> str:
        return payload.shorten(" ".join(self._redactor.text(text) for text in texts))


def _keeps_being_refused(event: JsonValue) -> bool:
    """Return whether the program retries with a key that was refused, which it does for minutes.

    The first time it may yet renew its login.
    """
    attempt = payload.member(event, "attempt")
    retried = payload.member(event, "subtype") == "api_retry" and isinstance(attempt, int) and attempt > 1
    return retried and payload.member(event, "error_status") == 401


def _message(prompt: Prompt) -> bytes:
    message = {
        "type": "user",
        "message": {"role": "user", "content": whole(prompt.text)},
        "parent_tool_use_id": None,
        # Else an agent that says "@/etc/passwd" would have the judge read it, and "/clear" would be obeyed.
        "client_composed": True,
    }
    return json.dumps(message).encode() + b"\n"


def _paid(result: dict[str, JsonValue]) -> Paid:
    usage = result.get("usage")
    kinds = [payload.member(usage, f"{kind}input_tokens") for kind in _INPUT_KINDS]
    counts = [token_count(count) for count in kinds if count is not None]
    read = None if None in counts else sum(count or 0 for count in counts) or None
    cost = result.get("total_cost_usd")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost <= _MAX_DOLLARS:
        cost = None
    return Paid(read, tokens(usage, "output_tokens"), cost)


def _find_program(environ: Mapping[str, str]) -> str:
    if path := shutil.which(PROGRAM, path=environ.get("PATH")):
        return str(Path(path).absolute())
    raise UsageError(
        f"--provider=claude-code: there is no program {PROGRAM!r} on the PATH; {_INSTALL} "
        "(the container does not hold it: there, use openai or anthropic with a key)"
    )


@cache
def _version(program: str, environ: frozenset[tuple[str, str]]) -> str:
    """Return the program's version, asked once."""
    who = f"--provider=claude-code: {program!r}"
    try:
        run = subprocess.run(  # noqa: S603  # the program that the user's PATH names
            [program, "--version"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{who} cannot be run: {error}") from error
    output = payload.shorten(run.stdout.decode(errors="replace"))
    version = _VERSION.match(output)
    if run.returncode or not version:
        raise UsageError(f"{who} does not report its version, but {output!r}: is it Claude Code? {_INSTALL}")
    if tuple(map(int, version.groups())) < MIN_VERSION:
        minimum = ".".join(map(str, MIN_VERSION))
        raise UsageError(f"{who} is {version[0]}, and {minimum} is needed at least: {PROGRAM} update")
    return version[0]
