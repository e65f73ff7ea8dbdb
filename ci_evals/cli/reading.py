"""From settings to loaded suites, with every problem of every suite told at once."""

from collections.abc import Mapping

from ci_evals.adapters.suites import sources
from ci_evals.cli.settings import SuiteSettings, Trust
from ci_evals.domain.errors import Problem, SuiteError
from ci_evals.planning.parse import LoadedSuite, Reading, load

UNTRUSTED_EVENTS = frozenset({"pull_request_target", "workflow_run", "issue_comment"})
"""Events in which a workflow has secrets while the files may be anybody's."""


def load_suites(settings: SuiteSettings, environ: Mapping[str, str]) -> list[LoadedSuite]:
    """All suites that the settings name.

    Raises:
        UsageError: a suite is not there.
        SuiteError: suites that cannot be run, with all their problems.
    """
    reading = Reading(
        environ=environ,
        untrusted_event=_untrusted_event(settings.trust_suites, environ),
        agent_id=settings.agent_id,
        agent_key=settings.agent_key,
        base_url=settings.base_url,
        adapter=settings.adapter,
    )
    loaded: list[LoadedSuite] = []
    problems: list[Problem] = []
    for source in sources(settings.suites):
        try:
            loaded.append(load(source.text, source.file, reading))
        except SuiteError as error:
            problems += error.problems
    if problems:
        raise SuiteError(problems)
    return loaded


def _untrusted_event(trust: Trust, environ: Mapping[str, str]) -> str | None:
    """The event that makes suites untrusted, or None where they are trusted."""
    event = environ.get("GITHUB_EVENT_NAME", "")
    if trust is Trust.NEVER:
        return event or "--trust-suites=never"
    return event if trust is Trust.AUTO and event in UNTRUSTED_EVENTS else None
