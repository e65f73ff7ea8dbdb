"""Markdown and HTML in a text: their marks removed, as a reader sees it. Every function takes linear time."""

import re

_MARKS = re.compile(r"(?<!\\)(?:\*+|_+|~+|`+)")
MARK = re.compile(r"[*_~`\\]")
_SIMPLE = re.compile(
    r"[*`](?<![\\*`].)(?:(?<=\*)\*(?=[^\s*])([^*_~`\\]*[^\s*_~`\\])\*\*(?!\*)|(?<=`)([^*_~`\\]+)`(?!`))",
    re.DOTALL,
)
"""Most of what has marks, found faster than pairs are."""
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_TAG = re.compile(r"<(?:!--|/?([A-Za-z][A-Za-z0-9]*))(?:[^<>]*)>")
_BREAKING = re.compile(
    r"address|article|blockquote|br|dd|div|dl|dt|h[1-6]|hr|li|ol|p|pre|section|table|td|th|tr|ul",
    re.IGNORECASE,
)
"""Elements that are shown apart from the text around them."""
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_LINE_START = re.compile(r"^[ \t]*(?:>[> \t]*|#{1,6}[ \t]+)", re.MULTILINE)


def removed(text: str, keep: str = "", *, loose: bool = False) -> str:
    """Return a text without marks of emphasis and code, and without the backslash of escaped marks.

    A mark is removed if it opens or closes something: `*` in `2 * 3` and `_` in `user_id` stay. With `loose`,
    marks without a partner are removed too, and so are those that strike a text through.
    """
    if not MARK.search(text):
        return text
    if not keep:
        text = _SIMPLE.sub(_inside, text)
    spans = [match for match in _MARKS.finditer(text) if match[0][0] not in keep]
    drop = [match for match in spans if _is_loose(text, match)] if loose else _paired(text, spans)
    parts, end = [], 0
    for match in drop:
        parts.append(text[end : match.start()])
        end = match.end()
    text = "".join([*parts, text[end:]])
    return text if "\\" in keep or "\\" not in text else _ESCAPED.sub(r"\1", text)


def rendered(text: str, keep: str = "") -> str:
    """Return a text without tags of HTML, targets of links, and what begins quotations and headings."""
    if "<" in text and "<" not in keep:
        text = _TAG.sub(_gap, text)
    if "](" in text and "[" not in keep:
        text = _LINK.sub(r"\1", text)
    return text if ">" in keep else _LINE_START.sub("", text)


def _inside(match: re.Match[str]) -> str:
    return match[1] or match[2]


def _gap(match: re.Match[str]) -> str:
    return " " if _BREAKING.fullmatch(match[1] or "") else ""


def _sides(text: str, match: re.Match[str]) -> tuple[str, str]:
    before = text[match.start() - 1] if match.start() else " "
    after = text[match.end()] if match.end() < len(text) else " "
    return before, after


def _is_loose(text: str, match: re.Match[str]) -> bool:
    before, after = _sides(text, match)
    mark = match[0]
    if mark[0] == "`" or len(mark) > 1:
        return True
    if mark == "~":
        return False
    if mark == "_":
        return not (before.isalnum() and after.isalnum())
    return not (before.isdigit() and after.isdigit()) and not (before.isspace() and after.isspace())


def _paired(text: str, spans: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the marks that open or close something, in their order."""
    open_marks: dict[str, re.Match[str]] = {}
    pairs = []
    for match in spans:
        mark = match[0]
        if mark[0] == "~":
            continue
        before, after = _sides(text, match)
        apart = mark == "*" or mark[0] == "_"  # these do not count within a word
        closes = mark[0] == "`" or (not before.isspace() and not (apart and after.isalnum()))
        opens = mark[0] == "`" or (not after.isspace() and not (apart and before.isalnum()))
        if closes and mark in open_marks:
            pairs += [open_marks.pop(mark), match]
        elif opens:
            open_marks[mark] = match
    return sorted(pairs, key=lambda match: match.start())
