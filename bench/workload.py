"""The unit of every measurement: a conversation of 17 calls (1 task, 7 agent, 6 simulated user, 3 judge)."""

import json
from pathlib import Path
from random import Random
from typing import Any

from bench.server import TURNS

CALLS = 1 + TURNS + (TURNS - 1) + 3
TESTS = 50
"""Of a suite, at most; further conversations are loops of these."""

_TEST: dict[str, Any] = {
    "userInfo": {"name": "Ida Berg", "order": "1042", "postcode": "AB1 2CD", "plan": "Weekend"},
    "guidelines": "You are Ida. You want to know where your order 1042 is and when it will come. You are in "
    "a hurry and ask again until you hear a day and a time.",
    "turns": [{"user": "Where is my order?"}, *({"user": "auto"} for _ in range(TURNS - 1))],
    "evaluations": [
        {"criterion": "The agent says where the parcel is", "category": "accuracy"},
        {"criterion": "The agent names the day on which it will come", "category": "accuracy", "weight": 2},
        {"criterion": "The agent stays polite though the user hurries it", "category": "tone"},
        {"criterion": "The order is looked up", "strict": "tool_used", "toolName": "ORDER_STATUS"},
        {"criterion": "The number is understood", "strict": "param_exists", "paramName": "order-id"},
    ],
}


_JUDGED = [each for each in _TEST["evaluations"] if "strict" not in each]
_TEXT_ONLY: dict[str, Any] = {
    "adapter": "http",
    "adapterOptions": {
        "send": {"path": "/external/message", "body": {"text": "{{message}}"}},
        "reply": {"text": "$.text"},
    },
}
"""An agent that tells nothing of its tool calls: its spans do."""


def write_suite(path: Path, conversations: int, *, text_only: bool = False, most: int = TESTS) -> int:
    """Writes a suite and gives back how many loops of it make so many conversations."""
    tests = max(tests for tests in range(1, most + 1) if conversations % tests == 0)
    test = {**_TEST, "evaluations": _JUDGED} if text_only else _TEST
    named = [{"name": f"Asks for the order, {number}", **test} for number in range(1, tests + 1)]
    suite = {"name": "bench", "agentId": "bench", "apiKey": "bench-agent-key", "tests": named}
    suite |= _TEXT_ONLY if text_only else {}
    path.write_text(json.dumps(suite))
    return conversations // tests


def ideal_seconds(conversations: int, parallel: int, agent: float, llm: float) -> float:
    """How long the calls alone take: task, then user and agent in turn, then all judgments together."""
    one = agent * (1 + TURNS) + llm * (TURNS - 1) + llm
    return -(-conversations // parallel) * one


def write_rows(path: Path, count: int, seed: str) -> Path:
    """Write results of another tool: nine of ten tests always pass, the others mostly."""
    rng = Random(seed)  # noqa: S311  # a simulation, not a secret
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            passed = number % 10 > 0 or rng.random() < 0.8
            row = {"test": f"case-{number:06}", "passed": passed, "seconds": 0.5, "group": f"g{number % 20}"}
            row |= {"cost": 0.001, "tokens": 120} | ({} if passed else {"reason": f"expected {number}"})
            file.write(json.dumps(row) + "\n")
    return path
