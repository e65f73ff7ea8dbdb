"""An agent that streams in three ways, by starlette: server-sent events, JSON lines, a WebSocket."""

import asyncio
import json
import sys
from collections import Counter

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute

COUNTS = Counter()
LONG = ["The", *(f" word {number}" for number in range(60)), "."]


class CutError(Exception):
    """Ends a connection in the middle of an answer, as a server that dies does."""


async def events(asked):
    """Yield the events of an answer; a text is sent as it is."""
    text = asked["say"]
    COUNTS[asked["chat"]] += 1
    words = LONG if text == "long" else [f"{COUNTS[asked['chat']]}: ", text]
    if text == "stall":
        await asyncio.sleep(15)
    if text == "fail":
        raise CutError
    if text == "broken":
        yield "{'type': 'text'}"
    if text == "cut":
        yield {"type": "text", "delta": "I refund"}
        raise CutError
    while text == "endless":
        yield {"type": "text", "delta": "on and on, "}
        await asyncio.sleep(0)
    if "Refund" in text:
        yield {"type": "call", "name": "refund", "args": {"order": "A-1", "amount": 42}}
    if text == "person":
        yield {"type": "call", "name": "to_person", "args": {}}
    for delta in words:
        yield {"type": "text", "delta": delta}
    yield {"type": "end", "person": text == "person"}


async def frames(asked, form):
    """Yield an answer as bytes."""
    async for event in events(asked):
        yield form % (event if isinstance(event, str) else json.dumps(event))


async def sse(request):
    """Answer by server-sent events."""
    asked = await request.json()
    return StreamingResponse(frames(asked, "data: %s\n\n"), media_type="text/event-stream")


async def ndjson(request):
    """Answer by lines."""
    return StreamingResponse(frames(await request.json(), "%s\n"), media_type="application/x-ndjson")


async def websocket(socket):
    """Answer each message of a connection by messages."""
    await socket.accept()
    while True:
        async for frame in frames(await socket.receive_json(), "%s"):
            await socket.send_text(frame)


async def whole(request):
    """Answer the same at once."""
    return JSONResponse([event async for event in events(await request.json())])


async def ok(_):
    """Tell that the server is up."""
    return PlainTextResponse("ok")


routes = [Route(f"/{view.__name__}", view, methods=["POST"]) for view in (sse, ndjson, whole)]
routes += [Route("/ok", ok), WebSocketRoute("/websocket", websocket)]
uvicorn.run(Starlette(routes=routes), port=int(sys.argv[1]), log_level="error", timeout_graceful_shutdown=1)
