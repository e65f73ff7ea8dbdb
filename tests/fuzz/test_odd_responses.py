"""What real servers sent, with one value of it exchanged for another: it is read, or refused in words."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import framework_chats
import pytest
import recorded_http

from ci_evals.conversation.converse import bounded
from ci_evals.domain.errors import AgentError
from ci_evals.domain.transcript import Reply

RECORDED = Path(__file__).parents[1] / "agents/recorded_http"
ODD = ([], {}, [[]], [None], {"x": [7]}, 7, -1.5, 10**30, True, None, "", "x", "\u0000\ud800")
TRIES = 30


def exchanged(value: Any, luck: random.Random) -> Any:
    """A JSON value with one value in it, or itself, exchanged for an odd one."""
    inner = [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    if not inner or luck.random() < 0.12:
        return luck.choice(ODD)
    key = luck.choice(inner)
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[key] = exchanged(value[key], luck)
    return changed


def with_one_odd(exchange: recorded_http.Exchange, luck: random.Random) -> recorded_http.Exchange:
    """An exchange with another answer."""
    if not exchange.content_type.startswith("text/event-stream"):
        return replace(exchange, answer=json.dumps(exchanged(json.loads(exchange.answer), luck)))
    lines = exchange.answer.splitlines()
    place = luck.choice([index for index, line in enumerate(lines) if line.startswith("data: {")])
    lines[place] = f"data: {json.dumps(exchanged(json.loads(lines[place][6:]), luck))}"
    return replace(exchange, answer="\n".join([*lines, "", ""]))


SERVERS = ("langgraph", "ag-ui", "adk", "responses", "responses-agent", "ai-sdk", "rasa")


@pytest.mark.parametrize("name", [*SERVERS, "a2a", "a2a-blocking", "a2a-0.3"])
async def test_odd_value_in_recorded_response_is_read_or_rejected(name: str) -> None:
    luck = random.Random(name)
    for _ in range(TRIES):
        exchanges = recorded_http.load(RECORDED / f"{name}-refund.json")
        place = luck.randrange(len(exchanges))
        exchanges[place] = with_one_odd(exchanges[place], luck)
        with recorded_http.serve_recorded(exchanges) as stub:
            try:
                replies, _ = await framework_chats.CONVERSATIONS[name]["refund"](stub.url)
            except AgentError:
                continue  # no conversation could be begun
        for reply in replies:
            if isinstance(reply, Reply):
                assert Reply.model_validate_json(bounded(reply).model_dump_json()) == reply
            else:
                assert len(reply) < 800
