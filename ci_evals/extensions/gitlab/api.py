"""GitLab's REST API: pages, rate limits, retries, single files of artifacts.

Rules: <https://docs.gitlab.com/api/rest/>. What GitLab may have acted on is not sent again, all waits
together are bounded, and the token goes to the API's own origin alone.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import httpx2

from ci_evals.adapters.github.archive import MAX_MB
from ci_evals.adapters.transport.addresses import header_value, host_of, proxy_for
from ci_evals.adapters.transport.http_client import new_client
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError
from ci_evals.adapters.transport.refusals import seconds_until
from ci_evals.adapters.transport.retry import MAX_RESENDS, RetryBudget, may_resend
from ci_evals.domain.errors import PlatformError, UsageError
from ci_evals.extensions.gitlab.context import TOKENS
from ci_evals.support import payload
from ci_evals.support.payload import AnswerTooLargeError
from ci_evals.support.redaction import Redactor

PAGE = 100
MAX_PAGES = 50
_TIMEOUT_SECONDS = 20.0
_RETRY_BUDGET = RetryBudget(limited=MAX_RESENDS, total_seconds=60.0, max_jitter=0.0)


class GitLabError(PlatformError):
    """GitLab's API could not be reached, or would not do what was asked."""


class GitLab:
    """A client of one GitLab, for use in an `async with`. Every method raises `GitLabError`.

    A job's own token (`of_job`) may download artifacts and little else.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        of_job: bool = False,
        redactor: Redactor | None = None,
        max_mb: int = MAX_MB,
        timeout: float = _TIMEOUT_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Create a client. `redactor` removes the run's secrets and the token from error messages."""
        self.of_job = of_job
        self._url, self._token, self._max_mb, self._timeout = url, token, max_mb, timeout
        self._redactor = (redactor or Redactor()).knowing(keys=[token])
        self._limiter = RateLimiter(budget=_RETRY_BUDGET, sleep=sleep)

    async def __aenter__(self) -> Self:
        try:
            token = header_value(self._token, "the GitLab token")
            proxy = proxy_for(self._url)
        except UsageError as error:
            raise GitLabError(str(error)) from error
        headers = {"JOB-TOKEN" if self.of_job else "PRIVATE-TOKEN": token, "User-Agent": "ci-evals"}
        self._client = new_client(proxy=proxy, timeout=self._timeout, headers=headers, max_mb=self._max_mb)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def get(self, path: str, **params: str | int) -> Any:
        """Return the JSON at a path."""
        return _json(await self._send("GET", path, params=params))

    async def pages(self, path: str, **params: str | int) -> AsyncIterator[Any]:
        """Yield every item of a list."""
        page = "1"
        for _ in range(MAX_PAGES):
            answer = await self._send("GET", path, params={**params, "per_page": PAGE, "page": page})
            items = _json(answer)
            if not isinstance(items, list):
                raise GitLabError(f"GitLab answered {path} with something other than a list")
            for item in items:
                yield item
            page = answer.headers.get("x-next-page", "")
            if not page.isdecimal():
                return

    async def post(self, path: str, body: Any) -> Any:
        """Create something."""
        return _json(await self._send("POST", path, json=body))

    async def put(self, path: str, body: Any) -> Any:
        """Change something."""
        return _json(await self._send("PUT", path, json=body))

    async def delete(self, path: str) -> None:
        """Delete something."""
        await self._send("DELETE", path)

    async def file(self, path: str, **params: str) -> bytes:
        """Return a file. A redirect to another host is followed without the token."""
        answer = await self._send("GET", path, params=params)
        for _ in range(3):
            if not answer.has_redirect_location or answer.next_request is None:
                return answer.content
            answer = await self._stranger(str(answer.next_request.url))
        raise GitLabError("GitLab redirects a download without end")

    async def _stranger(self, url: str) -> httpx2.Response:
        if not url.startswith("https://") and self._url.startswith("https://"):
            raise GitLabError(f"GitLab redirects the download to {host_of(url)} without TLS")
        try:
            async with new_client(proxy=proxy_for(url), timeout=self._timeout, max_mb=self._max_mb) as client:
                answer = await client.get(url)
        except AnswerTooLargeError as error:
            raise GitLabError(f"the download is not read: {host_of(url)} {error}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, UsageError) as error:
            raise GitLabError(f"the download from {host_of(url)} failed ({type(error).__name__})") from error
        if answer.is_success or answer.has_redirect_location:
            return answer
        raise GitLabError(f"the download from {host_of(url)} failed: it answered {answer.status_code}")

    async def _send(self, method: str, path: str, **request: Any) -> httpx2.Response:
        return await self._limiter.send(lambda _: self._attempt(method, path, request))

    async def _attempt(self, method: str, path: str, request: dict[str, Any]) -> httpx2.Response:
        idempotent = method != "POST"
        try:
            answer = await self._client.request(method, self._url + path, **request)
        except AnswerTooLargeError as error:
            raise GitLabError(f"GitLab at {host_of(self._url)} {error}") from error
        except httpx2.InvalidURL as error:
            raise GitLabError("GitLab's address cannot be read (see CI_API_V4_URL)") from error
        except httpx2.HTTPError as error:
            failure = GitLabError(
                f"GitLab at {host_of(self._url)} cannot be reached ({type(error).__name__})"
            )
            raise RetryableError(failure, repeatable=idempotent) from error
        if answer.is_success or (answer.has_redirect_location and method == "GET"):
            return answer
        failure = self._refused(answer)
        wait = seconds_until(answer.headers.get("retry-after"), datetime.now(UTC))
        if may_resend(answer.status_code, idempotent=idempotent, wait_requested=wait is not None):
            raise RetryableError(failure, answer.status_code, wait)
        raise failure

    def _refused(self, answer: httpx2.Response) -> GitLabError:
        status = answer.status_code
        try:
            said = payload.explain(answer.json()) or ""
        except (ValueError, RecursionError):
            said = ""
        # Secrets are removed before the text is shortened, or half of one might stay.
        reason = payload.shorten(self._redactor.text(said))
        message = f"GitLab answered {status}" + (f" ({reason})" if reason else "")
        own = "the job's own token may only download artifacts: set " if self.of_job else ""
        match status:
            case 401:
                message += f": {own or 'the token is not valid there: see '}{TOKENS}"
            case 403 | 404 if self.of_job:
                message += f": {own}{TOKENS} to do more"
            case 403:
                message += ": the token lacks a right (scope api, role Reporter), or the project is archived"
            case 404:
                message += ": not found, or the token may not see it"
            case _ if status >= 500:
                message += ": the server has a problem; try again later"
        return GitLabError(message, status)


def _json(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError) as error:
        host = host_of(str(answer.url))
        raise GitLabError(f"GitLab at {host} answered with something other than JSON") from error
