"""The commands. Each imports its work when it is called, so that `--help` answers at once."""

import gc
import os
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ci_evals._version import __version__
from ci_evals.cli import env_files
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.help import WIDTH, Application
from ci_evals.cli.settings.options import takes
from ci_evals.domain.options import Option
from ci_evals.extension_registry import installed, register_commands

if TYPE_CHECKING:  # a command's options are imported with it
    from ci_evals.cli.settings.result_commands import CommentSettings
    from ci_evals.cli.settings.run_command import RunSettings

PROGRAM = "ci-evals"
_OURS = ("CI_EVAL", "CIEVAL", "CI-EVAL")
"""How names of our variables begin, also if they are misspelt."""
_RUN = "ci_evals.cli.settings.run_command"
_RESULTS = "ci_evals.cli.settings.result_commands"

app = Application(
    name=PROGRAM,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
)


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"ci-evals {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    env_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with environment variables, for any command. Those that are set win. Default: .env, "
            "but not in CI.",
        ),
    ] = None,
) -> None:
    """CI gate for conversational agents: plays test suites, judges, decides.

    Try it without any key:  ci-evals run demo:hr --provider=offline
    """
    del version, env_file  # read before: see `main`


@app.command()
@takes(_RUN, "RunSettings")
def run(settings: "RunSettings", context: RunContext) -> None:
    """Play suites against the agent, judge them and write reports.

    \b
    ci-evals run demo:hr --provider=offline               (needs no key)
    ci-evals run evals/ --parallel=10 --loops=3
    ci-evals run evals/ --tag=critical --min-score=85

    Exit codes:

    \b
    0    passed, or skipped because a pull request has no secrets
    1    failed
    2    wrong option, configuration or suite; nothing was run
    3    no verdict: too many errored trials, nothing scored, or stopped early
    70   a bug in ci-evals
    130  interrupted
    """
    gc.disable()  # until it plays: imports leave no garbage, and looking for it takes a tenth of their time
    from ci_evals.cli.commands.run import run_suites

    run_suites(settings, context)


@app.command()
def list_suites(ctx: typer.Context) -> None:
    """List the bundled suites."""
    from ci_evals.cli.commands.list_suites import list_suites as work

    work(ctx.ensure_object(RunContext))


@app.command()
def schema(
    ctx: typer.Context,
    results: Annotated[bool, typer.Option("--results", help="The schema of _results.json instead.")] = False,
) -> None:
    """Print the JSON Schema of suites, for completion in editors.

    Name it as "$schema" in a suite.
    """
    from ci_evals.cli.commands.schema import schema as work

    work(ctx.ensure_object(RunContext), results=results)


@app.command()
@takes(_RESULTS, "CommentSettings")
def comment(settings: "CommentSettings", context: RunContext) -> None:
    """Post a run's results as a comment on its pull request.

    Updates the comment if there is one. For the second workflow of a fork's pull request and the last job of
    a matrix; run posts by itself. Reads
    _results.json alone. If GitHub refuses, that is a warning and the exit code stays 0.

    \b
    ci-evals comment results/ --pr-number=7
    ci-evals comment results/ --dry-run
    """
    from ci_evals.cli.commands.comment import comment as work

    work(settings, context)


_not_loaded: list[str] = []
"""Says which extensions could not be loaded, until a command can."""
installed().warn = _not_loaded.append
register_commands(app)


def invoke(args: Sequence[str], context: RunContext, name: str | None = None) -> object:
    """Run a command, and return the exit code of one that ends early, as `--help` does.

    `name` is the program's in its usage, by default that of the file that was started.

    Raises:
        typer.TyperException: the command line cannot be read.
    """
    context.check_settings = partial(_check_settings, context)
    context.spell = partial(_spell, context)
    _warn_of_extensions(context)
    return program()(args=list(args), prog_name=name, standalone_mode=False, obj=context)


@cache
def program() -> Any:
    """The commands, made once. The options of each are made when it is first called."""
    return typer.main.get_command(app)


def _warn_of_extensions(context: RunContext) -> None:
    """Name the extensions that could not be loaded, from now on as soon as that shows."""

    def warn(text: str) -> None:
        from ci_evals.cli.github import actions

        actions.warn(text, context)

    while _not_loaded:
        warn(_not_loaded.pop(0))
    installed().warn = warn


def _check_settings(context: RunContext, settings: object) -> None:
    """Refuse what is wrong with the options of any command: before it begins, whichever it is."""
    if any(name.upper().startswith(_OURS) for name in context.environ):
        _check_variables(context)
    if context.environ.get("GITHUB_EVENT_NAME"):
        from ci_evals.cli.github.trust import check_workspace

        check_workspace(settings, context)


def _check_variables(context: RunContext) -> None:
    from ci_evals.cli.github.actions import warn
    from ci_evals.cli.settings.variables import check_variables, variables_of

    for warning in check_variables(context.environ, variables_of(_all_options())):
        warn(warning, context)


def new_context() -> RunContext:
    """Return the context of a command line, whose messages name settings as their reader sets them."""
    context = RunContext()
    context.spell = partial(_spell, context)
    return context


def _spell(context: RunContext, message: str) -> str:
    """Return a message with the settings as its reader sets them."""
    from ci_evals.cli.settings.spelling import spell

    return spell(message, _all_options, as_inputs=context.reads_inputs)


@cache
def _all_options() -> dict[str, Option]:
    """The options of all commands by their names; of a name that several have, the first."""
    from ci_evals.cli.settings.table import options_of

    options = {option.name: option for option in options_of(env_files.EnvFile)}
    for command in app.registered_commands:
        settings = getattr(command.callback, "settings", None)
        if settings is None:
            continue  # it has switches alone
        for option in options_of(settings()):
            options.setdefault(option.name, option)
    return options


def _only_informs(arguments: Sequence[str]) -> bool:
    """Return whether a command line asks for help, the version or completion alone."""
    if not arguments or any(name.endswith("_COMPLETE") and name.startswith("_") for name in os.environ):
        return True
    return not {"-h", "--help", "--version"}.isdisjoint(arguments)


def main(args: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: see `ci_evals.cli.process.guard` for what each kind of ending means."""
    from ci_evals.cli.process.guard import run_command

    arguments, named = env_files.split(sys.argv[1:] if args is None else args)
    context = new_context()

    def command() -> object:
        if not _only_informs(arguments):
            env_files.read(named, context)
        return invoke(arguments, context)

    run_command(command, arguments, context)
