"""Where the judge's answers are kept."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ci_evals.domain.errors import UsageError

_NAME = "ci-evals"


def folder_of(said: str, environ: Mapping[str, str]) -> Path | None:
    """The folder that `--judge-cache` means; None for no cache.

    Raises:
        UsageError: it says nothing.
    """
    match said.strip():
        case "":
            raise UsageError("--judge-cache: it is empty; name a folder, or say auto or off")
        case "off":
            return None
        case "auto":
            return None if _in_ci(environ) else _of_the_user(environ)
        case folder:
            return Path(folder)


def _in_ci(environ: Mapping[str, str]) -> bool:
    """Whether a service runs this: its machines are new each time, and its verdicts should be, too."""
    return any(environ.get(name, "").lower() not in {"", "false", "0"} for name in ("CI", "GITHUB_ACTIONS"))


def _of_the_user(environ: Mapping[str, str]) -> Path | None:
    """Where programs of this platform keep what they can do without; None where there is no such place."""
    home = environ.get("USERPROFILE" if os.name == "nt" else "HOME", "")
    if os.name == "nt":
        named, usual = environ.get("LOCALAPPDATA", ""), Path(home, "AppData", "Local")
    else:
        library = Path(home, "Library", "Caches") if sys.platform == "darwin" else Path(home, ".cache")
        named, usual = environ.get("XDG_CACHE_HOME", ""), library
    place = Path(named) if Path(named).is_absolute() else usual
    return place / _NAME / "judge" if place.is_absolute() else None
