"""The options of commands that begin with saved results."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from ci_evals.cli.settings.choices import (
    Platform,
)
from ci_evals.cli.settings.shared import (
    PullRequestSettings,
    Run,
)
from ci_evals.domain.options import Group, Names, OptionSpec


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """Options of `report`."""

    results: Annotated[
        list[Path],
        OptionSpec(
            "The run to show: its _results.json or folder, or a folder of runs for the newest. "
            "Then runs to compare it with.",
            names=Names.SUBJECT,
            metavar="RESULTS",
            argument=True,
        ),
    ]
    baseline: Annotated[
        str | None,
        OptionSpec(
            "Run that this one was compared with.\n\n"
            "The page shows its conversations; nothing is compared again, and other runs are refused. "
            "Default: `auto`, the one among the given runs.",
            group=Group.BASELINE,
            names=Names.SUBJECT,
            metavar="auto|none|PATH",
        ),
    ] = None
    format: Annotated[
        str | None,
        OptionSpec(
            "Reports to write, see above. Default: all but badge, csv and what extensions write.",
            group=Group.OUTPUT,
            names=Names.TEXT,
            metavar="FORMAT,...",
        ),
    ] = None
    open: Annotated[
        bool, OptionSpec("Open report.html in the browser; in CI print its path.", group=Group.OUTPUT)
    ] = False


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
