"""The folder that keeps the judge's answers."""

from pathlib import Path

from ci_evals.adapters.answer_cache import folder_of_the_user
from ci_evals.adapters.signing import can_sign
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import UsageError

_OFF = "`judge_cache=`: not used"


def folder_of(option: str, context: RunContext) -> Path | None:
    """Return the folder that `--judge-cache` means; None for no cache.

    Raises:
        UsageError: it is empty.
    """
    match option.strip():
        case "":
            raise UsageError("`judge_cache=`: empty. Name a folder, or use auto or off.")
        case "off":
            return None
        case "auto":
            folder = None if context.in_ci else folder_of_the_user(context.environ)
            return folder and folder / "judge"
        case folder:
            return Path(folder)


def refused(folder: Path, distrusted: str, key: str | None, context: RunContext) -> str | None:
    """Return why a cache is not used where the checked-out files may be anybody's; None if it may be used.

    Args:
        folder: Where the answers would be.
        distrusted: Why the files are not trusted.
        key: The LLM's key or token, which signs the answers.
        context: Says where the checkout is.
    """
    if not can_sign(key):
        return f"{_OFF} {distrusted}: there is no LLM key to sign its answers with"
    folder, here = folder.absolute().resolve(), Path.cwd().resolve()
    roots = {here}
    if workspace := context.environ.get("GITHUB_WORKSPACE"):
        roots.add(Path(workspace).resolve())
    roots |= {parent for parent in (here, folder, *folder.parents) if (parent / ".git").exists()}
    if any(folder.is_relative_to(root) for root in roots):
        return f"{_OFF} {distrusted}: {str(folder)!r} is inside the checkout. Name a folder outside it"
    return None
