"""The AUI task API without its transport: a request in, an answer out."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Self
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from ci_evals.extensions.demo import catalog, wire
from ci_evals.extensions.demo.faults import FaultProfile
from ci_evals.extensions.demo.tasks import Task, Tasks

KEY_HEADER = "x-network-api-key"
_PREFIX = re.compile(r"(?:(?:/api)?/ia-controller)?/api/v1/external(?P<path>/.*)")
_WORLD = re.compile(r"(?:(?:/api)?/ia-controller)?/world/([^/]+)")
"""The rows that a task has changed, for whoever tests the agent: no part of AUI's API, and without a key."""

Query = Mapping[str, str]


@dataclass(frozen=True)
class HttpAnswer:
    """An HTTP answer with a JSON body."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The body as it is sent."""
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def error(cls, status: int, detail: Any, **headers: str) -> Self:
        """Return an error with the `detail` that AUI's gateway sends."""
        return cls({"detail": detail}, status, headers)


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


_OBJECT = TypeAdapter(dict[str, JsonValue])


class Api:
    """The agent's endpoints, with the faults of `profile`. `answer` may be called from any thread."""

    def __init__(self, profile: FaultProfile) -> None:
        self._tasks = Tasks(profile)
        self._routes: list[tuple[re.Pattern[str], str, Callable[..., HttpAnswer]]] = [
            (re.compile(r"/tasks/?"), "POST", self._create),
            (re.compile(r"/message"), "POST", self._message),
            (re.compile(r"/tasks/([^/]+)/messages/([^/]+)/trace-info"), "GET", self._trace),
        ]

    def answer(self, method: str, target: str, key: str | None, body: bytes) -> HttpAnswer:
        """Return the API's answer. `target` is path and query as the request line has them."""
        url = urlsplit(target)
        world = _WORLD.fullmatch(url.path)
        if world and method == "GET":
            return HttpAnswer(self._tasks.world.of(unquote(world[1])))
        return self._answer(method, url, key, body)

    def _answer(self, method: str, url: SplitResult, key: str | None, body: bytes) -> HttpAnswer:
        prefix = _PREFIX.fullmatch(url.path)
        path = prefix["path"] if prefix else ""
        for pattern, allowed, work in self._routes:
            if not (match := pattern.fullmatch(path)):
                continue
            if method != allowed:
                return HttpAnswer.error(405, "Method Not Allowed", Allow=allowed)
            if not key:
                return HttpAnswer.error(401, "Not authenticated")
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            try:
                return work(query, body, *map(unquote, match.groups()))
            except _NotFoundError as error:
                return HttpAnswer.error(404, str(error))
            except ValidationError as error:
                details = [
                    {"loc": ["body", *item["loc"]], "msg": item["msg"], "type": item["type"]}
                    for item in error.errors()
                ]
                return HttpAnswer.error(422, details)
        return HttpAnswer.error(404, "Not Found")

    def _create(self, _query: Query, body: bytes) -> HttpAnswer:
        request = _CreateTask.model_validate(_OBJECT.validate_json(body))
        agent_id = request.agent_id or (request.agent and request.agent.agent_id)
        if not agent_id:
            known = ", ".join(catalog.known_agents())
            message = f"Field required, one of: {known}"
            return HttpAnswer.error(422, [{"loc": ["body", "agent_id"], "msg": message, "type": "missing"}])
        try:
            playbook = catalog.playbook(agent_id)
        except catalog.UnknownAgentError as error:
            return HttpAnswer.error(404, str(error))
        task = self._tasks.create(request.user_id, agent_id, playbook)
        return HttpAnswer(wire.task(task.id, task.user_id, playbook), 201)

    def _message(self, query: Query, body: bytes) -> HttpAnswer:
        message = _Message.model_validate(_OBJECT.validate_json(body))
        task = self._task(message.task_id)
        turn, reply = self._tasks.send(task, message.text, message.agent_variables)
        answer = wire.agent_message(turn.id, turn.at, task.user_id, reply)
        everything = _is_set(query, "include_trace_info")
        business = everything or _is_set(query, "include_business_trace")
        context = everything or _is_set(query, "include_context_trace")
        if business or context:
            answer["trace_info"] = wire.trace(turn.text, reply, business=business, context=context)
        return HttpAnswer(answer)

    def _trace(self, query: Query, _body: bytes, task_id: str, message_id: str) -> HttpAnswer:
        """The trace of an earlier reply, all of it unless a flag leaves a part out."""
        task = self._task(task_id)
        turn = next((item for item in tuple(task.turns) if item.id == message_id), None)
        if turn is None:
            raise _NotFoundError(f"No trace of message {message_id!r}")
        business = _is_set(query, "include_business_logic", default=True)
        context = _is_set(query, "include_context_logic", default=True)
        reply = task.move_after(turn).reply
        return HttpAnswer(wire.trace(turn.text, reply, business=business, context=context))

    def _task(self, task_id: str) -> Task:
        task = self._tasks.get(task_id)
        if task is None:
            raise _NotFoundError(f"No task {task_id!r}")
        return task


def _is_set(query: Query, flag: str, *, default: bool = False) -> bool:
    return query.get(flag, str(default)).lower() in {"true", "1"}
