"""The help of a command: its options in groups, a line each.

The first paragraph of an option's text is that line. The others are for the reference in the docs, as are the
environment variables; `sections` has all of it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import typer
from typer.core import TyperCommand

from ci_evals.cli.settings.successors import refuse_option, refuse_value
from ci_evals.cli.settings.table import ENV_PREFIX
from ci_evals.domain.errors import UsageError
from ci_evals.domain.options import Group
from ci_evals.support.documentation import address

F = TypeVar("F", bound=Callable[..., Any])

_ARGUMENTS = "Arguments"
_REFERENCE = address("reference/options")
_NAME_COLUMN = 34
"""The widest name that the text of an option stands beside."""
WIDTH = 100
"""The most columns of a help text."""


class OptionReference(NamedTuple):
    """An option or argument as the help and the reference show it."""

    name: str
    """`--min-score`, or an argument's metavar."""
    metavar: str
    variable: str | None
    default: str
    """Empty if there is none to show."""
    text: str
    """A line."""
    details: str

    @property
    def input(self) -> str:
        """The name as that of an input: `min-score`; that of the variable where the two differ."""
        if self.variable is None:
            return self.name.removeprefix("--")
        return self.variable.removeprefix(ENV_PREFIX).lower().replace("_", "-")

    @property
    def row(self) -> tuple[str, str]:
        """Name and text for a terminal."""
        default = f" [default: {self.default}]" if self.default else ""
        return f"{self.name} {self.metavar}".rstrip(), self.text.replace("`", "") + default


class HelpCommand(TyperCommand):
    """A command whose options are made once they are asked for, and listed in groups."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, and what they are for from now on."""
        if complete := getattr(self.callback, "complete", None):
            alone = typer.Typer(add_completion=False)
            alone.command()(complete())
            whole = typer.main.get_command(alone)
            facts = getattr(self.callback, "facts", None)
            if facts and facts.formats:
                self.help = (self.help or "").replace("FORMATS", _columns(list(facts.formats())))
            self.params, self.callback = whole.params, whole.callback
        return super().get_params(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line as Typer does.

        Raises:
            UsageError: an option or a value is gone.
        """
        bare: Mapping[str, str] = getattr(self.callback, "bare", dict)()
        try:
            return super().parse_args(ctx, [*_with_values(args, bare)])
        except typer.TyperException as error:
            if sentence := _refused(error):
                raise UsageError(sentence) from error
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and each group of options, their texts in one column."""
        groups = {title: [option.row for option in options] for title, options in sections(self, ctx).items()}
        names = [name for rows in groups.values() for name, _ in rows]
        column = max(len(name) for name in names if len(name) <= _NAME_COLUMN)
        for title, rows in groups.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(column), text) for name, text in rows], col_max=column)
        formatter.write_paragraph()
        formatter.write_text(f"Environment variables and details: {_REFERENCE}")


def _with_values(args: Sequence[str], bare: Mapping[str, str]) -> Iterator[str]:
    """Yield arguments, with its value for each option that may stand without one."""
    only_names = False
    for arg in args:
        only_names = only_names or arg == "--"
        yield f"{arg}={bare[arg]}" if arg in bare and not only_names else arg


def _columns(rows: Sequence[tuple[str, str]]) -> str:
    """Return rows of two columns as lines."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:{width}}  {text}" for name, text in rows)


def _refused(error: typer.TyperException) -> str | None:
    """The sentence for an option or a value that is gone, if that is the error."""
    if option := getattr(error, "option_name", None):
        return refuse_option(option)
    if not isinstance(error, typer.BadParameter) or error.param is None:
        return None
    value = re.search("'([^']*)' is not one of", error.message)
    return refuse_value(error.param.opts[0], value[1]) if value else None


class Application(typer.Typer):
    """A Typer app whose commands have grouped help."""

    def command(  # type: ignore[override]  # nobody gives more
        self, name: str | None = None
    ) -> Callable[[F], F]:
        """Add a command, as Typer does."""
        return super().command(name, cls=HelpCommand)


def sections(command: Any, ctx: Any) -> dict[str, list[OptionReference]]:
    """Return the arguments and options of a command by group, in the order of the help."""
    grouped: dict[str, list[OptionReference]] = {group: [] for group in (_ARGUMENTS, *Group)}
    for param in command.get_params(ctx):
        is_argument = param.param_type_name == "argument"
        group = _ARGUMENTS if is_argument else getattr(param, "rich_help_panel", None) or Group.OTHER
        grouped[group].append(_reference(param, is_argument=is_argument))
    return {group: options for group, options in grouped.items() if options}


def _variable(param: Any) -> str | None:
    """Return the variable of an option. Typer does not know that of a list: see `lists_in`."""
    return f"{ENV_PREFIX}{param.name.upper()}" if param.multiple else param.envvar


def _reference(param: Any, *, is_argument: bool) -> OptionReference:
    text, _, details = (param.help or "").partition("\n\n")
    has_value = is_argument or not param.is_flag
    default = getattr(param.default, "value", param.default)
    if isinstance(default, float):
        default = f"{default:g}"
    return OptionReference(
        name=param.metavar if is_argument else ", ".join(sorted(param.opts, key=len)),
        metavar=param.metavar if has_value and not is_argument else "",
        variable=None if is_argument else _variable(param),
        default=str(default) if has_value and default is not None else "",
        text=text,
        details=details,
    )
