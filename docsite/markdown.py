"""Tables of Markdown."""

from collections.abc import Iterator


def table(head: str) -> Iterator[str]:
    """Yield the head of a table, whose columns are separated as in the table itself."""
    yield f"| {head} |"
    yield "| " + " | ".join("---" for _ in head.split(" | ")) + " |"


def row(*cells: str) -> str:
    """Return a row of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
