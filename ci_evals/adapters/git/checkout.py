"""Reads the git checkout around a file from git's own files, since the image has no git.

Formats: <https://git-scm.com/docs/gitrepository-layout>. What cannot be read is None, and the caller must
assume the worst.
"""

import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ci_evals.adapters import input_files

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH_REF = "refs/heads/"
_REMOTE_REF = "refs/remotes/origin/"
_MAX_LINKS = 5
"""Maximum number of symbolic refs in a row."""
_MAX_TEXT = 100_000_000
"""Maximum size of a text file of git. Packed refs of very large repositories take some megabytes."""
_MAX_INDEX = 500_000_000
"""Maximum size of git's list of tracked files."""
_ENTRY_HEAD = 40
"""Bytes of an entry of that list before its hash."""
_EXTENDED = 0x4000


@dataclass(frozen=True)
class RemoteRepository:
    """A repository on a server, in lower case."""

    host: str
    name: str
    """`owner/name`."""


@dataclass(frozen=True)
class Checkout:
    """A working tree and its HEAD."""

    root: Path
    commit: str | None = None
    """The commit of HEAD."""
    branch: str | None = None
    """The branch of HEAD, unless it is detached."""
    branch_at_origin: str | None = None
    """The commit of that branch when it was last fetched from origin."""
    origin: RemoteRepository | None = None


def checkout_of(path: Path) -> Checkout | None:
    """Return the innermost checkout that `path` (absolute) lies in, or None if it lies in none."""
    root = root_of(path)
    if root is None:
        return None
    folder = git_folder(root)
    folders = (folder, common_folder(folder))
    head = text_of(folder / "HEAD").strip()
    ref = head.removeprefix("ref:").strip() if head.startswith("ref:") else None
    branch = ref.removeprefix(_BRANCH_REF) if ref and ref.startswith(_BRANCH_REF) else None
    urls = list(_values(folders[1], '[remote "origin"]', "url"))
    return Checkout(
        root=root,
        commit=_resolved(folders, ref) if ref else _commit(head),
        branch=branch,
        branch_at_origin=_resolved(folders, _REMOTE_REF + branch) if branch else None,
        origin=repository_of(urls[0]) if len(urls) == 1 else None,
    )


def repository_of(url: str) -> RemoteRepository | None:
    """Return the repository of an address for git (`https://…`, `ssh://…` or `git@host:owner/name`)."""
    short = re.fullmatch(r"(?:[^@/:]+@)?([^/:]+):(?!//)(.+)", url)
    try:
        parts = urlsplit(url)
        host, path = (short[1], short[2]) if short else (parts.hostname or "", parts.path)
    except ValueError:
        return None
    name = path.strip("/").removesuffix(".git")
    return RemoteRepository(host.lower(), name.lower()) if host and name.count("/") == 1 else None


def tracks(path: Path) -> bool:
    """Return whether git tracks a file, as far as its list of tracked files can be read."""
    path = path.parent.resolve() / path.name
    root = root_of(path.parent)
    if root is None:
        return False
    name = path.relative_to(root).as_posix().encode(errors="surrogateescape")
    with suppress(OSError, struct.error, IndexError, ValueError):
        return name in _index_of(root)
    return False


def tracked_files(folder: Path) -> frozenset[str] | None:
    """Return the files that git tracks in the checkout of a folder, relative to its root; None if unknown."""
    root = root_of(folder.resolve())
    if root is None:
        return None
    with suppress(OSError, struct.error, IndexError, ValueError):
        return frozenset(name.decode(errors="surrogateescape") for name in _index_of(root))
    return None


def root_of(path: Path) -> Path | None:
    """Return the root of the innermost checkout that `path` (absolute) lies in, or None."""
    return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)


def git_folder(root: Path) -> Path:
    """Return the folder that `.git` is or, in a worktree or a submodule, leads to."""
    git = root / ".git"
    target = "" if git.is_dir() else text_of(git).removeprefix("gitdir:").strip()
    return root / target if target else git


def common_folder(folder: Path) -> Path:
    """Return the git folder that a worktree shares all but HEAD and index with; its own for any other."""
    return folder / text_of(folder / "commondir").strip()


def text_of(path: Path) -> str:
    """Return the text of a file; nothing if it cannot be read."""
    with suppress(OSError, ValueError):
        return input_files.read(path, _MAX_TEXT).decode(errors="replace")
    return ""


def _resolved(folders: tuple[Path, ...], ref: str) -> str | None:
    for _ in range(_MAX_LINKS):
        if not ref.startswith("refs/") or ".." in ref.split("/"):
            return None
        loose = next((text for folder in folders if (text := text_of(folder / ref))), "").strip()
        if not loose.startswith("ref:"):
            return _commit(loose) or _packed(folders, ref)
        ref = loose.removeprefix("ref:").strip()
    return None


def _packed(folders: tuple[Path, ...], ref: str) -> str | None:
    for folder in folders:
        for line in text_of(folder / "packed-refs").splitlines():
            commit, _, name = line.partition(" ")
            if name == ref:
                return _commit(commit)
    return None


def _values(folder: Path, section: str, key: str) -> Iterator[str]:
    inside = False
    for line in map(str.strip, text_of(folder / "config").splitlines()):
        name, _, value = line.partition("=")
        if line.startswith("["):
            inside = line == section
        elif inside and name.strip().lower() == key:
            yield value.strip().strip('"')


def _commit(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


def _index_of(root: Path) -> Iterator[bytes]:
    folder = git_folder(root)
    formats = _values(common_folder(folder), "[extensions]", "objectformat")
    data = input_files.read(folder / "index", _MAX_INDEX)
    return _tracked(data, 32 if "sha256" in formats else 20)


def _tracked(data: bytes, hash_size: int) -> Iterator[bytes]:
    """Yield the paths in git's index, in any of its versions 2 to 4.

    Format: <https://git-scm.com/docs/gitformat-index>.
    """
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in {2, 3, 4}:
        return
    at, name = 12, b""
    for _ in range(count):
        start = at
        at += _ENTRY_HEAD + hash_size
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
