"""The AUI task API without its transport: a request in, an answer out."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from ci_evals.demo_agent import catalog, wire
from ci_evals.demo_agent.fault_profile import Temper
from ci_evals.demo_agent.server_faults import Fault
from ci_evals.demo_agent.tasks import Task, Tasks

KEY_HEADER = "x-network-api-key"
_PREFIX = re.compile(r"(?:(?:/api)?/ia-controller)?/api/v1/external(?P<path>/.*)")

Query = Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, body: Any, status: int = 200, **headers: str) -> Self:
        """An answer with a JSON body."""
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(status, text.encode(), headers=named)

    @classmethod
    def error(cls, status: int, detail: Any, **headers: str) -> Self:
        """An error with the `detail` that AUI's gateway sends."""
        return cls.json({"detail": detail}, status, **headers)

    @classmethod
    def failure(cls, status: int, description: str, message: str, **extra: str) -> Self:
        """An error with the four fields of AUI's application."""
        body = {
            "status_code": status,
            "description": description,
            "message": message,
            "extra_data": extra,
        }
        return cls.json(body, status)


@dataclass(frozen=True)
class Dropped:
    """No answer: the connection is closed."""


class _Body(BaseModel):
    model_config = ConfigDict(strict=True)


NonEmpty = Annotated[str, Field(min_length=1)]


class _Agent(_Body):
    agent_id: NonEmpty | None = None


class _CreateTask(_Body):
    user_id: NonEmpty
    agent_id: NonEmpty | None = None
    agent: _Agent | None = None
    task_origin_type: str | None = None


class _Message(_Body):
    task_id: NonEmpty
    text: NonEmpty
    agent_variables: dict[str, JsonValue] = {}


class _Paging(BaseModel):
    user_id: NonEmpty
    page: int = Field(1, ge=1)
    size: int = Field(10, ge=1, le=100)


def _is_true(value: Any) -> Any:
    return value if isinstance(value, bool) else str(value).lower() in {"true", "1"}


class _Flags(BaseModel):
    include_trace_info: Annotated[bool, BeforeValidator(_is_true)] = False
    include_business_trace: Annotated[bool, BeforeValidator(_is_true)] = False
    include_context_trace: Annotated[bool, BeforeValidator(_is_true)] = False

    @property
    def sections(self) -> wire.Sections:
        everything = self.include_trace_info
        return wire.Sections(
            business=everything or self.include_business_trace,
            context=everything or self.include_context_trace,
        )


class _TraceFlags(BaseModel):
    """Whoever fetches a trace wants it: without a flag there is all of it."""

    include_business_logic: Annotated[bool, BeforeValidator(_is_true)] = True
    include_context_logic: Annotated[bool, BeforeValidator(_is_true)] = True


_OBJECT = TypeAdapter(dict[str, JsonValue])


class Api:
    """The agent's endpoints. `answer` may be called from any thread.

    Args:
        key: The only accepted key; null accepts every key that is not empty.
        faults: What goes wrong with messages.
        temper: How the agent errs; null for not at all.
        retry_after: What `Retry-After` says, in seconds.
        wait: Waits as long as `Fault.SLOW` lasts.
    """

    def __init__(
        self,
        *,
        key: str | None = None,
        faults: Collection[Fault] = (),
        temper: Temper | None = None,
        retry_after: int = 1,
        wait: Callable[[], object] = lambda: None,
    ) -> None:
        self._key = key
        self._faults = frozenset(faults)
        self._retry_after = str(retry_after)
        self._wait = wait
        self._tasks = Tasks(temper or Temper())
        self._messages = count(1)
        self._routes: list[tuple[re.Pattern[str], dict[str, Callable[..., Answer | Dropped]]]] = [
            (re.compile(r"/tasks/?"), {"POST": self._create, "GET": self._list}),
            (re.compile(r"/tasks/([^/]+)"), {"GET": self._show}),
            (re.compile(r"/tasks/([^/]+)/messages"), {"GET": self._history}),
            (re.compile(r"/tasks/([^/]+)/messages/([^/]+)/trace-info"), {"GET": self._trace}),
            (re.compile(r"/message"), {"POST": self._message}),
        ]

    def answer(self, method: str, target: str, key: str | None, body: bytes) -> Answer | Dropped:
        """What the API answers. `target` is path and query as the request line has them."""
        url = urlsplit(target)
        prefix = _PREFIX.fullmatch(url.path)
        path = prefix["path"] if prefix else ""
        for pattern, methods in self._routes:
            if not (match := pattern.fullmatch(path)):
                continue
            if method not in methods:
                return Answer.error(405, "Method Not Allowed", Allow=", ".join(sorted(methods)))
            if not self._admits(key):
                return Answer.error(401, "Not authenticated")
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            try:
                return methods[method](query, body, *map(unquote, match.groups()))
            except ValidationError as error:
                return Answer.error(422, _details(error, "body" if method == "POST" else "query"))
        return Answer.error(404, "Not Found")

    def _admits(self, key: str | None) -> bool:
        return bool(key) and self._key in {None, key}

    def _create(self, _query: Query, body: bytes) -> Answer:
        wanted = _CreateTask.model_validate(_OBJECT.validate_json(body))
        agent_id = wanted.agent_id or (wanted.agent and wanted.agent.agent_id)
        if not agent_id:
            known = ", ".join(catalog.known_agents())
            problem = {
                "loc": ["body", "agent_id"],
                "msg": f"Field required, one of: {known}",
                "type": "missing",
            }
            return Answer.error(422, [problem])
        try:
            playbook = catalog.playbook(agent_id)
        except catalog.UnknownAgentError as error:
            return Answer.error(404, str(error))
        return Answer.json(_shown(self._tasks.create(wanted.user_id, agent_id, playbook)), 201)

    def _list(self, query: Query, _body: bytes) -> Answer:
        paging = _Paging.model_validate(query)
        tasks = self._tasks.of_user(paging.user_id)
        first = (paging.page - 1) * paging.size
        return Answer.json(
            {
                "tasks": [_shown(task) for task in tasks[first : first + paging.size]],
                "total": len(tasks),
                "page": paging.page,
                "size": paging.size,
            }
        )

    def _show(self, _query: Query, _body: bytes, task_id: str) -> Answer:
        task = self._tasks.get(task_id)
        return Answer.json(_shown(task)) if task else _no_task(task_id)

    def _history(self, _query: Query, _body: bytes, task_id: str) -> Answer:
        task = self._tasks.get(task_id)
        if task is None:
            return _no_task(task_id)
        messages = []
        for turn in tuple(task.turns):
            said = wire.user_message(f"{turn.id}-user", turn.at, task.user_id, turn.text)
            reply = wire.agent_message(turn.id, turn.at, task.user_id, task.reply_to(turn))
            messages += [said, self._dressed(reply)]
        return Answer.json(messages)

    def _trace(self, query: Query, _body: bytes, task_id: str, message_id: str) -> Answer:
        task = self._tasks.get(task_id)
        if task is None:
            return _no_task(task_id)
        turn = next((item for item in tuple(task.turns) if item.id == message_id), None)
        if turn is None or Fault.NO_EVIDENCE in self._faults:
            return Answer.error(404, f"No trace of message {message_id!r}")
        flags = _TraceFlags.model_validate(query)
        sections = wire.Sections(business=flags.include_business_logic, context=flags.include_context_logic)
        return Answer.json(wire.trace(turn.text, task.reply_to(turn), sections))

    def _message(self, query: Query, body: bytes) -> Answer | Dropped:
        message = _Message.model_validate(_OBJECT.validate_json(body))
        task = self._tasks.get(message.task_id)
        if task is None:
            return _no_task(message.task_id)
        if Fault.SLOW in self._faults:
            self._wait()
        if turned_away := self._turned_away(task):
            return turned_away
        turn, reply = self._tasks.say(task, message.text, message.agent_variables)
        if spoilt := self._spoilt():
            return spoilt
        answer = wire.agent_message(turn.id, turn.at, task.user_id, reply)
        sections = _Flags.model_validate(query).sections
        if sections and not self._faults & {Fault.NO_TRACE, Fault.NO_EVIDENCE}:
            answer["trace_info"] = wire.trace(turn.text, reply, sections)
        return Answer.json(self._dressed(answer))

    def _turned_away(self, task: Task) -> Answer | None:
        """An answer that comes before the message was taken."""
        if Fault.RATE_LIMITED in self._faults and next(self._messages) % 2:
            return Answer.error(429, "Too Many Requests", Retry_After=self._retry_after)
        if Fault.UNAVAILABLE_ONCE in self._faults and not task.turned_away:
            task.turned_away = True
            return Answer.error(503, "Service Unavailable", Retry_After=self._retry_after)
        if Fault.SERVER_ERROR in self._faults:
            return Answer.failure(500, "Internal server error", "Unexpected error.")
        if Fault.MODERATION in self._faults:
            return Answer.failure(
                400, "Content moderation triggered", "The message was flagged.", category="demo"
            )
        return None

    def _spoilt(self) -> Answer | Dropped | None:
        """What comes in place of the answer, the message having been taken."""
        if Fault.HTML in self._faults:
            return Answer(200, b"<html><body><h1>Welcome</h1></body></html>", "text/html; charset=utf-8")
        if Fault.EMPTY in self._faults:
            return Answer(200)
        return Dropped() if Fault.DROPPED in self._faults else None

    def _dressed(self, message: wire.Body) -> wire.Body:
        if Fault.NO_EVIDENCE in self._faults:
            return {key: value for key, value in message.items() if key != "executed_workflows"}
        return wire.oddly(message) if Fault.NULLS in self._faults else message


def _shown(task: Task) -> wire.Body:
    return wire.task(task.id, task.user_id, task.playbook.texts.welcome, task.playbook.suggestions)


def _no_task(task_id: str) -> Answer:
    return Answer.error(404, f"No task {task_id!r}")


def _details(error: ValidationError, place: str) -> list[wire.Body]:
    return [
        {"loc": [place, *item["loc"]], "msg": item["msg"], "type": item["type"]} for item in error.errors()
    ]
