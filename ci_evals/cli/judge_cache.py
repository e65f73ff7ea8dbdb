"""Where the judge's answers are kept."""

from collections.abc import Mapping
from pathlib import Path

from ci_evals.adapters.answer_cache import folder_of_the_user
from ci_evals.adapters.signing import can_sign
from ci_evals.domain.errors import UsageError

_OFF = "--judge-cache: not used"


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
            folder = None if in_ci(environ) else folder_of_the_user(environ)
            return folder and folder / "judge"
        case folder:
            return Path(folder)


def refused(folder: Path, distrusted: str, key: str | None, environ: Mapping[str, str]) -> str | None:
    """The reason why a cache is not used where the checked-out files may be anybody's; None if it may be.

    Args:
        folder: Where the answers would be.
        distrusted: Why the files are not trusted.
        key: The LLM's key or token, which signs the answers.
        environ: The environment, which says where the checkout is.
    """
    if not can_sign(key):
        return f"{_OFF} {distrusted}: there is no key of the LLM to sign answers with"
    folder, here = folder.absolute().resolve(), Path.cwd().resolve()
    workspace = environ.get("GITHUB_WORKSPACE")
    roots = {here, *([Path(workspace).resolve()] if workspace else [])}
    roots |= {place for place in (here, folder, *folder.parents) if (place / ".git").exists()}
    if any(folder.is_relative_to(root) for root in roots):
        return f"{_OFF} {distrusted}: {str(folder)!r} is within the checkout; name a folder outside it"
    return None


def in_ci(environ: Mapping[str, str]) -> bool:
    """Whether a service runs this: its machines are new each time, and its verdicts should be, too."""
    return any(environ.get(name, "").lower() not in {"", "false", "0"} for name in ("CI", "GITHUB_ACTIONS"))
