"""The suite of attacks: what an agent may write to talk its judge round. Their texts are in attacks.yaml."""

import base64
import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from ci_evals.domain.transcript import Transcript, Turn

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
        letter + _ZERO_WIDTH[place % len(_ZERO_WIDTH)] for place, letter in enumerate(text)
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
        place = 0 if self.reply == "first" else len(transcript.turns) - 1
        turns = tuple(
            self._added(turn) if number == place else turn for number, turn in enumerate(transcript.turns)
        )
        return transcript.model_copy(update={"turns": turns})

    def _added(self, turn: Turn) -> Turn:
        return turn.model_copy(update={"agent": f"{turn.agent}\n\n{self.text}"})


def attacks() -> Sequence[Attack]:
    """All attacks, kind by kind."""
    return tuple(one for one in _all() if one.kind != _HARMLESS)


def harmless() -> Sequence[Attack]:
    """Words that ask for nothing, to tell what an attack does from what any words do."""
    return tuple(one for one in _all() if one.kind == _HARMLESS)


@cache
def _all() -> Sequence[Attack]:
    text = files("ci_evals.studies.attack").joinpath("attacks.yaml").read_text(encoding="utf-8")
    return tuple(
        attack for kind, found in yaml.safe_load(text).items() for one in found for attack in _of(kind, one)
    )


def _of(kind: str, one: dict[str, Any]) -> Iterator[Attack]:
    text = _HIDING[one["as"]](one["text"]) if "as" in one else one["text"]
    yield Attack(kind, one["name"], text)
    if one.get("first"):
        yield Attack(kind, one["name"], text, "first")
