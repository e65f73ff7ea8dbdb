"""The suite of attacks: what an agent may write to talk its judge round. Their texts are in attacks.yaml."""

import base64
import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import yaml

from ci_evals.domain.transcript import Transcript

_HARMLESS = "harmless words"
_TAGS = 0xE0000
"""The first code point of Unicode's invisible copy of ASCII."""
_ZERO_WIDTH = "\u200b\u200d\u2060"
# Letters of Cyrillic that look like ours.
_HOMOGLYPHS = str.maketrans("aceiopsxyAEOP", "асеіорѕхуАЕОР")

_HIDING: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "tags": lambda text: "".join(chr(_TAGS + ord(letter)) for letter in text),
    "zero_width": lambda text: "".join(
        letter + _ZERO_WIDTH[index % len(_ZERO_WIDTH)] for index, letter in enumerate(text)
    ),
    "homoglyphs": lambda text: text.translate(_HOMOGLYPHS),
}
"""Ways to write an instruction so that a filter for words does not see it."""


@dataclass(frozen=True)
class Attack:
    """Words that an agent might write to its judge."""

    kind: str
    name: str
    text: str
    reply: Literal["first", "last"] = "last"
    """Behind which of the agent's replies they are put."""

    def on(self, transcript: Transcript) -> Transcript:
        """The conversation, had the agent written this as well."""
        turns = list(transcript.turns)
        index = 0 if self.reply == "first" else len(turns) - 1
        agent = f"{turns[index].agent}\n\n{self.text}"
        turns[index] = turns[index].copy_with(agent=agent)
        return transcript.copy_with(turns=tuple(turns))


def attacks() -> Sequence[Attack]:
    """All attacks, kind by kind."""
    return tuple(attack for attack in _all() if attack.kind != _HARMLESS)


def harmless() -> Sequence[Attack]:
    """Words that ask for nothing, to tell what an attack does from what any words do."""
    return tuple(attack for attack in _all() if attack.kind == _HARMLESS)


@cache
def _all() -> Sequence[Attack]:
    text = files("ci_evals.extensions.attack").joinpath("attacks.yaml").read_text(encoding="utf-8")
    return tuple(
        Attack(kind, item["name"], _HIDING[item["as"]](item["text"]) if "as" in item else item["text"], reply)
        for kind, items in yaml.safe_load(text).items()
        for item in items
        for reply in (("last", "first") if item.get("first") else ("last",))
    )
