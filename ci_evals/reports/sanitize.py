"""The one sanitizer of untrusted text: what agents, simulated users, judges and the authors of suites wrote.

Every string that a report shows goes through the function of the place it is put in. Nothing else in
the program escapes anything.
"""

import html
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache, wraps
from ipaddress import IPv6Address
from itertools import groupby
from typing import Concatenate, ParamSpec, cast

from ci_evals.support.text import visible

CUT_NOTE = "… (cut; _results.json has it whole)"

_MOST_QUOTED = 100_000
"""Bytes of UTF-8: some 20,000 words, and more than anybody reads on a page."""
_LONGEST_NAME = 2_000
_SHORT = 200
"""Characters."""
_MAX_STEM = 90
"""Bytes of UTF-8: leaves room for a number and an extension within 100."""

_REFERENCES = tuple(
    # Each begins with a set of characters, by which the search is fast; one pattern for all would not be. It
    # is looked for only where its sign, in lower case, is: few texts hold one.
    (sign, re.compile(pattern))
    for sign, pattern in (
        ("@", r"@"),
        ("#", r"#"),
        ("//", r"/(?=/)"),
        ("www.", r"[Ww]{3}(?=\.)"),
        ("gh", r"[Gg][Hh](?:[Ss][Aa])?(?=-)"),
        ("cve-", r"[Cc][Vv][Ee](?=-)"),
        ("", r"[0-9a-fA-F]{6}(?=[0-9a-fA-F])"),
        (":", r":(?!\d\d:)(?=[\w+-]+:)"),  # :shipit: is a picture, the minutes of a time are not
    )
)
_COMMIT_ID = re.compile(r"[0-9a-f]{7,40}")
_ACTIVE = re.compile(r"[\\`*_\[\]~#$&<>|]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
_NOT_PLAIN = b"\\`*_[]~#$&<>|@:/-"
"""Without any of these, a text of words has nothing to escape or to break."""
_HEX = bytes.maketrans(b"0123456789abcdefABCDEF", b"0" * 22)
_LINE_START = re.compile(r"^(\d{1,9})([.)])(?=\s|$)|^()([-+=:])")

_PLAIN_CODE = re.compile(r"[^`|\\$@#<>]+")
_BACKTICKS = re.compile(r"`+")
_LONG_FENCE = re.compile(r"`{200}(?=`)")
"""GitHub's parser counts the backticks of a fence to 255: as many in the text would close a longer one."""
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DOUBLED = re.compile(r"([:#])(?=[^\x20-\x7e\n]*\1)")
_MAYBE_ADDRESS = re.compile(r"[0-9A-Fa-f:.]{0,39}::[0-9A-Fa-f:.]{0,39}")
_NEIGHBOR = re.compile(r"[ !-/;-@\[-`{-~]")
_ZERO_WIDTH = "\u200b"
_COMMANDS = re.compile(r"^([ \t>]*)/(?=\w)", re.MULTILINE)
_KEPT = re.compile(r"(`[^`\n]+`|\]\([^)\s]*\)|<[^>\n]*>)")
_GITLAB_REFERENCES = re.compile(r"[!%^~$](?=[\w\"])|&amp;(?=[\w\"])|\[(?:\w+)(?=:)|\*(?=iteration:)")
_NOT_IN_NAMES = re.compile(r"[^\w+,=()]+")
_DEVICES = re.compile(r"(?:con|prn|aux|nul|conin|conout|com\d|lpt\d)", re.IGNORECASE)


P = ParamSpec("P")


def _known(function: Callable[Concatenate[str, P], str]) -> Callable[Concatenate[str, P], str]:
    """The function, which remembers what it made of short texts: most of them come again in each trial."""
    known = cast("Callable[Concatenate[str, P], str]", lru_cache(2_000)(function))

    @wraps(function)
    def remembering(text: str, /, *args: P.args, **kwargs: P.kwargs) -> str:
        return (known if len(text) <= _SHORT else function)(text, *args, **kwargs)

    return remembering


def clean(text: str) -> str:
    """`text` without what no place can show: the start of every other function here."""
    return visible(text)


def one_line(text: str, limit: int | None = None) -> str:
    """`text` cleaned, its white space folded, cut to `limit` characters with an ellipsis."""
    if limit is None:
        return " ".join(clean(text).split())
    enough = _enough(limit)
    line = " ".join(clean(text[:enough]).split())
    fits = len(line) <= limit and len(text) <= enough
    return line if fits else line[: limit - 1].rstrip() + "…"


def cut(text: str, limit: int, note: str = CUT_NOTE) -> str:
    """`text` cleaned and, where it has more than `limit` bytes of UTF-8, cut with a note that says so."""
    enough = _enough(limit)
    begun = clean(text[:enough])
    data = begun.encode()
    if len(data) <= limit and len(text) <= enough:
        return begun
    return data[:limit].decode(errors="ignore").rstrip() + f"\n{note}"


@_known
def inline(text: str, limit: int | None = None) -> str:
    """`text` as one line of Markdown that reads as it is written.

    References that GitHub would make live (mentions, issues, commits, addresses, emoji) are broken with a
    zero-width space and not only escaped, because e-mail replies quote the text and would notify again.
    """
    return _escaped(one_line(text, limit))


def sentence(text: str, limit: int | None = None) -> str:
    """`inline` with commits' ids as code: a zero-width space in them would be copied along."""
    words = groupby(one_line(text, limit).split(" "), lambda word: bool(_COMMIT_ID.fullmatch(word)))
    return " ".join(
        part
        for is_id, group in words
        for part in ([f"`{word}`" for word in group] if is_id else [_escaped(" ".join(group))])
    )


def cell(text: str, limit: int | None = 160) -> str:
    """`text` as the cell of a Markdown table; a column's separator in it is an entity."""
    return inline(text, limit)


@_known
def quote(text: str) -> str:
    """`text` as a Markdown block quote, line for line; of one that is very long, its beginning."""
    lines = cut(text, _MOST_QUOTED).strip("\n").expandtabs(4).split("\n")
    shown = [_indented(line) for line in lines]
    if len(shown) == 1:
        return f"> {shown[0]}".rstrip()
    out = []
    for line, following in zip(shown, [*shown[1:], ""], strict=True):
        # A backslash at the end of a line is Markdown's hard line break.
        out.append(f"> {line}\\" if line and following else f"> {line}".rstrip())
    return "\n".join(out)


@_known
def code(text: str) -> str:
    """`text`, a name from the agent's world, as a code span; as plain Markdown where a span could be left.

    It is cut where it is very long.
    """
    line = one_line(text, _LONGEST_NAME)
    return f"`{line}`" if _PLAIN_CODE.fullmatch(line) else _escaped(line)


def code_block(text: str) -> str:
    """`text` in a fence without language, longer than any run of backticks in it.

    Of a very long one it is the beginning. Runs of more than 200 are broken with a zero-width space.
    """
    text = _LONG_FENCE.sub(_and_zero_width, cut(text, _MOST_QUOTED))
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def html_in_markdown(text: str) -> str:
    """`text` as one line for an HTML element within Markdown: GitHub looks for references there too."""
    return html.escape(_broken(one_line(text)), quote=True)


def gitlab(markdown: str) -> str:
    """A finished text in Markdown for GitLab, which knows more references than GitHub, and commands.

    `!7`, `~bug`, `%1.0`, `$7`, `&7`, `^alert`, `[issue:7]` and `/close` at the start of a line are broken
    with a zero-width space. Code spans and the addresses of links stay as they are. Sources:
    <https://docs.gitlab.com/user/markdown/> and <https://docs.gitlab.com/user/project/quick_actions/>.
    """
    lines = _COMMANDS.sub(f"\\1{_ZERO_WIDTH}/", markdown)
    kept = _KEPT.split(lines)
    # Every second part is one that is kept.
    return "".join(
        part if index % 2 else _GITLAB_REFERENCES.sub(_and_zero_width, part)
        for index, part in enumerate(kept)
    )


def xml(text: str) -> str:
    """`text` with XML 1.0's legal characters only; the writer escapes the markup."""
    return _NOT_XML.sub("\ufffd", clean(text))


def log(text: str, prefix: str = "") -> str:
    """`text` for a terminal or a log, `prefix` before every line.

    The runner obeys `::command::` at the start of a line and the older `##[command]` anywhere in one. Both
    are broken with a backslash that can be seen: its searches pass over characters of no width. Addresses of
    IPv6 stay as they are where no command can begin with them.
    """
    cleaned = clean(text)
    parts, end = [], 0
    for match in _MAYBE_ADDRESS.finditer(cleaned):
        if _is_address(match):
            parts += [_DOUBLED.sub(r"\1\\", cleaned[end : match.start()]), match[0]]
            end = match.end()
    broken = "".join([*parts, _DOUBLED.sub(r"\1\\", cleaned[end:])])
    return "\n".join(prefix + line for line in broken.split("\n"))


def _is_address(match: re.Match[str]) -> bool:
    """Return whether the text is an address of IPv6 that the runner does not take for a command."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    if match[0].endswith(":") or (match[0].startswith(":") and before in {"", "\n", " "}):
        return False
    if any(one not in {"", "\n"} and not _NEIGHBOR.fullmatch(one) for one in (before, after)):
        return False
    try:
        IPv6Address(match[0])
    except ValueError:
        return False
    return True


def log_line(text: str, limit: int | None = None) -> str:
    """`text` as one line for a terminal or a log."""
    return log(one_line(text, limit))


def file_name(text: str) -> str:
    """A file's name without extension made of `text`: safe on every system, at most 90 bytes of UTF-8.

    It holds letters, digits and `_ + , = ( ) -`, never a dot, so that it cannot be hidden, a device's name
    (they count with any extension), or one of the run's own files.
    """
    name = _NOT_IN_NAMES.sub("-", unicodedata.normalize("NFC", clean(text).replace("\ufffd", "-"))).strip("-")
    name = name.encode()[:_MAX_STEM].decode(errors="ignore").rstrip("-")
    if not name:
        return "unnamed"
    return f"_{name}" if _DEVICES.fullmatch(name) else name


def _enough(limit: int) -> int:
    """Characters to look at for as many as `limit` visible ones: cleaning megabytes would take seconds."""
    return min(50 * limit, limit + 50_000)


def _is_plain(line: str) -> bool:
    """Return whether `_escaped` would change nothing in a line: it changes few, and this is told fast."""
    data = line.encode()
    return (
        len(data.translate(None, _NOT_PLAIN)) == len(data)
        and b"0000000" not in data.translate(_HEX)
        and b"www." not in data.lower()
        and not _LINE_START.match(line)
    )


def _escaped(line: str) -> str:
    if _is_plain(line):
        return line
    line = _ACTIVE.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), _broken(line))
    return _LINE_START.sub(r"\1\3\\\2\4", line) if _LINE_START.match(line) else line


def _broken(line: str) -> str:
    """`line` with every reference that GitHub would make live broken by a zero-width space."""
    lower = line.lower()
    for sign, pattern in _REFERENCES:
        if sign in lower:
            line = pattern.sub(_and_zero_width, line)
    return line


def _and_zero_width(found: re.Match[str]) -> str:
    # As a template, `\\g<0>` and the space would take five times as long in Python 3.11.
    return f"{found[0]}\u200b"


def _indented(line: str) -> str:
    """Markdown would take four spaces at the start of a line for code."""
    text = line.strip()
    indent = len(line) - len(line.lstrip())
    return "\xa0" * min(indent, 40) + _escaped(text) if text else ""
