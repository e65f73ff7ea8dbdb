"""How HTTP clients are made: proxies, hosts, headers; and which addresses are one service."""

import zlib
from typing import Any

import httpx2
import pytest
import world
from each_row import each_row
from werkzeug import Response

from ci_evals.adapters.models.service import Service
from ci_evals.adapters.transport import addresses, http_client, rate_limiter
from ci_evals.domain.errors import UsageError
from ci_evals.support.payload import AnswerTooLargeError


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@each_row(("url", "expected"), [
    ("https://api.aui.io/x", "http://proxy.example:3128"),
    ("http://agent.example", "http://other.example"),
    *((url, None) for url in ("https://inside.corp.example", "http://127.0.0.1:8080")),
    *((url, None) for url in ("http://[::1]:8080", "http://localhost:8080")),
])  # fmt: skip
def test_proxy_variables_are_obeyed_except_for_no_proxy_hosts_and_loopback(url, expected):
    """Other programs obey them too; this machine itself is never spoken to by a proxy."""
    assert addresses.proxy_for(url) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTPS_PROXY", "proxy.example:3128")
        patch.setenv("ALL_PROXY", "http://other.example")
        patch.setenv("NO_PROXY", ".corp.example,localhost")
        assert addresses.proxy_for(url) == expected


INVALID_PROXIES = [
    *("http://user:s3cret@proxy:abc", "http://user:s3cret@proxy:99999", "http://user:s3cret@proxy:0"),
    *("http://user:s3cret@", "user:s3cret@[::1"),
]


def test_invalid_or_unsupported_proxy_is_rejected_without_showing_password(monkeypatch):
    reasons = dict.fromkeys(INVALID_PROXIES, "a proxy for agent.example that is not an address")
    for proxy, reason in (reasons | {"socks5://user:s3cret@proxy.example": "of the kind 'socks5'"}).items():
        monkeypatch.setenv("ALL_PROXY", proxy)
        with pytest.raises(UsageError, match=reason) as caught:
            addresses.proxy_for("http://agent.example")
        assert "s3cret" not in str(caught.value)


async def get(url: str, **options: Any) -> httpx2.Response:
    """The answer as our client reads it."""
    client = http_client.new_client(**options)
    try:
        return await client.get(url)
    finally:
        await client.aclose()


async def test_request_through_proxy_reaches_proxy_with_original_host():
    with world.agent() as proxy:
        assert (await get("http://agent.example/hello", proxy=proxy.url)).status_code == 401
        assert [request.headers["Host"] for request in proxy.requests] == ["agent.example"]


@each_row(("no_proxy", "direct"), [
    ("agent.example:8080", "http://agent.example:8080"),
    ("agent.example:443", "https://agent.example"),
    ("agent.example", "https://agent.example:8443"),
    ("*", "http://other.example"),
])  # fmt: skip
def test_no_proxy_entry_with_port_exempts_only_that_port(monkeypatch, no_proxy, direct):
    """curl and requests do the same."""
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert addresses.proxy_for(direct) is None
    assert (addresses.proxy_for("http://other.example:8080") is None) is (no_proxy == "*")
    assert ":" not in no_proxy or addresses.proxy_for("http://agent.example:9999") is not None


async def get_through_client(answer: Response) -> httpx2.Response:
    with world.serving() as server:
        server.expect_request("/here").respond_with_response(answer)
        return await get(f"http://127.0.0.1:{server.port}/here")


@each_row(("status", "location", "expected"), [
    (302, "https://other.example/v1?key=s3cret", "https://other.example"),
    (302, "http://user:s3cret@other.example:8080/", "other.example:8080"),
    (302, "/there", "another path on the same host"),
    (302, "http://evil:99999/", "an address that cannot be read"),
    (302, "http://" + "a" * 1000, "a" * 255),
    (302, "http://[::1", "an address that cannot be read"),
    *((304, "/there", None), (302, None, None), (200, "/there", None)),
])  # fmt: skip
def test_redirect_target_is_named_by_its_host_and_other_answers_have_none(status, location, expected):
    assert addresses.redirect_of("http://127.0.0.1:80/x", status, location) == expected


async def test_answer_of_more_than_sixteen_megabytes_once_unpacked_is_rejected():
    allowed, too_large = (
        Response(zlib.compress(b" " * size, 1), headers={"Content-Encoding": "deflate"})
        for size in (16_000_000, 16_000_001)
    )
    assert len((await get_through_client(allowed)).content) == 16_000_000
    with pytest.raises(AnswerTooLargeError, match="answered with more than 16 MB"):
        await get_through_client(too_large)


async def test_answer_with_unknown_encoding_or_other_charset_is_read_as_utf_8():
    """JSON is UTF-8; some of Python's encodings are none of text, and would be our error."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: \x80\r\nContent-Length: 2\r\n\r\nHi"
    async with world.raw_server(answer) as (url, _):
        assert (await get(url)).content == b"Hi"
    for charset in ("hex", "zlib", "punycode", "utf-16", "nonsense"):
        answer = Response("caf\xe9", content_type=f"text/plain; charset={charset}")
        assert (await get_through_client(answer)).text == "caf\xe9", charset


async def test_read_timeout_limits_total_time_of_slowly_sent_response(dripping_server):
    url, heard, finished = dripping_server
    client = http_client.new_client(timeout=0.06)
    with pytest.raises((httpx2.ReadTimeout, httpx2.ConnectTimeout)):
        await client.get(url)
    assert not finished.is_set()
    await client.aclose()
    if heard:
        await finished.wait()


def test_models_and_agents_share_the_limit_of_open_files():
    resource = pytest.importorskip("resource")
    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        assert rate_limiter.fair_share() == 64
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    assert 1 <= rate_limiter.fair_share() <= rate_limiter.MAX_SHARE


@each_row(("url", "expected"), [
    ("http://evil:99999/", "an address that cannot be read"),
    ("http://[::1", "an address that cannot be read"),
    ("https://api.aui.io/ia-controller", "api.aui.io"),
    ("http://127.0.0.1:8080/x", "127.0.0.1:8080"),
    ("http://[::1]:80", "[::1]:80"),
    ("https://user:pass@host.example", "host.example"),
])  # fmt: skip
def test_host_of_url_omits_credentials_and_path(url, expected):
    assert addresses.host_of(url) == expected


BASE = "https://models.example/v1"


@each_row(("address", "is_same"), [
    *((BASE, True), (f"{BASE}/", True), ("HTTPS://Models.Example:443/v1", True)),
    ("https://user:pass-word-77@models.example/v1", True),
    ("https://pass-word-77@models.example/v1", True),
    ("http://models.example/v1", False),
    ("https://models.example:8443/v1", False),
    ("https://models.example/pass-word-77/v1", False),
    ("https://other.example/v1", False),
    *(("claude", False), ("claude 0123abcd", False)),
])  # fmt: skip
def test_service_is_identified_by_host_and_path_without_credentials(address, is_same):
    service = Service.at(address)
    assert (service.digest == Service.at(BASE).digest) is is_same
    assert "pass-word-77" not in service.shown
    assert address.lower().startswith(service.shown.partition("://")[0])


def test_address_with_query_or_fragment_is_not_recognized_as_service():
    """A query may choose another model, and may hold a key: such a service is like no other."""
    for address in (f"{BASE}?model=x", f"{BASE}?key=pass-word-77", f"{BASE}#x"):
        assert Service.at(address) is None
