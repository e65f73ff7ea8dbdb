"""The documentation for language models: `llms.txt`, each page as Markdown, and all of them in one file.

`llms.txt` has the form of https://llmstxt.org: a title, a summary, and links by section.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_evals.support.documentation import SITE

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SITE_FOLDER = ROOT / "build/site"
INDEX = "llms.txt"
WHOLE = "llms-full.txt"

_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")


@dataclass(frozen=True)
class Page:
    """A page of the documentation."""

    section: str
    name: str
    """Its path below `docs`."""
    title: str
    summary: str
    """The first paragraph as one line, without marks of Markdown."""
    text: str
    """The Markdown, with links to the site."""

    @property
    def address(self) -> str:
        """The address of its Markdown on the site."""
        return SITE + self.name


def pages() -> list[Page]:
    """Return the pages in the order in which the site's navigation has them."""
    navigation = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    return [_page(section, name) for section, name in _names(navigation)]


def files() -> dict[str, str]:
    """Return the files of the site that are for language models, by path."""
    all_pages = pages()
    written = {page.name: page.text for page in all_pages}
    written[INDEX] = _index(all_pages)
    written[WHOLE] = (
        "\n\n".join(f"<!-- {page.address} -->\n\n{page.text.strip()}" for page in all_pages) + "\n"
    )
    return written


def write(folder: Path = SITE_FOLDER) -> None:
    """Write the files beside the pages of a site that is built."""
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _names(navigation: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield each page's section and path. An entry is a path, or a title with one."""
    for group in navigation:
        for section, entries in group.items():
            for entry in entries:
                yield section, entry if isinstance(entry, str) else next(iter(entry.values()))


def _page(section: str, name: str) -> Page:
    text = (DOCS / name).read_text()
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    if title is None:
        raise ValueError(f"docs/{name} has no title")
    return Page(
        section=section,
        name=name,
        title=title[1],
        summary=_summary(text[title.end() :]),
        text=_LINK.sub(lambda link: f"]({_resolved(name, link[1])}{link[2] or ''})", text),
    )


def _summary(text: str) -> str:
    """Return the first paragraph that is neither a comment nor a block of another kind."""
    for block in text.strip().split("\n\n"):
        if re.match(r"(?!```)[A-Za-z*`\[]", block):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(block.split()))
            return words.replace("**", "")
    raise ValueError("a page has no paragraph")


def _resolved(name: str, link: str) -> str:
    """Return the address on the site of what a page links to: a page's Markdown, or a picture."""
    target = (DOCS / name).parent / link
    return SITE + target.resolve().relative_to(DOCS.resolve()).as_posix()


def _index(all_pages: list[Page]) -> str:
    first = all_pages[0]
    lines = [f"# {first.title}", "", f"> {first.summary}", "", f"All pages in one file: {SITE}{WHOLE}"]
    section = ""
    for page in all_pages:
        if page.section != section:
            section = page.section
            lines += ["", f"## {section}", ""]
        lines.append(f"- [{page.title}]({page.address}): {page.summary}")
    return "\n".join(lines) + "\n"
