"""Files that a page of the documentation shows, with a free port for their agent, and its messages."""

import re
import socket
from pathlib import Path


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def write_files(page: str, folder: Path, port: int = 8000) -> None:
    """Write the files that a page shows: each has its name and a colon before it."""
    pattern = r"`([\w/.]+\.\w+)`:\n\n```\w+\n(.*?)^```$"
    for name, text in re.findall(pattern, page, re.MULTILINE | re.DOTALL):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("8000", str(port)))


def message_pattern(row: str) -> str:
    """Return the row's words, with anything where it has a word in capitals."""
    return re.sub(r"\b(?:[A-Z]{2,}|N)\b(?<!JSON)(?<!JSONP)", ".+", re.escape(row))
