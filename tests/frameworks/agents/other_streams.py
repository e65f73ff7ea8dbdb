"""Agents that stream by sse-starlette, FastAPI and LangServe, or else: `other_streams.py PORT websockets`."""

import asyncio
import json
import os
import sys
from http import HTTPStatus

PORT, KINDS = int(sys.argv[1]), sys.argv[2:]
AMOUNT = 24 if os.environ.get("WRONG") == "amount" else 42


def events(text):
    """Yield the events of an answer."""
    if "Refund" in text:
        yield "call", {"name": "refund", "args": {"order": "A-1", "amount": AMOUNT}}
    for word in ("You said: ", text):
        yield "text", {"delta": word}
    yield "end", {}


def typed(text):
    """Yield the events of an answer as one object each."""
    for name, data in events(text):
        yield {"type": name, **data}


def serve_http():
    """Serve an address for each framework."""
    import uvicorn  # noqa: PLC0415  # this environment or the other
    from fastapi import FastAPI, Request  # noqa: PLC0415
    from fastapi.responses import StreamingResponse  # noqa: PLC0415
    from langchain_core.runnables import RunnableGenerator  # noqa: PLC0415
    from langserve import add_routes  # noqa: PLC0415
    from sse_starlette import EventSourceResponse  # noqa: PLC0415

    app = FastAPI()

    @app.get("/ok")
    def ok():
        return "ok"

    @app.post("/sse-starlette")
    async def named(request: Request):
        text = (await request.json())["say"]
        return EventSourceResponse({"event": name, "data": json.dumps(data)} for name, data in events(text))

    @app.post("/fastapi")
    async def lines(request: Request):
        text = (await request.json())["say"]
        return StreamingResponse(
            (json.dumps(event) + "\n" for event in typed(text)), media_type="application/x-ndjson"
        )

    async def chain(inputs):
        async for each in inputs:
            for event in typed(each["say"]):
                yield event

    add_routes(app, RunnableGenerator(chain), path="/langserve")
    uvicorn.run(app, port=PORT, log_level="warning")


async def serve_websockets():
    """Serve conversations over WebSockets."""
    from websockets.asyncio.server import serve  # noqa: PLC0415

    async def converse(socket):
        async for message in socket:
            for event in typed(json.loads(message)["say"]):
                await socket.send(json.dumps(event))

    def ok(connection, request):
        return connection.respond(HTTPStatus.OK, "ok") if request.path == "/ok" else None

    async with serve(converse, "127.0.0.1", PORT, process_request=ok) as server:
        await server.serve_forever()


if KINDS:
    asyncio.run(serve_websockets())
else:
    serve_http()
