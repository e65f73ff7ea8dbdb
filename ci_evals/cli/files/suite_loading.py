"""Loads the suites that settings name, and reports all their problems at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from ci_evals.adapters import input_files
from ci_evals.adapters.git.checkout import tracked_files
from ci_evals.adapters.suites import SuiteSource, read_beside, sources
from ci_evals.agents import plugins
from ci_evals.cli import environment_secrets
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.settings.shared import AgentApiSettings, SuiteSettings
from ci_evals.domain.errors import Problem, SeveralError, SuiteError, UsageError
from ci_evals.domain.suite import is_bundled
from ci_evals.planning import paths
from ci_evals.planning.adapter_options import OptionsFile, read_options
from ci_evals.planning.agent_choice import AgentChoice, choose, with_missing
from ci_evals.planning.documents.interpolate import Reading, not_secret
from ci_evals.planning.parse import BrokenSuiteError, LoadedSuite, load


def load_suites(
    settings: SuiteSettings, trust: FileTrust, *, without_key: bool = False, replay: bool = False
) -> list[LoadedSuite]:
    """Load all suites that the settings name. With `without_key` the key of their agent may be missing.

    For a `replay` they are read as a recording has them, without secrets and without what reaches an agent.

    Raises:
        UsageError: suites that are not there or cannot be run, with all problems of all of them.
    """
    context = trust.github.context
    choice = agent_choice(settings, context.environ, masked=replay)
    reading = Reading(
        environ=context.environ,
        plugins=choice.plugins,
        replaced=choice.replaces,
        may_lack=frozenset({"apiKey"} if without_key else ()),
        masked=replay,
        today=datetime.now(UTC).date(),
    )
    loaded: dict[Path, LoadedSuite] = {}
    faults: list[UsageError] = []
    for source in _sources(settings.suites, faults):
        try:
            distrusted = None if is_bundled(source.file) else trust.suite_distrusted(Path(source.file))
            folder = source.path.parent
            reading_here = replace(
                reading, distrusted=distrusted, read_beside=partial(read_beside, folder), folder=str(folder)
            )
            read = load(source.text, source.file, reading_here)
            suite = choose(read, choice, without_key=without_key, unasked=replay)
            trust.check_programs(suite)
        except BrokenSuiteError as error:
            faults += _with_missing(error, choice, without_key=without_key, unasked=replay)
        except UsageError as error:
            faults.append(error)
        else:
            loaded.setdefault(source.path, suite)
    suites = list(loaded.values())
    keys = [
        settings.agent_key,
        *(item.suite.api_key.get_secret_value() for item in suites if item.suite.api_key),
    ]
    context.hide(keys, values_of(suites, context.environ))
    if faults:
        raise _joined(faults)
    return suites


def agent_choice(settings: SuiteSettings, environ: Mapping[str, str], *, masked: bool = False) -> AgentChoice:
    """Return the agent that options name instead of the suites'.

    Raises:
        UsageError: the file with the options of the adapter cannot be read.
    """
    options = settings.adapter_options
    return AgentChoice(
        adapter=settings.adapter,
        options=options_file(options, environ, masked=masked) if options else None,
        plugins=plugins.names(),
        agent_id=settings.agent_id,
        agent_key=settings.agent_key,
        base_url=settings.base_url,
        start=settings.start if isinstance(settings, AgentApiSettings) else None,
        wait_for=settings.wait_for if isinstance(settings, AgentApiSettings) else None,
    )


def _with_missing(
    broken: BrokenSuiteError, choice: AgentChoice, *, without_key: bool, unasked: bool
) -> list[UsageError]:
    """Return all faults of a suite that cannot be read, of the options for its agent too."""
    try:
        return [with_missing(broken, choice, without_key=without_key, unasked=unasked)]
    except UsageError as error:
        return [broken, error]


def unmatched_paths(loaded: Sequence[LoadedSuite]) -> tuple[Problem, ...]:
    """Return warnings about patterns in `when` that match no file that git tracks, if there is a checkout."""
    if not any(item.suite.when or any(test.when for test in item.suite.tests) for item in loaded):
        return ()
    files = tracked_files(Path.cwd())
    if files is None:
        return ()
    return tuple(problem for item in loaded for problem in paths.unmatched_in(item, files))


def values_of(suites: Sequence[LoadedSuite], environ: Mapping[str, str]) -> set[str]:
    """Return the values that nobody else should see, of suites and of the environment."""
    public = {name for item in suites for name in not_secret(item.document)}
    return {value for item in suites for value in item.secrets}.union(
        environment_secrets.values_in(environ, public)
    )


def headers_of(text: str | None) -> dict[str, str]:
    """Read the headers of `--agent-headers`.

    Raises:
        UsageError: a line is none.
    """
    headers = {}
    for line in (text or "").splitlines():
        name, colon, value = line.partition(":")
        if line.strip() and not (colon and name.strip() and value.strip()):
            raise UsageError(
                "`agent_headers=`: a line is not of the form NAME: VALUE. Write one header per line."
            )
        if line.strip():
            headers[name.strip()] = value.strip()
    return headers


def options_file(path: Path, environ: Mapping[str, str], *, masked: bool) -> OptionsFile:
    """Read a file with the options of an adapter.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        text = input_files.read(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or error) if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"`adapter_options=`: {path} cannot be read: {why}") from None
    return read_options(text, str(path), environ, masked=masked)


def _joined(faults: Sequence[UsageError]) -> UsageError:
    """Join all errors into one; if all have locations they keep them."""
    problems = [fault.problems for fault in faults if isinstance(fault, SuiteError)]
    if len(problems) == len(faults):
        return SuiteError(
            tuple(dict.fromkeys(problem for problems_of_file in problems for problem in problems_of_file))
        )
    return SeveralError(faults)


def _sources(names: Sequence[str], faults: list[UsageError]) -> Iterator[SuiteSource]:
    for name in names:
        try:
            yield from sources(name)
        except UsageError as error:
            faults.append(error)
