"""Fixtures of adapter tests: servers, recorded waits, and a certificate."""

import asyncio
import subprocess
from contextlib import suppress
from pathlib import Path
from shutil import which

import github_api
import pytest


@pytest.fixture
def api():
    with github_api.serving() as serving:
        yield serving


class RecordedSleeps(list[float]):
    """A `sleep` that only remembers."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def sleeps() -> RecordedSleeps:
    return RecordedSleeps()


@pytest.fixture(scope="session")
def key_and_certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A key and a certificate of `localhost` that nobody trusts."""
    if which("openssl") is None:
        pytest.skip("needs openssl, to make a certificate")
    folder = tmp_path_factory.mktemp("certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return key, certificate


@pytest.fixture
async def dripping_server():
    """A server whose answer comes byte by byte: its address, the requests, and the event of its end."""
    heard, finished = [], asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        with suppress(ConnectionError):
            for _ in range(500):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()
        finished.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}", heard, finished
