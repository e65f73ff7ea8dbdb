"""Trust in files: a checkout that may be somebody else's code does not decide where secrets go."""

import dataclasses
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from ci_evals.adapters import files
from ci_evals.adapters.git.checkout import Checkout, checkout_of
from ci_evals.adapters.github import trust as rules
from ci_evals.adapters.github.context import PULL_REQUEST_EVENTS, GitHubEvent
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.settings.choices import SuiteTrust
from ci_evals.cli.settings.shared import REQUIRED, AgentApiSettings, SuiteSettings
from ci_evals.domain.agents import is_program
from ci_evals.domain.errors import GitHubError, UsageError

SEE = "(see --trust-suites)"

_FILES = ("adapter_options", "prices", "calibration", "baseline", "replay", "only_failed")
"""Options that name files with a say in where secrets go, in what may be spent, or in the verdict."""

_WORDS = frozenset({"auto", "none", REQUIRED})
"""Values of `baseline` that are no path."""

_ASK_SECONDS = 30.0

Rule = Callable[[GitHubEvent, Checkout | None, GitHubEvent | None], str | None]


class FileTrust:
    """Decides whose files they are, by the event, by the checkout they lie in, and by `--trust-suites`."""

    def __init__(self, settings: object, github: GitHubJob) -> None:
        self._trust = settings.trust_suites if isinstance(settings, SuiteSettings) else SuiteTrust.AUTO
        self.github = github

    def suite_distrusted(self, path: Path) -> str | None:
        """Return why a suite is not trusted, as a clause (`in the event …`); None if it is."""
        match self._trust:
            case SuiteTrust.NEVER:
                return "with --trust-suites=never"
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

    def check_options(self, settings: SuiteSettings) -> None:
        """Make sure that no option names a file of a checkout that may be somebody else's.

        Raises:
            UsageError: with the option and the reason.
        """
        if self._trust is not SuiteTrust.AUTO:
            return
        programs = {"--adapter": settings.adapter if is_program(settings.adapter or "") else None}
        if isinstance(settings, AgentApiSettings):
            programs["--start"] = settings.start
        for option, program in programs.items():
            if program and (because := self._foreign(Path.cwd())):
                raise UsageError(f"{option}: a program may not be named {because} {SEE}.")
        for item in dataclasses.fields(settings):
            value = getattr(settings, item.name) if item.name in _FILES else None
            if not value or str(value).lower() in _WORDS:
                continue
            because = next(
                (why for location in _locations(Path(value)) if (why := self._foreign(location))), None
            )
            if because:
                option = f"--{item.name.replace('_', '-')}"
                raise UsageError(
                    f"{option}: {value} may not be read {because}. Use a file from a checkout of your own "
                    "branch, or --trust-suites=always if you have read these files."
                )

    def _foreign(self, location: Path) -> str | None:
        checkout = checkout_of(location if files.is_folder(location) else location.parent)
        if checkout is None and not location.is_relative_to(self._workspace()):
            return None  # an earlier step made it
        return self._decided(rules.foreign_because, checkout)

    def _decided(self, rule: Rule, checkout: Checkout | None) -> str | None:
        """Apply the rule. GitHub is called for a pull request only if that may change the answer."""
        event = self.github.event
        because = rule(event, checkout, None)
        if because is None or event.number is None or event.event in PULL_REQUEST_EVENTS:
            return because
        return rule(event, checkout, self._pull)

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


def _locations(path: Path) -> tuple[Path, ...]:
    """Return a path as it is written and with links followed: neither may be somebody else's."""
    return tuple(dict.fromkeys((path.absolute(), path.resolve())))
