"""The option `--replay`: play a recorded run again."""

from dataclasses import replace
from typing import NamedTuple

from ci_evals.adapters.journal.reading import Recording
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan, PlannedSuite
from ci_evals.domain.results.run import Origin
from ci_evals.extension_registry import providers
from ci_evals.job import Job
from ci_evals.job.chosen import Chosen
from ci_evals.support.redaction import MASK, Redactor
from ci_evals.wiring.connections import Connections


class Opened(NamedTuple):
    """The recording to play, if one is named, and the settings to play it with."""

    settings: RunSettings
    recording: Recording | None


def open_recording(settings: RunSettings) -> Opened:
    """Open the recording that the settings name, and take over its provider and models.

    Raises:
        UsageError: it cannot be read, or other options contradict it.
    """
    if settings.replay is None:
        return Opened(settings, None)
    if settings.record:
        raise UsageError("`record=`, `replay=`: a replay has nothing to record. Omit one of them.")
    if settings.resume:
        raise UsageError("`resume=`, `replay=`: a replay is quick to run again. Omit `resume=`.")
    try:
        recording = Recording(settings.replay)
    except UsageError as error:
        raise UsageError(f"`replay=`: {error}") from error
    then = recording.recorded.models
    if then.provider not in providers():
        raise UsageError(f"`replay=`: {str(recording.path)!r} names the unknown provider {then.provider!r}.")
    if settings.provider not in {then.provider, RunSettings.provider}:
        raise UsageError(
            f"`provider={settings.provider}`: the recording was made with {then.provider}, which a replay "
            "cannot change. Omit `provider=`."
        )
    judge_model, judge_panel = settings.judge_model, settings.judge_panel
    if not (judge_model or judge_panel):
        judge_model, judge_panel = then.judge_model, then.judge_panel
    settings = replace(
        settings,
        provider=then.provider,
        judge_model=judge_model,
        judge_panel=judge_panel,
        judge_votes=settings.judge_votes if settings.judge_votes > 1 else then.judge_votes,
        user_model=settings.user_model or then.user_model,
        embedding_model=settings.embedding_model or then.embedding_model,
        audit_user=settings.audit_user or then.audit_user,
        agent_headers=None,  # in a fork's pull request they lack their secret
    )
    return Opened(settings, recording)


class Planned(NamedTuple):
    """The plan with its recorded agents, and warnings about suites that differ from the recording."""

    plan: Plan
    warnings: tuple[str, ...] = ()


def with_recorded_agents(planned: Plan, recording: Recording | None, redactor: Redactor) -> Planned:
    """Replace the agents that the suites name by those that gave the recorded answers.

    Raises:
        UsageError: none of its suites is in the recording.
    """
    if recording is None:
        return Planned(planned)
    suites: list[PlannedSuite] = []
    warnings: list[str] = []
    any_recorded = False
    if recording.torn:
        warnings.append(
            f"the last line of {recording.path} is incomplete because the run was killed: that trial is "
            "not in the recording"
        )
    for item in planned.suites:
        then = recording.suite(item.file, redactor.text(item.suite.name))
        if then is None:
            warnings.append(f"{item.file}: not in the recording {recording.path}")
            suites.append(item)
            continue
        any_recorded = True
        suite = item.suite.copy_with(adapter=then.adapter, agent_id=then.agent_id, model=then.model)
        suites.append(replace(item, suite=suite))
        now = redactor.text(item.suite.agent_id or "")
        if then.agent_id and now and MASK not in now and now != then.agent_id:
            warnings.append(
                f"{item.file}: names the agent {now!r}, but the recording is of {then.agent_id!r}"
            )
    if not any_recorded:
        names = ", ".join(repr(suite.name) for suite in recording.recorded.suites)
        raise UsageError(
            f"`replay=`: none of these suites is in {str(recording.path)!r}. It contains: {names}."
        )
    return Planned(replace(planned, suites=tuple(suites)), tuple(warnings))


class Replaying(NamedTuple):
    """A job, and who plays it."""

    job: Job
    chosen: Chosen


def replaying(job: Job, recording: Recording | None, connections: Connections) -> Replaying:
    """Let the recording, if there is one, take the place of agents and models."""
    if recording is None:
        return Replaying(job, connections)
    from ci_evals.wiring.recordings import ReplayedPlayers  # noqa: PLC0415  # few runs are replayed

    run = recording.header
    origin = Origin(how="replay", run=run.run, started_at=run.started_at)
    always = job.judge_check is CheckMode.ALWAYS
    players = ReplayedPlayers(recording, job.plan, connections, job.redactor, always_check=always)
    return Replaying(replace(job, facts=replace(job.facts, origin=origin)), players)
