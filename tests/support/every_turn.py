"""A judge's answer that rests on what is absent from every turn, whatever conversation it is asked about."""

import json
import re
from typing import Any

_CONVERSATION = re.compile(r"<conversation>(.*?)</conversation>", re.DOTALL)


class EveryTurnAnswer(str):
    """Such an answer, in which `fitted` replaces the turns."""

    __slots__ = ()


def fill_looked_at(answer: Any, prompt: str) -> Any:
    """Return the answer to a prompt, which looked at all turns of the conversation there, if there is one."""
    if not isinstance(answer, EveryTurnAnswer):
        return answer
    turns = [
        one["turn"] for shown in _CONVERSATION.findall(prompt) for one in json.loads(shown) if "turn" in one
    ]
    return json.dumps(json.loads(answer) | {"looked_at": turns})
