"""Tables and code blocks of the repository's own Markdown files."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def page(name: str) -> str:
    """The text of one page of the documentation."""
    return (ROOT / "docs" / name).read_text()


def table(heading: str, text: str = README) -> list[list[str]]:
    """The cells of the table whose first column is headed `heading`, without the two rows of its head."""
    rows = text[text.index(f"\n| {heading} |") + 1 :].split("\n\n", 1)[0].splitlines()
    return [[cell.strip() for cell in row.strip("|").split(" |")] for row in rows[2:]]


def code(cell: str) -> str:
    """`name` out of a cell that shows it as code; empty where there is none."""
    return cell.strip("`")


def blocks(language: str, text: str = README) -> list[str]:
    """The fenced code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


TIME_COLUMN = re.compile(r"(?<=trials passed) +total time$|(?<= -{13}) +-{10}$|(?<= of \d) +0\.0 s$")


def without_times(line: str) -> str:
    """A line without times: a fast machine's are all 0.0 s, and their column is left out then."""
    same_times = re.sub(r"\d+\.\d s", "0.0 s", line)
    return " ".join(TIME_COLUMN.sub("", same_times).split())
