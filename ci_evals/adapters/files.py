"""Writes text files, each completely or not at all, and never outside a root folder."""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path, PurePosixPath

from ci_evals.domain.errors import UsageError

_SYSTEM = (Path("/dev"), Path("/proc"), Path("/sys"))
_MEMORY = Path("/dev/shm")  # noqa: S108  # files there are regular

Text = str | Iterable[str]
"""The text of a file, at once or in parts that are created while they are written."""


@contextmanager
def os_errors(failure: str) -> Iterator[None]:
    """Turn an `OSError` into a `UsageError`: the failure (`cannot write 'report.html'`) and the reason."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{failure}: {error.strerror or error}") from error


def is_there(path: Path) -> bool:
    """Return whether something is there. Unlike `Path.exists` it never raises."""
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: Path) -> bool:
    """Return whether a folder is there, without raising."""
    return os.path.isdir(path)  # noqa: PTH112


def is_link(path: Path) -> bool:
    """Return whether a symbolic link is there, without raising."""
    return os.path.islink(path)  # noqa: PTH114


def write_all(root: Path, files: Mapping[str, Text]) -> None:
    """Write files, by their paths relative to `root`, and create folders as needed.

    Raises:
        UsageError: a path leads out of `root`, or something cannot be written. Files written before stay.
    """
    check_inside(root, files)
    write_each(root, files.items(), durable=True)


def write_each(root: Path, files: Iterable[tuple[str, Text]], *, durable: bool = False) -> None:
    """Write files as `write_all` does, but check each path only when its turn comes."""
    owner = _owner(root)
    for name, text in files:
        write(_inside(root, name), text, owner=owner, durable=durable)


def write_new(root: Path, files: Mapping[str, str]) -> None:
    """Create files, all or none.

    Raises:
        UsageError: one exists already, a path leads out of `root`, or something cannot be written.
    """
    paths = {_inside(root, name): text for name, text in files.items()}
    owner = _owner(root)
    existing = [path for path in paths if os.path.lexists(path)]
    if existing:
        names = ", ".join(repr(str(path)) for path in existing)
        raise UsageError(
            f"{names}: already there, and not overwritten. Delete what is there, or name another folder."
        )
    missing = {folder for path in paths for folder in _missing(path.parent)}
    written: list[Path] = []
    try:
        for path, text in paths.items():
            write(path, text, owner=owner, new=True)
            written.append(path)
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink()
        _remove_folders(sorted(missing, reverse=True))  # the inner ones first
        raise


def unfit(path: Path) -> str | None:
    """Return why a path cannot be an output file; None if it can.

    Writing renames a file, which would replace a device, a pipe or a socket.
    """
    folder = path.parent.resolve()
    if any(folder.is_relative_to(system) for system in _SYSTEM) and not folder.is_relative_to(_MEMORY):
        return "a system file; name a regular file, and show it with cat"
    if not os.path.lexists(path):
        return None
    if is_folder(path):
        return "a folder; name a file"
    with suppress(FileNotFoundError):  # a link that leads nowhere is replaced
        if not stat.S_ISREG(path.stat().st_mode):
            return "a device, a pipe or a socket; name a regular file"
    return None


def leads_out(path: Path, root: Path) -> bool:
    """Return whether a symbolic link takes a path inside `root` elsewhere."""
    literal = Path(os.path.abspath(path))  # noqa: PTH100  # `resolve` follows links
    try:
        return literal.is_relative_to(root.absolute()) and not path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # links in a circle
        return True


def check_inside(root: Path, names: Iterable[str]) -> None:
    """Check that paths relative to `root` stay within it, also after symbolic links."""
    for name in names:
        _inside(root, name)


def is_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file."""
    try:
        return path.resolve() == other.resolve() or path.samefile(other)
    except (OSError, RuntimeError):
        return False


def check_writable(folder: Path) -> None:
    """Check before a run that a folder can be created and written to."""
    probe = folder / f".{secrets.token_hex(8)}.tmp"
    missing = _missing(folder)
    try:
        with os_errors(f"cannot write to the folder {str(folder)!r}"):
            folder.mkdir(parents=True, exist_ok=True)
            probe.touch(exist_ok=False)
            probe.unlink()
    finally:
        _remove_folders(missing)  # the run may still be refused, and then leaves nothing behind


def write(
    path: Path,
    text: Text,
    *,
    owner: os.stat_result | None = None,
    private: bool = False,
    durable: bool = True,
    new: bool = False,
) -> None:
    """Write a file under a temporary name and rename it.

    If we are root it gets the `owner`, by default the folder's. A `private` file and the folders created for
    it are its owner's alone. A `durable` one is complete or missing even after a crash of the machine, which
    takes milliseconds. A `new` one replaces none.
    """
    owner = owner or _owner(path.parent)
    aside = path.with_name(f".{secrets.token_hex(8)}.tmp")
    if why := unfit(path):
        raise UsageError(f"cannot write {str(path)!r}: it is {why}")
    try:
        with os_errors(f"cannot write {str(path)!r}"):
            _make_folder(path.parent, owner, 0o700 if private else 0o777)
            opener = partial(os.open, mode=0o600 if private else 0o666)
            with open(aside, "x", encoding="utf-8", newline="\n", opener=opener) as file:
                file.writelines([text] if isinstance(text, str) else text)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            _hand_over(aside, owner)
            if new:
                os.link(aside, path)  # unlike a rename it fails if a file is there
            else:
                aside.replace(path)
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a file if it is there."""
    with os_errors(f"cannot remove {str(path)!r}"):
        path.unlink(missing_ok=True)


def open_to_append(path: Path) -> int:
    """Open a file for appending, and create it with its folder if needed.

    Raises:
        OSError: it cannot be opened, is no regular file, or is linked, so that another file would grow.
    """
    owner = _owner(path.parent)
    _make_folder(path.parent, owner)
    if is_link(path):
        raise OSError(errno.ELOOP, "it is a symbolic link")
    if why := unfit(path):
        raise OSError(errno.EINVAL, f"it is {why}")
    if is_there(path) and path.stat().st_nlink > 1:
        raise OSError(errno.EMLINK, "it is one file with another name (a hard link)")
    # Windows knows no links here, and would write line ends of its own.
    bare = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | bare, 0o644)
    _hand_over(path, owner)
    return descriptor


def _inside(root: Path, name: str) -> Path:
    """Return the path of `name`, unless it or a symbolic link on its way leads out of `root`."""
    relative = PurePosixPath(name)
    path = root.joinpath(*relative.parts)
    if relative.is_absolute() or not relative.parts or ".." in relative.parts or "\\" in name or "\0" in name:
        raise UsageError(f"will not write {name!r}: it is not a path within {str(root)!r}")
    try:
        home, folder = root.resolve(), path.parent.resolve()
    except (OSError, RuntimeError) as error:
        # Links in a circle: RuntimeError up to Python 3.12.
        raise UsageError(f"cannot write {str(path)!r}: {error}") from error
    if not folder.is_relative_to(home):
        raise UsageError(
            f"will not write {name!r}: a symbolic link leads out of {str(root)!r}, to {str(folder)!r}"
        )
    return path


def _owner(folder: Path) -> os.stat_result:
    """Return the owner of the nearest existing folder: in a container the workspace's owner."""
    folder = folder.absolute()
    for candidate in (folder, *folder.parents):
        with suppress(OSError):
            return candidate.stat()
    return Path(folder.anchor).stat()


def _missing(folder: Path) -> list[Path]:
    """Return the folders that have to be created, the innermost first."""
    return [path for path in (folder, *folder.parents) if not is_there(path)]


def _remove_folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _make_folder(folder: Path, owner: os.stat_result, mode: int = 0o777) -> None:
    for parent in reversed(_missing(folder)):
        parent.mkdir(mode, exist_ok=True)
        _hand_over(parent, owner)


def _hand_over(path: Path, owner: os.stat_result) -> None:
    """Change the owner if we are root (in a container), whose files the workspace's owner cannot remove."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        with suppress(OSError):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
