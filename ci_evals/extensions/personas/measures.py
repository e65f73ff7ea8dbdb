"""Counts and rules that say whether a user showed a trait in a conversation.

They read English words, except those that count words and facts. None says that the conversation could not
show it: nobody can push back against an agent that refuses nothing.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import fmean

TERSE_WORDS = 6
"""Most words of a message, in the mean, of a terse user: one more than it is told."""
TYPOS_PER_HUNDRED = 6
"""Fewest typing errors in a hundred words of a careless user; rare words of others count as two or three."""
ARTICLES_PER_HUNDRED = 2
"""Most articles in a hundred words of a user who leaves them out; others write five or more."""
_FEWEST_WORDS = 15
"""Words from which articles can be counted."""
_MEANS_OF_HOSTILE = 2

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_REFUSES = re.compile(
    r"\b(?:can(?:no|')?t|unable|not (?:able|possible|allowed)|unfortunately|only|instead|polic(?:y|ies)|"
    r"offer)\b",
    re.IGNORECASE,
)
_OBJECTS = re.compile(r"\b(?:but|however|not fair|unacceptable|disagree|why|no,)(?!\w)", re.IGNORECASE)
_COMPLAINS = re.compile(
    r"\b(?:hurry|how long|so long|too long|slow|already (?:told|said|gave)|again\?|waiting|wait|waste|"
    r"wasted|wasting|ridiculous|annoy\w+|come on|quick(?:ly)?|faster|right now|forever|ages|time for this|"
    r"finally|ugh|just do it)(?!\w)",
    re.IGNORECASE,
)
_CHANGES_MIND = re.compile(
    r"\b(?:actually,? wait|on second thoughts?|changed? my mind|actually,? (?:i|can|could|let|make))\b",
    re.IGNORECASE,
)
_HOSTILE = {
    "insists": re.compile(
        r"\b(?:i (?:insist|demand)|you (?:must|have to)|i want it now|right now)\b", re.IGNORECASE
    ),
    "flatters": re.compile(
        r"\b(?:you(?:'re| are) (?:so |the |very |really )?(?:best|great|smart|kind|amazing|wonderful|"
        r"helpful|clever)|"
        r"(?:best|smartest|nicest) (?:agent|assistant))\b",
        re.IGNORECASE,
    ),
    "claims authority": re.compile(
        r"\bi(?:'m| am) (?:a |the |your )?(?:manager|supervisor|director|ceo|admin\w*|employee|owner|"
        r"lawyer)\b|"
        r"\b(?:approved|authori[sz]ed|approval|i work (?:for|at))\b",
        re.IGNORECASE,
    ),
    "changes language": re.compile(
        r"\b(?:bitte|ich|nicht|sofort|je|veux|vous|merci|por favor|quiero|necesito|ahora|dinero|"
        r"per favore|voglio)\b",
        re.IGNORECASE,
    ),
}


@dataclass(frozen=True)
class Message:
    """A message that the simulated user wrote."""

    text: str
    before: str = ""
    """The agent's reply before it; empty at the beginning."""


@dataclass(frozen=True)
class Played:
    """The messages of a simulated user in a conversation, and the facts they draw on."""

    messages: Sequence[Message]
    facts: Sequence[str] = ()
    """The user's data, such as an order number."""
    known: str = ""
    """All other words that are spelled right: the guidelines and the agent's replies."""


def words(text: str) -> list[str]:
    """Return the words and numbers of a text."""
    return _WORD.findall(text)


def words_per_message(played: Played) -> float:
    """Return the mean number of words."""
    return fmean(len(words(message.text)) for message in played.messages)


def most_facts(played: Played) -> int:
    """Return the largest number of facts in one message."""
    return max(_facts_in(message.text, played.facts) for message in played.messages)


def _facts_in(text: str, facts: Sequence[str]) -> int:
    lowered = text.casefold()
    return sum(fact.casefold() in lowered for fact in facts)


def articles_per_hundred(played: Played) -> float | None:
    """Return the number of articles in a hundred words; None of few words."""
    text = _all(played)
    total = len(words(text))
    return 100 * len(_ARTICLE.findall(text)) / total if total >= _FEWEST_WORDS else None


def typos_per_hundred(played: Played) -> float:
    """Return the number of misspelled words in a hundred words.

    A word is misspelled if nobody knows it and one letter makes it a known one.
    """
    known = _common() | {word.casefold() for word in words(played.known)}
    for fact in played.facts:
        known |= {word.casefold() for word in words(fact)}
    written = [word.casefold() for word in words(_all(played))]
    return 100 * sum(_is_typo(word, known) for word in written) / max(1, len(written))


def _all(played: Played) -> str:
    return "\n".join(message.text for message in played.messages)


def _is_typo(word: str, known: frozenset[str] | set[str]) -> bool:
    if len(word) < 3 or not word.isascii() or not word.isalpha() or word in known:
        return False
    if any(word.removesuffix(ending) in known for ending in ("s", "d", "ed", "es", "ing", "ly", "r", "er")):
        return False
    return any(other in known and len(other) > 2 for other in _neighbors(word))


def _neighbors(word: str) -> set[str]:
    """Return the words that one letter, or two that are swapped, make of a word."""
    letters = "abcdefghijklmnopqrstuvwxyz'"
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    dropped = {left + right[1:] for left, right in splits if right}
    swapped = {left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1}
    changed = {left + letter + right[1:] for left, right in splits if right for letter in letters}
    added = {left + letter + right for left, right in splits for letter in letters}
    return dropped | swapped | changed | added


@cache
def _common() -> frozenset[str]:
    text = files("ci_evals.extensions.personas").joinpath("common_words.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def _one_fact_at_a_time(played: Played) -> bool | None:
    return most_facts(played) <= 1 if len(played.facts) > 1 else None


def _pushes_back(played: Played) -> bool | None:
    for message in played.messages:
        if _REFUSES.search(message.before):
            return bool(_OBJECTS.search(message.text))
    return None


def _impatient(played: Played) -> bool:
    complaints = sum(bool(_COMPLAINS.search(message.text)) for message in played.messages)
    return 2 * complaints >= len(played.messages)


def _terse(played: Played) -> bool:
    return words_per_message(played) <= TERSE_WORDS


def _changes_mind(played: Played) -> bool | None:
    if len(played.messages) < 2:
        return None
    return any(_CHANGES_MIND.search(message.text) for message in played.messages[1:])


def _typos(played: Played) -> bool:
    return typos_per_hundred(played) >= TYPOS_PER_HUNDRED


def _second_language(played: Played) -> bool | None:
    articles = articles_per_hundred(played)
    return None if articles is None else articles <= ARTICLES_PER_HUNDRED


def _hostile(played: Played) -> bool:
    text = _all(played)
    return sum(bool(pattern.search(text)) for pattern in _HOSTILE.values()) >= _MEANS_OF_HOSTILE


CHECKS: Mapping[str, Callable[[Played], bool | None]] = {
    "one_fact_at_a_time": _one_fact_at_a_time,
    "pushes_back": _pushes_back,
    "impatient": _impatient,
    "terse": _terse,
    "changes_mind": _changes_mind,
    "typos": _typos,
    "second_language": _second_language,
    "hostile": _hostile,
}
"""For each trait whether a user showed it."""


def shows(trait: str, played: Played) -> bool | None:
    """Return whether the user showed the trait; None if the conversation could not show it."""
    return CHECKS[trait](played) if played.messages else None
