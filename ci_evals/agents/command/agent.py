"""`command: PROGRAM`: an agent that is a program, one process for each conversation, JSON lines on its pipes.

Each process leads a group of its own, so that what it has started ends with it.
"""

import asyncio
import json
import shlex
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import JsonValue

from ci_evals.adapters.hand_over import tools_in, with_tools
from ci_evals.adapters.processes.child_process import ChildProcess
from ci_evals.adapters.processes.environments import environment_for_agent
from ci_evals.adapters.trace_context import trace_headers
from ci_evals.agents.chat_thread import Thread
from ci_evals.agents.code import plain_reply
from ci_evals.agents.settings import AgentSettings, CodeEnvironment
from ci_evals.domain.agents import COMMAND
from ci_evals.domain.errors import AgentError, UsageError
from ci_evals.domain.suite import Test
from ci_evals.domain.transcript import Reply
from ci_evals.support import payload
from ci_evals.support.json_text import written
from ci_evals.support.redaction import Redactor

KEY_VARIABLE = "AGENT_KEY"


def build(
    adapter: str, settings: AgentSettings, redactor: Redactor, where: CodeEnvironment
) -> "CommandAgent":
    """Return the agent of `command: PROGRAM`. Raise `UsageError` if there is no such program."""
    return CommandAgent(adapter, settings, where.environ, redactor)


class CommandAgent:
    """A program that answers each line of JSON with one. Implements the port `Agent`."""

    def __init__(
        self,
        command: str,
        settings: AgentSettings,
        environ: Mapping[str, str],
        redactor: Redactor | None = None,
    ) -> None:
        """Start nothing yet; raise `UsageError` if there is no such program, or it may not be run.

        `command` is the program and its arguments, as for a shell (none is used). The program gets `environ`
        without what is meant for us alone.
        """
        self._settings = settings
        self._redactor = (redactor or Redactor()).knowing(keys=[settings.api_key or ""])
        line = command.removeprefix(COMMAND).strip()
        self._name = f"the program {payload.shorten(self._redactor.text(line))!r}"
        self._escalation_tools = tools_in(settings.options)
        self._environ = environment_for_agent(environ)
        if settings.api_key:
            self._environ[KEY_VARIABLE] = settings.api_key
        self._arguments = self._find_program(line, environ)

    async def open_session(self, test: Test) -> "_CommandConversation":
        """Start a process, and send it the test of the conversation. That is not answered."""
        try:
            limit = payload.MAX_ANSWER_MB * 2**20
            process = await _CommandConversation.start(self._arguments, self._environ, limit)
        except (OSError, ValueError) as error:
            raise AgentError(
                f"{self._name} could not be started: {self._redactor.text(str(error))}"
            ) from error
        process.thread = Thread.of(test.history)
        process.write(
            _line(
                type="open",
                agentId=self._settings.agent_id,
                model=self._settings.model,
                systemPrompt=test.system_prompt,
                userInfo=test.user_info,
                options=dict(self._settings.options),
                **({"history": test.history} if test.history else {}),
            )
        )
        return process

    async def send_message(self, session: "_CommandConversation", text: str, *, timeout: float) -> Reply:  # noqa: ASYNC109  # as the port has it
        """Send `text`, and read the one line that answers it."""
        await asyncio.sleep(0)  # what has arrived is read
        if extra := session.unread():
            raise self._extra_line(extra)
        started, message_id = time.perf_counter(), uuid4().hex
        session.is_waiting = True
        session.thread.ask(text)
        session.write(_line(type="message", id=message_id, text=text, **trace_headers()))
        try:
            async with asyncio.timeout(timeout):
                line = await session.line()
        except TimeoutError:
            session.kill()
            message = f"{self._name} did not answer within {timeout:g} s{self._complaint(session)}"
            raise AgentError(message) from None
        seconds = time.perf_counter() - started
        if line is None:
            raise AgentError(await self._ended(session))
        session.is_waiting = False
        try:
            answer = self._of_message(payload.parse(line), message_id)
            reply = plain_reply.read(answer, seconds, session.thread, keep_raw=self._settings.debug)
        except ValueError as error:
            raise AgentError(self._unreadable(line, error)) from None
        session.thread.take(reply.agent, plain_reply.messages_of(answer))
        return with_tools(reply, self._escalation_tools, reported=reply.handed_over is not None)

    async def close(self, session: "_CommandConversation") -> None:
        """Give the program a moment to end by itself, then end it and its children.

        Raise `AgentError` if it wrote a line that answers no message: any answer may belong to another one.
        """
        extra = await session.end()
        if extra and not session.is_waiting:
            raise self._extra_line(extra)

    def _of_message(self, answer: JsonValue, message_id: str) -> JsonValue:
        """Return the answer without its `id`, or raise `AgentError` if that is another message's."""
        if not isinstance(answer, dict) or "id" not in answer:
            return answer
        if answer["id"] != message_id:
            shown = payload.shorten(self._redactor.text(written(answer["id"])))
            raise AgentError(
                f"{self._name} answered another message: the answer has the id {shown}, the message "
                f'"{message_id}"'
            )
        return {key: value for key, value in answer.items() if key != "id"}

    def _extra_line(self, line: bytes) -> AgentError:
        return AgentError(
            f"{self._name} wrote more than one line for a message: {self._excerpt(line)}; "
            "standard output is only for answers; print everything else to standard error"
        )

    def _find_program(self, line: str, environ: Mapping[str, str]) -> list[str]:
        adapter = f"adapter {self._redactor.text(f'{COMMAND} {line}')!r}"
        try:
            program, *arguments = shlex.split(line)
        except ValueError as error:  # also no word at all
            raise UsageError(f"{adapter} cannot be read: {error}") from None
        if path := shutil.which(program, path=environ.get("PATH")):
            return [path, *arguments]
        shown = self._redactor.text(program)
        if Path(program).exists():
            raise UsageError(
                f"{adapter}: {shown!r} cannot be run: make it executable (chmod +x), or name what runs it, "
                f"as in '{COMMAND} python {shown}'"
            )
        raise UsageError(
            f"{adapter}: there is no program {shown!r}, neither on the PATH nor, if it has a slash, below "
            f"{str(Path.cwd())!r}; the container has only python, sh and your repository"
        )

    async def _ended(self, session: ChildProcess) -> str:
        if session.too_long:
            return f"{self._name} wrote more than {payload.MAX_ANSWER_MB} MB for one message"
        code = await session.code()
        if code is None:
            return f"{self._name} closed its standard output without an answer{self._complaint(session)}"
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{self._name} {how} before it answered{self._complaint(session)}"

    def _complaint(self, session: ChildProcess) -> str:
        words = session.last_words(self._redactor)
        return f"; its standard error ends: {words}" if words else ""

    def _unreadable(self, line: bytes, error: ValueError) -> str:
        try:
            payload.parse(line)
        except ValueError:
            return (
                f"{self._name} wrote a line that is {error}: {self._excerpt(line)}; standard "
                "output is only for answers, one line each; print everything else to standard error"
            )
        return f"the answer of {self._name} {payload.shorten(self._redactor.text(str(error)))}"

    def _excerpt(self, line: bytes) -> str:
        return payload.excerpt(line, self._redactor)


class _CommandConversation(ChildProcess):
    """The process of one conversation."""

    is_waiting = False
    """True if a message has not been answered yet."""
    thread: Thread


def _line(**message: Any) -> bytes:
    return json.dumps(payload.clean(message), ensure_ascii=True).encode() + b"\n"
