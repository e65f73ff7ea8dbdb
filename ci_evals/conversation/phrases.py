"""Patterns for phrases that give a simulated user away, and for questions of an agent.

They are in phrases.toml, mostly English, and narrow: a person may say nearly anything to a company. The audit
by a model looks for the rest.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

from ci_evals.support.json_text import JsonObject

_FIELD = re.compile(r"\{\{(\w+)\}\}")
_QUOTED = re.compile(r"\"[^\"\n]*\"|[“„][^”“\n]*[”“]|«[^»\n]*»|(?<!\w)['‘][^'\n]*'(?!\w)|`[^`\n]*`")
_SENTENCE = re.compile(r"[^.!?\n]*[.!?]*")
_MAX_MATCHES = 20
"""Limit for one pattern in a message."""
_MAX_DISTANCE = 300
"""Characters from a phrase to the ends of its sentence."""
_GESTURE = re.compile(r"\w+")


class Phrase(NamedTuple):
    """A match outside of quotation marks."""

    text: str
    sentence: str
    """The sentence around it."""


def has(name: str, text: str) -> bool:
    """Return whether one of the patterns of that name matches in the text."""
    return bool(pattern(name).search(_plain(text)))


def both_sides(text: str) -> str | None:
    """Return the agent's line in a message with lines of user and agent; None without one."""
    text = _plain(text)
    by_agent, by_user = _turns("turn_by_agent", text), _turns("turn_by_user", text)
    if not (by_agent and by_user and any(map(_is_sentence, by_agent + by_user))):
        return _among_own_words(text, by_agent)
    # Words that introduce a quotation (`… wrote me:`) and the fields of a form are a person's own.
    return None if _is_introduced(text, by_agent + by_user) else by_agent[0][0].strip()


def labeled(text: str) -> str | None:
    """Return a line that is labeled as the user's in a message without other labels; None without one."""
    text = _plain(text)
    by_user = _turns("turn_by_user", text)
    if not by_user or _is_introduced(text, by_user) or _labels(text) != len(by_user):
        return None
    return next((line[0].strip() for line in by_user if _is_sentence(line)), None)


def _among_own_words(text: str, by_agent: Sequence[re.Match[str]]) -> str | None:
    """Return the agent's line in a message that is otherwise the user's, without labels."""
    lines = [line for line in by_agent if _is_sentence(line)]
    if not lines or _is_introduced(text, by_agent) or _labels(text) != len(lines):
        return None
    return lines[0][0].strip() if text[: lines[0].start()].strip() else None


def _turns(name: str, text: str) -> list[re.Match[str]]:
    """Return the lines that are labeled as one side's."""
    return list(pattern(name).finditer(text)) if ":" in text or "：" in text else []


def _is_sentence(line: re.Match[str]) -> bool:
    """Return whether a line is something that somebody says, and not the value of a field."""
    said = line["said"]
    if not pattern("sentence_end").search(said):
        return False
    return bool(pattern("some_words").search(said) or pattern("spirited").search(said))


def _is_introduced(text: str, lines: Sequence[re.Match[str]]) -> bool:
    """Return whether words before the first line announce it."""
    return text[: min(line.start() for line in lines)].rstrip().endswith((":", "："))


def _labels(text: str) -> int:
    return len(pattern("any_label").findall(text))


def as_agent(text: str) -> Iterator[Phrase]:
    """Yield phrases that only the agent's side would use."""
    for line in _lines("by_agent", _plain(text))[:1]:
        # A line with `me` or `my` rather speaks to the agent.
        if line.start() == 0 and not has("own", line["said"]) and not both_sides(text):
            yield Phrase(line[0].strip(), line[0])
    yield from _phrases("as_agent", text)


def meta(text: str) -> Iterator[Phrase]:
    """Yield phrases about the simulation or its instructions, and remains of a model's format."""
    return _phrases("meta", text)


class Gesture(NamedTuple):
    """A stage direction, and its verb."""

    text: str
    verb: str


def stage_direction(text: str) -> Gesture | None:
    """Return a gesture that is described instead of words; None without one."""
    match = pattern("stage_direction").search(text) if any(sign in text for sign in "*([") else None
    verb = match and _GESTURE.search(match[0])
    return Gesture(match[0].strip(), verb[0].rstrip("s")) if match and verb else None


def is_courtesy(text: str) -> bool:
    """Return whether a message is thanks, a goodbye or a short yes or no, which people repeat."""
    words = len(text.split())
    return (words <= 12 and has("courtesy", text)) or (words <= 7 and has("short_answer", text))


def wants_confirmation(reply: str) -> bool:
    """Return whether the agent asks for a yes before it does something."""
    sentences = [sentence for sentence in _sentences(reply) if not has("closing", sentence)]
    questions = [sentence for sentence in sentences if sentence.endswith("?")]
    if any(has("please_confirm", sentence) for sentence in sentences):
        return True
    if any(has("proposal", question) for question in questions):
        return True
    return not has("has_acted", reply) and any(has("right", question) for question in questions)


def requests(reply: str) -> str:
    """Return the sentences in which the agent asks for a value."""
    return " ".join(
        sentence
        for sentence in _sentences(reply)
        if has("wants_value", sentence) and has("asks", sentence) and not has("closing", sentence)
    )


def ends_with_closing(reply: str) -> bool:
    """Return whether the last question needs no answer."""
    questions = [text for text in _sentences(reply) if text.endswith("?") or has("closing", text)]
    return bool(questions) and has("closing", questions[-1])


def confirms(remark: str, *, plainly: bool) -> bool:
    """Return whether a remark says yes; with `plainly` it must say more than that, such as "go ahead"."""
    if has("declines", remark):
        return False
    return has("go_ahead", remark) or (not plainly and has("yes", remark))


def values(remark: str) -> list[str]:
    """Return numbers, codes and addresses in a remark that does not decline."""
    return [] if has("declines", remark) else [match[0] for match in pattern("value").finditer(remark)]


@cache
def pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of that name, which ignores case."""
    return re.compile(_written(name), re.IGNORECASE)


@cache
def common() -> frozenset[str]:
    """Return words that any two texts share."""
    return frozenset(str(_vocabulary()["common"]).split())


def _written(name: str) -> str:
    return f"(?:{_filled('|'.join(_vocabulary()[name]))})"


def _filled(pattern: str) -> str:
    return _FIELD.sub(lambda field: _written(field[1]), pattern)


@cache
def _vocabulary() -> JsonObject:
    # Imported and compiled only when the first conversation has ended: nobody waits for it.
    import tomllib  # noqa: PLC0415

    return tomllib.loads(files("ci_evals.conversation").joinpath("phrases.toml").read_text(encoding="utf-8"))


@cache
def _hinted(name: str) -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    """Return patterns, each with hints: without one of these a lower-case text cannot match."""
    return tuple(
        (tuple(entry["signs"]), re.compile(_filled(entry["pattern"]), re.IGNORECASE))
        for entry in _vocabulary()[name]
    )


def _phrases(name: str, text: str) -> Iterator[Phrase]:
    text = _plain(text)
    small = text.lower()
    for hints, pattern in _hinted(name):
        if any(map(small.__contains__, hints)):
            matches = islice(pattern.finditer(text), _MAX_MATCHES)
            yield from (_phrase(text, match) for match in matches if not _is_quoted(text, match))


def _phrase(text: str, match: re.Match[str]) -> Phrase:
    first, last = match.span()
    begin = max(text.rfind(mark, max(0, first - _MAX_DISTANCE), first) for mark in ".!?\n") + 1
    ends = (text.find(mark, last, last + _MAX_DISTANCE) for mark in ".!?\n")
    end = min((at for at in ends if at >= 0), default=last + _MAX_DISTANCE)
    return Phrase(match[0].strip(), text[max(begin, first - _MAX_DISTANCE) : end])


def _is_quoted(text: str, match: re.Match[str]) -> bool:
    if match[0].startswith("{"):  # JSON is full of quotation marks that quote nobody
        return False
    return any(
        quote.start() < match.end() and match.start() < quote.end() for quote in _QUOTED.finditer(text)
    )


def _lines(name: str, text: str) -> list[re.Match[str]]:
    """Return the lines of one side that are whole sentences."""
    if ":" not in text:
        return []
    lines = pattern(name).finditer(text)
    return [line for line in lines if pattern("sentence_end").search(line["said"])]


def _sentences(text: str) -> Iterator[str]:
    return (text for sentence in _SENTENCE.findall(text) if (text := sentence.strip()))


def _plain(text: str) -> str:
    return text.replace("’", "'")
