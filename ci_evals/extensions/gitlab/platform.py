"""GitLab as a platform. Every run imports this module, and few are jobs of GitLab: its work is elsewhere."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ci_evals.extensions.gitlab.context import TOKENS, read

if TYPE_CHECKING:
    from ci_evals.adapters.github.baseline import BaselineArtifact, NoBaseline
    from ci_evals.cli.run_context import RunContext
    from ci_evals.cli.settings.result_commands import CommentSettings
    from ci_evals.domain.results.run import Results

NAME = "gitlab"
TITLE = "GitLab"
HELP = f"On GitLab the note goes to the pipeline's merge request, with the token in {TOKENS}."


def is_job(environ: Mapping[str, str]) -> bool:
    """Return whether this is a job of GitLab."""
    return read(environ) is not None


def has_base(environ: Mapping[str, str]) -> bool:
    """Return whether the job is of a merge request, and so is compared with its target branch."""
    job = read(environ)
    return job is not None and job.merge_request is not None


def comment(results: "Results", settings: "CommentSettings", context: "RunContext") -> None:
    """Post the note, or print it. What GitLab refuses is a warning.

    Raises:
        UsageError: nothing says where to post.
    """
    from ci_evals.extensions.gitlab import job  # noqa: PLC0415  # see above

    job.comment(results, settings, context)


async def find_baseline(
    output_dir: Path, branch: str | None, earlier: int, context: "RunContext"
) -> "BaselineArtifact | NoBaseline":
    """Find results of the target branch, at the path where this run writes its own."""
    from ci_evals.extensions.gitlab import job  # noqa: PLC0415  # see above

    return await job.find_baseline(output_dir, branch, earlier, context)
