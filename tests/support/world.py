"""The outside world on loopback: a stub AUI agent, and a server that speaks OpenAI's and Anthropic's APIs.

    with world.llm(lambda asked: '{"verdict": "pass"}') as models, world.agent() as agent:
        run_the_command(env={**models.env, "CI_EVALS_BASE_URL": agent.url, "CI_EVALS_AGENT_KEY": agent.key})

Faults are `Fault` values: those in `faults` are played one after the other before any answer, the one in
`always` for ever.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from every_turn import fill_looked_at
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response
from werkzeug.datastructures import Headers

from ci_evals.adapters.transport.rate_limiter import RateLimiter
from ci_evals.adapters.transport.retry import RetryBudget

LLM_KEY = "llm-key-7f2d91c4"
AGENT_KEY = "API_KEY_a3f09b62"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
JSON_ANSWER_MARK = "Answer with one JSON object"


def limiter(
    waits: list[float] | None = None, budget: RetryBudget | None = None, most: int | None = None
) -> RateLimiter:
    """A limiter that waits in no time and keeps in `waits` how long it would have. Jitter is medium."""

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    return RateLimiter(max_concurrent=most, budget=budget, sleep=sleep, clock=lambda: 0.0, jitter=lambda: 0.5)


NO_RETRIES = RetryBudget(broken=0, limited=0)
"""No call is made again."""


@dataclass(frozen=True)
class Fault:
    status: int
    body: str | bytes = ""
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def response(self) -> Response:
        return Response(self.body, self.status, self.headers, content_type=self.content_type)


def fault(status: int, message: str = "scripted fault", **headers: str) -> Fault:
    """A JSON error of any server; `retry_after="1"` becomes a Retry-After header."""
    body = json.dumps({"error": {"message": message, "type": "error"}})
    return Fault(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


UNAUTHORIZED = fault(401, "Invalid key provided")
RATE_LIMITED = fault(429, "Too many requests", retry_after="0.01")
NO_QUOTA = Fault(
    429, json.dumps({"error": {"message": "You are out of credit", "code": "insufficient_quota"}})
)
SERVER_ERROR = fault(500, "The server fell over")
GARBAGE = Fault(200, "<html><head><title>Wrong door</title></head></html>", content_type="text/html")
EMPTY = Fault(200, "")


@dataclass(frozen=True)
class ModelRequest:
    """What a model was asked, whichever API it came by."""

    provider: str
    model: str
    system: str
    text: str
    mode: str
    """`json_schema`, `json_object` or `text`."""
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def wants_json(self) -> bool:
        """Whether an answer of a certain form is wanted, as a judge does and a simulated user does not."""
        return self.mode != "text" or JSON_ANSWER_MARK in self.text


@dataclass
class Models:
    """A server of models. `answer` writes every answer."""

    url: str
    answer: Callable[[ModelRequest], str]
    key: str = LLM_KEY
    refuses: set[str] = field(default_factory=set)
    """The forms of asking that are refused with a 400: `json_schema`, `json_object`, `text`."""
    truncates: bool = False
    """Whether every answer is cut off at the token limit."""
    faults: list[Fault] = field(default_factory=list)
    always: Fault | None = None
    asked: list[ModelRequest] = field(default_factory=list)
    usage: Callable[[int, dict[str, int]], Any] = lambda _, counts: counts
    """What is said of the tokens of an answer: of its number, from 1, and the counts that are true."""
    embed: Callable[[str], Any] = lambda text: [float(text.lower().count(letter)) for letter in LETTERS]
    """The vector of a text: by default, how often it has each letter."""
    listing: Fault | None = None
    """What is answered in place of a list of models; a key that is not ours is refused there too."""
    listed: int = 0
    """How often the models were asked for."""
    embedded: list[dict[str, Any]] = field(default_factory=list)
    """The bodies of what an embedding model was asked."""

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def env(self) -> dict[str, str]:
        """What makes a program of its own use this server, by either SDK."""
        return {"LLM_API_KEY": self.key, "OPENAI_BASE_URL": self.openai_url, "ANTHROPIC_BASE_URL": self.url}

    def _list(self, request: Request) -> Response:
        self.listed += 1
        if self._is_stranger(request.headers):
            return UNAUTHORIZED.response()
        return self.listing.response() if self.listing else _json({"data": [{"id": "some-model"}]})

    def _asks_nothing(self, request: Request) -> Response:
        """A request without messages: keys are looked at first, as everywhere."""
        return UNAUTHORIZED.response() if self._is_stranger(request.headers) else fault(400).response()

    def _is_stranger(self, headers: Mapping[str, str] | Headers) -> bool:
        return self.key not in f"{headers.get('Authorization')} {headers.get('X-Api-Key')}"

    def _openai(self, request: Request) -> Response:
        body = request.get_json()
        if "messages" not in body:
            return self._asks_nothing(request)
        texts = {message["role"]: message["content"] for message in body["messages"]}
        mode = body.get("response_format", {}).get("type", "text")
        asked = ModelRequest(
            "openai", body["model"], texts.get("system", ""), texts["user"], mode, body, dict(request.headers)
        )
        if mode == "json_object" and "json" not in f"{asked.system}{asked.text}".lower():
            return fault(400, "'messages' must contain the word 'json' in some form").response()
        choice = {
            "index": 0,
            "finish_reason": "length" if self.truncates else "stop",
            "message": {"role": "assistant"},
        }
        return self._play(
            asked,
            lambda text: {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "model": asked.model,
                "choices": [{**choice, "message": {"role": "assistant", "content": text}}],
                "usage": self.usage(
                    len(self.asked), {"prompt_tokens": 21, "completion_tokens": 5, "total_tokens": 26}
                ),
            },
        )

    def _embeddings(self, request: Request) -> Response:
        body = request.get_json()
        self.embedded.append(body)
        asked = ModelRequest("openai", body["model"], "", "", "embeddings", body, dict(request.headers))
        if refused := self._refusal(asked):
            return refused
        data = [{"index": i, "embedding": self.embed(text)} for i, text in enumerate(body["input"])]
        # By their index, and not by their place, they belong to the texts.
        used = 3 * len(data)
        usage = self.usage(len(self.embedded), {"prompt_tokens": used, "total_tokens": used})
        return _json({"data": data[::-1], "usage": usage})

    def _anthropic(self, request: Request) -> Response:
        body = request.get_json()
        if "messages" not in body:
            return self._asks_nothing(request)
        mode = body.get("output_config", {}).get("format", {}).get("type", "text")
        content = body["messages"][0]["content"]
        text = content if isinstance(content, str) else "".join(block["text"] for block in content)
        asked = ModelRequest(
            "anthropic", body["model"], body.get("system", ""), text, mode, body, dict(request.headers)
        )
        return self._play(
            asked,
            lambda answer: {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": asked.model,
                "stop_reason": "max_tokens" if self.truncates else "end_turn",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": answer},
                ],
                "usage": self.usage(len(self.asked), {"input_tokens": 21, "output_tokens": 5}),
            },
        )

    def _play(self, asked: ModelRequest, answer: Callable[[str], dict[str, Any]]) -> Response:
        self.asked.append(asked)
        if refused := self._refusal(asked):
            return refused
        if asked.mode in self.refuses:
            return fault(400, f"this server does not know {asked.mode}").response()
        return Response(
            json.dumps(answer(fill_looked_at(self.answer(asked), asked.text))),
            content_type="application/json",
        )

    def _refusal(self, asked: ModelRequest) -> Response | None:
        if self._is_stranger(asked.headers):
            return UNAUTHORIZED.response()
        if result := self.faults.pop(0) if self.faults else self.always:
            return result.response()
        return None


def message(
    text: str, *, workflows: list[str] | None = None, trace: Any = None, **fields: Any
) -> dict[str, Any]:
    """A reply of the AUI API, complete as its own types want it."""
    body = {
        "created_at": "2026-05-04T09:00:01.120Z", "text": text,
        "sender": {"id": "intelligent-agent", "type": "agent"}, "receiver": {"id": "user", "type": "user"},
        "cards": [], "followup_suggestions": [], **fields,
    }  # fmt: skip
    body |= {} if workflows is None else {"executed_workflows": workflows}
    return body if trace is None else {**body, "trace_info": trace}


@dataclass(frozen=True)
class AgentMessage:
    """A message that the agent was sent."""

    task_id: str
    text: str
    variables: dict[str, Any]
    number: int
    """Counted from 1 within its task."""


@dataclass
class StubAgent:
    """An AUI agent. `answer` gives the body of each reply, or a fault; replies get an id."""

    url: str
    answer: Callable[[AgentMessage], dict[str, Any] | Fault]
    key: str = AGENT_KEY
    task_body: Callable[[str], Any] = lambda task_id: {"id": task_id, "user_id": "u", "title": "New"}
    """The body that answers the creation of a task."""
    faults: list[Fault] = field(default_factory=list)
    traces: dict[str, Any] = field(default_factory=dict)
    """Traces to be fetched apart, by message id; any other is a 404."""
    tasks: list[dict[str, Any]] = field(default_factory=list)
    heard: list[AgentMessage] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def _route(self, request: Request) -> Response:
        self.requests.append(request)
        if request.headers.get("x-network-api-key") != self.key:
            return Fault(401, json.dumps({"detail": "Not authenticated"})).response()
        if self.faults:
            return self.faults.pop(0).response()
        path = request.path.partition("/api/v1/external")[2]
        match request.method, path.strip("/").split("/"):
            case "POST", ["tasks"]:
                return self._create(request.get_json())
            case "POST", ["message"]:
                return self._reply(request)
            case "GET", ["tasks", _, "messages", message_id, "trace-info"] if message_id in self.traces:
                return _json(self.traces[message_id])
            case _:
                return Fault(404, json.dumps({"detail": "Not found"})).response()

    def _create(self, body: dict[str, Any]) -> Response:
        self.tasks.append(body)
        return _json(self.task_body(f"task-{len(self.tasks)}"), 201)

    def _reply(self, request: Request) -> Response:
        body = request.get_json()
        number = 1 + sum(earlier.task_id == body["task_id"] for earlier in self.heard)
        heard = AgentMessage(body["task_id"], body["text"], body["agent_variables"], number)
        self.heard.append(heard)
        answer = self.answer(heard)
        if isinstance(answer, Fault):
            return answer.response()
        flags = [request.args.get(f"include_{name}") for name in ("trace_info", "business_trace")]
        hidden = () if "true" in flags else ("trace_info",)
        shown = {key: value for key, value in answer.items() if key not in hidden}
        return _json({"id": f"message-{len(self.heard)}", **shown})


def _json(body: Any, status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")


@contextmanager
def llm(answer: Callable[[ModelRequest], str] = lambda asked: "Fine.") -> Iterator[Models]:
    """Serves models until the block ends."""
    with serving() as server:
        models = Models(_url(server), answer)
        chat = re.compile("/v1(/other)?/chat/completions")  # of one model behind two addresses
        server.expect_request(chat, "POST").respond_with_handler(models._openai)
        server.expect_request("/v1/models", "GET").respond_with_handler(models._list)
        server.expect_request("/v1/embeddings", "POST").respond_with_handler(models._embeddings)
        server.expect_request("/v1/messages", "POST").respond_with_handler(models._anthropic)
        yield models


@contextmanager
def agent(
    answer: Callable[[AgentMessage], dict[str, Any] | Fault] = lambda heard: message(
        f"You said: {heard.text}"
    ),
) -> Iterator[StubAgent]:
    """Serves an agent until the block ends, at `url` and at `url` + `/ia-controller`."""
    with serving() as server:
        stub = StubAgent(_url(server), answer)
        server.expect_request(re.compile(".*")).respond_with_handler(stub._route)
        yield stub


class _Server(HTTPServer):
    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(
            poll_interval=0.01
        )  # stopping waits for one interval: half a second if unset


@contextmanager
def serving() -> Iterator[HTTPServer]:
    """A server that stops quickly, for a world of one's own."""
    server = _Server(host="127.0.0.1", threaded=True)
    server.start()
    try:
        yield server
    finally:
        server.clear()
        server.stop()


def _url(server: HTTPServer) -> str:
    return f"http://127.0.0.1:{server.port}"


HANG_UP = b""


@asynccontextmanager
async def raw_server(*answers: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Answers its requests with these bytes, in order; `HANG_UP` and the end of them close the connection."""
    heard: list[bytes] = []
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                heard.append(head + await reader.readexactly(length))
                if not left:
                    break
                writer.write(left.pop(0))
                await writer.drain()
                if left[:1] == [HANG_UP]:
                    left.pop(0)
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}", heard


def http_response(body: str, status: str = "200 OK", *headers: str) -> bytes:
    """The bytes of an answer, for `raw_server`."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


_HEADERS = st.sampled_from(
    ["Retry-After", "Location", "Set-Cookie", "Content-Type", "Content-Encoding", "Transfer-Encoding",
     "Content-Length", "Connection", "X-Should-Retry", "X-Any"]
)  # fmt: skip
_VALUES = st.one_of(
    st.sampled_from([
        "Mon, 01 Jan 2024 00:00:00 +99999999999999", "1 Jan 99999999999999999999 0:0:0 GMT", "9" * 400, "nan",
        "http://evil:99999/", "http://[::1", "//", "http://", "http://\xe9.example/", "//a@b:c", "http://%zz/",
        "text/html; charset=hex", "text/html; charset=\xff", "gzip", "gzip, gzip", "br", "a=\xe9",
        "a=b; expires=9; path=",
    ]),
    st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30),
    st.from_regex(r"(http:)?//[a-z:@\[\]0-9.%/?#-]{0,20}", fullmatch=True),
)  # fmt: skip
_STATUSES = st.sampled_from(
    [100, 101, 103, 200, 201, 204, 205, 301, 302, 304, 307, 400, 401, 404, 408, 429, 503, 599, 999]
)


@st.composite
def odd_responses(draw: st.DrawFn) -> bytes:
    """The bytes of answers with any status and with headers that nobody should send."""
    lines = "".join(f"{n}: {v}\r\n" for n, v in draw(st.lists(st.tuples(_HEADERS, _VALUES), max_size=3)))
    head = f"HTTP/1.1 {draw(_STATUSES)} X\r\n{lines}Connection: close\r\n\r\n"
    return head.encode("latin-1") + draw(st.sampled_from([b"", b"{}", b'{"id": "t"}']))
