"""The git checkout that a file lies in: its commit, branch and origin. The image has no git to ask.

Formats: <https://git-scm.com/docs/gitrepository-layout>. What cannot be read is None: the caller must then
assume the worst.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH_REF = "refs/heads/"
_REMOTE_REF = "refs/remotes/origin/"
_LINKS = 5
"""How many symbolic refs in a row are followed."""
_MAX_BYTES = 20_000_000
"""Refs of very large repositories are packed in some megabytes."""


@dataclass(frozen=True)
class Repository:
    """A repository on a server, as an address names it; both parts are in lower case."""

    host: str
    name: str
    """`owner/name`."""


@dataclass(frozen=True)
class Checkout:
    """A working tree and what its HEAD is at."""

    root: Path
    commit: str | None = None
    """The commit of HEAD."""
    branch: str | None = None
    """The branch of HEAD, unless it is detached."""
    branch_at_origin: str | None = None
    """The commit of that branch when it was last fetched from origin."""
    origin: Repository | None = None


def checkout_of(path: Path) -> Checkout | None:
    """The innermost checkout that `path` (absolute) lies in, or None if it lies in none."""
    for folder in (path, *path.parents):
        link = folder / ".git"
        if link.is_dir():
            return _read(folder, link)
        if link.is_file():  # a worktree or a submodule
            target = (_text(link) or "").removeprefix("gitdir:").strip()
            return _read(folder, folder / target) if target else Checkout(folder)
    return None


def repository_of(url: str) -> Repository | None:
    """The repository that an address for git names (`https://…`, `ssh://…` or `git@host:owner/name`)."""
    short = re.fullmatch(r"(?:[^@/:]+@)?([^/:]+):(?!//)(.+)", url)
    try:
        parts = urlsplit(url)
        host, path = (short[1], short[2]) if short else (parts.hostname or "", parts.path)
    except ValueError:
        return None
    name = path.strip("/").removesuffix(".git")
    return Repository(host.lower(), name.lower()) if host and name.count("/") == 1 else None


def _read(root: Path, folder: Path) -> Checkout:
    """A checkout whose own git folder is `folder`; a worktree shares all but HEAD with another one."""
    common = _text(folder / "commondir")
    folders = (folder, folder / common.strip()) if common else (folder,)
    head = (_text(folder / "HEAD") or "").strip()
    ref = head.removeprefix("ref:").strip() if head.startswith("ref:") else None
    branch = ref.removeprefix(_BRANCH_REF) if ref and ref.startswith(_BRANCH_REF) else None
    return Checkout(
        root=root,
        commit=_resolved(folders, ref) if ref else _commit(head),
        branch=branch,
        branch_at_origin=_resolved(folders, _REMOTE_REF + branch) if branch else None,
        origin=_origin(_text(folders[-1] / "config") or ""),
    )


def _resolved(folders: tuple[Path, ...], ref: str) -> str | None:
    """The commit of a ref, loose or packed."""
    for _ in range(_LINKS):
        if not ref.startswith("refs/") or ".." in ref.split("/"):
            return None
        loose = next((text for folder in folders if (text := _text(folder / ref))), "").strip()
        if not loose.startswith("ref:"):
            return _commit(loose) or _packed(folders, ref)
        ref = loose.removeprefix("ref:").strip()
    return None


def _packed(folders: tuple[Path, ...], ref: str) -> str | None:
    for folder in folders:
        for line in (_text(folder / "packed-refs") or "").splitlines():
            commit, _, name = line.partition(" ")
            if name == ref:
                return _commit(commit)
    return None


def _origin(config: str) -> Repository | None:
    """The repository of `[remote "origin"]`; None also where several addresses are given."""
    urls = list(_urls(config))
    return repository_of(urls[0]) if len(urls) == 1 else None


def _urls(config: str) -> Iterator[str]:
    inside = False
    for line in map(str.strip, config.splitlines()):
        if line.startswith("["):
            inside = line == '[remote "origin"]'
        elif inside and (found := re.fullmatch(r"url\s*=\s*(.*)", line)):
            yield found[1].strip().strip('"')


def _commit(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None


def _text(path: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return None
