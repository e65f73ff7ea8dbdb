"""GitHub's REST API: pages, rate limits, retries, downloads.

Rules: <https://docs.github.com/en/rest/using-the-rest-api>. A request that GitHub may have acted on is not
sent again, all waits together are bounded, and the token goes to the API's own origin alone.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, BinaryIO, Self
from urllib.parse import urljoin, urlsplit

import httpx2

from ci_evals.adapters.transport.addresses import header_value, host_of, proxy_for
from ci_evals.adapters.transport.http_client import new_client
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError
from ci_evals.adapters.transport.refusals import seconds_until
from ci_evals.adapters.transport.retry import MAX_RESENDS, RetryBudget, may_resend
from ci_evals.domain.errors import GitHubError, UsageError
from ci_evals.support.payload import AnswerTooLargeError, shorten
from ci_evals.support.redaction import Redactor
from ci_evals.support.text import visible

PAGE = 100
"""Maximum of items on a page."""

MAX_PAGES = 100
"""Maximum of pages of one list."""

PATIENCE_SECONDS = 60.0
"""Maximum of all waits of one client together."""

_RETRY_BUDGET = RetryBudget(limited=MAX_RESENDS, total_seconds=PATIENCE_SECONDS, max_jitter=0.0)
_TIMEOUT_SECONDS = 20.0
_DOWNLOAD_SECONDS = 120.0
_DEFAULT_LIMIT_SECONDS = 60.0
"""GitHub's advice if a secondary rate limit names no time."""

_MAX_REDIRECTS = 3
"""Maximum of redirects within the API, as for a renamed repository."""

_LACKING = re.compile("not accessible by|must have|requires? .*(permission|scope)", re.IGNORECASE)
"""GitHub's phrases for a missing permission."""

_NOT_PERMITTED = re.compile("resource not accessible by", re.IGNORECASE)
"""GitHub's phrase for a permission that the token does not have. Without it, a 403 may be of a proxy."""

_BOT = "[bot]"
_DAY_SECONDS = 86_400
_SECONDS = re.compile(r"[0-9]{1,12}")


class GitHub:
    """A client of one GitHub, for use in an `async with`.

    Every method raises `GitHubError`, with the permission `needs` (`actions: read`) if it may be missing.
    Paths begin with a slash: `/repos/owner/name/issues`.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        redactor: Redactor | None = None,
    ) -> None:
        """Create a client. `redactor` removes the run's secrets and the token from error messages."""
        self._url, self._token, self._now = url.rstrip("/"), token, now
        self._redactor = (redactor or Redactor()).knowing(keys=[token])
        self._limiter = RateLimiter(budget=_RETRY_BUDGET, sleep=sleep, clock=lambda: now().timestamp())

    async def __aenter__(self) -> Self:
        if not _is_address(self._url):
            raise GitHubError(f"GITHUB_API_URL is not an address: {self._url!r}")
        try:
            token = header_value(self._token, "the GitHub token")
            proxy = proxy_for(self._url)
        except UsageError as error:
            raise GitHubError(str(error)) from error
        if not token:
            raise GitHubError("GITHUB_TOKEN is not set")
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {token}",
            "User-Agent": "ci-evals",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        self._client = new_client(proxy=proxy, timeout=_TIMEOUT_SECONDS, headers=headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    @property
    def of_app(self) -> bool:
        """True if the token belongs to an app, such as a workflow's, and not to a user."""
        return self._token.strip().startswith("ghs_")

    async def get(self, path: str, *, needs: str, **params: str | int) -> Any:
        """Return the JSON at a path."""
        return _json(await self._send("GET", self._url + path, needs, params=params))

    async def pages(
        self, path: str, *, needs: str, within: str | None = None, **params: str | int
    ) -> AsyncIterator[Any]:
        """Yield every item of a list. `within` is the key of the list in an answer."""
        url = self._url + path
        query: Mapping[str, str | int] | None = {"per_page": PAGE, **params}
        for _ in range(MAX_PAGES):
            answer = await self._send("GET", url, needs, params=query)
            data = _json(answer)
            items = data.get(within) if within and isinstance(data, dict) else data
            if not isinstance(items, list):
                raise GitHubError(f"GitHub answered {path} with something other than a list")
            for item in items:
                yield item
            following = answer.links.get("next", {}).get("url")
            if following is None or not items:
                return
            following = urljoin(url, following) if following.startswith("/") else following
            if not self._is_own(following):
                raise GitHubError(f"GitHub names a next page of {path} on another host, {host_of(following)}")
            url, query = following, None

    async def post(self, path: str, body: Any, *, needs: str) -> Any:
        """Create something."""
        return _json(await self._send("POST", self._url + path, needs, json=body))

    async def patch(self, path: str, body: Any, *, needs: str) -> Any:
        """Change something."""
        return _json(await self._send("PATCH", self._url + path, needs, json=body))

    async def viewer(self) -> str | None:
        """Return the name of the token's account by GraphQL, which works for apps too; None if unknown.

        Accounts of apps end in `[bot]`, as in the REST API.
        """
        try:
            data = _json(await self._send("POST", self._graphql, "", json={"query": "{ viewer { login } }"}))
        except GitHubError:
            return None
        for key in ("data", "viewer", "login"):
            data = data.get(key) if isinstance(data, dict) else None
        if not isinstance(data, str) or not data:
            return None
        return data if data.endswith(_BOT) or not self.of_app else data + _BOT

    @property
    def _graphql(self) -> str:
        """The address of GraphQL: `/v3` of an enterprise server is replaced."""
        return f"{self._url.removesuffix('/v3')}/graphql"

    async def delete(self, path: str, *, needs: str) -> None:
        """Delete something."""
        await self._send("DELETE", self._url + path, needs)

    async def download(self, path: str, into: BinaryIO, *, needs: str, max_mb: int) -> None:
        """Write to `into` what `path` redirects to, often on another host, which must not see the token.

        The signed address is good for a minute, so a retry asks for a new one. An error has a status only if
        the API itself refused.
        """

        async def attempt(_: int) -> httpx2.Response:
            answer = await self._follow("GET", self._url + path, needs, leaves=True)
            if not answer.has_redirect_location:
                if len(answer.content) > max_mb * 1_000_000:
                    raise GitHubError(f"the download is not read: {AnswerTooLargeError(max_mb)}")
                into.write(answer.content)
                return answer
            try:
                await self._fetch(_target(answer), into, max_mb)
            except RetryableError:
                into.seek(0)
                into.truncate()
                raise
            return answer

        await self._limiter.send(attempt)

    async def _fetch(self, url: str, into: BinaryIO, max_mb: int) -> None:
        host = host_of(url)
        if urlsplit(url).scheme != "https" and not self._url.startswith("http:"):
            raise GitHubError(f"GitHub redirects the download to {host} without TLS")
        try:
            proxy = proxy_for(url)
            async with (
                new_client(proxy=proxy, timeout=_DOWNLOAD_SECONDS, max_mb=max_mb) as stranger,
                asyncio.timeout(_DOWNLOAD_SECONDS),
                stranger.stream("GET", url) as answer,
            ):
                if answer.status_code != httpx2.codes.OK:
                    raise _download_failed(host, f"it answered {answer.status_code}")
                async for part in answer.aiter_bytes():
                    into.write(part)
        except AnswerTooLargeError as error:
            raise GitHubError(f"the download is not read: {host} {error}") from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise GitHubError(
                f"the download from {host} takes more than {_DOWNLOAD_SECONDS:.0f} s"
            ) from error
        except UsageError as error:
            raise GitHubError(str(error)) from error
        except (httpx2.HTTPError, OSError) as error:
            raise _download_failed(host, f"it cannot be reached ({type(error).__name__})") from error

    async def _send(self, method: str, url: str, needs: str, **request: Any) -> httpx2.Response:
        return await self._limiter.send(lambda _: self._follow(method, url, needs, **request))

    async def _follow(
        self, method: str, url: str, needs: str, *, leaves: bool = False, **request: Any
    ) -> httpx2.Response:
        """Return the answer after redirects. With `leaves`, a redirect to another host is an answer."""
        for _ in range(_MAX_REDIRECTS):
            answer = await self._attempt(method, url, needs, request)
            if not answer.has_redirect_location:
                return answer
            url = _target(answer)
            if not self._is_own(url):
                if leaves:
                    return answer
                raise GitHubError(f"GitHub redirects to another host, {host_of(url)}", answer.status_code)
            request.pop("params", None)  # the new address has them
        raise GitHubError(f"GitHub at {host_of(url)} redirects without end", answer.status_code)

    async def _attempt(self, method: str, url: str, needs: str, request: dict[str, Any]) -> httpx2.Response:
        idempotent = method != "POST"
        try:
            answer = await self._client.request(method, url, **request)
        except AnswerTooLargeError as error:
            raise GitHubError(f"GitHub at {host_of(url)} {error}") from error
        except httpx2.InvalidURL as error:
            raise GitHubError("GitHub's address cannot be read (see GITHUB_API_URL)") from error
        except httpx2.HTTPError as error:
            failure = GitHubError(f"GitHub at {host_of(url)} cannot be reached ({type(error).__name__})")
            raise RetryableError(failure, repeatable=idempotent) from error
        if answer.is_success or answer.has_redirect_location:
            return answer
        status, failure = answer.status_code, self._refused(answer, needs)
        if _is_limited(answer):
            raise RetryableError(failure, httpx2.codes.TOO_MANY_REQUESTS, self._limit_seconds(answer))
        if may_resend(status, idempotent=idempotent, wait_requested=False):
            wait = seconds_until(answer.headers.get("retry-after"), self._now())
            raise RetryableError(failure, status, wait)
        raise failure

    def _limit_seconds(self, answer: httpx2.Response) -> float:
        wait = seconds_until(answer.headers.get("retry-after"), self._now())
        if wait is not None:
            return wait
        reset = answer.headers.get("x-ratelimit-reset", "")
        if answer.headers.get("x-ratelimit-remaining") == "0" and _SECONDS.fullmatch(reset):
            return max(1.0, int(reset) - self._now().timestamp())
        return _DEFAULT_LIMIT_SECONDS

    def _is_own(self, url: str) -> bool:
        try:
            own, other = httpx2.URL(self._url), httpx2.URL(url)
        except httpx2.InvalidURL:
            return False
        return (own.scheme, own.host, own.port) == (other.scheme, other.host, other.port)

    def _refused(self, answer: httpx2.Response, needs: str) -> GitHubError:
        # Secrets are removed before the text is shortened, or half of one might stay.
        status, reason = answer.status_code, shorten(self._redactor.text(_reason(answer)))
        message = f"GitHub answered {status}" + (f" ({reason})" if reason else "")
        match status:
            case _ if _is_limited(answer):
                message += f": the rate limit is used up{self._until(self._limit_seconds(answer))}"
            case httpx2.codes.UNAUTHORIZED:
                message += ": the token is not valid there"
            case httpx2.codes.FORBIDDEN if not reason or _LACKING.search(reason):
                message += f": the token lacks the permission {needs!r}"
            case httpx2.codes.NOT_FOUND:
                message += f": not found, or the token lacks the permission {needs!r}"
            case _ if status >= httpx2.codes.INTERNAL_SERVER_ERROR:
                message += ": the server has a problem; try again later"
            case _:
                pass
        not_permitted = status == httpx2.codes.FORBIDDEN and not _is_limited(answer)
        not_permitted = not_permitted and _NOT_PERMITTED.search(reason) is not None
        return GitHubError(message, status, not_permitted=not_permitted)

    def _until(self, seconds: float) -> str:
        if seconds >= _DAY_SECONDS:
            return ""
        return f" until {self._now() + timedelta(seconds=seconds):%H:%M:%S} UTC"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # among them a port beyond 65535
        return False


def _target(answer: httpx2.Response) -> str:
    """Return the target of a redirect. It may be signed, so messages name its host alone."""
    target = "" if answer.next_request is None else str(answer.next_request.url)
    if not _is_address(target):
        raise GitHubError("GitHub redirects to an address that cannot be read", answer.status_code)
    return target


def _download_failed(host: str, reason: str) -> RetryableError:
    return RetryableError(GitHubError(f"the download from {host} failed: {reason}"))


def _json(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except (ValueError, RecursionError) as error:
        raise GitHubError(
            f"GitHub at {host_of(str(answer.url))} answered with something other than JSON"
        ) from error


def _is_limited(answer: httpx2.Response) -> bool:
    """Return whether it was refused for the rate. A missing permission is answered with 403 too."""
    if answer.status_code == httpx2.codes.TOO_MANY_REQUESTS:
        return True
    limited = "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    limited = limited or "rate limit" in _reason(answer).lower()
    return answer.status_code == httpx2.codes.FORBIDDEN and limited


def _reason(answer: httpx2.Response) -> str:
    with contextlib.suppress(ValueError, RecursionError):
        data = answer.json()
        if isinstance(data, dict):
            parts: list[Any] = [data]
            if isinstance(errors := data.get("errors"), list):
                parts += errors
            messages = [part.get("message") for part in parts if isinstance(part, dict)]
            text = "; ".join(message for message in messages if isinstance(message, str))
            return " ".join(visible(text).split()).rstrip(".")
    return ""
