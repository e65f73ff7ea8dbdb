"""Trust in files: a checkout that may be somebody else's code does not decide where secrets go.

Each option declares what it names in the workspace (`Names`); the rule for that is here.
"""

import glob
import os
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

from ci_evals.adapters import files
from ci_evals.adapters.git.checkout import Checkout, checkout_of, tracks
from ci_evals.adapters.github import trust as rules
from ci_evals.adapters.github.context import PULL_REQUEST_EVENTS, GitHubEvent
from ci_evals.cli import environment_secrets
from ci_evals.cli.github.github_job import GitHubJob, wants_comment
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import CommentMode, SuiteTrust
from ci_evals.cli.settings.shared import CommentingSettings
from ci_evals.cli.settings.table import options_of
from ci_evals.domain.agents import is_program
from ci_evals.domain.errors import GitHubError, UsageError
from ci_evals.domain.options import Names
from ci_evals.planning.parse import LoadedSuite
from ci_evals.reports.names import RESULTS

SEE = "(see `trust_suites=`)"
_CURE = (
    "Use a file from a checkout of your own branch, or `trust_suites=always` if you have read these files."
)
_MOST_LINKS = 40
"""Maximum number of links in a path that are followed, as Linux does."""
_BETWEEN_WORDS = re.compile(r"[\s\"'`;&|()<>=:,]+")
"""The separators of words in a shell's command and in `python:module:attribute`."""
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_ASK_SECONDS = 30.0

Rule = Callable[[GitHubEvent, Checkout | None, GitHubEvent | None, str | None], str | None]


def check_workspace(settings: object, context: RunContext) -> None:
    """Make sure that no option of a command names something in a checkout that may be somebody else's.

    Raises:
        UsageError: with the option and the reason. An existing comment then says that nothing was run.
    """
    github = GitHubJob.of(settings, context)
    try:
        FileTrust(settings, github).check_options()
    except UsageError as error:
        if _has_comment(settings) and not github.missing and wants_comment(settings, github):
            from ci_evals.cli.github.posting import withdraw  # noqa: PLC0415  # most commands post nothing

            withdraw(error, settings.comment_key, github)
        raise


def _has_comment(settings: object) -> TypeGuard[CommentingSettings]:
    """Return whether a command comments. A shard does so only on request."""
    if not isinstance(settings, CommentingSettings):
        return False
    is_shard = getattr(settings, "shard", None) is not None
    return not is_shard or settings.comment is CommentMode.ALWAYS


class FileTrust:
    """Decides whose files they are, by the event, by the checkout they lie in, and by `--trust-suites`."""

    def __init__(self, settings: object, github: GitHubJob) -> None:
        self._settings = settings
        self._trust: SuiteTrust = getattr(settings, "trust_suites", SuiteTrust.AUTO)
        self.github = github

    def suite_distrusted(self, path: Path) -> str | None:
        """Return why a suite is not trusted, as a clause (`in the event …`); None if it is."""
        match self._trust:
            case SuiteTrust.NEVER:
                return "with `trust_suites=never`"
            case SuiteTrust.ALWAYS:
                return None
        for location in _locations(path):
            checkout = checkout_of(location.parent) or checkout_of(self._workspace())
            if because := self._decided(rules.distrusted_because, checkout):
                return f"{because} {SEE}"
        return None

    def workspace_distrusted(self) -> str | None:
        """Return why files of the workspace are not trusted, likewise."""
        return self.suite_distrusted(self._workspace() / "any")

    def check_options(self) -> None:
        """Make sure that no option names something in a checkout that may be somebody else's.

        Raises:
            UsageError: with the option and the reason.
        """
        for option in options_of(type(self._settings)):
            for value in option.named_by(getattr(self._settings, option.name)):
                self.check(option.setting, option.names, value)

    def check_agent(self, option: str, value: str) -> None:
        """Make sure of the same for an option of a further agent, in `--against` or the file of `--arms`.

        Raises:
            UsageError: with the option and the reason.
        """
        from ci_evals.cli.settings.run_command import RunSettings  # noqa: PLC0415  # brings the gate along

        for declared in options_of(RunSettings):
            if declared.kebab == option and declared.named_by(value):
                self.check(option, declared.names, value)

    def check_programs(self, loaded: LoadedSuite) -> None:
        """Make sure that a suite that is trusted names no program of a checkout that is not.

        Raises:
            UsageError: with the key and the reason.
        """
        suite, folder = loaded.suite, loaded.start_folder
        if suite.start:
            self.check(
                f"{loaded.file}: start", Names.PROGRAM, suite.start, folder=Path(folder) if folder else None
            )
        if is_program(suite.adapter):
            self.check(f"{loaded.file}: adapter", Names.PROGRAM, suite.adapter)

    def check(self, option: str, names: Names | None, value: str, *, folder: Path | None = None) -> None:
        """Make sure that one value follows the rule for what it names.

        A program runs in `folder`; None stands for the current one.

        Raises:
            UsageError: it names something in a checkout that may be somebody else's.
        """
        if self._trust is SuiteTrust.ALWAYS or not self.github.event.event:
            return
        match names:
            case Names.INPUT:
                self._check_input(option, value)
            case Names.PROGRAM:
                self._check_program(option, value, folder or Path.cwd())
            case Names.EVIDENCE:
                self._check_evidence(option, value)
            case _:
                return  # nothing in the workspace, or its files have their own rule where they are read

    def _check_input(self, option: str, value: str) -> None:
        if because := self._foreign_path(Path(value)):
            raise UsageError(f"{option}: {value} may not be read {because}. {_CURE}")

    def _check_program(self, option: str, value: str, folder: Path) -> None:
        """Refuse a program that runs in a foreign checkout, or that names a file or folder in one.

        Outside of the workspace are installed programs, some of them in checkouts, such as those of pyenv.
        """
        for place in (Path.cwd(), folder):
            if because := self._foreign(place):
                raise UsageError(f"{option}: a program may not be named {because} {SEE}.")
        for name in self._names_in(value, folder):
            locations = _locations(folder / name)
            inside = (one for one in locations if one.is_relative_to(self._workspace()))
            if because := next(filter(None, map(self._foreign, inside)), None):
                raise UsageError(f"{option}: {name} may not be run {because} {SEE}.")

    def _check_evidence(self, option: str, value: str) -> None:
        for file in _result_files(value):
            because = self._foreign_path(file)
            if because and any(map(tracks, _locations(file))):
                raise UsageError(
                    f"{option}: git tracks {file} {because}, so whoever commits could have written it. "
                    "Name the results of an earlier step."
                )

    def _names_in(self, command: str, folder: Path) -> Iterator[str]:
        """Yield the files and folders that the words of a command name, also as a Python module."""
        environ = {**self.github.context.environ, "PWD": str(folder)}
        text = _VARIABLE.sub(lambda match: environ.get(match[1], match[0]), command)
        for word in filter(None, _BETWEEN_WORDS.split(text)):
            module = word.replace(".", "/")
            for name in dict.fromkeys((word, module, module.partition("/")[0])):
                if name and os.path.lexists(folder / name):
                    yield name

    def _foreign_path(self, path: Path) -> str | None:
        reasons = map(self._foreign, _locations(path))
        return next(filter(None, reasons), None)

    def _foreign(self, location: Path) -> str | None:
        checkout = checkout_of(location if files.is_folder(location) else location.parent)
        if checkout is None and not location.is_relative_to(self._workspace()):
            return None  # an earlier step made it
        return self._decided(rules.foreign_because, checkout)

    def _decided(self, rule: Rule, checkout: Checkout | None) -> str | None:
        """Apply the rule. GitHub is called for a pull request only if that may change the answer."""
        event = self.github.event
        because = rule(event, checkout, None, self._secret)
        if because is None or event.number is None or event.event in PULL_REQUEST_EVENTS:
            return because
        return rule(event, checkout, self._pull, self._secret)

    @cached_property
    def _secret(self) -> str | None:
        """The name of a secret that the job has, if it has any."""
        options = {
            option.setting: getattr(self._settings, option.name)
            for option in options_of(type(self._settings))
            if option.secret
        }
        return environment_secrets.secret_of_job(self.github.context.environ, options)

    @cached_property
    def _pull(self) -> GitHubEvent | None:
        if self.github.missing:
            return None
        try:
            return self.github.context.wait(self._ask())
        except (GitHubError, TimeoutError):
            return None

    async def _ask(self) -> GitHubEvent:
        import asyncio  # noqa: PLC0415  # most runs ask GitHub nothing

        from ci_evals.adapters.github.pulls import located  # noqa: PLC0415  # as above

        async with asyncio.timeout(_ASK_SECONDS), self.github.client() as hub:
            return await located(hub, self.github.event)

    def _workspace(self) -> Path:
        return Path(self.github.context.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()


def _result_files(value: str) -> Iterator[Path]:
    """Yield the files that a path or glob of results stands for."""
    path = Path(value)
    if files.is_folder(path):
        yield from path.rglob(RESULTS)
    elif not files.is_there(path) and glob.has_magic(value):
        yield from map(Path, glob.glob(value, recursive=True))  # noqa: PTH207  # it may be absolute
    else:
        yield path


def _locations(path: Path) -> tuple[Path, ...]:
    """Return a path as it is written and after each link on its way: none may be somebody else's."""
    locations = [path.absolute()]
    while len(locations) <= _MOST_LINKS and (target := _after_first_link(locations[-1])):
        locations.append(target)
    return tuple(dict.fromkeys((*locations, path.resolve())))


def _after_first_link(path: Path) -> Path | None:
    """Return the path with its first link followed, None if it has none."""
    for folder in (*reversed(path.parents), path):
        if files.is_link(folder):
            target = folder.parent / os.readlink(folder)  # noqa: PTH115  # a text
            return Path(os.path.normpath(target / path.relative_to(folder)))
    return None
