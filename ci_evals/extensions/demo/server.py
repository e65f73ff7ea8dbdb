"""The demo agent over HTTP: the AUI task API on loopback."""

import socket
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from weakref import WeakSet

from ci_evals.domain.errors import exhausted
from ci_evals.extensions.demo.api import KEY_HEADER, Api, HttpAnswer
from ci_evals.extensions.demo.faults import FaultProfile, Misbehavior
from ci_evals.threads import begin as begin_thread

BASE_PATH = "/ia-controller"
MAX_BODY_BYTES = 1_000_000
_SOON = 0.02


class DemoServer:
    """The embedded agent. A context manager that serves from a thread of its own, or `serve_forever`.

    Args:
        host: The address to listen on.
        port: The port; 0 takes a free one.
        noise, seed, broken, misbehaves: The agent's faults, see `FaultProfile`.
        begin: Calls a function in a thread of its own.

    Raises:
        OSError: the port cannot be had.
        ValueError: `noise` is out of range.
        UnknownWorkflowError: no playbook has a workflow that is to be broken.
    """

    key = "demo-key"
    """Any other will do as well."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        noise: float = 0,
        seed: int = 0,
        broken: Collection[str] = (),
        misbehaves: Collection[Misbehavior] = (),
        begin: Callable[[Callable[[], object]], object] = begin_thread,
    ) -> None:
        self._begin = begin
        self._closing = threading.Event()
        self._serving = threading.Lock()
        profile = FaultProfile(noise, seed, frozenset(broken), frozenset(misbehaves))
        self._http = _Server((host, port), Api(profile), begin)

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self._http.server_address[1])

    @property
    def base_url(self) -> str:
        """The base URL for a client, such as `http://127.0.0.1:8321/ia-controller`."""
        return f"http://{self._http.server_address[0]!s}:{self.port}{BASE_PATH}"

    def __enter__(self) -> Self:
        self._serving.acquire()

        def serve_in_background() -> None:
            try:
                self.serve_forever()
            finally:
                self._serving.release()  # takes no memory, as setting an event would

        try:
            self._begin(serve_in_background)
        except RuntimeError:
            self._serving.release()
            self._http.server_close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def serve_forever(self) -> None:
        """Serve until `close` is called from another thread, or an exception such as a Ctrl-C comes."""
        try:
            while not self._closing.is_set():
                try:
                    self._http.handle_request()
                except MemoryError:
                    time.sleep(_SOON)  # there may be some again
        finally:
            self._http.socket.close()  # else new clients would wait for an answer

    def close(self) -> None:
        """End all connections and free the port, without waiting for delayed answers."""
        self._closing.set()
        with self._serving:
            self._http.server_close()


def serve(server: DemoServer, announce: Callable[[str], None]) -> None:
    """Serve in this thread until Ctrl-C or another exception, then close. `announce` gets the base URL."""
    try:
        announce(server.base_url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    finally:
        server.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512
    timeout = _SOON

    def __init__(
        self, address: tuple[str, int], api: Api, begin: Callable[[Callable[[], object]], object]
    ) -> None:
        self.api = api
        self._begin = begin
        # Weak: a thread that finds no memory for its first step leaves a connection that nobody serves. It is
        # closed when nothing refers to it, and its client need not wait for an answer.
        self._open: WeakSet[socket.socket] = WeakSet()
        self._changed = threading.Condition()
        self._spare: socket.socket | None = socket.socket()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # HTTPServer looks up the host's full name here, which can take seconds where there is no DNS.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def get_request(self) -> tuple[socket.socket, Any]:
        """Hang up on a client for which no file can be opened any more: it would wait in vain."""
        try:
            return super().get_request()
        except OSError as error:
            if exhausted(error):
                self._reject()
            raise

    def _reject(self) -> None:
        if self._spare is None:
            time.sleep(_SOON)
        else:
            self._spare.close()
            self._spare = None
            with suppress(OSError):
                super().get_request()[0].close()
        with suppress(OSError):
            self._spare = socket.socket()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._open.add(request)

        def serve() -> None:
            try:
                self.process_request_thread(request, client_address)
            finally:
                _hang_up(request)  # also where there was no memory to say what went wrong

        self._begin(serve)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._open.discard(request)
            self._changed.notify_all()

    def server_close(self) -> None:
        """Wake the threads that wait on kept-alive connections, and give them a moment to end."""
        super().server_close()
        if self._spare:
            self._spare.close()
        with self._changed:
            for connection in self._open:
                _hang_up(connection)
            self._changed.wait_for(lambda: not self._open, timeout=1)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that went away, show a bug, and report a lack of memory in one line."""
        error = sys.exception()
        if isinstance(error, ConnectionError):
            return
        if not (shortage := error and exhausted(error)):
            super().handle_error(request, client_address)
            return
        with suppress(MemoryError, OSError, ValueError):
            sys.stderr.write(f"the demo agent hung up on a client: {shortage}\n")


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "ci-evals-demo-agent"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one packet

    def _serve(self) -> None:
        body = self._body()
        if body is None:
            return
        self._send(self.server.api.answer(self.command, self.path, self.headers.get(KEY_HEADER), body))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve  # noqa: N815  # names of the base class

    def _body(self) -> bytes | None:
        """Return the request's body; None if it was refused unread, and the connection with it."""
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdecimal():
            self.close_connection = True
            self._send(HttpAnswer.error(411, "Send the body with a Content-Length"))
            return None
        if int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._send(HttpAnswer.error(413, f"The body is longer than {MAX_BODY_BYTES} bytes"))
            return None
        return self.rfile.read(int(length))

    def _send(self, answer: HttpAnswer) -> None:
        content = answer.content
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is the base class's
        """The demo agent is quiet."""


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # the other end may have been faster
        connection.shutdown(socket.SHUT_RDWR)
