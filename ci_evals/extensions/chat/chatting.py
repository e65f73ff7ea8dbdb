"""`chat`: a conversation in which a person writes the messages."""

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cached_property
from pathlib import Path

from ci_evals.cli.files.suite_loading import headers_of, values_of
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run_context import RunContext
from ci_evals.conversation.converse import ConversationEnd, ConversationPlayer
from ci_evals.conversation.in_world import WorldPlayer
from ci_evals.conversation.simulated_user import STOP_MARKER
from ci_evals.domain.errors import AgentError, Exit, SuiteError, UsageError
from ci_evals.domain.plan import Plan, Trial
from ci_evals.domain.providers import OFFLINE
from ci_evals.domain.suite import AUTO, MOST_TURNS, PlannedTurn, Test
from ci_evals.domain.transcript import END_REASONS, EndState, Turn
from ci_evals.extensions.chat import view
from ci_evals.extensions.chat.evaluating import evaluate
from ci_evals.extensions.chat.lines import LineReader, standard_input
from ci_evals.extensions.chat.saving import ChatSaver
from ci_evals.extensions.chat.settings import ChatSettings
from ci_evals.extensions.chat.suite import load_chat
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection, plan
from ci_evals.runner import Participants
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import is_blank
from ci_evals.wiring.connections import Connections, keys_of
from ci_evals.wiring.players import build_players
from ci_evals.wiring.providers import llm_key_of

HELP = """\
/save FILE [NAME]   write the conversation as a test, to a new suite or at the end of one that is there
/undo               take back the last message: the others are sent again, in a new session
/restart            begin again, in a new session
/evaluate           grade what was said by the criteria of --test
/help               show this
/quit               end; so do Ctrl-C and the end of the input
//text              send a message that begins with /"""
_ENDED = "The conversation has ended. /undo, /restart, /save, /evaluate or /quit"


class Action(Enum):
    """What a person wants next, other than to send a message."""

    QUIT = auto()
    RESTART = auto()
    UNDO = auto()


def chat(settings: ChatSettings, context: RunContext) -> None:
    """Talk to the agent until the input ends, and exit.

    Raises:
        UsageError: the agent cannot be reached so; nothing was sent.
    """
    parts = prepared(settings, context)
    for warning in parts.loaded.warnings:
        context.console.say(f"warning: {warning}")
    interruption = Interruption(context)
    is_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    talk = Chat(parts, LineReader(standard_input()), interruption.stop, is_terminal=is_terminal)
    sys.exit(interruption.play(talk.run()))


def prepared(settings: ChatSettings, context: RunContext) -> "ChatParts":
    """Read the suite and the options, and have all secrets redacted from here on.

    Raises:
        UsageError: the agent cannot be reached so.
    """
    loaded = load_chat(settings, FileTrust(settings, GitHubJob.of(settings, context)))
    connections = _connections(settings, context)
    keys = (settings.llm_key, settings.agent_key, *keys_of(connections, [loaded]))
    redactor = context.hide(keys, values_of([loaded], context.environ))
    context.mask()
    return ChatParts(settings, context, loaded, connections, redactor)


def _connections(settings: ChatSettings, context: RunContext) -> Connections:
    key, token = llm_key_of(settings.provider, settings.llm_key, context.environ)
    return Connections(
        provider=settings.provider,
        llm_key=key,
        llm_token=token,
        judge_model=settings.judge_model,
        headers=headers_of(settings.agent_headers),
        otlp=settings.otlp,
        otlp_host=settings.otlp_host,
        otlp_port=settings.otlp_port,
        agent_in_process=settings.agent_in_process,
        environ=context.environ,
    )


@dataclass(frozen=True)
class ChatParts:
    """What a chat is made of."""

    settings: ChatSettings
    context: RunContext
    loaded: LoadedSuite
    connections: Connections
    redactor: Redactor

    @cached_property
    def plan(self) -> Plan:
        """The plan of a run with the test that is talked about."""
        return plan([self.loaded], Selection(), 1)

    @property
    def test(self) -> Test:
        """The test that the agent is told of, without keys: nobody else may change its data."""
        test = self.redactor.only_keys.model(self.loaded.suite.tests[0])
        return test.copy_with(user_info=deepcopy(test.user_info))


class Chat:
    """Sessions with the agent, one after the other, until the person quits.

    It is the simulated user of these conversations: each of their turns is `auto`.
    """

    def __init__(self, parts: ChatParts, reader: LineReader, stop: Stop, *, is_terminal: bool) -> None:
        """Send nothing yet. A terminal has prompts; elsewhere an error ends the chat."""
        self._parts, self._reader, self._stop, self._is_terminal = parts, reader, stop, is_terminal
        self._to_send: deque[str] = deque()
        """Messages that are sent again."""
        self._action: Action | None = None
        self._refused = False
        """True if a command was refused, which nobody may have read."""
        self._conversation: ConversationPlayer | None = None

    async def run(self) -> int:
        """Talk, and return the exit code."""
        parts, planned = self._parts, self._parts.plan
        without_models = replace(parts.connections, provider=OFFLINE.name, judge_model=None)
        async with build_players(planned, without_models, parts.redactor) as built:
            try:
                await self._stop.run_until_stopped(built.agents.start_programs())
            except AgentError as error:
                parts.context.console.say(f"error: {error}")
                return Exit.INVALID
            watch = asyncio.create_task(self._watch(built.agents.ended_program()))
            try:
                code = await self.talk(built.by_suite[0])
            finally:
                watch.cancel()
        if self._stop.interrupted:
            if self._is_terminal:
                self._show("")  # after the ^C that the terminal shows
            return Exit.INTERRUPTED
        if self._stop.reason:
            parts.context.console.say(f"error: {self._stop.reason}")
            return Exit.INVALID
        return code

    async def _watch(self, ended: Awaitable[str]) -> None:
        self._stop.request(await ended, outage=True, cut_off=True)

    async def talk(self, participants: Participants) -> int:
        """Talk to an agent that runs, and return the exit code."""
        world = WorldPlayer(self._parts.plan.world_of(Trial(0, 0, 1)), participants.world, self._stop)
        self._greet()
        while True:
            self._action = None
            conversation = ConversationPlayer(participants.agent, self, self._show_reply)
            self._conversation = conversation
            turns = [PlannedTurn(user=AUTO)] * MOST_TURNS
            end = await world.play(conversation, self._parts.test, turns)
            if self._stop.requested:
                return Exit.INTERRUPTED
            action = await self._after(end)
            if action is Action.QUIT and end.failure:
                return Exit.INVALID
            if action is Action.QUIT:
                return Exit.USAGE if self._refused and not self._is_terminal else Exit.PASSED
            messages = [turn.user for turn in conversation.turns]
            if action is Action.RESTART:
                messages = []
            elif conversation.unanswered is None:
                messages = messages[:-1]
            self._to_send = deque(messages)
            self._show("A new session begins.")

    async def _after(self, end: ConversationEnd) -> Action:
        """Return what the person wants after a conversation."""
        if end.status is EndState.STOPPED:
            return self._action or Action.QUIT
        if end.failure:
            self._parts.context.console.say(f"error: {end.failure}")
            if not self._is_terminal:
                return Action.QUIT
        else:
            self._show(f"The conversation ended: {END_REASONS[end.status]}.")
        while True:
            wanted = await self._stop.run_until_stopped(self._read())
            if wanted is None:
                return Action.QUIT
            if isinstance(wanted, Action):
                return wanted
            self._show(_ENDED)

    async def next_message(self, test: Test, turns: Sequence[Turn]) -> str:
        """Return the next message: one that is sent again, or a line of the input."""
        del test, turns
        if self._to_send:
            line = self._to_send.popleft()
            self._show(view.sent(line))
            return line
        wanted = await self._read()
        if isinstance(wanted, Action):
            self._action = wanted
            return STOP_MARKER
        return wanted

    async def _read(self) -> str | Action:
        """Return the next message, or what the person wants instead; other commands are done here."""
        while True:
            self._prompt()
            line = await self._reader.next()
            if line is None:
                if self._is_terminal:
                    self._show("")
                return Action.QUIT
            line = line.strip()
            if is_blank(line):
                continue
            if not self._is_terminal:
                self._show(view.sent(line))
            if line.startswith("//"):
                line = line[1:]
            elif line.startswith("/"):
                if action := await self._command(line):
                    return action
                continue
            if STOP_MARKER in line:
                self._show(f"{STOP_MARKER} ends a conversation, and cannot be sent.")
                continue
            return line

    async def _command(self, line: str) -> Action | None:
        command, _, rest = line.partition(" ")
        match command.lower():
            case "/quit" | "/exit":
                return Action.QUIT
            case "/restart":
                return Action.RESTART
            case "/undo":
                return self._undo()
            case "/save":
                self._save(rest)
            case "/evaluate":
                await self._evaluate()
            case "/help":
                self._show(HELP)
            case _:
                self._refuse(f"No such command: {command}. /help lists them.")
        return None

    def _undo(self) -> Action | None:
        conversation = self._conversation
        if conversation and (conversation.turns or conversation.unanswered):
            return Action.UNDO
        self._refuse("Nothing was said yet.")
        return None

    def _save(self, rest: str) -> None:
        file, _, name = rest.strip().partition(" ")
        if not file:
            self._refuse("Name the file: /save FILE [NAME]")
            return
        parts = self._parts
        saver = ChatSaver(parts.loaded, parts.settings, parts.redactor)
        try:
            saved = saver.save(self._turns, Path(file), name.strip())
        except SuiteError as error:
            self._refuse(f"{error}\nName another file.")
        except UsageError as error:
            self._refuse(str(error))
        else:
            self._show(view.shown(f"Saved as {saved!r}. Check it: ci-evals validate --strict {file}"))

    async def _evaluate(self) -> None:
        parts = self._parts
        if parts.settings.test is None:
            self._refuse("No criteria: start chat with --test=NAME to grade by those of a test.")
            return
        conversation = self._conversation
        if conversation is None or not conversation.turns:
            self._refuse("Nothing was said yet.")
            return
        transcript = conversation.transcript(ConversationEnd(EndState.STOPPED))
        found = await evaluate(parts.loaded.suite, transcript, parts.connections, parts.redactor)
        self._show(view.findings(found))

    @property
    def _turns(self) -> Sequence[Turn]:
        return self._conversation.turns if self._conversation else ()

    def _greet(self) -> None:
        if self._is_terminal:
            suite = self._parts.loaded.suite
            self._show(
                f"Talking to the agent of {view.shown(suite.name)} ({suite.adapter}). /help lists commands."
            )
        for line in view.history(self._parts.test):
            self._show(line)

    def _show_reply(self, index: int) -> None:
        self._show(view.reply(self._turns[index - 1]))

    def _refuse(self, message: str) -> None:
        self._refused = True
        self._show(view.shown(message))

    def _show(self, text: str) -> None:
        self._parts.context.show(text)

    def _prompt(self) -> None:
        if self._is_terminal:
            sys.stdout.write(view.USER)
            sys.stdout.flush()
