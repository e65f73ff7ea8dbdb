"""Files that an imported file names: read with bounds, and only within its repository."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from os import DirEntry, scandir
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ci_evals.adapters import input_files
from ci_evals.adapters.git.checkout import root_of

ENDINGS = (".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv")
"""The formats of tests that are read."""
PROMPTS = (".txt", ".md", ".json")
"""The formats of prompts that are read."""
_CODE = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb", ".go", ".sh")
_SHEETS = (".xlsx", ".xls")
_MOST_FILES = 200
_MOST_BYTES = 20_000_000
"""Bytes of all files together."""
_MOST_ENTRIES = 20_000
"""The most entries of folders that patterns are compared with."""
_DEEPEST = 50
_LONGEST = 1_000
_MOST_ALTERNATIVES = 100
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MAGIC = re.compile(r"[*?\[{]")
_BRACES = re.compile(r"\{([^{}]*)\}")
_OMITTED = frozenset({"node_modules", "__pycache__"})


class NotReadError(Exception):
    """A file that is not read; the text is a clause that says why."""


class OtherFile(NamedTuple):
    """The text of a file."""

    name: str
    """As messages call it: from the folder in which the program was started."""
    folder: PurePosixPath
    """Its folder, from that of the imported file; names in it start there."""
    text: str


class OtherFiles:
    """The files in the repository of an imported file, or in its folder if it is in none."""

    def __init__(self, file: Path) -> None:
        self._folder = file.parent
        self._origin = file.resolve().parent
        self._root = root_of(self._origin) or self._origin
        self._files = 0
        self._bytes = 0
        self._entries = 0

    def read(
        self, reference: str, folder: PurePosixPath, endings: tuple[str, ...] = ENDINGS
    ) -> list[OtherFile]:
        """Read the files of a name or a pattern, as a file in `folder` names them.

        Raises:
            NotReadError: a file is missing, elsewhere, too large, code, or of an unknown format.
        """
        name = reference.removeprefix("file://")
        _check(name, endings)
        if not _MAGIC.search(name):
            return [self._text(folder / name)]
        found = sorted({path for one in _alternatives(name) for path in self._matching(folder / one)})
        readable = [path for path in found if path.suffix.lower() in endings]
        if not readable:
            raise NotReadError("matches no file")
        return [self._text(path) for path in readable]

    def _text(self, path: PurePosixPath) -> OtherFile:
        try:
            real = (self._origin / path).resolve()
            self._check_inside(real)
            self._files += 1
            if self._files > _MOST_FILES:
                raise NotReadError(f"is one more than the {_MOST_FILES} other files that are read")
            data = input_files.read(real, _MOST_BYTES)
        except (
            OSError,
            ValueError,
            RuntimeError,
        ) as error:  # also a name with a null character, or a loop of links
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise NotReadError(f"cannot be read: {reason}") from None
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:
            raise NotReadError(f"makes more than {_MOST_BYTES // 1_000_000} MB of other files")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise NotReadError("cannot be read: it is not UTF-8") from None
        return OtherFile((PurePosixPath(self._folder.as_posix()) / path).as_posix(), path.parent, text)

    def _check_inside(self, path: Path) -> None:
        if not path.is_relative_to(self._root):
            kind = "folder" if self._root == self._origin else "repository"
            raise NotReadError(f"is outside of the {kind} of the imported file")

    def _matching(self, pattern: PurePosixPath) -> Iterator[PurePosixPath]:
        """Yield the files that match a pattern: folders before its first sign are looked up, not searched."""
        parts = pattern.parts
        fixed = next((i for i, part in enumerate(parts) if _MAGIC.search(part)), len(parts) - 1)
        base = PurePosixPath(*parts[:fixed])
        try:
            real = (self._origin / base).resolve()
            self._check_inside(real)
            yield from self._walk(real, base, [_Pattern(parts[fixed:], 0)])
        except OSError as error:
            raise NotReadError(f"cannot be read: {error.strerror or error}") from None

    def _walk(self, real: Path, path: PurePosixPath, patterns: list["_Pattern"]) -> Iterator[PurePosixPath]:
        for entry in sorted(self._entries_of(real), key=lambda one: one.name):
            if entry.name.startswith(".") or entry.name in _OMITTED:
                continue
            rest = [following for one in patterns for following in one.after(entry.name)]
            if not entry.is_dir(follow_symlinks=False):
                if any(one.ends for one in rest):
                    yield path / entry.name
            elif rest and len(path.parts) < _DEEPEST:
                yield from self._walk(real / entry.name, path / entry.name, rest)

    def _entries_of(self, folder: Path) -> Iterator[DirEntry[str]]:
        with scandir(folder) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > _MOST_ENTRIES:
                    raise NotReadError(f"is searched for in more than {_MOST_ENTRIES:,} files")
                yield entry


class _Pattern(NamedTuple):
    """The rest of a pattern, in parts between slashes."""

    parts: tuple[str, ...]
    at: int

    @property
    def ends(self) -> bool:
        """Return whether nothing more need follow."""
        return all(part == "**" for part in self.parts[self.at :])

    def after(self, name: str) -> set["_Pattern"]:
        """Return the rests of the pattern after a folder or a file of this name."""
        found: set[_Pattern] = set()
        at = self.at
        while at < len(self.parts) and self.parts[at] == "**":
            found.add(_Pattern(self.parts, at))
            at += 1
        if at < len(self.parts) and fnmatchcase(name, self.parts[at]):
            found.add(_Pattern(self.parts, at + 1))
        return found


def _check(name: str, endings: tuple[str, ...]) -> None:
    """Raise `NotReadError` for what is not read whatever it holds."""
    if not name.strip() or len(name) > _LONGEST:
        raise NotReadError("is not the name of a file")
    if _ADDRESS.match(name):
        raise NotReadError("is an address, and nothing is fetched: save it as a file")
    if name.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:[\\/]", name):
        raise NotReadError("is an absolute path, and only files next to the imported one are read")
    script, _, function = name.rpartition(":")
    ending = PurePosixPath(name.split("#", maxsplit=1)[0]).suffix.lower()
    if ending in _CODE or (function and PurePosixPath(script).suffix.lower() in _CODE):
        raise NotReadError("is code, which is not run: save the tests that it makes as a file")
    if ending in _SHEETS:
        raise NotReadError("is a spreadsheet: save it as CSV")
    if ending not in endings and not _MAGIC.search(PurePosixPath(name).name):
        raise NotReadError(f"is not a file that ends in {', '.join(endings)}")


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns that one with `{a,b}` stands for."""
    match = _BRACES.search(pattern)
    if match is None:
        return [pattern]
    found: list[str] = []
    for part in match[1].split(","):
        found += _alternatives(pattern[: match.start()] + part + pattern[match.end() :])
        if len(found) > _MOST_ALTERNATIVES:
            raise NotReadError(f"has more than {_MOST_ALTERNATIVES} alternatives")
    return found
