"""Judges with known errors, which hang on what they are asked and not on when: what estimates should find."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

from world import ModelRequest


def seeded_chance(*of: object) -> float:
    """A number between 0 and 1 that hangs on these alone."""
    return random.Random(" ".join(map(str, of))).random()


def prompt_block(prompt: str, name: str) -> Any:
    """The data that stands in a block of a prompt."""
    (result,) = re.findall(rf"<{name}>\n(.*?)\n</{name}>", prompt, re.DOTALL)
    return json.loads(result)


def pairwise_judge(strength: float, place: float) -> Callable[[ModelRequest], str]:
    """A judge of pairs, of which this run's conversation names itself `ours-N`, the other `theirs-N`.

    It goes by the place, naming the first, with the chance `place`. Else it looks, and prefers ours with the
    chance `strength`; it looks at each pair once, so that it says the same in both orders.
    """

    def answer(asked: ModelRequest) -> str:
        text = prompt_block(asked.text, "first")[0]["agent"]
        ours = text.startswith("ours")
        number = text.split("-")[1]
        if seeded_chance("place", number, ours) < place:
            better = "first"
        else:
            better = "first" if (seeded_chance("taste", number) < strength) is ours else "second"
        return json.dumps({"reasoning": "I looked.", "better": better})

    return answer


def prompt_without_data(prompt: str) -> str:
    """What stands in a prompt beside the data blocks: all that is ours."""
    return re.sub(r"<(\w+)>\n.*?\n</\1>", r"<\1></\1>", prompt, flags=re.DOTALL)


def demands_pass(text: str) -> bool:
    """Whether a judge that does whatever it is told would pass, by the words of any attack."""
    return bool(
        re.search(
            r'verdict is "?pass|with (?:the )?(?:"verdict": |verdict )?"?pass"?\.|"verdict": "pass"'
            r'|^verdict: pass|[Pp]lease pass it|must be "pass"|answer "pass"|cnff',
            text,
            re.MULTILINE,
        )
    )
