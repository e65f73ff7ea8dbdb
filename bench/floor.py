"""The same calls bare: what the conversations cost without a product, by aiohttp or by httpx2 and the SDKs.

The requests are those that the product itself made for one conversation, as the server kept them; or as many
of two bytes, which are answered by two bytes.
"""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

Post = Callable[[str, Any], Awaitable[Any]]
"""Sends a value as JSON to a path; what the JSON in the answer holds."""


async def play(requests: list[tuple[str, Any]], conversations: int, parallel: int, client: str) -> None:
    """Plays so many conversations, so many at a time, and keeps what was answered."""
    talk, judgments = requests[:-3], requests[-3:]
    waiting = iter(range(conversations))
    kept: list[list[Any]] = []

    async def work(post: Post) -> None:
        for _ in waiting:
            heard = [await post(path, body) for path, body in talk]
            heard += await asyncio.gather(*(post(path, body) for path, body in judgments))
            kept.append(heard)

    async with AsyncExitStack() as stack:
        posts = await _CLIENTS[client](stack, parallel)
        await asyncio.gather(*(work(post) for post in posts))
    if len(kept) != conversations:
        raise AssertionError("a conversation was lost")


async def _smallest(stack: AsyncExitStack, parallel: int) -> list[Post]:
    [post, *_] = await _aiohttp(stack, parallel)
    return [lambda url, _: post(f"{url}?smallest", {})] * parallel


async def _aiohttp(stack: AsyncExitStack, parallel: int) -> list[Post]:
    import aiohttp  # noqa: PLC0415  # only the one that is measured

    connector = aiohttp.TCPConnector(limit=0)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))

    return [partial(_post_bare, session)] * parallel


async def _libraries(stack: AsyncExitStack, parallel: int) -> list[Post]:
    import httpx2  # noqa: PLC0415  # only the one that is measured

    # A client for each worker: one shared pool would be searched for every request.
    context = httpx2.create_ssl_context()
    clients = [httpx2.AsyncClient(verify=context, trust_env=False, timeout=60) for _ in range(parallel)]
    return [_post_by(await stack.enter_async_context(client)) for client in clients]


async def _connected(stack: AsyncExitStack, parallel: int) -> list[Post]:
    """Calls as ci-evals does: the agent by aiohttp, each model by the SDK's client over aiohttp."""
    import aiohttp  # noqa: PLC0415  # only where it is measured
    import httpx2  # noqa: PLC0415  # as above

    context = httpx2.create_ssl_context()
    posts = []
    for _ in range(parallel):
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
        posts.append(_by_sdk(partial(_new_aiohttp_client, context), partial(_post_bare, session)))
    return posts


def _post_by(client: Any) -> Post:
    """Calls the models by the low-level `post` of the vendor's SDK, and the agent by the client itself."""

    async def post(url: str, body: Any) -> Any:
        headers = {**_AUTHORIZED, "content-type": "application/json"}
        request = client.build_request("POST", url, content=json.dumps(body).encode(), headers=headers)
        return json.loads((await client.send(request)).content)

    return _by_sdk(lambda _: client, post)


async def _post_bare(session: Any, url: str, body: Any) -> Any:
    async with session.post(url, json=body, headers=_AUTHORIZED) as response:
        return json.loads(await response.read())


def _new_aiohttp_client(context: Any, sdk: Any) -> Any:
    import httpx2  # noqa: PLC0415  # only where it is measured

    limits = httpx2.Limits(max_connections=0, keepalive_expiry=0)
    return sdk.DefaultAioHttpClient(verify=context, trust_env=False, timeout=60, limits=limits)


def _by_sdk(new_client: Callable[[Any], Any], post_to_agent: Post) -> Post:
    """Calls the models by the low-level `post` of the vendor's SDK."""
    import httpx2  # noqa: PLC0415  # only where it is measured

    sdks: dict[str, Any] = {}

    async def post(url: str, body: Any) -> Any:
        for path, (module, name) in _SDKS.items():
            if url.endswith(path):
                if path not in sdks:
                    sdk = import_module(module)
                    options = {"base_url": url.removesuffix(path), "http_client": new_client(sdk)}
                    sdks[path] = getattr(sdk, name)(api_key=_KEY, max_retries=0, **options)
                answer = await sdks[path].post(path, cast_to=httpx2.Response, body=body)
                return json.loads(answer.content)
        return await post_to_agent(url, body)

    return post


_KEY = "bench-llm-key"
_AUTHORIZED = {"authorization": f"Bearer {_KEY}"}
_SDKS = {"/chat/completions": ("openai", "AsyncOpenAI"), "/v1/messages": ("anthropic", "AsyncAnthropic")}
_CLIENTS = {"aiohttp": _aiohttp, "smallest": _smallest, "libraries": _libraries, "connected": _connected}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("client", choices=_CLIENTS)
    parser.add_argument("requests", type=Path, help="a list of URL and body, as JSON")
    parser.add_argument("--conversations", type=int, required=True)
    parser.add_argument("--parallel", type=int, required=True)
    options = parser.parse_args()
    requests = [(url, body) for url, body in json.loads(options.requests.read_text())]
    asyncio.run(play(requests, options.conversations, options.parallel, options.client))
