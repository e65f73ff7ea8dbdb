"""The options of commands that begin with saved results."""

from dataclasses import dataclass
from typing import Annotated

from ci_evals.cli.settings.choices import (
    Platform,
)
from ci_evals.cli.settings.shared import (
    PullRequestSettings,
    Run,
)
from ci_evals.domain.options import OptionSpec


@dataclass(frozen=True, kw_only=True)
class CommentSettings(PullRequestSettings):
    """Options of `comment`."""

    results: Run
    platform: Annotated[
        Platform,
        OptionSpec(
            "Where to post.\n\n"
            "`auto`: GitLab in GitLab jobs, otherwise GitHub. On GitLab the note goes to the pipeline's "
            "merge request, with the token in CI_EVALS_GITLAB_TOKEN or GITLAB_TOKEN."
        ),
    ] = Platform.AUTO
    dry_run: Annotated[bool, OptionSpec("Print the comment and post nothing; needs no token.")] = False
