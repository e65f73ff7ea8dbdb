"""The server behind an agent: requests, safe retries, error messages.

Each conversation has a client of its own (`transport.agent_client`).
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from multidict import CIMultiDict
from pydantic import JsonValue
from yarl import URL

from ci_evals.adapters.trace_context import request_headers
from ci_evals.adapters.transport import addresses, refusals, retry, streams
from ci_evals.adapters.transport.agent_client import AgentClient, Message, with_headers
from ci_evals.adapters.transport.network import Answer, NetworkError, ProxyError, UnreachableError
from ci_evals.adapters.transport.rate_limiter import RateLimiter, RetryableError
from ci_evals.adapters.transport.streams import Stream, StreamError, StreamFormat, StreamReader
from ci_evals.agents.settings import AgentSettings
from ci_evals.domain.errors import AgentAccessError, AgentError, LostAgentError, UsageError
from ci_evals.support import payload, placeholders
from ci_evals.support.redaction import Redactor

CHECK_SECONDS = 5.0

_UNAUTHORIZED = 401
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ID_IN_PATH = re.compile(r"/[^/]*[0-9{][^/]*")
"""Parts of a path that name one conversation or message: paths that differ only there are of one kind."""
_QUOTA_STATUSES = frozenset({402, 429})
"""With any other status a message about a quota may be about a model that the agent itself calls."""


@dataclass(frozen=True)
class AgentRequest:
    """A request, and what may be done when it fails."""

    method: str
    url: URL
    timeout: float
    """Seconds that one attempt may take."""
    idempotent: bool
    body: JsonValue = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    turn_timeout: float | None = None
    """Seconds that the whole turn may take, if `timeout` is only the rest of it."""
    template: str | None = None
    """The path before its `{{names}}` were replaced, so that equal errors of many trials are equal."""
    keys: str = ""
    """The keys of the suite that say where the request goes, for messages about a wrong place."""


class NoSuchPathError(AgentError):
    """The server does not know the path, or not for this method (404, 405)."""


class AgentServer:
    """The server behind an agent."""

    def __init__(
        self,
        settings: AgentSettings,
        url: str,
        headers: Mapping[str, str],
        redactor: Redactor | None,
        limiter: RateLimiter | None,
    ) -> None:
        """Prepare requests without opening connections; raise `UsageError` if a proxy cannot be used.

        The secrets in `settings` are removed from error messages too. All calls to this server with this key
        share the limiter.
        """
        self._who = f"the agent at {addresses.host_of(url)}"
        secrets = (settings.api_key or "", *settings.headers.values())
        self.redactor = (redactor or Redactor()).knowing(keys=[secret.strip() for secret in secrets])
        self._url = url
        self._path = urlsplit(url).path
        self._proxy = addresses.proxy_for(url)
        self._headers = headers
        self._limiter = limiter or RateLimiter()
        self._key_accepted = False

    def at(self, path: str, query: Mapping[str, str] | None = None) -> URL:
        """Return the address of a path; raise `UsageError` if it is invalid."""
        try:
            url = URL(self._url + path)
        except ValueError as error:
            raise UsageError(f"the agent's base URL {self._url!r}: {error} (see `base_url=`)") from None
        return url.with_query(query) if query else url

    def new_client(self) -> AgentClient:
        """Create the client of one conversation."""
        return AgentClient(proxy=self._proxy, headers=self._headers)

    async def end(self, client: AgentClient, is_last: streams.IsLast | None = None) -> None:
        """Close a conversation's connections.

        Raise `AgentError` if more answers came over its WebSocket than messages were sent. `is_last` says
        which event completes an answer there.
        """
        try:
            if is_last and await _has_more(client, is_last):
                raise self._surplus()
        finally:
            await client.aclose()

    async def ask(self, client: AgentClient, request: AgentRequest) -> tuple[JsonValue, float]:
        """Send a request as `send` does, and return the JSON of its answer and the seconds it took.

        The seconds are those of the request that succeeded, without refused ones and waits.
        """
        answer = await self.send(client, request)
        try:
            return payload.parse(answer.body), answer.seconds
        except ValueError as error:
            excerpt = payload.excerpt(answer.body, self.redactor)
            found = f"an answer that cannot be read ({error}): {excerpt}"
            raise AgentError(f"{self._who} gave {found} (see {request.keys or 'baseUrl'})") from None

    async def stream(
        self,
        client: AgentClient,
        request: AgentRequest,
        stream_format: StreamFormat,
        is_last: streams.IsLast | None = None,
    ) -> Stream:
        """Send a request as `send` does, and return the events of its answer: see `streams`.

        With `is_last`, a stream that ends before that event is an error. What comes after it is not read.
        """
        if "accept" not in CIMultiDict(self._headers):
            accept = {"accept": streams.MEDIA_TYPES[stream_format]}
            request = replace(request, headers=with_headers(accept, request.headers))

        async def attempt(_: int) -> Stream:
            reader = StreamReader(stream_format, is_last)
            await self._attempt(client, request, reader)
            return reader.stream

        return await self._limiter.send(attempt, _kind(request))

    async def send(self, client: AgentClient, request: AgentRequest) -> Answer:
        """Send a request when its turn comes, and retry it if that does no harm; else raise `AgentError`."""
        return await self._limiter.send(lambda _: self._attempt(client, request), _kind(request))

    async def check(self, *requests: AgentRequest) -> None:
        """Check the key with requests that cost nothing. Most answers, or none, prove nothing.

        Raise `AgentAccessError` if all requests are refused: a server may refuse a path to all keys.
        """
        refusal: AgentError | None = None
        client = self.new_client()
        try:
            for request in requests:
                async with asyncio.timeout(request.timeout):
                    answer = await client.send(_message(request))
                if not refusals.refuses_key(answer.status, answer.body):
                    return
                refusal = self._refusal(answer, request)
                if answer.status != _UNAUTHORIZED:
                    break
        except (TimeoutError, NetworkError, payload.AnswerTooLargeError):
            return
        finally:
            await client.aclose()
        if refusal:
            raise refusal

    async def _attempt(
        self, client: AgentClient, request: AgentRequest, reader: StreamReader | None = None
    ) -> Answer:
        is_websocket = reader is not None and reader.format == "websocket"
        # All messages of a conversation go over one connection: its headers cannot name the turn.
        if not is_websocket and (context := request_headers()):
            request = replace(request, headers=with_headers(request.headers, context))
        try:
            answer = await self._exchange(client, request, reader)
        except NetworkError as error:
            # Only a connection that was never made has certainly carried nothing: over any other the agent
            # may have received the message, and acted on it.
            failure = self._unreachable(error)
            if not isinstance(error, UnreachableError) and not request.idempotent:
                raise failure from error
            raise RetryableError(failure) from error
        if answer.is_success:
            self._key_accepted = True
            return answer
        failure = self._refusal(answer, request)
        if isinstance(failure, AgentAccessError):
            raise failure
        wait = refusals.requested_wait(answer.headers, datetime.now(UTC))
        status, requested = answer.status, "retry-after" in answer.headers and wait is not None
        repeatable = retry.may_resend(status, idempotent=request.idempotent, wait_requested=requested)
        if repeatable or retry.limits_rate(status, wait_requested=requested):
            final = AgentAccessError(f"{failure}; {retry.BUDGET_SPENT}")
            raise RetryableError(failure, status, wait, repeatable=repeatable, final=final)
        raise failure

    async def _exchange(
        self, client: AgentClient, request: AgentRequest, reader: StreamReader | None
    ) -> Answer:
        """Return the answer, whose body was read, by the reader if there is one and it is no error."""
        message = _message(request)
        try:
            async with asyncio.timeout(request.timeout):
                if reader and reader.format == "websocket":
                    if reader.is_last and await _has_more(client, reader.is_last):
                        raise self._surplus()
                    return await client.converse(message, reader)
                answer = await client.send(message, reader)
        except TimeoutError:
            seconds = request.turn_timeout or request.timeout
            end = f": its stream did not end, after {reader.progress}" if reader and reader.events else ""
            raise AgentError(f"the agent did not answer within {seconds:g} s{end}") from None
        except payload.AnswerTooLargeError as error:
            raise AgentError(f"{self._who} {error}") from None
        except StreamError as error:
            shown = "" if error.excerpt is None else f": {payload.excerpt(error.excerpt, self.redactor)}"
            kind = LostAgentError if error.is_cut else AgentError
            raise kind(f"{self._who} {error}{shown}") from None
        await client.end_stream()
        return answer

    def _surplus(self) -> AgentError:
        return AgentError(
            f"{self._who} sent more than one answer to a request: which answer belongs to "
            "which message is not known"
        )

    def _unreachable(self, error: NetworkError) -> AgentError:
        reason = payload.shorten(self.redactor.text(str(error))) or type(error).__name__
        if isinstance(error, UnreachableError):
            if "WRONG_VERSION_NUMBER" in reason:
                reason = "it does not speak TLS; write http:// in baseUrl"
            else:
                reason += "; start it, or correct baseUrl"
        kind = AgentError if isinstance(error, ProxyError) else LostAgentError
        if isinstance(error, UnreachableError | ProxyError):
            return kind(f"{self._who} could not be reached: {reason}")
        return kind(f"the connection to {self._who} broke: {reason}")

    def _refusal(self, answer: Answer, request: AgentRequest) -> AgentError:
        status = answer.status
        location = answer.headers.get("location")
        if target := addresses.redirect_of(str(request.url), status, location):
            return AgentError(
                f"{self._who} redirects to {target} ({status}), which is not followed: "
                "set base-url to the final address"
            )
        detail = payload.error_detail(answer.body, self.redactor)
        if status in _QUOTA_STATUSES and refusals.quota_used_up(status, answer.body):
            return AgentAccessError(
                f"{self._who} has no quota left for this key ({status}): {detail}; see its billing"
            )
        if refusals.denies_key(status, answer.body, accepted_before=self._key_accepted):
            return AgentAccessError(
                f"{self._who} refused the key ({status}): {detail}; "
                "set CI_EVALS_AGENT_KEY (in a workflow the input agent-key), or the variable that the "
                "suite's apiKey names, to a key of this agent"
            )
        see = f" (see {request.keys})" if request.keys else ""
        if status in (404, 405):
            path = request.url.path if request.template is None else f"{self._path}{request.template}"
            shown = payload.shorten(self.redactor.text(f"{request.method} {path}"))
            return NoSuchPathError(f"{self._who} answered with status {status} to {shown}: {detail}{see}")
        # Only who describes the request in the suite can correct it there.
        see = see if status in (400, 415, 422) and request.template is not None else ""
        return AgentError(f"{self._who} answered with status {status}: {detail}{see}")


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers without surrounding white space; raise `UsageError`, without values, if invalid."""
    checked = {
        name.strip(): addresses.header_value(value, f"the agent's header {name.strip()!r}")
        for name, value in headers.items()
    }
    for name in checked:
        if not _HEADER_NAME.fullmatch(name):
            raise UsageError(f"{name!r} is not the name of an HTTP header")
    return checked


def base_url(url: str) -> str:
    """Return an agent's address, which paths can be appended to; raise `UsageError` if it is none."""
    parts = addresses.base_url_parts(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def headers_with_key(
    fixed: Mapping[str, str], settings: AgentSettings, varying: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Return the headers of every request: those of options, the key, and over all of them the user's own.

    The key replaces `{{key}}`, or becomes `Authorization: Bearer` if no header, `varying` ones included,
    mentions it. Raise `UsageError`, without values, for invalid ones.
    """
    key = addresses.header_value(settings.api_key or "", "the agent's key")
    headers = checked_headers(
        {name: placeholders.text(value, lambda _: key) for name, value in fixed.items()}
    )
    merged = with_headers(headers, checked_headers(settings.headers))
    if key and "key" not in placeholders.names([{**fixed}, {**(varying or {})}]):
        merged.setdefault("Authorization", f"Bearer {key}")
    return merged


async def _has_more(client: AgentClient, is_last: streams.IsLast) -> bool:
    """Return whether another answer came over the WebSocket after the last one. Other messages do no harm."""
    return any(streams.completes(message, is_last) for message in await client.websocket.leftover())


def _kind(request: AgentRequest) -> str:
    return f"{request.method} {_ID_IN_PATH.sub('/*', request.template or request.url.path)}"


def _message(request: AgentRequest) -> Message:
    if request.body is None:
        return Message(request.method, request.url, headers=request.headers)
    body = json.dumps(payload.clean(request.body)).encode()
    headers = with_headers({"content-type": "application/json"}, request.headers)
    return Message(request.method, request.url, body, headers)
