"""How HTTP clients are made: proxies, hosts, headers."""

import asyncio
import zlib
from contextlib import suppress

import httpx2
import pytest
import world
from werkzeug import Response

from ci_evals.adapters.transport import addresses, http_client, rate_limiter
from ci_evals.domain.errors import UsageError
from ci_evals.support.payload import AnswerTooLargeError

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.aui.io/x", "http://proxy.example:3128"),
        ("http://agent.example", "http://other.example"),
        ("https://inside.corp.example", None),
        ("http://127.0.0.1:8080", None),
        ("http://[::1]:8080", None),
        ("http://localhost:8080", None),
    ],
)
def test_proxies_of_the_environment_are_honoured(monkeypatch, url, expected):
    """As everywhere, with exceptions; this machine itself is never spoken to by a proxy."""
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("ALL_PROXY", "http://other.example")
    monkeypatch.setenv("NO_PROXY", ".corp.example,localhost")
    assert addresses.proxy_for(url) == expected


def test_without_proxies_there_is_none():
    """The usual case."""
    assert addresses.proxy_for("https://api.aui.io") is None


def test_a_proxy_that_is_not_supported_is_named(monkeypatch):
    """A SOCKS proxy is refused before the run, not in the middle of it."""
    monkeypatch.setenv("ALL_PROXY", "socks5://user:s3cret@proxy.example")
    with pytest.raises(UsageError, match="of the kind 'socks5'") as caught:
        addresses.proxy_for("https://api.aui.io")
    assert "s3cret" not in str(caught.value)


async def test_a_call_goes_by_the_proxy():
    """What is sent to a host behind a proxy arrives at the proxy."""
    with world.agent() as proxy:
        client = http_client.new_client(proxy=proxy.url)
        response = await client.get("http://agent.example/hello")
        await client.aclose()
        assert response.status_code == 401
        assert [request.headers["Host"] for request in proxy.requests] == ["agent.example"]


@pytest.mark.parametrize(
    "proxy",
    ["http://user:s3cret@proxy:abc", "http://user:s3cret@proxy:99999", "http://user:s3cret@proxy:0",
     "http://user:s3cret@", "user:s3cret@[::1"],
)  # fmt: skip
def test_a_proxy_that_is_no_address_is_the_users_mistake(monkeypatch, proxy):
    """It is said before the run, without the password."""
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(UsageError, match=r"a proxy for agent.example that is not an address") as caught:
        addresses.proxy_for("http://agent.example")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("no_proxy", "direct"),
    [
        ("agent.example:8080", "http://agent.example:8080"),
        ("agent.example:443", "https://agent.example"),
        ("agent.example", "https://agent.example:8443"),
        ("*", "http://other.example"),
    ],
)
def test_an_exception_may_name_a_port(monkeypatch, no_proxy, direct):
    """As in curl and requests, an entry with a port is for that port alone."""
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert addresses.proxy_for(direct) is None
    if no_proxy != "*":
        assert addresses.proxy_for("http://other.example:8080") is not None
    if ":" in no_proxy:
        assert addresses.proxy_for("http://agent.example:9999") is not None


async def answered(answer: Response, path: str = "/here") -> httpx2.Response:
    """What our client makes of an answer."""
    with world.serving() as server:
        server.expect_request("/here").respond_with_response(answer)
        client = http_client.new_client()
        try:
            return await client.get(f"http://127.0.0.1:{server.port}{path}")
        finally:
            await client.aclose()


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("https://other.example/v1?key=s3cret", "https://other.example"),
        ("http://user:s3cret@other.example:8080/", "other.example:8080"),
        ("/there", "another path on the same host"),
        ("http://evil:99999/", "an address that cannot be read"),
        ("http://" + "a" * 1000, "a" * 255),
        ("http://[::1", "an address that cannot be read"),
    ],
)
def test_redirect_is_reported_with_its_host(location, expected):
    """With its scheme where that is another, and never with a path or a password."""
    assert addresses.redirect_of("http://127.0.0.1:80/x", 302, location) == expected


@pytest.mark.parametrize(("status", "location"), [(304, "/there"), (302, None), (200, "/there")])
def test_response_that_is_no_redirect_has_no_target(status, location):
    """Another status, or one of redirection without an address."""
    assert addresses.redirect_of("http://agent.example", status, location) is None


@pytest.mark.parametrize("size", [16_000_000, 16_000_001])
async def test_an_answer_has_an_end(size):
    """Sixteen megabytes are read, and not a byte more."""
    answer = Response(zlib.compress(b" " * size, 1), headers={"Content-Encoding": "deflate"})
    if size > 16_000_000:
        with pytest.raises(AnswerTooLargeError, match="answered with more than 16 MB"):
            await answered(answer)
    else:
        assert len((await answered(answer)).content) == size


async def test_an_encoding_beyond_ascii_is_ignored():
    """As any that is not known: the body is read as it came."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: \x80\r\nContent-Length: 2\r\n\r\nHi"
    async with world.raw_server(answer) as (url, _):
        client = http_client.new_client()
        try:
            assert (await client.get(url)).content == b"Hi"
        finally:
            await client.aclose()


@pytest.mark.parametrize("charset", ["hex", "zlib", "punycode", "utf-16", "nonsense"])
async def test_no_charset_of_the_servers_is_believed(charset):
    """JSON is UTF-8; some of Python's encodings are none of text, and would be our error."""
    response = await answered(Response("caf\xe9", content_type=f"text/plain; charset={charset}"))
    assert response.text == "caf\xe9"


async def test_a_drip_is_too_slow():
    """The time is for the whole answer: every single step of a drip is in time."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        with suppress(ConnectionError):
            for _ in range(200):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        dried.set()

    dried = asyncio.Event()
    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        client = http_client.new_client(timeout=0.06)
        with pytest.raises(httpx2.ReadTimeout):
            await client.get(f"http://{host}:{port}/")
        assert not dried.is_set()
        await client.aclose()
        await dried.wait()


def test_models_and_agents_share_the_limit_of_open_files():
    """Two models and the agents share what the process may open."""
    resource = pytest.importorskip("resource")
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        assert rate_limiter.fair_share() == 64
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    assert 1 <= rate_limiter.fair_share() <= rate_limiter.MAX_SHARE


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://evil:99999/", "an address that cannot be read"),
        ("http://[::1", "an address that cannot be read"),
        ("https://api.aui.io/ia-controller", "api.aui.io"),
        ("http://127.0.0.1:8080/x", "127.0.0.1:8080"),
        ("http://[::1]:80", "[::1]:80"),
        ("https://user:pass@host.example", "host.example"),
    ],
)
def test_a_server_is_called_by_its_host(url, expected):
    """Messages name the host, and nothing that may be secret."""
    assert addresses.host_of(url) == expected
