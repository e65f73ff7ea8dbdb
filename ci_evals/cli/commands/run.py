"""`run`: settings in, reports out, the gate's exit code."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from ci_evals.adapters import files
from ci_evals.adapters.journal import Journal
from ci_evals.adapters.reserve import Reserve
from ci_evals.adapters.signing import can_sign
from ci_evals.cli.files.output_paths import RECORDING, Inputs, OutputPaths, check_folder, check_output
from ci_evals.cli.files.suite_loading import headers_of, load_suites, values_of
from ci_evals.cli.github import actions
from ci_evals.cli.github.github_job import BaselineResults, GitHubJob, asked_baseline, wants_comment
from ci_evals.cli.github.run_identity import run_identity
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run import recording
from ci_evals.cli.run.judge_cache import folder_of, refused
from ci_evals.cli.run.sharding import for_shard, only_part, part_of
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import CommentMode, MissingSecrets
from ci_evals.cli.settings.models import models_asked
from ci_evals.cli.settings.policy import in_force, read_policy
from ci_evals.cli.settings.suite_commands import RunSettings
from ci_evals.cli.terminal import progress
from ci_evals.cli.terminal.console import Console
from ci_evals.domain.agents import BUILT_IN, lacks_secret
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.journal import JournalMark
from ci_evals.domain.plan import Plan
from ci_evals.domain.progress import Listener
from ci_evals.domain.results.run import OFFLINE, Results
from ci_evals.domain.suite import is_bundled
from ci_evals.job import Job, Limits, evaluate, not_played
from ci_evals.planning.agent_choice import has_filled_headers, has_key
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection, plan
from ci_evals.planning.workload import of_plan
from ci_evals.reports import numbers
from ci_evals.reports.names import AGENT_LOG, RESULTS, folders_for
from ci_evals.runner import Options
from ci_evals.scoring.gate.selectors import check_names
from ci_evals.study_registry import Addition, read_calibration
from ci_evals.support.redaction import MIN_LENGTH
from ci_evals.support.secrets import is_dummy
from ci_evals.wiring import (
    WITHOUT_KEY,
    Connections,
    embedding_model,
    keys_of,
    llm_key_of,
    no_key,
    runs_here,
)


def run_suites(settings: RunSettings, context: RunContext) -> None:
    """Runs the suites and exits as the gate decides.

    Raises:
        UsageError: before anything has run.
    """
    settings = for_shard(settings)
    github = GitHubJob.of(settings, context)
    try:
        _run(settings, github)
    except UsageError as error:
        if not github.missing and wants_comment(settings, github):
            from ci_evals.cli.github.posting import withdraw

            withdraw(error, settings.comment_key, github)
        raise


def _run(settings: RunSettings, github: GitHubJob) -> NoReturn:
    context = github.context
    settings = _in_its_folder(settings)
    FileTrust(settings, context).check_options(settings)
    settings, tape = recording.opened(settings)
    policy = read_policy(settings)
    calibration = read_calibration(settings.calibration) if settings.calibration else None
    prices = context.prices(settings.prices)
    may_skip = github.event.without_secrets and settings.on_missing_secrets is MissingSecrets.SKIP
    loaded = _loaded(settings, github, may_skip=may_skip, replay=tape is not None)
    check_names("--thresholds", policy.thresholds, [item.suite for item in loaded])
    check_names("--max-drop", policy.max_drops, [item.suite for item in loaded])
    planned = plan(loaded, Selection.of(settings.test, settings.tag), settings.loops)
    part = part_of(settings, planned)
    missing = () if tape else _missing_keys(settings, planned, context.environ, may_skip=may_skip)
    skipped = bool(missing) and may_skip
    connections = _connections(replace(settings, agent_headers=None) if skipped else settings, context)
    connections, uncached = _checked_cache(connections, settings, context)
    if LLM_KEY in missing and not skipped:
        _explain_missing(github)
        raise UsageError(no_key(settings.provider, context.environ))
    keys = (settings.llm_key, settings.agent_key, settings.github_token, *keys_of(connections, loaded))
    redactor = context.hide(keys, values_of(loaded, context.environ))
    context.mask()
    console = context.console
    planned, noted = recording.as_recorded(planned, tape, redactor)
    noted += (
        *uncached,
        *_short_keys(connections, () if tape else loaded),
        *(() if skipped else connections.warnings(planned)),
    )
    warnings = _told((*(warning for item in loaded for warning in item.warnings), *noted), console)
    places = OutputPaths(settings.output_dir, settings.junit)
    inputs = _inputs(settings, loaded)
    places.check({**inputs, "--baseline": None})  # where it is this run's own, that has words of its own
    identity = run_identity(github.event, context)
    # In CI a journal may come from elsewhere; a person's own key may be another one tomorrow.
    secret = _signing_secret(connections) if identity.ci else None
    journal = Journal(places.folder, resume=settings.resume is not None, say=console.say, secret=secret)
    interruption = Interruption(context)
    baseline = BaselineResults() if skipped else _baseline(settings, github, interruption)
    _check_apart(baseline, journal, settings)
    begun = journal.past.header.started_at if journal.past else datetime.now(UTC)
    names = [redactor.text(one.suite.name) for one in planned.suites]
    places.check(inputs, folders_for(names, begun))
    if settings.record:
        check_folder("--record", settings.record)
        check_output("--record", settings.record / RECORDING, inputs)
    if baseline.note:
        console.say(baseline.note)
    job = Job(
        plan=planned,
        policy=policy,
        options=Options(parallel=settings.parallel, retries=settings.retries),
        redactor=redactor,
        baseline=baseline.results,
        baseline_note=baseline.note,
        limits=Limits(
            max_duration=settings.max_duration,
            failures_in_row=settings.max_failures_in_row,
            fail_fast=settings.fail_fast,
        ),
        journal=journal,
        confirm=settings.confirm,
        judge_check=settings.judge_check,
        prices=prices,
        config=in_force(settings) | {"judgeCache": "on" if connections.judge_cache else "off"},
        git=github.git,
        context=identity,
        write_unfinished=places.begin,
        ci="github-actions" if context.in_actions else None,
        warnings=warnings,
    )
    job = only_part(job, part, console.say)
    job = recording.replaying(job, tape, connections)
    prepared = _PreparedRun(
        settings, github, job, journal, connections, places, context, interruption, calibration
    )
    sys.exit(_skip(prepared, _why_skipped(github, missing)) if skipped else _play(prepared))


@dataclass(frozen=True)
class _PreparedRun:
    """A run that may begin, and all that it tells its outcome to."""

    settings: RunSettings
    github: GitHubJob
    job: Job
    journal: Journal
    connections: Connections
    places: OutputPaths
    context: RunContext
    interruption: Interruption
    calibration: Addition | None


def _skip(prepared: _PreparedRun, why: str) -> int:
    """Publishes that nothing was played, and gives the exit code."""
    from ci_evals.cli.files.publish import publish

    results = not_played(prepared.job, prepared.connections, why)
    code = publish(results, prepared.places, prepared.context)
    if wants_comment(prepared.settings, prepared.github):
        # Dependabot's token may write: a comment that is there must not tell of an earlier commit.
        always = prepared.settings.comment is CommentMode.ALWAYS
        _comment(results, prepared, create=always)
    return code


def _play(prepared: _PreparedRun) -> int:
    """Plays the plan, publishes what came of it, and gives the exit code."""
    settings, console, stop = prepared.settings, prepared.context.console, prepared.interruption.stop
    if any(item.suite.adapter not in BUILT_IN for item in prepared.job.plan.suites):
        _import_reports(prepared)
    reserve = Reserve()
    stop.release = reserve.release
    with (
        _listening(settings, prepared.job.plan, prepared.context) as listen,
        recording.recorded(prepared.job, settings, console) as job,
    ):
        results = prepared.interruption.play(evaluate(job, prepared.connections, listen=listen, stop=stop))
    reserve.release()
    if prepared.calibration:
        results = prepared.calibration(results, prepared.job.redactor)
    from ci_evals.cli.files.publish import publish

    code = publish(results, prepared.places, prepared.context, job.baseline, verbose=settings.verbose)
    if results.run.status == "completed" or stop.failed_fast:
        prepared.journal.mark(JournalMark(mark="ended"))
    elif not settings.replay:
        console.say(f"to go on with this run, give the same command with --resume={prepared.places.folder}")
    if wants_comment(settings, prepared.github):
        _comment(results, prepared)
    if stop.bug:
        raise stop.bug
    return code


def _import_reports(prepared: _PreparedRun) -> None:
    """Import what writes reports, before agents that are code could change it on the disk."""
    from ci_evals.cli.files.publish import load

    load(not_played(prepared.job, prepared.connections, ""))
    if wants_comment(prepared.settings, prepared.github):
        import ci_evals.adapters.transport.over_aiohttp
        import ci_evals.cli.github.posting  # noqa: F401


def _comment(results: Results, prepared: _PreparedRun, *, create: bool = True) -> None:
    from ci_evals.cli.github.posting import comment_on

    comment_on(results, prepared.settings, prepared.github, prepared.interruption.aside, create=create)


def _signing_secret(connections: Connections) -> str | None:
    """Return the key or token of the LLM, if it is secret enough to sign a journal with."""
    secret = connections.llm_key or connections.llm_token
    return secret if can_sign(secret) else None


def _told(warnings: tuple[str, ...], console: Console) -> tuple[str, ...]:
    """The warnings, said."""
    for warning in warnings:
        console.say(f"warning: {warning}")
    return warnings


def _in_its_folder(settings: RunSettings) -> RunSettings:
    """The settings with the output folder of the run that is gone on with, if there is one.

    Raises:
        UsageError: another folder is named too.
    """
    if settings.resume is None:
        return settings
    if settings.output_dir not in {settings.resume, RunSettings.output_dir}:
        raise UsageError(
            f"--resume={settings.resume} goes on in that folder, and --output-dir={settings.output_dir} is "
            "another one: leave one of them out"
        )
    return replace(settings, output_dir=settings.resume)


def _suites_of(loaded: Sequence[LoadedSuite]) -> dict[str, Path | None]:
    return {f"the suite {item.file}": Path(item.file) for item in loaded if not is_bundled(item.file)}


def _inputs(settings: RunSettings, loaded: Sequence[LoadedSuite]) -> Inputs:
    """All files that the run reads, by what names them."""
    asked, tape = settings.baseline, settings.replay
    named = asked is not None and asked.lower() not in {"", "auto", "none", "required"}
    return _suites_of(loaded) | {
        "--adapter-options": settings.adapter_options,
        "--prices": settings.prices,
        "--calibration": settings.calibration,
        "--baseline": _within(Path(asked), RESULTS) if asked and named else None,
        "--replay": _within(tape, RECORDING) if tape else None,
    }


def _within(path: Path, name: str) -> Path:
    """The file that is meant by its own path or by the folder that holds it."""
    return path / name if files.is_folder(path) else path


def _baseline(settings: RunSettings, github: GitHubJob, interruption: Interruption) -> BaselineResults:
    """What the run is held against, if that is wanted."""
    if asked_baseline(settings, github) == "none":
        return BaselineResults()
    from ci_evals.cli.github.baseline import baseline_of

    return baseline_of(settings, github, interruption.aside)


def _check_apart(baseline: BaselineResults, journal: Journal, settings: RunSettings) -> None:
    """Refuses to compare a run that is gone on with to what it reported when it was broken off."""
    if journal.past and baseline.results and baseline.results.run.id == journal.past.header.run:
        raise UsageError(
            f"--baseline={settings.baseline}: these are the reports of the run that --resume goes on with, "
            "and a run cannot be compared with itself; name the results of an earlier run"
        )


LLM_KEY, AGENT_KEY = "the key of the LLM (llm-key)", "the key of the agent (agent-key)"


def _missing_keys(
    settings: RunSettings, planned: Plan, environ: Mapping[str, str], *, may_skip: bool
) -> tuple[str, ...]:
    """The keys that the plan needs and that are not there. With `may_skip` blank headers count as such."""
    work = of_plan(planned)
    embedder = embedding_model(settings.provider, settings.embedding_model) if work.embedder_calls else None
    asked = work.needs_llm or (embedder is not None and not runs_here(embedder))
    needs_key = asked and settings.provider not in WITHOUT_KEY
    has_llm_key = not needs_key or any(llm_key_of(settings.provider, settings.llm_key, environ))
    keys = [] if has_llm_key else [LLM_KEY]
    suites = [item.suite for item in planned.suites]
    blank = may_skip and not (_are_filled(settings.agent_headers) and all(map(has_filled_headers, suites)))
    return (*keys, *([AGENT_KEY] if blank or not all(map(has_key, suites)) else []))


def _loaded(settings: RunSettings, github: GitHubJob, *, may_skip: bool, replay: bool) -> list[LoadedSuite]:
    """The suites.

    Raises:
        UsageError: as `load_suites`.
    """
    try:
        return load_suites(settings, github.context, without_key=may_skip, replay=replay)
    except SuiteError as error:
        if any(problem.path == "apiKey" for problem in error.problems):
            _explain_missing(github)
        raise


def _explain_missing(github: GitHubJob) -> None:
    """Says that a key cannot be there, so that nobody puts it into a file for want of it."""
    if github.event.without_secrets:
        actions.warn(
            f"the pull request {_whose(github)}, so GitHub gives it no secrets, and on-missing-secrets is "
            "fail. Keys stay in the secrets of the repository, never in a file: to have it tested, push its "
            "branch to this repository once you have read it",
            github.context,
        )


def _are_filled(headers: str | None) -> bool:
    """Whether no line of `--agent-headers` lacks the secret that it should carry."""
    lines = [line.partition(":") for line in (headers or "").splitlines()]
    return all(value.strip() and not lacks_secret(name, value) for name, colon, value in lines if colon)


def _why_skipped(github: GitHubJob, missing: Sequence[str]) -> str:
    said = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    return f"the pull request {_whose(github)}, so GitHub gives it no secrets: {said}"


def _whose(github: GitHubJob) -> str:
    return "comes from a fork" if github.event.foreign else "is Dependabot's"


@contextmanager
def _listening(settings: RunSettings, planned: Plan, context: RunContext) -> Iterator[Listener]:
    if settings.quiet:
        yield progress.silent
    elif (console := context.console).stream.isatty():
        from ci_evals.cli.terminal.display import live

        with live(planned, console) as listen:
            yield listen
    else:
        with actions.group(f"Playing {numbers.count(len(planned.trials), 'trial')}", context):
            yield progress.lines(planned, console)


def _connections(settings: RunSettings, context: RunContext) -> Connections:
    key, token = llm_key_of(settings.provider, settings.llm_key, context.environ)
    return replace(
        models_asked(settings),
        llm_key=key,
        llm_token=token,
        llm_timeout=settings.llm_timeout,
        judge_cache=_judge_cache(settings, context),
        key_header=settings.agent_key_header,
        headers=headers_of(settings.agent_headers),
        agent_id_in=settings.agent_id_in,
        task_origin_type=settings.task_origin_type,
        agent_in_process=settings.agent_in_process,
        agent_log=(settings.output_dir / AGENT_LOG).absolute(),
        debug=settings.debug,
    )


def _judge_cache(settings: RunSettings, context: RunContext) -> Path | None:
    """The folder of the judge's answers, where somebody judges who could be asked."""
    folder = folder_of(settings.judge_cache, context)
    return None if settings.replay or settings.provider == OFFLINE else folder


def _checked_cache(
    connections: Connections, settings: RunSettings, context: RunContext
) -> tuple[Connections, tuple[str, ...]]:
    """The connections without a cache that anybody may have written, and what to say of that."""
    reason = FileTrust(settings, context).workspace_distrusted()
    if reason is None or connections.judge_cache is None:
        return connections, ()
    why = refused(connections.judge_cache, reason, connections.llm_key or connections.llm_token, context)
    return (replace(connections, judge_cache=None), (why,)) if why else (connections, ())


def _short_keys(connections: Connections, loaded: Sequence[LoadedSuite]) -> tuple[str, ...]:
    keys = [key.strip() for key in keys_of(connections, loaded)]
    short = [key for key in keys if key and len(key) < MIN_LENGTH and not is_dummy(key)]
    if not short:
        return ()
    return (f"a key has fewer than {MIN_LENGTH} characters and is not redacted in the reports",)
