"""How requests are carried: what goes out, what comes in, and which connections are used again."""

import asyncio
import base64
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shutil import which

import github_api
import httpx2
import pytest
import world

from ci_evals.adapters.transport import connections, pool
from ci_evals.adapters.transport.over_aiohttp import QUIET_SECONDS

RESTED = 1.2 * QUIET_SECONDS
"""Seconds after which a connection is used again."""

OK = world.http('"ok"')
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serve, host: str = "127.0.0.1") -> AsyncIterator[tuple[str, list[str]]]:
    """A server whose connections are played by `serve`: its address, and what became of its connections."""
    books: list[str] = []

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        books.append("opened")
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            books.append("closed")
        finally:
            writer.close()

    async with await asyncio.start_server(play, host, 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}", books


async def head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


async def always_ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await head(reader):
        writer.write(OK)


async def get(url: str, **options: str) -> httpx2.Response:
    async with connections.new_client(**options) as client:
        return await client.get(url)


async def settled() -> None:
    """Until what was sent has arrived."""
    for _ in range(5):
        await asyncio.sleep(0.002)


async def test_clients_share_connections_and_close_them_together() -> None:
    """Closing one leaves its connection to the next."""
    async with server(always_ok) as (url, books):
        async with pool.kept_open():
            for _ in range(3):
                assert (await get(url)).text == '"ok"'
                await asyncio.sleep(RESTED)
            assert books == ["opened"]
        await settled()
        assert books == ["opened", "closed"]


async def test_the_last_client_closes_the_connections() -> None:
    """Where nobody keeps them open for longer."""
    async with server(always_ok) as (url, books):
        first, second = connections.new_client(), connections.new_client()
        await first.get(url)
        await asyncio.sleep(RESTED)
        await second.get(url)
        await first.aclose()
        await settled()
        assert books == ["opened"]
        await second.aclose()
        await settled()
        assert books == ["opened", "closed"]


async def test_a_client_of_its_own_leaves_its_connections_to_nobody() -> None:
    """They end with it; within it they are used again."""
    async with server(always_ok) as (url, books), pool.kept_open():
        for _ in range(2):
            async with connections.new_client(alone=True) as client:
                for _ in range(2):
                    await client.get(url)
                    await asyncio.sleep(RESTED)
        await settled()
    assert books.count("opened") == 2
    assert books.count("closed") == 2


async def test_a_connection_rests_before_it_is_used_again() -> None:
    """Else a second answer that is on its way would answer the next request."""
    async with server(always_ok) as (url, books), connections.new_client() as client:
        await client.get(url)
        await client.get(url)
        await asyncio.sleep(RESTED)
        await client.get(url)
    assert books.count("opened") == 2


async def test_cookies_are_not_shared() -> None:
    """Two conversations over one connection are two customers."""
    answers = [world.http("", "200 OK", "Set-Cookie: who=first"), OK, OK]
    async with world.raw_server(*answers) as (url, heard), connections.new_client() as first:
        await first.get(url)
        await get(url)
        await first.get(url)
    assert [b"who=first" in asked for asked in heard] == [False, False, True]


async def test_as_many_go_out_at_once_as_are_asked_for() -> None:
    """Only a rate limiter limits calls: no connection is waited for."""
    arrived = asyncio.Barrier(130)

    async def together(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        await arrived.wait()
        writer.write(OK)

    async with server(together) as (url, books), connections.new_client(timeout=30) as client:
        await asyncio.gather(*(client.get(url) for _ in range(130)))
    assert len(books) == 130


@pytest.mark.parametrize(
    "more",
    [
        [OK + world.http('"another"')],
        [OK[:-2], OK[-2:] + world.http('"another"')],
        [OK, world.http('"another"')],
        [OK, world.http('"another"')[:20]],
        [OK, b"\r\n"],
        [world.http("", "204 No Content"), OK],
    ],
)
async def test_a_connection_on_which_more_came_is_not_used_again(more: list[bytes]) -> None:
    """With the answer, or after it: it would be taken for the answer to the next request."""

    async def talk_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head(reader)
        for part in more:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.005)
        await head(reader)
        writer.write(world.http('"the old connection"'))

    async with server(talk_on) as (url, books), connections.new_client() as client:
        for _ in range(2):
            with suppress(httpx2.RemoteProtocolError):  # what came with the answer is seen at once
                assert "another" not in (await client.get(url)).text
            await asyncio.sleep(RESTED)
        assert books.count("opened") == 2


async def test_what_has_come_and_is_not_read_yet_counts_too() -> None:
    """The event loop may have been busy when the server closed a connection."""
    first = True

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal first
        await head(reader)
        writer.write(OK)
        if first:
            first = False
            return
        await head(reader)

    async with server(once) as (url, books), connections.new_client() as client:
        for _ in range(2):
            assert (await client.get(url)).text == '"ok"'
    assert books.count("opened") == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "POST"])
async def test_nothing_is_sent_again_by_itself(method: str) -> None:
    """Whoever asks decides that: aiohttp would send some of these again where a kept connection breaks."""
    async with world.raw_server(OK) as (url, heard), connections.new_client() as client:
        await client.get(url)
        await asyncio.sleep(RESTED)
        with pytest.raises(httpx2.RemoteProtocolError, match="Server disconnected"):
            await client.request(method, url)
    assert len(heard) == 2


@pytest.mark.parametrize("body", [None, {"a": "\xe9"}])
async def test_what_goes_out_is_the_request(body: object) -> None:
    """No header more or less than it holds, and its address as it stands."""
    async with world.raw_server(OK) as (url, heard), connections.new_client(headers={"X-Key": "k"}) as client:
        request = client.build_request("POST", f"{url}/a%2Fb%20c/%C3%A9?q=a+b%26c%2B&q=2#part", json=body)
        del request.headers["User-Agent"]
        await client.send(request)
    sent, _, rest = heard[0].partition(b"\r\n\r\n")
    line, *headers = sent.split(b"\r\n")
    assert line == b"POST /a%2Fb%20c/%C3%A9?q=a+b%26c%2B&q=2 HTTP/1.1"
    assert headers == [name + b": " + value for name, value in request.headers.raw]
    assert rest == request.content
    assert request.headers["Accept-Encoding"] == "gzip, deflate"


async def test_a_long_conversation_goes_out_whole() -> None:
    """With megabytes of replies for a judge, say; aiohttp would warn of them."""
    async with world.raw_server(OK) as (url, heard), connections.new_client() as client:
        await client.post(url, content=b"x" * 2_000_000)
    assert heard[0].endswith(b"\r\n\r\n" + b"x" * 2_000_000)
    assert b"\r\nContent-Length: 2000000\r\n" in heard[0]


async def test_no_body_is_held_back() -> None:
    """Few servers know the header that asks for it, and the others wait as well."""
    async with world.raw_server(OK) as (url, heard), connections.new_client(timeout=5) as client:
        await client.post(url, content=b"all", headers={"Expect": "100-continue"})
    assert heard[0].endswith(b"\r\n\r\nall")


async def test_a_header_that_cannot_be_sent_is_not() -> None:
    """Whoever could put a line end into one could write a request of his own."""
    async with world.raw_server(OK) as (url, heard), connections.new_client() as client:
        for headers in ([(b"X-A", b"1\r\nX-B: 2")], [(b"X-A", b"\xff")]):
            with pytest.raises(httpx2.LocalProtocolError):
                await client.get(url, headers=headers)
    assert heard == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
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
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nok", (200, "ok")),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "in the middle of the answer$"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "in the middle of the answer$"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", "decompressing"),
        (b"HTTP/1.1 2", "Server disconnected"),
        (b"", "Server disconnected"),
        (b"SSH-2.0-OpenSSH\r\n", r"the answer is not HTTP \("),
        (b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 300 + b"\r\n", r"the answer is not HTTP \(Too many"),
    ],
)  # fmt: skip
async def test_answers_of_all_kinds(answer: bytes, expected: tuple[int, str] | str) -> None:
    """What is odd is an answer all the same; what is none is an error of httpx2's."""
    async with world.raw_server(answer, world.HANG_UP) as (url, _):
        if isinstance(expected, str):
            with pytest.raises(httpx2.HTTPError, match=expected):
                await get(url)
        else:
            response = await get(url)
            assert (response.status_code, response.text) == expected


async def test_a_proxy_is_shown_its_password() -> None:
    """With the request itself where it carries that, and nobody else is."""
    shown = b"Proxy-Authorization: Basic " + base64.b64encode("us\xe9r:p@ss".encode()) + b"\r\n"
    async with world.raw_server(OK) as (proxy, heard):
        await get("http://agent.example/hello?a=b", proxy=proxy.replace("//", "//us%C3%A9r:p%40ss@"))
    assert heard[0].startswith(b"GET http://agent.example/hello?a=b HTTP/1.1\r\nHost: agent.example\r\n")
    assert shown in heard[0]


async def test_a_proxy_is_asked_for_a_tunnel() -> None:
    """For https it learns the host alone; what goes through the tunnel begins with a greeting of TLS."""
    heard: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await head(reader))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        heard.append(await reader.readexactly(1))

    async with server(tunnel) as (proxy, _):
        with pytest.raises(httpx2.ConnectError):
            await get("https://agent.example/secret", proxy=proxy.replace("//", "//user:p%40ss@"))
    assert heard[0].startswith(b"CONNECT agent.example:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"user:p@ss") + b"\r\n" in heard[0]
    assert b"secret" not in heard[0]
    assert heard[1] == b"\x16"


async def test_a_proxy_that_refuses_is_told_of_without_its_password() -> None:
    """By its status."""
    refusal = world.http("", "407 Proxy Authentication Required")
    async with world.raw_server(refusal) as (proxy, _):
        with pytest.raises(httpx2.ProxyError, match=r"^407 Proxy Authentication Required$"):
            await get("https://agent.example/", proxy=proxy.replace("//", "//user:s3cret@"))


async def test_a_proxy_that_is_not_there_was_sent_nothing() -> None:
    """As with a server: what was never sent may be sent again."""
    with pytest.raises(httpx2.ConnectError) as caught:
        await get("http://agent.example/", proxy="http://user:s3cret@127.0.0.1:1")
    assert "s3cret" not in str(caught.value)


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
async def test_an_address_of_ipv6_is_reached() -> None:
    """In brackets, as in an address bar."""
    try:
        async with server(always_ok, "::1") as (url, _):
            assert (await get(url)).text == '"ok"'
    except OSError:
        pytest.skip("this machine has no IPv6")


@pytest.fixture
def key_and_certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Of `localhost`, and nobody trusts it."""
    if which("openssl") is None:
        pytest.skip("needs openssl, to make a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return key, certificate


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_may_be_spoken_to_over_tls(key_and_certificate: tuple[Path, Path], scheme: str) -> None:
    """Its certificate is looked at as an agent's is, whatever the agent speaks."""
    key, certificate = key_and_certificate
    with github_api.tls(github_api.Answer(200, {}), key, certificate) as proxy:
        asked = subprocess.run(
            [sys.executable, "-c", _BY_PROXY, certificate, f"{scheme}://agent.example/", proxy],
            capture_output=True,
            text=True,
            check=False,
        )
    assert asked.stdout.strip() == ("200" if scheme == "http" else "ProxyError 501"), asked.stderr


_BY_PROXY = """
import asyncio, os, sys
import httpx2
from ci_evals.adapters.transport import connections, over_aiohttp

async def ask(url, proxy):
    async with connections.new_client(proxy=proxy) as client:
        try:
            print((await client.get(url)).status_code)
        except httpx2.HTTPError as error:
            print(type(error).__name__, str(error)[:3])

os.environ["SSL_CERT_FILE"] = sys.argv[1]  # aiohttp has made a context of its own already
asyncio.run(ask(*sys.argv[2:]))
"""


async def test_nobody_is_spoken_to_whose_certificate_is_not_trusted(
    key_and_certificate: tuple[Path, Path],
) -> None:
    """What is said of it names the reason."""
    key, certificate = key_and_certificate
    served = github_api.tls(github_api.Answer(200, {}), key, certificate)
    with served as url, pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
        await get(url)


def test_each_event_loop_has_its_own() -> None:
    """A client may be used in one after the other; whoever closes it in the last has closed it in all."""
    client = connections.new_client()

    async def ask(*, last: bool) -> str:
        async with server(always_ok) as (url, books):
            text = (await client.get(url)).text
            assert books == ["opened"]
            if last:
                await client.aclose()
        return text

    assert [asyncio.run(ask(last=last)) for last in (False, True)] == ['"ok"', '"ok"']
