"""The options of `run` that repeat it while files change."""

from typing import TYPE_CHECKING, Any

from ci_evals.domain.options import Group, Names, Option

if TYPE_CHECKING:  # every run imports this module, for its options
    from ci_evals.cli.run_context import RunContext

OPTIONS = (
    Option(
        name="watch",
        kind=bool,
        default=False,
        help="Run again whenever a suite or a file next to it changes.\n\n"
        "Until `q` or Ctrl-C. Keys: `f` runs only tests that failed, from now on; `a` runs all; `q` quits. A "
        "change during a run stops it and starts the next. Not in CI.",
        group=Group.REPETITION,
        recorded=False,
        in_action=False,
    ),
    Option(
        name="watch_path",
        kind=str,
        many=True,
        metavar="PATH",
        help="File or folder to watch, instead of the suites' folders.\n\n"
        "May be repeated. Left out are hidden files, files that git ignores, and reports.",
        names=Names.SUBJECT,
        group=Group.REPETITION,
        recorded=False,
        in_action=False,
    ),
)


def is_asked(settings: Any) -> bool:
    """Return whether the options ask for it."""
    return bool(settings.watch)


def repeat(settings: Any, context: "RunContext") -> int:
    """Run until the user has enough, and return the exit code of the last run."""
    from ci_evals.extensions.watch.watching import watch  # noqa: PLC0415  # few runs need it

    return watch(settings, context)
