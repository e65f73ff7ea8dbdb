"""Tables of Markdown, and parts of pages that are generated."""

from collections.abc import Iterable, Iterator


def table(head: str) -> Iterator[str]:
    """Yield the head of a table, whose columns are separated as in the table itself."""
    yield f"| {head} |"
    yield "| " + " | ".join("---" for _ in head.split(" | ")) + " |"


def row(*cells: str) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def replace_generated(page: str, part: str, lines: Iterable[str]) -> str:
    """Return a page with these lines as its generated part of this name.

    Raises:
        ValueError: the page has no such part.
    """
    begin, end = f"<!-- Written by make reference: {part} -->", f"<!-- End: {part} -->"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the page has no part {begin!r} that ends with {end!r}")
    return "\n".join([before + begin, "", *lines, "", end]) + after
