"""Text that wants to be more than text, and the eyes to see whether it succeeded."""

import re
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from html.parser import HTMLParser
from typing import Literal, get_origin, get_type_hints

import cmarkgfm
from cmarkgfm.cmark import Options
from hypothesis import strategies as st
from pydantic import BaseModel

from ci_evals.domain.base import Clean
from ci_evals.domain.transcript import Turns

CORPUS = (
    "@octocat please look, also @github/security and mail to eve@example.com",
    "fixes #1, GH-2, octo/repo#3, see GHSA-abcd-efgh-ijkl and CVE-2024-12345",
    "commit 3aceb90018667fc1aaaaaaaaaaaaaaaaaaaaaaaa and 5c6a5de and octo/repo@deadbeefcafe",
    "https://github.com/octo/repo/issues/7 http://evil.example www.evil.example ftp://evil.example",
    "![pixel](https://evil.example/p.png) [click](https://evil.example) [ref][1]\n\n[1]: https://evil.example",
    "<img src=x onerror=alert(1)><script>alert(1)</script><a href='javascript:alert(1)'>x</a>",
    "<!-- ci-evals --> </details></summary></table> <b>bold</b> &lt;i&gt; &#64;octocat",
    "a | b \\| c \\\\| d\n| --- | --- |\n| x | y |",
    "```\nout of the fence\n````\n# heading\n~~~\n<b>x</b>\n`````",
    "# heading\n## heading\n===\n---\n***\n- item\n* item\n+ item\n1. one\n2) two\n> quote\n    code\n\tcode",
    "title\n:-\ntext\n\n[^1]: note [^1] - [ ] task\n> [!NOTE]\n> alert $a$ $$b$$ ~~gone~~ **bold** __bold__",
    "::error file=a.py,line=1::owned\n  ::set-output name=score::100\n\u00a0::stop-commands::x",
    "nice ##[error]owned ##[set-output name=s]1 #\u200b#[group]x ##\ufe0f[add-mask]a ##vso[task.complete]",
    "line\r::warning::cr\x0b::warning::vt\x85::warning::nel\u2028::warning::ls\u2029::warning::ps\x1c::warning::fs",
    "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \x9b2J \x1b]0;t\x1b\\ \x1b[2K",
    "\u202egnp.exe \u2066x\u2069 zero\u200bwidth \U000e0041\U000e0042 soft\u00adhyphen \ufe0f\ufe0f\ufe0e",
    "lone \ud83d half, \ude00 other, \ud83d\ude00 pair, \ufffe \uffff \x00 nul \x08 \x7f",
    "]]> <![CDATA[ x ]]> <?xml?> &unknown; <!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>",
    ":shipit: :+1::tada: a:octocat: at 10:30:45 :not an emoji: :shipit", "../../etc/passwd", "", " ", "`",
    ":", "0:", "0", "\\", "|" * 5,
)  # fmt: skip

_PIECES = st.sampled_from(
    [piece for text in CORPUS for piece in re.split(r"(\s+)", text) if piece]
    + list("@#`|\\<>&[]()!*_~$:-=+.\n\r\t ")
    + [
        "www", "//", "http:", "GH", "##", "[", "::", "\x1b[", "\x1b]", "\x9b", "\ud83d", "\u200b", "1.",
        "    ",
    ]
)  # fmt: skip
any_text = st.one_of(st.text(), st.lists(st.one_of(_PIECES, st.text(max_size=4)), max_size=14).map("".join))
"""Any text at all, and text made of dangerous pieces."""

_LIVE = (
    r"(?i)@[a-z0-9]|#\d|\b(?:gh|ghsa|cve)-\w|https?://|ftp://|www\.|(?<![0-9a-z])[0-9a-f]{7,40}(?![0-9a-z])"
)
_SHORTCODE = r"(?i):(?!\d\d:)[a-z0-9_+-]+:"
"""Drawn as a picture where no tag stands in it."""


class RenderedMarkdown(HTMLParser):
    """What GitHub would make of some Markdown: its tags, addresses, and the text outside of code."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.prose = ""
        self.text = ""
        self.comments: list[str] = []
        self.pictures: list[str] = []
        self._in_code = 0
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in {"href", "src"}]
        self._in_code += tag in {"code", "pre"}

    def handle_endtag(self, tag):
        self._in_code -= tag in {"code", "pre"}

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        self.text += data
        if not self._in_code:
            self.prose += data
            self.pictures += re.findall(_SHORTCODE, data)

    @property
    def live(self) -> list[str]:
        """What GitHub would turn into links, notifications and pictures."""
        return re.findall(_LIVE, self.prose) + self.pictures


def log_commands(text: str) -> list[str]:
    """What the runner would obey in a log: `::x` first on a line, `##[` anywhere, and terminal escapes."""
    lines = [line.strip() for line in text.splitlines()]
    return [
        line
        for line in lines
        if line.startswith("::") or "##[" in line or re.search(r"[\x00-\x08\x0b-\x1f]", line)
    ]


_CLOSED = {
    *("folder", "role", "kind", "outcome", "method", "test", "estimated_from", "only", "best"),
    *("best_in_general", "gains", "gains_in_general"),
}
"""Fields whose values are of a closed set."""


def _is_clean(hint) -> bool:
    return any(isinstance(mark, Clean) for mark in getattr(hint, "__metadata__", ()))


def fill_free_text(value, text: str, *, clean: bool = True):
    """A copy of a domain value in which every free text is `text`; folders and closed sets stay.

    Without `clean`, so do the fields that no agent, model or suite can write to.
    """
    match value:
        case Enum():
            return value
        case str():
            return text
        case Turns():
            return value.changed(lambda turn: fill_free_text(turn, text, clean=clean))
        case BaseModel():
            changes = {
                name: fill_free_text(getattr(value, name), text, clean=clean)
                for name, info in type(value).model_fields.items()
                if get_origin(info.annotation) is not Literal
                and name not in _CLOSED
                and (clean or not any(isinstance(mark, Clean) for mark in info.metadata))
            }
            return value.model_copy(update=changes)
        case _ if is_dataclass(value):
            hints = get_type_hints(type(value), include_extras=True)
            changes = {
                name: fill_free_text(getattr(value, name), text, clean=clean)
                for name in (field.name for field in fields(value))
                if get_origin(hints[name]) is not Literal
                and name not in _CLOSED
                and (clean or not _is_clean(hints[name]))
            }
            return replace(value, **changes)
        case dict():
            return {
                key if isinstance(key, Enum | int) else f"{text}{place}": fill_free_text(
                    item, text, clean=clean
                )
                for place, (key, item) in enumerate(value.items())
            }
        case list() | tuple():
            return type(value)(fill_free_text(item, text, clean=clean) for item in value)
        case _:
            return value
