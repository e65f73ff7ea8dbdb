"""Answers of models, kept in a folder: each in a file of its own, found again by the digest of its question.

Whoever can write there could say what a judge says. So the folder is its owner's alone, and each answer is
signed with a secret of the run, together with the question's digest, the model and the date. An answer
without a good signature counts as missing.
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
"""Of what is kept: raised where an answer is read in another way than before, so that all are asked anew."""

MOST_DAYS = 30
"""So long an answer is given again. A model that was replaced in silence is then asked once more."""
MOST_CHARACTERS = 100_000
"""Of an answer that is kept."""

_MOST_BYTES = 6 * MOST_CHARACTERS + 1_000
"""Of a file: JSON takes six bytes for a character at the most."""
_DAY = 24 * 60 * 60
_PURPOSE = b"ci-evals judge cache"
_SECRET = "signing-key"  # noqa: S105  # a file's name
_SWEPT = "swept"
"""A file that is as old as the last look for old answers."""
_OURS = re.compile(r"[0-9a-f]{64}\.json|\.[0-9a-f]{16}\.tmp")


class AnswerCache:
    """The answers in a folder. Many processes may use it at the same time.

    No fault of it costs more than the call that it would have saved: what cannot be read is not there, and
    after the first that cannot be written no more are.
    """

    def __init__(
        self, folder: Path, redactor: Redactor, key: bytes | None, clock: Callable[[], float] = time.time
    ) -> None:
        """Opens nothing yet.

        Args:
            folder: Where the answers are.
            redactor: Knows what must not be written.
            key: Signs the answers (`signing_key`); without one none is read or kept.
            clock: Seconds since 1970.
        """
        self._folder, self._redactor, self._key, self._clock = folder, redactor, key, clock
        self._lost: str | None = None
        if _is_everybodys(folder):
            self._lost = f"everybody may write to {str(folder)!r}"
        elif key is None:
            self._lost = (
                "answers cannot be signed: the LLM's key can be guessed, and you have no cache folder"
            )
        self._unsafe = self._lost is not None
        self._forged = 0
        self._held: dict[str, list[tuple[str, str]]] = {}

    def hold(self, model: str) -> None:
        """Write no answers of a model until they are released."""
        self._held[model] = []

    def release(self, model: str) -> None:
        """Write the answers of a model that were held, and from now on all at once."""
        for key, answer in self._held.pop(model, ()):
            self.keep(key, model, answer)

    def find(self, key: str, model: str) -> str | None:
        """The model's answer to the question of that digest; None if there is none with a good signature."""
        if self._unsafe:
            return None
        try:
            kept = json.loads(_read(self._path(key)))
        except (OSError, ValueError, RecursionError):
            return None
        match kept:
            case {"version": int(version), "answer": str(answer), "at": int(at), **rest} if (
                version == VERSION
            ):
                signature = rest.get("signature")
            case _:
                return None
        if not isinstance(signature, str) or not self._is_signed(signature, key, model, answer, at):
            self._forged += 1
            return None
        too_old = not -_DAY < self._clock() - at <= MOST_DAYS * _DAY
        return None if too_old or not 0 < len(answer) <= MOST_CHARACTERS else answer

    def keep(self, key: str, model: str, answer: str) -> None:
        """Keeps an answer, in place of what was there; none that holds a secret, or is longer than any is."""
        if model in self._held:
            self._held[model].append((key, answer))
            return
        if self._lost or len(answer) > MOST_CHARACTERS or self._redactor.text_to_read(answer) != answer:
            return
        at = int(self._clock())
        signature = self._signature(key, model, answer, at)
        entry = {
            "version": VERSION, "key": key, "model": model, "answer": answer, "at": at, "signature": signature
        }  # fmt: skip
        try:
            files.write(self._path(key), json.dumps(entry) + "\n", private=True, durable=False)
        except UsageError as error:
            self._lost = str(error)

    def sweep(self) -> None:
        """Takes away what is older than is given again, at most once a day. Other files are left alone."""
        mark = self._folder / _SWEPT
        if self._unsafe or not files.is_folder(self._folder) or self._age(mark) < _DAY:
            return
        with suppress(OSError, UsageError):
            files.write(mark, "", private=True)
            for file in _kept(self._folder):
                if self._age(file) > MOST_DAYS * _DAY:
                    file.unlink(missing_ok=True)

    def note(self) -> str | None:
        """What its user should know, if anything."""
        if self._lost:
            return f"--judge-cache: {self._lost}; the judge's answers are not kept"
        if not self._forged:
            return None
        answers = "1 answer is" if self._forged == 1 else f"{self._forged} answers are"
        return (
            f"--judge-cache: {answers} not signed with this run's key: it is a new one, or somebody changed "
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
        """Seconds since a file was written; no end of them where there is none."""
        try:
            return self._clock() - path.lstat().st_mtime
        except OSError:
            return float("inf")


def folder_of_the_user(environ: Mapping[str, str]) -> Path | None:
    """The folder in which programs of this platform keep what they can do without; None if there is none."""
    home = environ.get("USERPROFILE" if os.name == "nt" else "HOME", "")
    if os.name == "nt":
        named, usual = environ.get("LOCALAPPDATA", ""), Path(home, "AppData", "Local")
    else:
        library = Path(home, "Library", "Caches") if sys.platform == "darwin" else Path(home, ".cache")
        named, usual = environ.get("XDG_CACHE_HOME", ""), library
    place = Path(named) if Path(named).is_absolute() else usual
    return place / "ci-evals" if place.is_absolute() else None


def signing_key(secret: str | None, environ: Mapping[str, str]) -> bytes | None:
    """The key that signs a run's answers: derived from the LLM's key, or from a secret of this user's.

    A server on this machine takes any key, and some providers need none: then a secret that is made once, in
    the user's own folder, does. None if it cannot be had.
    """
    if secret is None or not can_sign(secret):
        folder = folder_of_the_user(environ)
        secret = _secret_in(folder) if folder else None
        if secret is None:
            return None
    return derived_key(secret, _PURPOSE)


def _read(path: Path) -> bytes:
    """Return what is in a file.

    Raises:
        OSError, ValueError: it cannot be read, or is none that was written here.
    """
    if path.is_symlink():
        raise ValueError("it is a link, which may lead anywhere")
    return input_files.read(path, _MOST_BYTES)


def _secret_in(folder: Path) -> str | None:
    """The secret in the user's own folder, made if it is not there."""
    path = folder / _SECRET
    with suppress(OSError, UsageError, ValueError):
        if not files.is_there(path):
            files.write(path, secrets.token_hex(32) + "\n", private=True)
        if _is_everybodys(folder) or path.is_symlink():
            return None
        text = input_files.read(path, _MOST_BYTES).decode("ascii").strip()
        return text if can_sign(text) else None
    return None


def _is_everybodys(folder: Path) -> bool:
    """Whether anybody on this machine may put something there."""
    try:
        return os.name == "posix" and bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def _kept(folder: Path) -> Iterator[Path]:
    """The files that were written here."""
    for inner in folder.iterdir():
        if re.fullmatch("[0-9a-f]{2}", inner.name) and not inner.is_symlink() and inner.is_dir():
            yield from (file for file in inner.iterdir() if _OURS.fullmatch(file.name))
