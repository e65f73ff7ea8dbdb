"""Servers on loopback, of an agent and of models, that do what no server should where that is wanted.

    async with faults.serving(faults.once(RequestKind.MESSAGE, Fault.RESET)) as server:
        ...an agent at server.url, models at server.url + "/v1"; what was asked is in server.asked

Nothing that a server says fits another question: `contradictions` finds who took it for an answer to one.
"""

import asyncio
import json
import re
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

import fakes
from every_turn import fill_looked_at

from ci_evals.domain.results.trial import TrialResult
from ci_evals.domain.transcript import EndState

AGENT_KEY, LLM_KEY = "agent-key-3d1f92aa", "llm-key-77c0be41"
POISON = "This answers nothing that was asked"
DRIP_SECONDS = 0.1
RETRY_AFTER = 7
_TLS = b"\x16"
_TASK = re.compile(r"task-\d+")


class RequestKind(StrEnum):
    OPENING = "opening"
    MESSAGE = "message"
    USER = "user"
    JUDGE = "judge"


AGENT, MODELS = (RequestKind.OPENING, RequestKind.MESSAGE), (RequestKind.USER, RequestKind.JUDGE)


class Fault(StrEnum):
    """What a server does in place of answering."""

    NOBODY = "nobody listens"
    NO_NAME = "its name is not known"
    NO_TLS = "it does not speak TLS"
    LATE = "no answer in time"
    DRIP = "a byte now and then, without end"
    CLOSED = "closes the connection before an answer"
    CLOSED_WITHIN = "closes it within the answer's head"
    CLOSED_AFTER = "closes it after the answer"
    RESET = "resets it before an answer"
    RESET_WITHIN = "resets it within the body"
    CUT = "closes it within the body"
    LONG = "announces more than it sends"
    SHORT = "announces less than it sends"
    TWICE = "answers twice"
    LIMITED = "429"
    LIMITED_RETRY_AFTER = "429 with Retry-After"
    UNAVAILABLE = "503"
    UNAVAILABLE_RETRY_AFTER = "503 with Retry-After"
    SERVER_ERROR = "500"
    REFUSED = "401"
    QUOTA = "402"
    EMPTY = "an empty body"
    HTML = "an HTML page"
    STRANGE = "JSON of another kind"
    FOREIGN = "the answer of another conversation"


UNDELIVERED = {Fault.NOBODY, Fault.NO_NAME, Fault.NO_TLS}
"""Nothing that the server would see."""
REFUSALS = {
    Fault.LIMITED, Fault.LIMITED_RETRY_AFTER, Fault.UNAVAILABLE_RETRY_AFTER, Fault.REFUSED, Fault.QUOTA,
}  # fmt: skip
"""With these the server says that it took nothing."""
HARMLESS = {Fault.CLOSED_AFTER, Fault.TWICE}
"""With these the answer is there."""


@dataclass(frozen=True)
class ReceivedRequest:
    """A request that a server has read."""

    place: RequestKind
    number: int
    """Counted from 1 at its place."""
    task: str | None
    """The conversation that it is of, where it tells one."""
    text: str
    """The message, or the prompt."""
    answer: str
    """What belongs to it."""
    fault: Fault | None = None

    @property
    def taken(self) -> bool:
        """Whether the server may have acted on it."""
        return self.fault not in REFUSALS


FaultPlan = Callable[[RequestKind, int], Fault | None]


def none(_place: RequestKind, _number: int) -> None:
    """No fault at all."""


def once(place: RequestKind, fault: Fault, at: int = 1) -> FaultPlan:
    return lambda here, number: fault if (here, number) == (place, at) else None


def always(place: RequestKind, fault: Fault, since: int = 1) -> FaultPlan:
    """The fault at every request of its place from one on."""
    return lambda here, number: fault if here is place and number >= since else None


def mixed(seed: int, share: float, kinds: Sequence[Fault]) -> FaultPlan:
    """Any of the faults at this share of requests."""
    dice = Random(seed)
    return lambda _place, _number: dice.choice(kinds) if dice.random() < share else None


_STEPS_TO_LET_IN = 10
"""More steps of the loop than asyncio takes from a new connection to the task that serves it."""


@dataclass
class FaultyServer:
    """An agent on the AUI wire, and models on those of OpenAI and Anthropic."""

    draw: FaultPlan = none
    port: int = 0
    asked: list[ReceivedRequest] = field(default_factory=list)
    crashes: int = 0
    crashes_at: tuple[RequestKind, int] | None = None
    """At which request it dies: it reads that one, and answers it no more."""
    crashes_after: RequestKind | None = None
    """It dies once it has answered the next request there."""
    _numbers: Counter[RequestKind] = field(default_factory=Counter)
    _tasks: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _serving: set[asyncio.Task[None]] = field(default_factory=set)
    _entering: set[asyncio.Task[Any]] = field(default_factory=set)
    _listening: socket.socket | None = None

    def __post_init__(self) -> None:
        self._rising = asyncio.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def at(self, place: RequestKind) -> list[ReceivedRequest]:
        """What was asked there, in order."""
        return [asked for asked in self.asked if asked.place is place]

    async def start_listening(self) -> None:
        """Begins to listen, again at the same port; knows every conversation that it had."""
        async with self._rising:
            if self._listening is None:
                self._listening = socket.create_server(("127.0.0.1", self.port))
                self._listening.settimeout(0)
                self.port = self._listening.getsockname()[1]
                asyncio.get_running_loop().add_reader(self._listening, self._let_in)

    def crash(self) -> None:
        """Listens no more, and breaks off what is under way."""
        self.crashes += 1
        self.crashes_after = self.crashes_at = None
        self._close()

    async def end(self) -> None:
        """Ends it, and all that it has begun."""
        self._close()
        for _ in range(_STEPS_TO_LET_IN):
            await asyncio.sleep(0)  # whoever was let in at last is shown out
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)
        await asyncio.sleep(0)

    def _close(self) -> None:
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None
        for writer in self._open:
            writer.transport.abort()

    def _let_in(self) -> None:
        """Takes a connection. asyncio's own server loses one that it is closed beside."""
        assert self._listening
        with suppress(OSError):  # who knocked has gone
            connection, _ = self._listening.accept()
            loop = asyncio.get_running_loop()
            protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(), self._serve)
            entering = loop.create_task(loop.connect_accepted_socket(lambda: protocol, connection))
            self._entering.add(entering)
            entering.add_done_callback(self._entering.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._listening is None:  # it died in between
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        self._open.add(writer)
        try:
            while head := await _head(reader, writer):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                body = json.loads(await reader.readexactly(length) or b"null")
                asked, answer = self._answered(head.split(b" ")[1].decode(), body)
                self.asked.append(asked)
                if (asked.place, asked.number) == self.crashes_at:
                    self.crash()
                    break
                usable = await _misbehave(reader, writer, asked, _http(answer))
                if asked.place is self.crashes_after:
                    self.crash()
                if not usable:
                    break
        except (asyncio.IncompleteReadError, OSError):
            pass  # the other end has gone
        finally:
            self._open.discard(writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _answered(self, path: str, body: Any) -> tuple[ReceivedRequest, Any]:
        """The request as the books have it, and the JSON that answers it."""
        if path.endswith("/tasks"):
            self._tasks += 1
            return self._book(
                RequestKind.OPENING, f"task-{self._tasks}", "", lambda asked: {"id": asked.task}
            )
        if "/message?" in path:
            return self._book(RequestKind.MESSAGE, body["task_id"], body["text"], _reply)
        text = body["messages"][-1]["content"]
        task = result[0] if (result := _TASK.search(text)) else None
        judges = "response_format" in body or "output_config" in body
        wire = _openai if path.endswith("/completions") else _anthropic
        return self._book(RequestKind.JUDGE if judges else RequestKind.USER, task, text, wire)

    def _book(
        self, place: RequestKind, task: str | None, text: str, written: Callable[[ReceivedRequest], Any]
    ) -> tuple[ReceivedRequest, Any]:
        self._numbers[place] += 1
        number = self._numbers[place]
        output = f"{task} heard {text!r} as number {number}"
        if place is RequestKind.USER:
            output = f"Line {number} to {task}"
        if place is RequestKind.JUDGE:
            output = fill_looked_at(fakes.judge_answer("pass", f"{task} was judged"), text)
        fault = self.draw(place, number)
        asked = ReceivedRequest(place, number, task, text, output, None if fault in UNDELIVERED else fault)
        return asked, written(asked)


def _reply(asked: ReceivedRequest) -> Any:
    foreign = asked.fault is Fault.FOREIGN
    return {
        "id": f"message-{asked.number}", "task_id": "task-of-another" if foreign else asked.task,
        "text": POISON if foreign else asked.answer, "executed_workflows": [],
        "trace_info": {"input": {"message": asked.text}},
    }  # fmt: skip


def _openai(asked: ReceivedRequest) -> Any:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": asked.answer}}
    return {"choices": [choice], "usage": {"prompt_tokens": 20, "completion_tokens": 5}}


def _anthropic(asked: ReceivedRequest) -> Any:
    return {
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": asked.answer}],
        "usage": {"input_tokens": 20, "output_tokens": 5},
    }


def _http(body: Any, status: int = 200, *headers: str, length: int = 0) -> bytes:
    """An answer; one that announces `length` more bytes than it has, if that is not 0."""
    content = body if isinstance(body, str) else json.dumps(body)
    kind = "application/json" if content[:1] in "{[" else "text/html"
    message = len(content.encode()) + length
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {message}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + content).encode()


_STATUSES = {
    Fault.LIMITED: 429, Fault.LIMITED_RETRY_AFTER: 429, Fault.UNAVAILABLE: 503,
    Fault.UNAVAILABLE_RETRY_AFTER: 503, Fault.SERVER_ERROR: 500, Fault.REFUSED: 401, Fault.QUOTA: 402,
}  # fmt: skip
_WITH_RETRY_AFTER = (Fault.LIMITED_RETRY_AFTER, Fault.UNAVAILABLE_RETRY_AFTER)
_BODIES = {Fault.EMPTY: "", Fault.HTML: "<html><title>Wrong door</title></html>", Fault.STRANGE: {"ok": True}}


async def _misbehave(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: ReceivedRequest, answer: bytes
) -> bool:
    """Sends the answer, or what stands for it; whether the connection can be used after that."""
    half = answer.index(b"\r\n\r\n") + 4 + (len(answer) - answer.index(b"\r\n\r\n") - 4) // 2
    match asked.fault:
        case None | Fault.FOREIGN:
            writer.write(answer)
        case Fault.CLOSED_AFTER:
            writer.write(answer)
            return False
        case Fault.TWICE:
            writer.write(answer + _http(_poisoned(asked)))
        case Fault.LATE:
            await _gone(reader)
            return False
        case Fault.DRIP:
            for byte in answer[:-1]:
                writer.write(bytes([byte]))
                if await _gone(reader, DRIP_SECONDS):
                    return False
            await _gone(reader)
            return False
        case Fault.CLOSED:
            return False
        case Fault.CLOSED_WITHIN:
            writer.write(answer[:20])
            return False
        case Fault.CUT:
            writer.write(answer[:half])
            return False
        case Fault.RESET | Fault.RESET_WITHIN:
            writer.write(answer[:half] if asked.fault is Fault.RESET_WITHIN else b"")
            await writer.drain()
            await asyncio.sleep(0)
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            return False
        case Fault.LONG:
            writer.write(answer.replace(b"Content-Length: ", b"Content-Length: 1"))
            await _gone(reader)
            return False
        case Fault.SHORT:
            length = int(answer.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
            writer.write(answer.replace(b"Length: %d" % length, b"Length: %d" % (length - 9)))
        case Fault.EMPTY | Fault.HTML | Fault.STRANGE:
            writer.write(_http(_BODIES[asked.fault]))
        case _:
            texts = (f"Retry-After: {RETRY_AFTER}",) if asked.fault in _WITH_RETRY_AFTER else ()
            writer.write(_http({"error": {"message": "no"}}, _STATUSES[asked.fault], *texts))
    await writer.drain()
    return not writer.is_closing()


def _poisoned(asked: ReceivedRequest) -> Any:
    """A second answer: whole, and of no use to anybody."""
    verdict = fakes.judge_answer("fail", POISON)
    text = verdict if asked.place is RequestKind.JUDGE else POISON
    return {
        "id": "task-of-nobody",
        "text": text,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": text}}],
        "content": [{"type": "text", "text": text}],
    }


async def _gone(reader: asyncio.StreamReader, seconds: float = 60) -> bool:
    """Waits so long, or until the other end has had enough; whether it has."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await reader.read(1)
            return True
    return False


async def _head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The head of a request. Whoever speaks TLS is told at once, in plain text, that nobody does here."""
    first = await reader.readexactly(1)
    if first == _TLS:
        writer.write(_http({"error": "TLS?"}, 400))
        return b""
    return first + await reader.readuntil(b"\r\n\r\n")


@asynccontextmanager
async def serving(draw: FaultPlan = none) -> AsyncIterator[FaultyServer]:
    """A server until the block ends."""
    server = FaultyServer(draw)
    await server.start_listening()
    try:
        yield server
    finally:
        await server.end()


def contradictions(trials: Iterable[TrialResult], agent: FaultyServer) -> list[str]:
    """What does not agree between trials and what was really said; empty if all does."""
    result: dict[str, list[ReceivedRequest]] = {}
    for asked in agent.at(RequestKind.MESSAGE):
        result.setdefault(str(asked.task), []).append(asked)
    wrong = [f"{task} was told {text!r} twice" for task, text in _twice(result)]
    held: Counter[str] = Counter()
    for trial in trials:
        held.update(_tasks_of(trial))
        wrong += _untrue(trial, result)
    return wrong + [f"{task} is in {times} trials" for task, times in held.items() if times > 1]


def _twice(fields: dict[str, list[ReceivedRequest]]) -> list[tuple[str, str]]:
    """Messages that a conversation was given again though the server may have taken them."""
    result = []
    for task, messages in fields.items():
        taken: set[str] = set()
        for asked in messages:
            if asked.text in taken:
                result.append((task, asked.text))
            if asked.taken:
                taken.add(asked.text)
    return result


def _tasks_of(trial: TrialResult) -> set[str]:
    return {result[0] for turn in trial.turns if (result := _TASK.search(turn.agent))}


def _untrue(trial: TrialResult, items: dict[str, list[ReceivedRequest]]) -> list[str]:
    """What a trial tells that was not so."""
    if not trial.turns:
        return []
    tasks = _tasks_of(trial)
    if len(tasks) != 1:
        return [f"it was held in {sorted(tasks)}"]
    task = tasks.pop()
    taken = [asked for asked in items[task] if asked.taken]
    texts = [(turn.user, turn.agent) for turn in trial.turns]
    wrong = (
        []
        if texts == [(a.text, a.answer) for a in taken[: len(texts)]]
        else [f"{texts} is not what {task} heard"]
    )
    if len(taken) > len(texts) + (trial.status is EndState.FAILED):
        wrong.append(f"{task} heard more than {texts}")
    wrong += [
        f"a verdict of {finding.reason!r}" for finding in trial.findings if _misplaced(finding.reason, task)
    ]
    return wrong + [f"a line of {user!r}" for user, _ in texts if _misplaced(user, task)]


def _misplaced(text: str, task: str) -> bool:
    return POISON in text or ((result := _TASK.search(text)) is not None and result[0] != task)
