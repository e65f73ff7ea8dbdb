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
from ci_evals.demo_agent.fault_profile import FaultProfile
from ci_evals.demo_agent.server_faults import ServerFault
from ci_evals.demo_agent.tasks import Task, Tasks

KEY_HEADER = "x-network-api-key"
_PREFIX = re.compile(r"(?:(?:/api)?/ia-controller)?/api/v1/external(?P<path>/.*)")

Query = Mapping[str, str]


@dataclass(frozen=True)
class HttpAnswer:
    """An HTTP answer."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, body: Any, status: int = 200, **headers: str) -> Self:
        """Return an answer with a JSON body."""
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        by_name = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls(status, text.encode(), headers=by_name)

    @classmethod
    def error(cls, status: int, detail: Any, **headers: str) -> Self:
        """Return an error with the `detail` that AUI's gateway sends."""
        return cls.json({"detail": detail}, status, **headers)

    @classmethod
    def failure(cls, status: int, description: str, message: str, **extra: str) -> Self:
        """Return an error with the four fields of AUI's application."""
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


class _NotFoundError(LookupError):
    """The request names a task or trace that does not exist."""


class _RequestBody(BaseModel):
    model_config = ConfigDict(strict=True)


NonEmpty = Annotated[str, Field(min_length=1)]


class _DemoAgent(_RequestBody):
    agent_id: NonEmpty | None = None


class _CreateTask(_RequestBody):
    user_id: NonEmpty
    agent_id: NonEmpty | None = None
    agent: _DemoAgent | None = None
    task_origin_type: str | None = None


class _Message(_RequestBody):
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
    """Without a flag all of the trace is fetched."""

    include_business_logic: Annotated[bool, BeforeValidator(_is_true)] = True
    include_context_logic: Annotated[bool, BeforeValidator(_is_true)] = True


_OBJECT = TypeAdapter(dict[str, JsonValue])


class Api:
    """The agent's endpoints. `answer` may be called from any thread.

    Args:
        key: The only accepted key; None accepts every key that is not empty.
        faults: Faults of the server, for all messages.
        profile: The agent's faults; None for none.
        retry_after: Seconds in `Retry-After`.
        wait: Waits as long as `ServerFault.SLOW` lasts.
    """

    def __init__(
        self,
        *,
        key: str | None = None,
        faults: Collection[ServerFault] = (),
        profile: FaultProfile | None = None,
        retry_after: int = 1,
        wait: Callable[[], object] = lambda: None,
    ) -> None:
        self._key = key
        self._faults = frozenset(faults)
        self._retry_after = str(retry_after)
        self._wait = wait
        self._tasks = Tasks(profile or FaultProfile())
        self._messages = count(1)
        self._routes: list[tuple[re.Pattern[str], dict[str, Callable[..., HttpAnswer | Dropped]]]] = [
            (re.compile(r"/tasks/?"), {"POST": self._create, "GET": self._list}),
            (re.compile(r"/tasks/([^/]+)"), {"GET": self._show}),
            (re.compile(r"/tasks/([^/]+)/messages"), {"GET": self._history}),
            (re.compile(r"/tasks/([^/]+)/messages/([^/]+)/trace-info"), {"GET": self._trace}),
            (re.compile(r"/message"), {"POST": self._message}),
        ]

    def answer(self, method: str, target: str, key: str | None, body: bytes) -> HttpAnswer | Dropped:
        """Return the API's answer. `target` is path and query as the request line has them."""
        url = urlsplit(target)
        prefix = _PREFIX.fullmatch(url.path)
        path = prefix["path"] if prefix else ""
        for pattern, methods in self._routes:
            if not (match := pattern.fullmatch(path)):
                continue
            if method not in methods:
                return HttpAnswer.error(405, "Method Not Allowed", Allow=", ".join(sorted(methods)))
            if not self._admits(key):
                return HttpAnswer.error(401, "Not authenticated")
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            try:
                return methods[method](query, body, *map(unquote, match.groups()))
            except _NotFoundError as error:
                return HttpAnswer.error(404, str(error))
            except ValidationError as error:
                return HttpAnswer.error(422, _details(error, "body" if method == "POST" else "query"))
        return HttpAnswer.error(404, "Not Found")

    def _admits(self, key: str | None) -> bool:
        return bool(key) and self._key in {None, key}

    def _task(self, task_id: str) -> Task:
        task = self._tasks.get(task_id)
        if task is None:
            raise _NotFoundError(f"No task {task_id!r}")
        return task

    def _create(self, _query: Query, body: bytes) -> HttpAnswer:
        request = _CreateTask.model_validate(_OBJECT.validate_json(body))
        agent_id = request.agent_id or (request.agent and request.agent.agent_id)
        if not agent_id:
            known = ", ".join(catalog.known_agents())
            problem = {
                "loc": ["body", "agent_id"],
                "msg": f"Field required, one of: {known}",
                "type": "missing",
            }
            return HttpAnswer.error(422, [problem])
        try:
            playbook = catalog.playbook(agent_id)
        except catalog.UnknownAgentError as error:
            return HttpAnswer.error(404, str(error))
        return HttpAnswer.json(_task_body(self._tasks.create(request.user_id, agent_id, playbook)), 201)

    def _list(self, query: Query, _body: bytes) -> HttpAnswer:
        paging = _Paging.model_validate(query)
        tasks = self._tasks.of_user(paging.user_id)
        first = (paging.page - 1) * paging.size
        return HttpAnswer.json(
            {
                "tasks": [_task_body(task) for task in tasks[first : first + paging.size]],
                "total": len(tasks),
                "page": paging.page,
                "size": paging.size,
            }
        )

    def _show(self, _query: Query, _body: bytes, task_id: str) -> HttpAnswer:
        return HttpAnswer.json(_task_body(self._task(task_id)))

    def _history(self, _query: Query, _body: bytes, task_id: str) -> HttpAnswer:
        task = self._task(task_id)
        messages = []
        for turn in tuple(task.turns):
            message = wire.user_message(f"{turn.id}-user", turn.at, task.user_id, turn.text)
            reply = wire.agent_message(turn.id, turn.at, task.user_id, task.move_after(turn).reply)
            messages += [message, self._with_faults(reply)]
        return HttpAnswer.json(messages)

    def _trace(self, query: Query, _body: bytes, task_id: str, message_id: str) -> HttpAnswer:
        task = self._task(task_id)
        turn = next((item for item in tuple(task.turns) if item.id == message_id), None)
        if turn is None or ServerFault.NO_EVIDENCE in self._faults:
            raise _NotFoundError(f"No trace of message {message_id!r}")
        flags = _TraceFlags.model_validate(query)
        sections = wire.Sections(business=flags.include_business_logic, context=flags.include_context_logic)
        return HttpAnswer.json(wire.trace(turn.text, task.move_after(turn).reply, sections))

    def _message(self, query: Query, body: bytes) -> HttpAnswer | Dropped:
        message = _Message.model_validate(_OBJECT.validate_json(body))
        task = self._task(message.task_id)
        if ServerFault.SLOW in self._faults:
            self._wait()
        if rejection := self._rejection(task):
            return rejection
        turn, reply = self._tasks.send(task, message.text, message.agent_variables)
        if replacement := self._replacement():
            return replacement
        answer = wire.agent_message(turn.id, turn.at, task.user_id, reply)
        sections = _Flags.model_validate(query).sections
        if sections and not self._faults & {ServerFault.NO_TRACE, ServerFault.NO_EVIDENCE}:
            answer["trace_info"] = wire.trace(turn.text, reply, sections)
        return HttpAnswer.json(self._with_faults(answer))

    def _rejection(self, task: Task) -> HttpAnswer | None:
        """Return an answer that comes instead of taking the message."""
        if ServerFault.RATE_LIMITED in self._faults and next(self._messages) % 2:
            return HttpAnswer.error(429, "Too Many Requests", Retry_After=self._retry_after)
        if ServerFault.UNAVAILABLE_ONCE in self._faults and not task.rejected:
            task.rejected = True
            return HttpAnswer.error(503, "Service Unavailable", Retry_After=self._retry_after)
        if ServerFault.SERVER_ERROR in self._faults:
            return HttpAnswer.failure(500, "Internal server error", "Unexpected error.")
        if ServerFault.MODERATION in self._faults:
            return HttpAnswer.failure(
                400, "Content moderation triggered", "The message was flagged.", category="demo"
            )
        return None

    def _replacement(self) -> HttpAnswer | Dropped | None:
        """Return an answer in place of the right one, though the message was taken."""
        if ServerFault.HTML in self._faults:
            return HttpAnswer(200, b"<html><body><h1>Welcome</h1></body></html>", "text/html; charset=utf-8")
        if ServerFault.EMPTY in self._faults:
            return HttpAnswer(200)
        return Dropped() if ServerFault.DROPPED in self._faults else None

    def _with_faults(self, message: wire.Body) -> wire.Body:
        if ServerFault.NO_EVIDENCE in self._faults:
            return {key: value for key, value in message.items() if key != "executed_workflows"}
        return wire.as_older_server(message) if ServerFault.NULLS in self._faults else message


def _task_body(task: Task) -> wire.Body:
    return wire.task(task.id, task.user_id, task.playbook.texts.welcome, task.playbook.suggestions)


def _details(error: ValidationError, part: str) -> list[wire.Body]:
    return [
        {"loc": [part, *item["loc"]], "msg": item["msg"], "type": item["type"]} for item in error.errors()
    ]
