"""GitHub's REST API: pages, rate limits, retries, downloads. It knows no artifact and no comment.

Rules: <https://docs.github.com/en/rest/using-the-rest-api>. A request that GitHub may have acted on is not
sent again, all waits together are bounded, and the token goes to the API's own origin alone.
"""

import asyncio
import contextlib
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, BinaryIO, Self
from urllib.parse import urlsplit

import httpx2

from ci_evals.adapters.connections import AnswerTooLargeError, host_of, new_client, proxy_for
from ci_evals.adapters.retry import MAX_RESENDS, may_resend, told_seconds, wait_seconds
from ci_evals.domain.errors import GitHubError, UsageError

PAGE = 100
"""Items a page: the most that GitHub gives. Left to itself it gives 30."""

MAX_PAGES = 100
"""Pages that are read of one list."""

PATIENCE_SECONDS = 60.0
"""All waits of one client together: reports are not worth more of a job's time."""

_TIMEOUT_SECONDS = 20.0
_DOWNLOAD_SECONDS = 120.0
_UNSAID_WAIT_SECONDS = 60.0
"""GitHub's advice where a secondary rate limit names no time."""


class GitHub:
    """A client of one GitHub, for use in an `async with`.

    Every method raises `GitHubError` with what was refused and, where that is the cause, the permission that
    `needs` names (`actions: read`). Paths begin with a slash: `/repos/owner/name/issues`.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._url, self._token, self._sleep, self._now = url.rstrip("/"), token, sleep, now
        self._patience = PATIENCE_SECONDS

    async def __aenter__(self) -> Self:
        if urlsplit(self._url).scheme not in {"http", "https"} or not urlsplit(self._url).hostname:
            raise GitHubError(f"GITHUB_API_URL is no address: {self._url!r}")
        if not self._token.isascii() or not self._token.isprintable():
            raise GitHubError("the GitHub token holds characters that no HTTP header can carry")
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "User-Agent": "ci-evals",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        self._client = new_client(self._url, proxy=self._proxy(), timeout=_TIMEOUT_SECONDS, headers=headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def get(self, path: str, *, needs: str, **params: str | int) -> Any:
        """The JSON at `path`."""
        return _json(await self._send("GET", self._url + path, needs, params=params))

    async def pages(
        self, path: str, *, needs: str, within: str | None = None, **params: str | int
    ) -> AsyncIterator[Any]:
        """Every item of a list, page by page. `within`: the key under which an answer holds its items."""
        url = self._url + path
        asked: Mapping[str, str | int] | None = {"per_page": PAGE, **params}
        for _ in range(MAX_PAGES):
            answer = await self._send("GET", url, needs, params=asked)
            data = _json(answer)
            items = data.get(within) if within and isinstance(data, dict) else data
            if not isinstance(items, list):
                raise GitHubError(f"GitHub answered {path} with something else than a list")
            for item in items:
                yield item
            following = answer.links.get("next", {}).get("url")
            if following is None or not items:
                return
            if not self._is_own(following):
                raise GitHubError(f"GitHub's next page of {path} is on another host, {host_of(following)}")
            url, asked = following, None

    async def post(self, path: str, body: Any, *, needs: str) -> Any:
        """Creates something."""
        return _json(await self._send("POST", self._url + path, needs, json=body))

    async def patch(self, path: str, body: Any, *, needs: str) -> Any:
        """Changes something."""
        return _json(await self._send("PATCH", self._url + path, needs, json=body))

    async def delete(self, path: str, *, needs: str) -> None:
        """Deletes something."""
        await self._send("DELETE", self._url + path, needs)

    async def download(self, path: str, into: BinaryIO, *, needs: str, most_mb: int) -> None:
        """Writes to `into` what `path` redirects to, often on another host, which must not see the token.

        The signed address is good for a minute, so a repeated try asks for a new one.
        """
        for resend in range(MAX_RESENDS + 1):
            answer = await self._send("GET", self._url + path, needs)
            if not answer.has_redirect_location:
                into.write(answer.content)
                return
            place = str(httpx2.URL(self._url + path).join(answer.headers["location"]))
            if urlsplit(place).scheme != "https" and not self._url.startswith("http:"):
                raise GitHubError(f"GitHub redirects the download to {host_of(place)} without TLS")
            try:
                status = await self._fetch(place, into, most_mb)
            except (httpx2.HTTPError, OSError, UsageError) as error:
                status, why = None, f"{type(error).__name__}"
            except AnswerTooLargeError as error:
                raise GitHubError(f"the download {error}") from error
            else:
                if status == httpx2.codes.OK:
                    return
                why = f"it answered {status}"
            into.seek(0)
            into.truncate()
            if resend < MAX_RESENDS:
                await self._wait(_usual_wait(resend))
        raise GitHubError(f"the download from {host_of(place)} failed: {why}", status)

    async def _fetch(self, url: str, into: BinaryIO, most_mb: int) -> int:
        async with (
            new_client(
                url, proxy=proxy_for(url), timeout=_DOWNLOAD_SECONDS, most_mb=most_mb
            ) as client,  # nobody's token
            asyncio.timeout(_DOWNLOAD_SECONDS),
            client.stream("GET", url) as answer,
        ):
            if answer.status_code == httpx2.codes.OK:
                async for part in answer.aiter_bytes():
                    into.write(part)
            return answer.status_code

    async def _send(self, method: str, url: str, needs: str, **request: Any) -> httpx2.Response:
        for resend in itertools.count():
            try:
                answer = await self._client.request(method, url, **request)
            except AnswerTooLargeError as error:
                raise GitHubError(f"{host_of(url)} {error}") from error
            except httpx2.HTTPError as error:
                if method == "POST" or resend == MAX_RESENDS:
                    why = f"{host_of(url)} cannot be reached ({type(error).__name__})"
                    raise GitHubError(f"GitHub at {why}") from error
                await self._wait(_usual_wait(resend))
            else:
                if answer.is_success or answer.has_redirect_location:
                    return answer
                wait = self._wait_after(answer, resend, idempotent=method != "POST")
                if wait is None or wait > self._patience or resend == MAX_RESENDS:
                    raise _refused(answer, needs)
                await self._wait(wait)
        raise AssertionError  # pragma: no cover  # counting has no end

    def _wait_after(self, answer: httpx2.Response, resend: int, *, idempotent: bool) -> float | None:
        """How long to wait before the request is sent again; None if it must not be."""
        if _is_limited(answer):
            return self._limit_seconds(answer)
        if may_resend(answer.status_code, idempotent=idempotent, told_to_wait=False):
            return _usual_wait(resend)
        return None

    def _limit_seconds(self, answer: httpx2.Response) -> float:
        """How long a rate limit asks to wait."""
        told = told_seconds(answer.headers.get("retry-after"), self._now())
        if told is not None:
            return told
        reset = answer.headers.get("x-ratelimit-reset", "")
        if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
            return max(1.0, int(reset) - self._now().timestamp())
        return _UNSAID_WAIT_SECONDS

    async def _wait(self, seconds: float) -> None:
        self._patience -= seconds
        await self._sleep(seconds)

    def _is_own(self, url: str) -> bool:
        own, other = urlsplit(self._url), urlsplit(url)
        return (own.scheme, own.netloc) == (other.scheme, other.netloc)

    def _proxy(self) -> str | None:
        try:
            return proxy_for(self._url)
        except UsageError as error:
            raise GitHubError(str(error)) from error


def _usual_wait(resend: int) -> float:
    return wait_seconds(resend, None, random.random())  # noqa: S311  # no secret


def _json(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except ValueError as error:
        raise GitHubError(
            f"GitHub at {host_of(str(answer.url))} answered with something else than JSON"
        ) from error


def _is_limited(answer: httpx2.Response) -> bool:
    """Whether it was refused for the rate alone. A missing permission is answered with 403 too."""
    if answer.status_code == httpx2.codes.TOO_MANY_REQUESTS:
        return True
    told = "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    return answer.status_code == httpx2.codes.FORBIDDEN and (told or "rate limit" in _message(answer).lower())


def _message(answer: httpx2.Response) -> str:
    """GitHub's own words."""
    with contextlib.suppress(ValueError):
        data = answer.json()
        if isinstance(data, dict) and isinstance(data.get("message"), str):
            return str(data["message"])
    return ""


def _refused(answer: httpx2.Response, needs: str) -> GitHubError:
    status, said = answer.status_code, _message(answer)
    words = f"GitHub answered {status}" + (f" ({said})" if said else "")
    match status:
        case _ if _is_limited(answer):
            words += ": the rate limit is used up"
        case httpx2.codes.UNAUTHORIZED:
            words += ": the token is not valid there"
        case httpx2.codes.FORBIDDEN:
            words += f": the token lacks the permission {needs!r}"
        case httpx2.codes.NOT_FOUND:
            words += f": there is no such thing, or the token lacks the permission {needs!r}"
        case _:
            pass
    return GitHubError(words, status)
