"""How HTTP clients are made: proxies, hosts, headers."""

import zlib

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
def test_proxy_variables_of_the_environment_are_used(monkeypatch, url, expected):
    """As everywhere, with exceptions; this machine itself is never spoken to by a proxy."""
    assert addresses.proxy_for(url) is None
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("ALL_PROXY", "http://other.example")
    monkeypatch.setenv("NO_PROXY", ".corp.example,localhost")
    assert addresses.proxy_for(url) == expected


INVALID_PROXIES = [
    *("http://user:s3cret@proxy:abc", "http://user:s3cret@proxy:99999", "http://user:s3cret@proxy:0"),
    *("http://user:s3cret@", "user:s3cret@[::1"),
]


def test_invalid_or_unsupported_proxy_is_rejected_without_showing_password(monkeypatch):
    """Before the run, not in the middle of it."""
    reasons = dict.fromkeys(INVALID_PROXIES, "a proxy for agent.example that is not an address")
    for proxy, reason in (reasons | {"socks5://user:s3cret@proxy.example": "of the kind 'socks5'"}).items():
        monkeypatch.setenv("ALL_PROXY", proxy)
        with pytest.raises(UsageError, match=reason) as caught:
            addresses.proxy_for("http://agent.example")
        assert "s3cret" not in str(caught.value)


async def test_request_through_proxy_reaches_proxy_with_original_host():
    with world.agent() as proxy:
        client = http_client.new_client(proxy=proxy.url)
        response = await client.get("http://agent.example/hello")
        await client.aclose()
        assert response.status_code == 401
        assert [request.headers["Host"] for request in proxy.requests] == ["agent.example"]


@pytest.mark.parametrize(
    ("no_proxy", "direct"),
    [
        ("agent.example:8080", "http://agent.example:8080"),
        ("agent.example:443", "https://agent.example"),
        ("agent.example", "https://agent.example:8443"),
        ("*", "http://other.example"),
    ],
)
def test_no_proxy_entry_with_port_exempts_only_that_port(monkeypatch, no_proxy, direct):
    """curl and requests do the same."""
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert addresses.proxy_for(direct) is None
    if no_proxy != "*":
        assert addresses.proxy_for("http://other.example:8080") is not None
    if ":" in no_proxy:
        assert addresses.proxy_for("http://agent.example:9999") is not None


async def get_through_client(answer: Response, path: str = "/here") -> httpx2.Response:
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
    """With its scheme if that is another, and never with a path or a password."""
    assert addresses.redirect_of("http://127.0.0.1:80/x", 302, location) == expected


@pytest.mark.parametrize(("status", "location"), [(304, "/there"), (302, None), (200, "/there")])
def test_non_redirect_response_has_no_redirect_target(status, location):
    assert addresses.redirect_of("http://agent.example", status, location) is None


@pytest.mark.parametrize("size", [16_000_000, 16_000_001])
async def test_answer_of_more_than_sixteen_megabytes_is_rejected(size):
    answer = Response(zlib.compress(b" " * size, 1), headers={"Content-Encoding": "deflate"})
    if size > 16_000_000:
        with pytest.raises(AnswerTooLargeError, match="answered with more than 16 MB"):
            await get_through_client(answer)
    else:
        assert len((await get_through_client(answer)).content) == size


async def test_unknown_content_encoding_is_ignored():
    """Such as one beyond ASCII: the body is read as it came."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: \x80\r\nContent-Length: 2\r\n\r\nHi"
    async with world.raw_server(answer) as (url, _):
        client = http_client.new_client()
        try:
            assert (await client.get(url)).content == b"Hi"
        finally:
            await client.aclose()


@pytest.mark.parametrize("charset", ["hex", "zlib", "punycode", "utf-16", "nonsense"])
async def test_charset_of_the_server_is_ignored(charset):
    """JSON is UTF-8; some of Python's encodings are none of text, and would be our error."""
    response = await get_through_client(Response("caf\xe9", content_type=f"text/plain; charset={charset}"))
    assert response.text == "caf\xe9"


async def test_read_timeout_limits_total_time_of_slowly_sent_response(dripping_server):
    """Every single step of a drip is in time."""
    url, _, finished = dripping_server
    client = http_client.new_client(timeout=0.06)
    with pytest.raises(httpx2.ReadTimeout):
        await client.get(url)
    assert not finished.is_set()
    await client.aclose()
    await finished.wait()


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
def test_host_of_url_omits_credentials_and_path(url, expected):
    assert addresses.host_of(url) == expected
