"""The entry points of installed packages, without `importlib.metadata`, which takes 50 ms to import.

They are read from folders that an installation writes. A folder of the workspace is none of them, even if the
command runs there or `PYTHONPATH` names it: a checkout must not be able to add code by a file.
"""

import os
import re
import site
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_ENDING = ".dist-info"


class EntryPoint(NamedTuple):
    """A line of an entry point group."""

    name: str
    module: str
    distribution: str
    """The installed package that has the line."""


def installation_folders() -> list[str]:
    """Return the folders of installed packages.

    Of those of the interpreter Python runs code at each start anyway (`.pth` files). The folder that this
    package was imported from comes first: it may be another, as after `pip install --target`.
    """
    folders = [str(Path(__file__).parents[2]), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return list(dict.fromkeys(folders))


def entry_points(group: str, folders: Iterable[str]) -> Iterator[EntryPoint]:
    """Yield the entry points of a group. Of a package that is there twice, the first counts."""
    seen: set[str] = set()
    for folder in folders:
        for name in _distributions(folder):
            distribution = re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower()
            if distribution not in seen:
                seen.add(distribution)
                text = _read(Path(folder) / name / "entry_points.txt")
                yield from _of_group(text, group, distribution)


def _distributions(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(_ENDING))  # noqa: PTH208  # faster
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _of_group(text: str, group: str, distribution: str) -> Iterator[EntryPoint]:
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == group and not line.startswith(("#", ";")):
            name, equals, module = line.partition("=")
            if equals:
                yield EntryPoint(name.strip(), module.strip(), distribution)
