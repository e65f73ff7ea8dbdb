"""The files that a path, a folder or a glob of suites stands for, by one rule for all.

Links are followed, to folders too; a link to a folder around itself ends there. A broken link and what is no
regular file are refused: a suite that is missing without a word would pass.
"""

import difflib
import fnmatch
import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from ci_evals.domain.errors import UsageError

ENDINGS = (".json", ".yaml", ".yml")
_MOST_WAYS = 100
"""Paths to one folder: links make twice as many with every level."""


def files(name: str) -> Iterator[Path]:
    """Yield the files of a name, sorted, each file once.

    Raises:
        UsageError: there are none, or something among them is no file.
    """
    path = Path(name)
    if path.is_file():
        yield path
    elif path.is_dir():
        inside = _once(found for found in _walk(path) if _is_suite_of(found, path))
        if not inside:
            raise UsageError(f"The folder {name!r} contains no suite (*.json, *.yaml, *.yml).")
        yield from inside
    elif glob.has_magic(name):
        matches = _once(_matches(name))
        if not matches:
            raise UsageError(f"No file matches {name!r}.")
        yield from matches
    elif path.is_symlink() or path.exists():
        _check(path)
    else:
        raise UsageError(f"No file {name!r}{_nearby(path)}")


def fixed_folder(name: str) -> Path:
    """Return the folder in or below which all files of a name lie, now and later."""
    path = Path(name)
    if path.is_dir():
        return path
    return _base(path.parts) if glob.has_magic(name) else path.parent


def _base(parts: Sequence[str]) -> Path:
    """Return the part of a glob before the first wildcard."""
    magic = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:magic])


def _once(paths: Iterable[Path]) -> list[Path]:
    """Return the files of these paths, each under its own path if it has one, else under its first link.

    Raises:
        UsageError: one is no file.
    """
    found: dict[Path, Path] = {}
    for path in sorted(paths):
        _check(path)
        real = path.resolve()
        if real == path.absolute():
            found[real] = path
        found.setdefault(real, path)
    return sorted(found.values())


def _check(path: Path) -> None:
    if path.is_file():
        return
    if path.is_symlink() and not path.exists():
        raise UsageError(
            f"{path.as_posix()!r} is a broken link: a suite may be missing. Correct its target, or remove it."
        )
    raise UsageError(f"{path.as_posix()!r} is not a regular file.")


def _is_suite_of(path: Path, folder: Path) -> bool:
    """Return whether a path in a folder is a suite by its name, or a link that may have led to some."""
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return not hidden and (path.suffix.lower() in ENDINGS or _may_be_folder(path))


def _may_be_folder(path: Path) -> bool:
    """Return whether a broken link may have led to a folder of suites."""
    return not path.suffix and path.is_symlink() and not path.exists()


def _matches(pattern: str) -> Iterator[Path]:
    """Yield what a glob matches, except folders."""
    parts = PurePosixPath(pattern).parts
    if "**" not in parts:
        found = map(Path, glob.glob(pattern))  # noqa: PTH207  # absolute patterns
        yield from (path for path in found if not path.is_dir())
        return
    base = _base(parts)
    rest = parts[len(base.parts) :]
    if not base.is_dir():
        return
    for path in _walk(base, hidden=any(part.startswith(".") for part in rest)):
        names = path.relative_to(base).parts
        among = _may_be_folder(path) and not any(name.startswith(".") for name in names)
        if among or _fits(names, rest):
            yield path


def _fits(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether the names of a path match the parts of a glob; wildcards match no dot at the start."""
    if not parts:
        return not names
    first, *others = parts
    if first != "**":
        return bool(names) and _name_fits(names[0], first) and _fits(names[1:], others)
    if _fits(names, others):
        return True
    return bool(names) and not names[0].startswith(".") and _fits(names[1:], parts)


def _name_fits(name: str, part: str) -> bool:
    dotted = name.startswith(".") and not part.startswith(".")
    return not dotted and fnmatch.fnmatchcase(name, part)


def _walk(folder: Path, *, hidden: bool = False) -> Iterator[Path]:
    """Yield all in a folder and below that is no folder; links are followed except to where they lie in.

    Raises:
        UsageError: links lead to the same folder in very many ways.
    """
    pending: list[tuple[Path, tuple[_Identity, ...]]] = [(folder, (_identity(folder),))]
    ways: Counter[_Identity] = Counter()
    while pending:
        place, around = pending.pop()
        ways[around[-1]] += 1
        if ways[around[-1]] > _MOST_WAYS:
            raise UsageError(
                f"{folder.as_posix()!r} has links that lead to {place.resolve().name!r} in more than "
                f"{_MOST_WAYS} ways. Remove some, or name the folder of the suites."
            )
        for entry in os.scandir(place):
            path = place / entry.name
            if not entry.is_dir():
                yield path
            elif (hidden or not entry.name.startswith(".")) and (own := _identity(path)) not in around:
                pending.append((path, (*around, own)))


_Identity = tuple[int, int]
"""What tells folders apart, whatever their paths: device and number."""


def _identity(folder: Path) -> _Identity:
    facts = folder.stat()
    return facts.st_dev, facts.st_ino


def _nearby(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return f", nor a folder {path.parent.as_posix()!r}."
    close = difflib.get_close_matches(path.name, names, n=1)
    return f". Did you mean {(path.parent / close[0]).as_posix()!r}?" if close else "."
