"""HTTP exchanges of real servers: recorded through a proxy, and served again from a file.

    with recorded_http.recorded(url) as (proxy, exchanges):
        …talk to the server at `proxy`…
    recorded_http.save(path, exchanges)

    with recorded_http.served(recorded_http.load(path)) as stub:
        …the same requests at `stub.url` get the same bytes…

The server's own address, in what it sent, becomes that of the proxy or of the stub.
"""

import json
import re
import urllib.error
import urllib.request
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import world
from werkzeug import Request, Response

_ADDRESS = "http://agent.invalid"
_ID = re.compile(r"[0-9a-f]{32}")
"""An id that the client made: it differs each time."""
_PASSED_ON = ("content-type", "accept", "a2a-version", "a2a-extensions")


@dataclass(frozen=True)
class Exchange:
    """A request, and the answer as it was sent."""

    method: str
    path: str
    request: Any
    """The JSON of the request; None without a body."""
    status: int
    content_type: str
    answer: str


@dataclass
class RecordedServer:
    """Serves recorded answers, each once, in the order of equal requests."""

    url: str
    queues: dict[tuple[str, str], deque[Exchange]]
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)

    def _route(self, request: Request) -> Response:
        self.asked.append((request.method, request.path, json.loads(request.data or "null")))
        self.queries.append(dict(request.args))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        queue = self.queues[request.method, _without_ids(request.path)]
        if not queue:
            return Response('{"detail":"Not Found"}', 404, content_type="application/json")
        exchange = queue.popleft()
        body = exchange.answer.replace(_ADDRESS, self.url)
        recorded = _ID.findall(f"{exchange.path} {json.dumps(exchange.request)}")
        for old, new in zip(recorded, _ID.findall(f"{request.path} {request.data.decode()}"), strict=False):
            body = body.replace(old, new)
        return Response(body, exchange.status, content_type=exchange.content_type)


@contextmanager
def serve_recorded(exchanges: Sequence[Exchange]) -> Iterator[RecordedServer]:
    """Serve recorded exchanges until the block ends."""
    queues: dict[tuple[str, str], deque[Exchange]] = defaultdict(deque)
    for exchange in exchanges:
        queues[exchange.method, _without_ids(exchange.path)].append(exchange)
    with world.serving() as server:
        stub = RecordedServer(f"http://127.0.0.1:{server.port}", queues)
        server.expect_request(re.compile(".*")).respond_with_handler(stub._route)
        yield stub


def _without_ids(path: str) -> str:
    return re.sub(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "*", path)


@contextmanager
def recording_proxy(upstream: str) -> Iterator[tuple[str, list[Exchange]]]:
    """Pass requests on to a server, and keep what it answers."""
    exchanges: list[Exchange] = []
    with world.serving() as server:
        proxy = f"http://127.0.0.1:{server.port}"

        def route(request: Request) -> Response:
            headers = {name: value for name, value in request.headers.items() if name.lower() in _PASSED_ON}
            sent = urllib.request.Request(
                f"{upstream}{request.path}", request.data or None, headers, method=request.method
            )
            try:
                answer = urllib.request.urlopen(sent, timeout=30)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                body, kind = answer.read().decode(), answer.headers.get("content-type", "")
            kept = body.replace(upstream, _ADDRESS).replace(proxy, _ADDRESS)
            asked = json.loads(request.data) if request.data else None
            exchanges.append(Exchange(request.method, request.path, asked, answer.status, kind, kept))
            return Response(kept.replace(_ADDRESS, proxy), answer.status, content_type=kind)

        server.expect_request(re.compile(".*")).respond_with_handler(route)
        yield proxy, exchanges


def load(path: Path) -> list[Exchange]:
    """Read recorded exchanges."""
    return [Exchange(**each) for each in json.loads(path.read_text())]


def save(path: Path, exchanges: Sequence[Exchange]) -> None:
    """Write recorded exchanges: what and how, request and answer a line each."""
    texts = []
    for each in exchanges:
        fields = {name: json.dumps(value, ensure_ascii=False) for name, value in asdict(each).items()}
        request, answer = fields.pop("request"), fields.pop("answer")
        head = ", ".join(f'"{name}": {value}' for name, value in fields.items())
        texts.append(f'{{{head},\n "request": {request},\n "answer": {answer}}}')
    path.write_text("[" + ",\n".join(texts) + "]\n")


def shapes(exchanges: Sequence[Exchange]) -> list[Any]:
    """Return what was asked and answered, with the types of values in place of the values."""
    return [(each.method, each.status, _shape(each.request), *_answers(each)) for each in exchanges]


def _answers(exchange: Exchange) -> Iterator[Any]:
    if not exchange.content_type.startswith("text/event-stream"):
        yield _shape(json.loads(exchange.answer or "null"))
        return
    for line in exchange.answer.splitlines():
        name, _, value = line.partition(": ")
        if name == "event":
            yield value.partition("|")[0]
        elif name == "data":
            yield value if value == "[DONE]" else _shape(json.loads(value))


def _shape(value: Any) -> Any:
    match value:
        case dict():
            return {_without_ids(key): _shape(item) for key, item in sorted(value.items())}
        case list():
            return [_shape(item) for item in value]
        case _:
            return type(value).__name__
