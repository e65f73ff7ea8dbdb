"""The options of commands that begin with saved results."""

from dataclasses import dataclass
from typing import Annotated

from ci_evals.cli.settings.shared import PullRequestSettings, Run
from ci_evals.domain.options import OptionSpec
from ci_evals.extension_registry import platform_words, platforms

_OF_PLATFORMS = " ".join(platform.HELP for platform in platforms())


@dataclass(frozen=True, kw_only=True)
class CommentSettings(PullRequestSettings):
    """Options of `comment`."""

    results: Run
    platform: Annotated[
        str,
        OptionSpec(
            "Where to post.\n\n"
            f"`auto`: the platform whose job this is, otherwise GitHub. {_OF_PLATFORMS}".rstrip(),
            words=platform_words,
        ),
    ] = "auto"
    dry_run: Annotated[bool, OptionSpec("Print the comment and post nothing; needs no token.")] = False
