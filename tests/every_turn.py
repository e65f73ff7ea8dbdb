"""A judge's answer that rests on what is absent from every turn, whatever conversation it is asked about."""

import json
import re
from typing import Any

_CONVERSATION = re.compile(r"<conversation>(.*?)</conversation>", re.DOTALL)
_TURN = re.compile(r'"turn":\s*(\d+)')


class EveryTurn(str):
    """Such an answer, in which `fitted` replaces the turns."""


def fitted(answer: Any, prompt: str) -> Any:
    """Return the answer to a prompt, which looked at all turns of the conversation there."""
    if not isinstance(answer, EveryTurn):
        return answer
    shown = "".join(_CONVERSATION.findall(prompt))
    turns = sorted({int(number) for number in _TURN.findall(shown)})
    return json.dumps(json.loads(answer) | {"looked_at": turns})
