"""Cleans text from outside before it is written, sent or shown."""

import re
import unicodedata

_SEPARATORS = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    r"\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_UNSEEN = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_ANY_SELECTOR = re.compile(f"[{_SELECTORS}]")
_SELECTOR_RUNS = re.compile(f"[{_SELECTORS}]{{2,}}")
_SUSPECT = re.compile(f"[{_CONTROLS}{_INVISIBLE}{_SELECTORS}\u2028\u2029\ud800-\udfff]")


def whole(text: str) -> str:
    """Return `text` with U+FFFD for each half of a surrogate pair, which JSON has and UTF-8 has not."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def visible(text: str) -> str:
    """Return `text` without what no output can show.

    Lone surrogates become U+FFFD, every line separator a newline. Terminal escapes, control characters,
    bidirectional controls, zero-width and tag characters and runs of variation selectors are taken out.
    """
    if _harmless(text):
        return text
    text = _ESCAPES.sub("", _SEPARATORS.sub("\n", whole(text)))
    return _SELECTOR_RUNS.sub("", _UNSEEN.sub("", text))


def visible_for_scripts() -> str:
    """Return what `visible` removes, in its order, as JavaScript's regular expressions, one a line.

    Separators, lone surrogates, terminal escapes, what is not to be seen, runs of selectors. They are in
    ASCII, without `<` and `&`, and want the flag `u`.
    """
    patterns = (
        _SEPARATORS.pattern,
        r"[\ud800-\udfff]",
        _ESCAPES.pattern,
        _UNSEEN.pattern,
        _SELECTOR_RUNS.pattern,
    )
    return re.sub(r"\\U000([0-9a-f]{5})", r"\\u{\1}", _in_ascii("\n".join(patterns)))


def _in_ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")


def bare(text: str) -> str:
    """Return `text` as `visible` leaves it, without single variation selectors either: for a search."""
    return text if _harmless(text) else _ANY_SELECTOR.sub("", visible(text))


def _harmless(text: str) -> bool:
    if text.isascii():
        # Says the same as the search, five times as fast.
        return text.replace("\n", " ").replace("\t", " ").isprintable()
    return not _SUSPECT.search(text)


def is_blank(text: str) -> bool:
    """Return whether nothing can be seen in a text: white space, control, format and filler characters."""
    return all(char in _BLANK_SIGNS or unicodedata.category(char) in _BLANK_KINDS for char in bare(text))


_BLANK_KINDS = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
_BLANK_SIGNS = frozenset("\u2800\u3164\uffa0\u115f\u1160")
"""Signs and letters of Unicode that are drawn as nothing."""

LEAST_LETTERS = 2
"""The fewest letters of a reason. A sign as wide as those of Chinese is a word by itself."""


def has_words(text: str) -> bool:
    """Return whether a text says anything: it has letters of some script, not only signs and digits."""
    weight = 0
    for char in bare(text):
        kind = unicodedata.category(char)[0]
        if kind == "L" or (kind == "M" and weight):  # a mark belongs to the letter before it
            weight += 2 if unicodedata.east_asian_width(char) in "WF" else 1
            if weight >= LEAST_LETTERS:
                return True
    return False
