"""A cache of models' answers: a folder with a file for each, named by the digest of its question.

Whoever can write there could forge a judge's answers. So the folder is its owner's alone, and each answer is
signed with a secret of the run, together with the question's digest, the model and the date. An answer
without a valid signature counts as missing.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ci_evals.adapters import files, input_files
from ci_evals.adapters.signing import can_sign, derived_key
from ci_evals.domain.errors import UsageError
from ci_evals.support.redaction import Redactor

VERSION = 2
"""Version of the entries: raised if answers are read differently than before."""

MAX_DAYS = 30
"""Maximum age of an answer, since a model may be replaced in silence."""
MAX_CHARACTERS = 100_000
"""Maximum length of an answer."""

_MAX_BYTES = 6 * MAX_CHARACTERS + 1_000
"""Maximum size of a file: JSON takes up to six bytes for a character."""
_DAY = 24 * 60 * 60
_PURPOSE = b"ci-evals judge cache"
_SECRET = "signing-key"  # noqa: S105  # a file's name
_SWEPT = "swept"
"""A file that is as old as the last removal of old answers."""
_OURS = re.compile(r"[0-9a-f]{64}\.json|\.[0-9a-f]{16}\.tmp")


class AnswerCache:
    """The answers in a folder, which many processes may use at the same time.

    An answer that cannot be read counts as missing. After the first failure to write, nothing more is
    written.
    """

    def __init__(
        self, folder: Path, redactor: Redactor, key: bytes | None, clock: Callable[[], float] = time.time
    ) -> None:
        """Create a cache without opening files.

        The key signs the answers (`signing_key`); without it none is read or written.
        """
        self._folder, self._redactor, self._key, self._clock = folder, redactor, key, clock
        self._failure: str | None = None
        if _is_world_writable(folder):
            self._failure = f"anyone can write to {str(folder)!r}"
        elif key is None:
            self._failure = (
                "answers cannot be signed: the LLM's key can be guessed, and you have no cache folder"
            )
        self._unsafe = self._failure is not None
        self._forged = 0
        self._postponed: dict[str, list[tuple[str, str]]] = {}

    def hold(self, model: str) -> None:
        """Postpone writing the answers of a model."""
        self._postponed[model] = []

    def release(self, model: str) -> None:
        """Write the postponed answers of a model, and later ones at once."""
        for key, answer in self._postponed.pop(model, ()):
            self.keep(key, model, answer)

    def find(self, key: str, model: str) -> str | None:
        """Return the answer to the question with this digest, if it has a valid signature."""
        if self._unsafe:
            return None
        try:
            entry = json.loads(_read(self._path(key)))
        except (OSError, ValueError, RecursionError):
            return None
        match entry:
            case {"version": int(version), "answer": str(answer), "at": int(at), **rest} if (
                version == VERSION
            ):
                signature = rest.get("signature")
            case _:
                return None
        if not isinstance(signature, str) or not self._is_signed(signature, key, model, answer, at):
            self._forged += 1
            return None
        too_old = not -_DAY < self._clock() - at <= MAX_DAYS * _DAY
        return None if too_old or not 0 < len(answer) <= MAX_CHARACTERS else answer

    def keep(self, key: str, model: str, answer: str) -> None:
        """Write an answer, unless it holds a secret or is too long."""
        if model in self._postponed:
            self._postponed[model].append((key, answer))
            return
        if self._failure or len(answer) > MAX_CHARACTERS or self._redactor.text_to_read(answer) != answer:
            return
        at = int(self._clock())
        signature = self._signature(key, model, answer, at)
        entry = {
            "version": VERSION, "key": key, "model": model, "answer": answer, "at": at, "signature": signature
        }  # fmt: skip
        try:
            files.write(self._path(key), json.dumps(entry) + "\n", private=True, durable=False)
        except UsageError as error:
            self._failure = str(error)

    def sweep(self) -> None:
        """Remove outdated answers, at most once a day. Other files are left alone."""
        mark = self._folder / _SWEPT
        if self._unsafe or not files.is_folder(self._folder) or self._age(mark) < _DAY:
            return
        with suppress(OSError, UsageError):
            files.write(mark, "", private=True)
            for file in _entries(self._folder):
                if self._age(file) > MAX_DAYS * _DAY:
                    file.unlink(missing_ok=True)

    def note(self) -> str | None:
        """Return a warning for the user, if any."""
        if self._failure:
            return f"judge-cache: {self._failure}; the judge's answers are not kept"
        if not self._forged:
            return None
        answers = "1 answer is" if self._forged == 1 else f"{self._forged} answers are"
        return (
            f"judge-cache: {answers} not signed with this run's key: it is a new one, or somebody changed "
            f"what is in {str(self._folder)!r}; the judge was asked again"
        )

    def _is_signed(self, signature: str, key: str, model: str, answer: str, at: int) -> bool:
        return hmac.compare_digest(
            signature.encode(errors="replace"), self._signature(key, model, answer, at).encode()
        )

    def _signature(self, key: str, model: str, answer: str, at: int) -> str:
        signed = json.dumps([VERSION, key, model, answer, at]).encode()
        return hmac.new(self._key or b"", signed, hashlib.sha256).hexdigest()

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"

    def _age(self, path: Path) -> float:
        """Return the seconds since a file was written; infinity if there is none."""
        try:
            return self._clock() - path.lstat().st_mtime
        except OSError:
            return float("inf")


def folder_of_the_user(environ: Mapping[str, str]) -> Path | None:
    """Return the platform's folder for caches of this user; None if there is none."""
    home = environ.get("USERPROFILE" if os.name == "nt" else "HOME", "")
    if os.name == "nt":
        configured, default = environ.get("LOCALAPPDATA", ""), Path(home, "AppData", "Local")
    else:
        library = Path(home, "Library", "Caches") if sys.platform == "darwin" else Path(home, ".cache")
        configured, default = environ.get("XDG_CACHE_HOME", ""), library
    folder = Path(configured) if Path(configured).is_absolute() else default
    return folder / "ci-evals" if folder.is_absolute() else None


def signing_key(secret: str | None, environ: Mapping[str, str]) -> bytes | None:
    """Return the key that signs a run's answers, derived from the LLM's key or a secret of this user.

    Local servers accept any key, and some providers need none. Then a secret is created once in the user's
    own folder. None if that fails.
    """
    if secret is None or not can_sign(secret):
        folder = folder_of_the_user(environ)
        secret = _secret_in(folder) if folder else None
        if secret is None:
            return None
    return derived_key(secret, _PURPOSE)


def _read(path: Path) -> bytes:
    if path.is_symlink():
        raise ValueError("it is a link, which may lead anywhere")
    return input_files.read(path, _MAX_BYTES)


def _secret_in(folder: Path) -> str | None:
    """Return the secret in the user's own folder, created if it is missing."""
    path = folder / _SECRET
    with suppress(OSError, UsageError, ValueError):
        if not files.is_there(path):
            files.write(path, secrets.token_hex(32) + "\n", private=True)
        if _is_world_writable(folder) or path.is_symlink():
            return None
        text = input_files.read(path, _MAX_BYTES).decode("ascii").strip()
        return text if can_sign(text) else None
    return None


def _is_world_writable(folder: Path) -> bool:
    try:
        return os.name == "posix" and bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def _entries(folder: Path) -> Iterator[Path]:
    for inner in folder.iterdir():
        if re.fullmatch("[0-9a-f]{2}", inner.name) and not inner.is_symlink() and inner.is_dir():
            yield from (file for file in inner.iterdir() if _OURS.fullmatch(file.name))
