"""The context that parts of one command share. Imports its parts late, so that `--help` answers at once."""

import os
import sys
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping, MutableMapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

if TYPE_CHECKING:
    from asyncio import Runner

    from ci_evals.cli.terminal.console import Console
    from ci_evals.domain.prices import PriceTable
    from ci_evals.support.redaction import Redactor

T = TypeVar("T")


class RunContext:
    """The environment of a command, the secrets it knows, its console and its prices: built once per process.

    Everything that the command prints is without the secrets registered here, also the error that ends it.
    """

    def __init__(
        self, environ: MutableMapping[str, str] | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Take the process's environment by default.

        Args:
            environ: The environment.
            options: Values of options by field name, instead of those on the command line.
        """
        self.environ: MutableMapping[str, str] = os.environ if environ is None else environ
        self.options = options or {}
        self.check_settings: Callable[[object], None] = lambda _: None
        """Checks the options of any command before it begins, and raises `UsageError`."""
        self.most_trials: int | None = None
        """The most trials that a run may play; None for no limit."""
        self.reads_inputs = False
        """True if the action's inputs set the options, and no command line."""
        self.spell: Callable[[str], str] = str
        """Spells the settings in a message as its reader sets them: see `cli/settings/spelling`."""
        self._runner: Runner | None = None
        self._json: TextIO | None = None

    @cached_property
    def redactor(self) -> "Redactor":
        """The redactor with all secrets known by now: at first those of the environment."""
        from ci_evals.cli import environment_secrets
        from ci_evals.support.redaction import Redactor

        return Redactor(
            environment_secrets.keys_in(self.environ), environment_secrets.values_in(self.environ)
        )

    def hide(self, keys: Iterable[str | None] = (), values: Iterable[str] = ()) -> "Redactor":
        """Take these secrets, and the environment's keys, out of everything from now on."""
        from ci_evals.cli import environment_secrets
        from ci_evals.support.redaction import Redactor

        self.redactor = Redactor([*environment_secrets.keys_in(self.environ), *filter(None, keys)], values)
        return self.redactor

    def mask(self) -> None:
        """Register all known secrets with GitHub's runner, before anything else is printed."""
        from ci_evals.adapters.github.workflow import mask_lines

        if self.in_actions:
            for line in mask_lines(self.redactor.keys | self.redactor.values):
                print(line, flush=True)  # noqa: T201  # a workflow command must reach the stream as it is

    @property
    def console(self) -> "Console":
        """Standard error, without the secrets known by now."""
        from ci_evals.cli.terminal.console import Console, colored

        return Console(sys.stderr, self.redactor, colored(sys.stderr, self.environ), self.spell)

    def message(self, text: str) -> str:
        """Return a message without secrets, with the settings as its reader sets them."""
        return self.spell(self.redactor.text(text))

    @property
    def width(self) -> int | None:
        """The columns of the terminal that results are shown on; None if they go elsewhere."""
        from ci_evals.cli.terminal.console import width_of

        return width_of(sys.stdout)

    def show(self, text: str, *, exact: bool = False) -> None:
        """Write a result to standard output, without secrets. Foreign text in it was sanitized before.

        On a terminal its lines wrap, unless it is `exact`: text that is to be copied, or read by a program.
        """
        if "redactor" in self.__dict__:
            text = self.redactor.text(text)
        if not exact and (width := self.width):
            from ci_evals.reports.columns import wrapped

            text = wrapped(text, width)
        with suppress(OSError, ValueError):  # ValueError: somebody's code has closed it
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    def keep_stdout_for_json(self) -> None:
        """Send all to standard error from now on, except for what `show_json` writes."""
        self._json, sys.stdout = sys.stdout, sys.stderr

    @property
    def prints_json(self) -> bool:
        """True if standard output is kept for one JSON object."""
        return self._json is not None

    def show_json(self, parts: Iterable[str]) -> None:
        """Write the JSON object, which comes in parts and without secrets, to standard output."""
        if self._json is None:
            return
        with suppress(OSError, ValueError):  # nobody listens any more
            for part in parts:
                self._json.write(part)
            self._json.write("\n")
            self._json.flush()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run asynchronous work to its end: all that a process has runs on one event loop."""
        import asyncio

        if self._runner is None:
            self._runner = asyncio.Runner()
            weakref.finalize(self, self._runner.close)
        return self._runner.run(work)

    def close(self) -> None:
        """Close the event loop, if there is one."""
        if self._runner:
            self._runner.close()

    @property
    def in_actions(self) -> bool:
        """True in a step of a GitHub Actions job."""
        return self.environ.get("GITHUB_ACTIONS") == "true"

    @property
    def in_ci(self) -> bool:
        """True where a service runs this: its machines are new each time, and its verdicts should be, too."""
        values = (self.environ.get(name, "") for name in ("CI", "GITHUB_ACTIONS"))
        return any(value.lower() not in {"", "false", "0"} for value in values)

    def prices(self, file: Path | None, provider: str | None = None) -> "Callable[[], PriceTable]":
        """Return how to get the prices: the user's table is read at once, since it may have faults.

        A `provider` that does not bill tokens has no other.

        Raises:
            UsageError: the file cannot be read.
        """
        from ci_evals.adapters import prices
        from ci_evals.domain.prices import NO_PRICES
        from ci_evals.extension_registry import providers

        if file is None:
            by_token = provider is None or providers()[provider].bills_tokens
            return prices.bundled if by_token else lambda: NO_PRICES
        table = prices.read(file)
        return lambda: table
