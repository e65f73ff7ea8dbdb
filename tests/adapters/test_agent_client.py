"""Requests to agents: what goes out, what comes in, and over which connections."""

import asyncio
import base64
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import github_api
import pytest
import world
from each_row import each_row
from yarl import URL

from ci_evals.adapters.models.openai_llm import OpenAILLM
from ci_evals.adapters.transport.agent_client import AgentClient, Message
from ci_evals.adapters.transport.network import Answer, NetworkError, ProxyError, UnreachableError
from ci_evals.adapters.transport.streams import StreamReader
from ci_evals.domain.errors import LLMError
from ci_evals.ports import Prompt

OK, ANOTHER = world.http_response('"ok"'), world.http_response('"another"')
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serve, host: str = "127.0.0.1") -> AsyncIterator[tuple[str, list[str]]]:
    """A server whose connections are played by `serve`: its address, and what became of its connections."""
    events: list[str] = []

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        events.append("opened")
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            events.append("closed")
        finally:
            writer.close()

    async with await asyncio.start_server(play, host, 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}", events


async def read_head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def always_ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await read_head(reader):
        writer.write(OK)


async def send(client: AgentClient, url: str, method: str = "GET", body: bytes | None = None) -> Answer:
    return await client.send(Message(method, URL(url), body))


@asynccontextmanager
async def new_client(**options: dict[str, str]) -> AsyncIterator[AgentClient]:
    client = AgentClient(**options)
    try:
        yield client
    finally:
        await client.aclose()


async def get(url: str, **options: str) -> Answer:
    async with new_client(**options) as client:
        return await send(client, url)


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until what was sent has arrived."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  # the other side is a plain server
            await asyncio.sleep(0.002)


async def test_each_message_has_its_own_connection():
    """It is closed after the answer, so no answer can belong to another message."""
    async with server(always_ok) as (url, events), new_client() as client:
        for count in (1, 2, 3):
            assert (await send(client, url)).body == b'"ok"'
            await wait_until(lambda: events.count("closed") == count)  # noqa: B023  # awaited at once
        assert events.count("opened") == 3
    # A server that waits for a further request would keep it open for nothing.
    async with world.raw_server(OK) as (url, heard):
        await get(url)
    assert b"\r\nConnection: close\r\n" in heard[0]


async def test_cookies_are_kept_per_client_unless_they_cannot_be_sent():
    """Two conversations are two customers."""
    answers = [world.http_response("", "200 OK", "Set-Cookie: who=first"), OK, OK]
    async with world.raw_server(*answers) as (url, heard), new_client() as first:
        await send(first, url)
        await get(url)
        await send(first, url)
    assert [b"who=first" in asked for asked in heard] == [False, False, True]
    # The next request would break on it; others come along, as a server that spreads its load may want.
    first = world.http_response("", "200 OK", "Set-Cookie: a=\xe9", "Set-Cookie: b=1")
    async with world.raw_server(first, world.http_response("")) as (url, heard), new_client() as client:
        for _ in range(2):
            await send(client, url)
    assert b"\r\nCookie: b=1\r\n" in heard[1]


async def test_number_of_concurrent_connections_is_not_limited():
    """Only a rate limiter limits calls: no connection is waited for."""
    arrived = asyncio.Barrier(130)

    async def together(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        await arrived.wait()
        writer.write(OK)

    async with server(together) as (url, events), new_client() as client:
        await asyncio.gather(*(send(client, url) for _ in range(130)))
    assert len(events) == 130


@each_row("more", [
    [OK + ANOTHER],
    [OK[:-2], OK[-2:] + ANOTHER],
    [OK, ANOTHER],
    [OK, ANOTHER[:20]],
    [OK, b"\r\n"],
    [world.http_response("", "204 No Content"), OK],
])  # fmt: skip
async def test_bytes_after_a_response_are_discarded_and_each_request_connects_anew(more):

    async def talk_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        for part in more:
            writer.write(part)
            await writer.drain()

    async with server(talk_on) as (url, events), new_client() as client:
        for _ in range(3):
            assert b"another" not in (await send(client, url)).body
        assert events.count("opened") == 3


async def test_client_does_not_repeat_a_request_whose_connection_broke():
    """Whoever asks decides that: aiohttp would send some of these again where a connection breaks."""
    for method in ("GET", "PUT", "DELETE", "POST"):
        async with world.raw_server(OK) as (url, heard), new_client() as client:
            await send(client, url, method)
            with pytest.raises(NetworkError, match="Server disconnected"):
                await send(client, url, method)
        assert len(heard) == 2, method


@each_row("body", [None, b'{"a": "\\u00e9"}'])
async def test_request_is_sent_with_exactly_its_headers_and_address(body):
    client_headers = {"X-Key": "k", "user-agent": "mine"}
    async with world.raw_server(OK) as (url, heard), new_client(headers=client_headers) as client:
        address = URL(f"{url}/a%2Fb%20c/%C3%A9?q=a+b%26c%2B&q=2#part")
        await client.send(Message("POST", address, body, {"x-key": "other"}))
    sent, _, rest = heard[0].partition(b"\r\n\r\n")
    line, *headers = sent.split(b"\r\n")
    assert line == b"POST /a%2Fb%20c/%C3%A9?q=a+b%26c%2B&q=2 HTTP/1.1"
    expected = {
        b"Host": address.authority.encode(), b"Accept": b"*/*", b"Accept-Encoding": b"gzip, deflate",
        b"Connection": b"close", b"user-agent": b"mine", b"x-key": b"other",
        b"Content-Length": b"%d" % len(body or b""),
    }  # fmt: skip
    assert dict(header.split(b": ", 1) for header in headers) == expected
    assert rest == (body or b"")


async def test_large_request_body_is_sent_whole_without_a_warning():
    """With megabytes of replies for a judge, say; aiohttp would warn of them."""
    async with world.raw_server(OK) as (url, heard), new_client() as client:
        await send(client, url, "POST", b"x" * 2_000_000)
    assert heard[0].endswith(b"\r\n\r\n" + b"x" * 2_000_000)
    assert b"\r\nContent-Length: 2000000\r\n" in heard[0]


async def test_body_is_sent_at_once_despite_an_expect_header():
    """Few servers know the header that asks for a wait, and the others wait as well."""
    async with world.raw_server(OK) as (url, heard), new_client() as client:
        await client.send(Message("POST", URL(url), b"all", {"Expect": "100-continue"}))
    assert heard[0].endswith(b"\r\n\r\nall")


async def test_request_with_a_line_end_in_a_header_is_not_sent():
    """Whoever could put a line end into one could write a request of his own."""
    async with world.raw_server(OK) as (url, heard), new_client() as client:
        with pytest.raises(NetworkError):
            await client.send(Message("GET", URL(url), headers={"X-A": "1\r\nX-B: 2"}))
    assert heard == []


async def test_websocket_handshake_has_no_body_headers_and_asks_for_an_upgrade():
    refusal = world.http_response("{}", "403 No")
    async with world.raw_server(refusal) as (url, heard), new_client() as client:
        message = Message("GET", URL(url), b"{}", {"content-type": "application/json", "x-key": "k"})
        answer = await client.converse(message, StreamReader("websocket"))
    assert (answer.status, answer.body) == (403, b"{}")
    sent = heard[0].lower()
    assert b"\r\nx-key: k\r\n" in sent
    assert b"\r\nconnection: upgrade\r\n" in sent
    assert b"content-" not in sent


@each_row(("answer", "expected"), [
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", (200, "ok")),
    (b"HTTP/1.0 200 OK\r\n\r\nok", (200, "ok")),
    (b"HTTP/1.1 200 OK\r\n\r\nok", (200, "ok")),
    (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", (200, "ok")),
    (b"HTTP/1.1 299 Ja\xdf\r\nContent-Length: 2\r\n\r\nok", (299, "ok")),
    (b"HTTP/1.1 999 \r\nContent-Length: 2\r\n\r\nok", (999, "ok")),
    (b"HTTP/1.1 200 OK\r\nX-Name: \xff\xe9 \xf0\x9f\x98\r\nContent-Length: 2\r\n\r\nok", (200, "ok")),
    (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 60_000 + b"\r\nContent-Length: 2\r\n\r\nok", (200, "ok")),
    (b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 200 + b"Content-Length: 2\r\n\r\nok", (200, "ok")),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\nX: y\r\n\r\n",
     (200, "ok")),
    (b"HTTP/1.1 103 Hint\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Go\r\n\r\n" + OK, (200, '"ok"')),
    (b"HTTP/1.1 101 Switch\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\nok", (101, "")),
    (b"HTTP/1.1 204 No\r\n\r\n", (204, "")),
    (b"HTTP/1.1 304 No\r\n\r\n", (304, "")),
    (b"HTTP/1.1 302 No\r\nLocation: /there\r\nContent-Length: 2\r\n\r\nok", (302, "ok")),
    (b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nok", (401, "ok")),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nok", "decompressed .br"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "in the middle of the answer$"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "in the middle of the answer$"),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", "decompressed .gzip"),
    (b"HTTP/1.1 2", "Server disconnected"),
    (b"", "Server disconnected"),
    (b"SSH-2.0-OpenSSH\r\n", r"the answer is not HTTP \("),
    (b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 300 + b"\r\n", r"the answer is not HTTP \(Too many"),
])  # fmt: skip
async def test_unusual_http_answers_are_read_and_malformed_ones_are_errors(answer, expected):
    async with world.raw_server(answer, world.HANG_UP) as (url, _):
        if isinstance(expected, str):
            with pytest.raises(NetworkError, match=expected):
                await get(url)
        else:
            answer_read = await get(url)
            assert (answer_read.status, answer_read.body.decode()) == expected


async def test_proxy_gets_its_password_but_no_path_of_https_urls():
    shown = b"Proxy-Authorization: Basic " + base64.b64encode("us\xe9r:p@ss".encode()) + b"\r\n"
    async with world.raw_server(OK) as (proxy, heard):
        await get("http://agent.example/hello?a=b", proxy=proxy.replace("//", "//us%C3%A9r:p%40ss@"))
    assert heard[0].startswith(b"GET http://agent.example/hello?a=b HTTP/1.1\r\nHost: agent.example\r\n")
    assert shown in heard[0]
    # What goes through the tunnel begins with a greeting of TLS.
    heard: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await read_head(reader))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        heard.append(await reader.readexactly(1))

    async with server(tunnel) as (proxy, _):
        with pytest.raises(UnreachableError):
            await get("https://agent.example/secret", proxy=proxy.replace("//", "//user:p%40ss@"))
    assert heard[0].startswith(b"CONNECT agent.example:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"user:p@ss") + b"\r\n" in heard[0]
    assert b"secret" not in heard[0]
    assert heard[1] == b"\x16"


async def test_refusing_or_unreachable_proxy_is_reported_without_its_password():
    """A request that was never sent may be sent again."""
    refusal = world.http_response("", "407 Proxy Authentication Required")
    async with world.raw_server(refusal) as (proxy, _):
        with pytest.raises(ProxyError, match=r"^407 Proxy Authentication Required$"):
            await get("https://agent.example/", proxy=proxy.replace("//", "//user:s3cret@"))
    with pytest.raises(UnreachableError) as caught:
        await get("http://agent.example/", proxy="http://user:s3cret@127.0.0.1:1")
    assert "s3cret" not in str(caught.value)


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
async def test_ipv6_address_is_reached():
    try:
        async with server(always_ok, "::1") as (url, _):
            assert (await get(url)).body == b'"ok"'
    except OSError:
        pytest.skip("this machine has no IPv6")


@pytest.mark.slow
def test_request_through_a_tls_proxy_succeeds_or_fails_with_the_status_of_the_proxy(key_and_certificate):
    key, certificate = key_and_certificate
    with github_api.serving_tls(github_api.Answer(200, {}), key, certificate) as proxy:
        command = [sys.executable, "-c", _BY_PROXY, certificate, proxy]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.stdout.split("\n") == ["200", "ProxyError 501", ""], asked.stderr


_BY_PROXY = """
import asyncio, os, sys
from yarl import URL
from ci_evals.adapters.transport.agent_client import AgentClient, Message
from ci_evals.adapters.transport.network import NetworkError

async def ask(url, proxy):
    client = AgentClient(proxy=proxy)
    try:
        print((await client.send(Message("GET", URL(url)))).status)
    except NetworkError as error:
        print(type(error).__name__, str(error)[:3])
    await client.aclose()

os.environ["SSL_CERT_FILE"] = sys.argv[1]  # aiohttp has made a context of its own already
for scheme in ("http", "https"):
    asyncio.run(ask(f"{scheme}://agent.example/", sys.argv[2]))
"""


@pytest.mark.slow
async def test_agent_or_model_with_an_untrusted_certificate_is_unreachable_with_the_cause(
    key_and_certificate,
):
    """The SDK's own client of a model checks it too."""
    key, certificate = key_and_certificate
    with github_api.serving_tls(github_api.Answer(200, {}), key, certificate) as url:
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            await get(url)
        llm = OpenAILLM("m", "some-key", url, limiter=world.limiter(budget=world.NO_RETRIES))
        with pytest.raises(LLMError, match=r"could not be reached: .*certificate verify failed"):
            await llm.complete(Prompt("", "Hi"))
        await llm.aclose()


def test_closed_client_can_be_reused_in_another_event_loop():
    client = AgentClient()

    async def ask() -> bytes:
        async with server(always_ok) as (url, _):
            body = (await send(client, url)).body
            await client.aclose()
        return body

    assert [asyncio.run(ask()) for _ in range(2)] == [b'"ok"'] * 2
