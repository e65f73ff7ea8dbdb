"""The files that changed since a commit, by the program `git`."""

import os
import subprocess  # git alone
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ci_evals.domain.errors import UsageError

_SECONDS = 60
_STATUS_SECONDS = 10
"""Time for a question that every run asks and can do without."""
_KEPT = ("PATH", "HOME", "USERPROFILE", "SYSTEMROOT", "TEMP", "TMP")
_SETTINGS = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
# In a container the checkout belongs to another user. No setting of a repository may have a program started.
_SAFE = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_SUBMODULE = "160000 "
"""Mode of a submodule among the files of a commit."""
_DIFF = (
    "diff",
    "--name-only",
    "-z",
    "--no-renames",
    "--no-ext-diff",
    "--no-relative",
    "--ignore-submodules=none",
)


class GitError(UsageError):
    """A question that git cannot answer."""


class NoGitError(GitError):
    """There is no program `git`."""


class Checkout:
    """A checkout, as far as git tells what changed in it."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        """Find the checkout that the folder lies in.

        Raises:
            GitError: there is none, or git cannot be run.
        """
        self._environ = {name: environ[name] for name in _KEPT if name in environ} | _SETTINGS
        self._root = folder
        root = self._answer("rev-parse", "--show-toplevel")
        if root is None:
            raise GitError(f"{str(folder)!r} is not in a git checkout. Check the repository out with git")
        self._root = Path(root.rstrip("\n")).resolve()

    def knows(self, commit: str) -> bool:
        """Return whether the checkout has this commit."""
        return self._commit(commit) is not None

    def changed_since(self, ref: str) -> frozenset[str]:
        """Return the paths that differ from where HEAD left `ref`, with those that are not committed.

        Raises:
            GitError: git does not know the ref, or where HEAD left it.
        """
        commit = self._commit(ref)
        if commit is None:
            raise GitError(f"git does not know the commit {ref!r}.{self._remedy()}")
        fork = self._answer("merge-base", commit, "HEAD")
        if fork is None:
            raise GitError(f"git finds no common ancestor of {ref!r} and HEAD.{self._remedy()}")
        return self._differing(fork.strip())

    def changed_from(self, commit: str) -> frozenset[str]:
        """Return the paths that differ from a commit itself, with those that are not committed."""
        return self._differing(commit)

    def has_changes(self, *, besides: Path) -> bool:
        """Return whether any file differs from HEAD, or is in no commit, except in the folder `besides`.

        Files that `.gitignore` names are left out; those of submodules count.

        Raises:
            GitError: git cannot say.
        """
        if self._differs_from_head(besides):
            return True
        return any(submodule.has_changes(besides=besides) for submodule in self._submodules())

    def _differs_from_head(self, besides: Path) -> bool:
        """Return whether the checkout differs, without the files within its submodules.

        Git would ask in those with their own settings, and have filters of theirs started.
        """
        command = ["status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=dirty"]
        paths = [":/"]
        if besides.resolve() != self._root and besides.resolve().is_relative_to(self._root):
            paths.append(f":(top,exclude,literal){besides.resolve().relative_to(self._root).as_posix()}")
        status = self._answer(*self._no_filters(), *command, "--", *paths, seconds=_STATUS_SECONDS)
        if status is None:
            raise GitError(f"git cannot say what changed in {str(self._root)!r}")
        return bool(status)

    def _submodules(self) -> Iterator["Checkout"]:
        """Yield the submodules that are checked out."""
        files = self._answer("ls-files", "--stage", "-z", seconds=_STATUS_SECONDS)
        if files is None:
            raise GitError(f"git cannot list the files of {str(self._root)!r}")
        for entry in files.split("\0"):
            facts, _, path = entry.partition("\t")
            folder = self._root / path
            if not facts.startswith(_SUBMODULE) or not (folder / ".git").exists():
                continue
            submodule = Checkout(folder, self._environ)
            if submodule._root != folder:  # its settings name another folder
                raise GitError(f"git cannot say what changed in {str(folder)!r}")
            yield submodule

    def ignored(self, paths: Sequence[Path]) -> frozenset[Path]:
        """Return those of these paths (absolute) that `.gitignore` leaves out; none if git cannot say."""
        question = ("-c", "core.quotePath=false", "check-ignore", "--", *map(str, paths))
        printed = self._answer(*question, seconds=_STATUS_SECONDS)
        return frozenset(map(Path, (printed or "").splitlines()))

    def _no_filters(self) -> Iterator[str]:
        """Yield options that turn off the programs through which the settings have files read."""
        keys = self._answer("config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$")
        for key in filter(None, (keys or "").split("\0")):
            yield from ("-c", f"{key}=")
            yield from ("-c", f"{key.rpartition('.')[0]}.required=false")

    def _differing(self, commit: str) -> frozenset[str]:
        tracked = self._answer(*_DIFF, commit, "--")
        others = self._answer("ls-files", "--others", "--exclude-standard", "-z")
        if tracked is None or others is None:
            raise GitError(f"git cannot say what changed since {commit[:12]}")
        return frozenset(filter(None, (tracked + others).split("\0")))

    def _commit(self, ref: str) -> str | None:
        if not ref.strip() or ref.startswith("-"):
            return None
        found = self._answer("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        return found.strip() if found else None

    def _remedy(self) -> str:
        if (self._answer("rev-parse", "--is-shallow-repository") or "").strip() == "true":
            return " The clone is shallow: check out with fetch-depth: 0"
        return " Fetch it first, or name another, such as origin/main"

    def _answer(self, *arguments: str, seconds: float = _SECONDS) -> str | None:
        """Return what git prints; None if it fails."""
        command = ["git", "-C", str(self._root), *_SAFE, *arguments]
        try:
            done = subprocess.run(  # noqa: S603  # arguments of ours; a ref is checked and cannot be an option
                command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except FileNotFoundError:
            raise NoGitError("git is not installed. Install it") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitError(f"git cannot be run: {error}") from None
        return done.stdout.decode(errors="surrogateescape") if done.returncode == 0 else None
