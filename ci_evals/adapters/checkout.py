"""The git checkout around a folder, read from git's own files, so that no git is needed."""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ci_evals.adapters import input_files

_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MOST_BYTES = 512 * 1024 * 1024
"""Of git's list of tracked files."""
_FIXED, _HASH = 40, 20
"""Bytes of an entry of that list before its hash, and of the hash."""
_EXTENDED = 0x4000


def root_of(folder: Path) -> Path | None:
    """Return the root of the checkout that a folder is in; None if it is in none."""
    folder = folder.resolve()
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def head_of(folder: Path) -> str | None:
    """Return the commit that is checked out around a folder; None if that is not known."""
    root = root_of(folder)
    if root is None:
        return None
    git = git_folder(root / ".git")
    head = text_of(git / "HEAD").strip()
    if head.startswith("ref: "):
        head = _commit_of(common_folder(git), head.removeprefix("ref: "))
    return head if _SHA.fullmatch(head) else None


def tracks(path: Path) -> bool:
    """Return whether git tracks a file, as far as its list of tracked files can be read."""
    path = path.parent.resolve() / path.name
    root = root_of(path.parent)
    if root is None:
        return False
    index = git_folder(root / ".git") / "index"
    name = path.relative_to(root).as_posix().encode(errors="surrogateescape")
    with suppress(OSError, struct.error, IndexError, ValueError):
        if index.is_file():
            return name in _tracked(input_files.read(index, _MOST_BYTES))
    return False


def git_folder(git: Path) -> Path:
    """Return the folder that `.git` is or, in a working tree of its own, leads to."""
    if git.is_file() and (found := re.match(r"gitdir: (.+)", text_of(git))):
        return git.parent / found[1].strip()
    return git


def common_folder(git: Path) -> Path:
    """Return the folder with the branches that belong to a git folder."""
    common = text_of(git / "commondir").strip()
    return git / common if common else git


def text_of(path: Path) -> str:
    """Return the text of a file; nothing if it cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        return input_files.read(path, _MOST_BYTES).decode("utf-8")
    return ""


def _commit_of(common: Path, ref: str) -> str:
    if found := text_of(common / ref).strip():
        return found
    lines = (line.split(" ", 1) for line in text_of(common / "packed-refs").splitlines())
    return next((parts[0] for parts in lines if parts[1:] == [ref]), "")


def _tracked(data: bytes) -> Iterator[bytes]:
    """Yield the paths in git's index, in any of its versions 2 to 4, of a repository with SHA-1 hashes.

    Format: Documentation/gitformat-index.
    """
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in {2, 3, 4}:
        return
    at, name = 12, b""
    for _ in range(count):
        start = at
        at += _FIXED + _HASH
        (flags,) = struct.unpack_from(">H", data, at)
        at += 4 if flags & _EXTENDED else 2
        if version == 4:
            cut, at = _varint(data, at)
            end = data.index(0, at)
            name = name[: len(name) - cut] + data[at:end]
            at = end + 1
        else:
            end = data.index(0, at)
            name = data[at:end]
            at = start + (end - start + 8) // 8 * 8
        yield name


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, as git writes offsets, and where it ends."""
    value = data[at] & 127
    while data[at] & 128:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 127)
    return value, at + 1
