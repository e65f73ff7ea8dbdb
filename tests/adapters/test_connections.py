"""How HTTP clients are made: proxies, hosts, headers."""

import asyncio

import pytest
import world

from ci_evals.adapters import connections
from ci_evals.domain.errors import UsageError

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
def test_proxies_of_the_environment_are_honoured(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: str | None
) -> None:
    """As everywhere, with exceptions; this machine itself is never spoken to by a proxy."""
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    monkeypatch.setenv("ALL_PROXY", "http://other.example")
    monkeypatch.setenv("NO_PROXY", ".corp.example,localhost")
    assert connections.proxy_for(url) == expected


def test_without_proxies_there_is_none() -> None:
    """The usual case."""
    assert connections.proxy_for("https://api.aui.io") is None


def test_a_proxy_that_is_not_supported_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SOCKS proxy is refused before the run, not in the middle of it."""
    monkeypatch.setenv("ALL_PROXY", "socks5://user:s3cret@proxy.example")
    with pytest.raises(UsageError, match="of the kind 'socks5'") as caught:
        connections.proxy_for("https://api.aui.io")
    assert "s3cret" not in str(caught.value)


async def test_a_call_goes_by_the_proxy() -> None:
    """What is sent to a host behind a proxy arrives at the proxy."""
    with world.agent() as proxy:
        client = connections.new_client("http://agent.example", proxy=proxy.url)
        response = await client.get("http://agent.example/hello")
        await client.aclose()
        assert response.status_code == 401
        assert [request.headers["Host"] for request in proxy.requests] == ["agent.example"]


async def test_all_clients_share_one_tls_context() -> None:
    """A context costs tens of milliseconds: conversations must not make their own."""
    clients = [connections.new_client("https://agent.example") for _ in range(3)]
    contexts = {id(client._transport._pool._ssl_context) for client in clients}  # type: ignore[attr-defined]
    await asyncio.gather(*(client.aclose() for client in clients))
    assert len(contexts) == 1


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.aui.io/ia-controller", "api.aui.io"),
        ("http://127.0.0.1:8080/x", "127.0.0.1:8080"),
        ("http://[::1]:80", "[::1]:80"),
        ("https://user:pass@host.example", "host.example"),
    ],
)
def test_a_server_is_called_by_its_host(url: str, expected: str) -> None:
    """Messages name the host, and nothing that may be secret."""
    assert connections.host_of(url) == expected
