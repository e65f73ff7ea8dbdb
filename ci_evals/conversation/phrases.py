"""What gives a simulated user away, and what an agent asks: what is found in a text by patterns.

The patterns are in phrases.toml. They are in English for the most part, and narrow: a person may say nearly
anything to a company. What they let pass is left to the audit by a model.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, NamedTuple

_FIELD = re.compile(r"\{\{(\w+)\}\}")
_QUOTED = re.compile(r"\"[^\"\n]*\"|[“„][^”“\n]*[”“]|«[^»\n]*»|(?<!\w)['‘][^'\n]*'(?!\w)|`[^`\n]*`")
_SENTENCE = re.compile(r"[^.!?\n]*[.!?]*")
_MOST = 20
"""Of one phrase that are looked at in a message."""
_AROUND = 300
"""Characters around a phrase in which its sentence ends."""
_GESTURE = re.compile(r"\w+")


class Phrase(NamedTuple):
    """Words that were found, outside of quotation marks."""

    text: str
    sentence: str
    """That they stand in."""


def has(name: str, text: str) -> bool:
    """Whether one of the patterns of that name is found in the text."""
    return bool(pattern(name).search(_plain(text)))


def both_sides(text: str) -> str | None:
    """The agent's line in a message that holds lines of the user and of the agent; None without one."""
    text = _plain(text)
    by_agent = _lines("by_agent", text)
    if not by_agent:
        return None
    by_user = _lines("by_user", text)
    before = text[: by_agent[0].start()].strip()
    if by_user and text[: min(by_user[0].start(), by_agent[0].start())].rstrip().endswith(":"):
        return None
    # Words that announce what they were told (`… wrote me:`) and the fields of a form are a person's own.
    unlabelled = before and not before.endswith(":") and len(pattern("label").findall(text)) == len(by_agent)
    return by_agent[0][0].strip() if unlabelled or by_user else None


def as_agent(text: str) -> Iterator[Phrase]:
    """What only the agent's side would say."""
    for line in _lines("by_agent", _plain(text))[:1]:
        # With `me` and `my` it is rather the agent that is spoken to.
        if line.start() == 0 and not has("own", line["said"]):
            yield Phrase(line[0].strip(), line[0])
    yield from _phrases("as_agent", text)


def meta(text: str) -> Iterator[Phrase]:
    """What speaks of the simulation or its instructions, and what is left of a model's format."""
    return _phrases("meta", text)


class Gesture(NamedTuple):
    """A stage direction, and its verb."""

    text: str
    verb: str


def stage_direction(text: str) -> Gesture | None:
    """A gesture that is told in place of words; None without one."""
    found = pattern("stage_direction").search(text) if any(sign in text for sign in "*([") else None
    verb = found and _GESTURE.search(found[0])
    return Gesture(found[0].strip(), verb[0].rstrip("s")) if found and verb else None


def is_courtesy(text: str) -> bool:
    """Whether a message is thanks, a goodbye or a short yes or no, which people say more than once."""
    words = len(text.split())
    return (words <= 12 and has("courtesy", text)) or (words <= 7 and has("short_answer", text))


def wants_confirmation(reply: str) -> bool:
    """Whether the agent asks for a yes before it does something."""
    said = [one for one in _sentences(reply) if not has("closing", one)]
    asked = [one for one in said if one.endswith("?")]
    if any(has("please_confirm", one) for one in said) or any(has("proposal", one) for one in asked):
        return True
    return not has("has_acted", reply) and any(has("right", one) for one in asked)


def requests(reply: str) -> str:
    """The sentences in which the agent wants to be told something."""
    told = (one for one in _sentences(reply) if has("wants_value", one) and has("asks", one))
    return " ".join(sentence for sentence in told if not has("closing", sentence))


def ends_with_closing(reply: str) -> bool:
    """Whether the last question is one that needs no answer."""
    asked = [one for one in _sentences(reply) if one.endswith("?") or has("closing", one)]
    return bool(asked) and has("closing", asked[-1])


def confirms(remark: str, *, plainly: bool) -> bool:
    """Whether a remark says yes; `plainly`: whether it must say more than that, as "go ahead" does."""
    if has("declines", remark):
        return False
    return has("go_ahead", remark) or (not plainly and has("yes", remark))


def values(remark: str) -> list[str]:
    """Numbers, codes and addresses in a remark that does not decline."""
    return [] if has("declines", remark) else [found[0] for found in pattern("value").finditer(remark)]


@cache
def pattern(name: str) -> re.Pattern[str]:
    """The pattern of that name, without regard to case."""
    return re.compile(_written(name), re.IGNORECASE)


@cache
def common() -> frozenset[str]:
    """Words that any two texts share."""
    return frozenset(str(_vocabulary()["common"]).split())


def _written(name: str) -> str:
    return f"(?:{_filled('|'.join(_vocabulary()[name]))})"


def _filled(pattern: str) -> str:
    return _FIELD.sub(lambda field: _written(field[1]), pattern)


@cache
def _vocabulary() -> dict[str, Any]:
    # Read and compiled when the first conversation has ended: nobody waits for it before.
    import tomllib  # noqa: PLC0415

    return tomllib.loads(files("ci_evals.conversation").joinpath("phrases.toml").read_text(encoding="utf-8"))


@cache
def _signed(name: str) -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    """Patterns, each with signs: without one of these, in small letters, it is not found in a text."""
    return tuple(
        (tuple(one["signs"]), re.compile(_filled(one["pattern"]), re.IGNORECASE))
        for one in _vocabulary()[name]
    )


def _phrases(name: str, text: str) -> Iterator[Phrase]:
    text = _plain(text)
    small = text.lower()
    for signs, pattern in _signed(name):
        if any(map(small.__contains__, signs)):
            yield from (
                _phrase(text, found)
                for found in islice(pattern.finditer(text), _MOST)
                if not _is_quoted(text, found)
            )


def _phrase(text: str, found: re.Match[str]) -> Phrase:
    first, last = found.span()
    begin = max(text.rfind(mark, max(0, first - _AROUND), first) for mark in ".!?\n") + 1
    ends = (text.find(mark, last, last + _AROUND) for mark in ".!?\n")
    end = min((at for at in ends if at >= 0), default=last + _AROUND)
    return Phrase(found[0].strip(), text[max(begin, first - _AROUND) : end])


def _is_quoted(text: str, found: re.Match[str]) -> bool:
    if found[0].startswith("{"):  # JSON is full of quotation marks that quote nobody
        return False
    return any(
        quote.start() < found.end() and found.start() < quote.end() for quote in _QUOTED.finditer(text)
    )


def _lines(name: str, text: str) -> list[re.Match[str]]:
    """The lines by one side, of those that are whole sentences."""
    if ":" not in text:
        return []
    found = pattern(name).finditer(text)
    return [line for line in found if pattern("sentence_end").search(line["said"])]


def _sentences(text: str) -> Iterator[str]:
    return (said for sentence in _SENTENCE.findall(text) if (said := sentence.strip()))


def _plain(text: str) -> str:
    return text.replace("’", "'")
