"""`run`: plays suites, writes reports, exits as the gate decides."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NoReturn

from ci_evals.adapters import files
from ci_evals.adapters.journal.journal import Journal
from ci_evals.adapters.journal.records import RECORDING, JournalMark
from ci_evals.adapters.reserve import Reserve
from ci_evals.adapters.signing import can_sign
from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.cli.files.output_paths import Inputs, OutputPaths, check_folder, check_output
from ci_evals.cli.files.suite_loading import load_suites, unmatched_paths, values_of
from ci_evals.cli.github import actions
from ci_evals.cli.github.github_job import GitHubJob, baseline_option, wants_comment
from ci_evals.cli.github.run_identity import run_identity, with_local_commit
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.process.interruption import Interruption
from ci_evals.cli.run import recording, reuse
from ci_evals.cli.run.arms import arms_of, with_agents
from ci_evals.cli.run.connections import check_cache, read_connections, warn_of_short_keys
from ci_evals.cli.run.elsewhere import check_elsewhere, elsewhere
from ci_evals.cli.run.keys import LLM_KEY, explain_missing, missing_keys, why_skipped
from ci_evals.cli.run.progress import show_progress
from ci_evals.cli.run.rounds import looks_of
from ci_evals.cli.run.sharding import for_shard, only_part, part_of
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import CommentMode, MissingSecrets, OutputFormat, RerunMode
from ci_evals.cli.settings.policy import read_policy, recorded_options
from ci_evals.cli.settings.run_command import RunSettings
from ci_evals.domain.errors import CiEvalsError, SuiteError, UsageError
from ci_evals.domain.plan import HEAD, Plan
from ci_evals.domain.progress import Event, Listener, TurnPlayed
from ci_evals.domain.results.run import Results
from ci_evals.domain.suite import is_bundled
from ci_evals.extension_registry import Addition, asked_after_run, read_calibration, run_loops
from ci_evals.gate.policy import Policy
from ci_evals.gate.rules.min_score import MinScore
from ci_evals.gate.rules.weakened import NotWeakened
from ci_evals.job import NO_BASELINE, BaselineResults, Job, Limits, evaluate, not_played
from ci_evals.job.chosen import Chosen
from ci_evals.job.job import RunFacts
from ci_evals.job.limits import FAILURES_IN_ROW
from ci_evals.planning.arms import Arm
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection, plan, with_tests
from ci_evals.reports.names import RESULTS, folders_for
from ci_evals.runner import Options
from ci_evals.scoring.null_score import NullScores
from ci_evals.support.redaction import Redactor
from ci_evals.threads import begin
from ci_evals.wiring.connections import Connections, keys_of
from ci_evals.wiring.providers import no_key


def run_suites(settings: RunSettings, context: RunContext) -> None:
    """Run the suites and exit as the gate decides.

    Raises:
        UsageError: before anything has run.
    """
    if loop := next((one for one in run_loops() if one.is_asked(settings)), None):
        sys.exit(loop.repeat(settings, context))
    if settings.output_format is OutputFormat.JSON:
        context.keep_stdout_for_json()
    settings = for_shard(settings)
    github = GitHubJob.of(settings, context)
    if settings.reruns is RerunMode.POOL:
        from ci_evals.cli.github.reruns import check_pooling

        check_pooling(settings, github)
    try:
        _run(settings, FileTrust(settings, github))
    except UsageError as error:
        if not github.missing and wants_comment(settings, github):
            from ci_evals.cli.github.posting import withdraw

            withdraw(error, settings.comment_key, github)
        raise


def _run(settings: RunSettings, trust: FileTrust) -> NoReturn:
    github, context = trust.github, trust.github.context
    settings = reuse.with_last_run(_with_resumed_folder(settings))
    reuse.check_options(settings)
    settings, recorded_run = recording.open_recording(settings)
    policy = read_policy(settings, context.spell)
    calibration = read_calibration(settings.calibration) if settings.calibration else None
    prices = context.prices(settings.prices, settings.provider)
    may_skip = github.event.without_secrets and settings.on_missing_secrets is MissingSecrets.SKIP
    loaded = _load(settings, trust, may_skip=may_skip, replay=recorded_run is not None)
    policy.check_names([item.suite for item in loaded])
    planned = _plan(settings, loaded)
    part = part_of(settings, planned)
    missing = () if recorded_run else missing_keys(settings, planned, context.environ, may_skip=may_skip)
    skipped = bool(missing) and may_skip
    arms = () if skipped else arms_of(settings, trust, masked=recorded_run is not None)
    connections = read_connections(replace(settings, agent_headers=None) if skipped else settings, context)
    connections, uncached = check_cache(connections, trust)
    if LLM_KEY in missing and not skipped:
        explain_missing(github)
        raise UsageError(no_key(settings.provider, context.environ))
    redactor, console = _hide_secrets(settings, context, connections, loaded, arms), context.console
    planned, notes = recording.with_recorded_agents(planned, recorded_run, redactor)
    planned = with_agents(planned, arms, settings.gate_arm, unasked=recorded_run is not None)
    notes += (
        *map(str, unmatched_paths(loaded)),
        *policy.warnings,
        *uncached,
        *warn_of_short_keys(connections, () if recorded_run else loaded),
        *(() if skipped else connections.warnings(planned)),
    )
    of_suites = (str(warning) for item in loaded for warning in item.warnings)
    warnings = tuple(map(context.spell, (*of_suites, *notes)))
    for warning in (*warnings, *_reached_floors(planned, policy)):
        console.say(f"warning: {warning}")
    paths = OutputPaths(settings.output_dir, settings.junit)
    inputs = _inputs(settings, loaded)
    paths.check({**inputs, "`baseline=`": None})  # where it is this run's own, that has words of its own
    _check_recording(settings.record, inputs)
    identity = run_identity(github.event, context)
    # In CI a journal may come from elsewhere; a person's own key may be another one tomorrow.
    secret = _signing_secret(connections) if identity.ci else None
    journal = Journal(
        paths.folder,
        resume=settings.resume is not None,
        record=settings.record,
        say=console.say,
        secret=secret,
    )
    interruption = Interruption(context)
    baseline = NO_BASELINE
    if not skipped or policy.rule(NotWeakened).can_fail:
        baseline = _baseline(settings, github, interruption)
    _refuse_self_comparison(baseline, journal, settings)
    begun = journal.past.header.started_at if journal.past else datetime.now(UTC)
    paths.check(
        inputs, folders_for([redactor.text(item.suite.name) for item in planned.arm(0).suites], begun)
    )
    if baseline.note:
        console.say(baseline.note)
    job = Job(
        plan=planned,
        policy=policy,
        options=Options(
            parallel=settings.parallel,
            retries=settings.retries,
            agent_timeout=settings.agent_timeout,
            debug=settings.debug,
        ),
        redactor=redactor,
        baseline=baseline,
        limits=Limits(
            max_duration=settings.max_duration,
            failures_in_row=FAILURES_IN_ROW,
            fail_fast=settings.fail_fast,
        ),
        journal=journal,
        both_sides=settings.both_sides,
        judge_check=settings.judge_check,
        prices=prices,
        write_unfinished=paths.begin,
        facts=RunFacts(
            config=recorded_options(settings)
            | {
                "judgeCache": "on" if connections.judge_cache else "off",
                "against": settings.against is not None,  # it may hold a key
            },
            git=with_local_commit(github.git, paths.folder, context),
            identity=identity,
            ci="github-actions" if context.in_actions else None,
            warnings=warnings,
        ),
    )
    selected = (
        reuse.Selected(job, why_skipped(github, missing))
        if skipped
        else reuse.select(job, settings, connections, github)
    )
    job = only_part(selected.job, part, console.say)
    job, chosen = recording.replaying(job, recorded_run, connections)
    prepared = _PreparedRun(settings, github, job, journal, chosen, paths, context, interruption, calibration)
    del loaded  # the suites' texts, which nobody asks for any more
    sys.exit(_finish(prepared, selected))


@dataclass(frozen=True)
class _PreparedRun:
    """A run that may begin, and what its results go to."""

    settings: RunSettings
    github: GitHubJob
    job: Job
    journal: Journal
    chosen: Chosen
    paths: OutputPaths
    context: RunContext
    interruption: Interruption
    calibration: Addition | None


def _finish(prepared: _PreparedRun, selected: reuse.Selected) -> int:
    """Play what was selected, if anything was, publish the results, and return the exit code."""
    if selected.nothing_left:
        return _skip(prepared, selected.nothing_left)
    if selected.standing:
        return _let_stand(prepared, selected.standing)
    most = prepared.context.most_trials
    if most is not None and len(prepared.job.plan.trials) > most:
        raise UsageError(f"the suites have changed since the estimate: they have more than {most} trials")
    with closing(prepared.journal):
        return _play(replace(prepared, job=_with_earlier_attempts(prepared)))


def _with_earlier_attempts(prepared: _PreparedRun) -> Job:
    """Return the job with the trials of earlier attempts at its commit, if reruns are pooled.

    Raises:
        UsageError: they are to be pooled and cannot be.
    """
    settings, github = prepared.settings, prepared.github
    if settings.reruns is None and not github.context.in_actions:
        return prepared.job
    from ci_evals.cli.github.reruns import reruns_of
    from ci_evals.job.pooling import pooled
    from ci_evals.reports.story.notes import not_pooled

    reruns = reruns_of(settings, github, prepared.interruption.run_cancellable)
    if reruns is None:
        return prepared.job
    job = pooled(prepared.job, prepared.chosen, reruns)
    for sentence in not_pooled(job.pool.not_pooled if job.pool else ()):
        github.context.console.say(f"warning: {sentence}")
    return job


def _skip(prepared: _PreparedRun, why: str) -> int:
    """Publish that nothing was played, and return the exit code."""
    from ci_evals.cli.files.publish import publish

    results = not_played(prepared.job, prepared.chosen, why)
    code = publish(results, prepared.paths, prepared.context)
    # Dependabot's token may write: a comment that is there must not tell of an earlier commit.
    _tell_github(results, prepared, create=prepared.settings.comment is CommentMode.ALWAYS)
    return code


def _let_stand(prepared: _PreparedRun, results: Results) -> int:
    """Publish the earlier run whose decision stands, and return its exit code.

    Raises:
        UsageError: its own file would be written over.
    """
    from ci_evals.cli.files.publish import publish

    earlier = prepared.settings.only_failed
    inputs = {"`only_failed=`": _within(earlier, RESULTS) if earlier else None}
    for suite in results.suites:
        check_output("`output_dir=`", prepared.paths.folder / suite.folder / RESULTS, inputs)
    prepared.context.console.say(f"warning: {results.run.warnings[-1]}")
    code = publish(results, prepared.paths, prepared.context, verbose=prepared.settings.verbose)
    _tell_github(results, prepared)
    return code


def _play(prepared: _PreparedRun) -> int:
    """Play the plan, publish the results, and return the exit code."""
    settings, console, stop = prepared.settings, prepared.context.console, prepared.interruption.stop
    if any(item.suite.adapter not in AGENT_KINDS for item in prepared.job.plan.suites):
        _import_reports(prepared)
    reserve = Reserve()
    stop.release = reserve.release
    with (
        elsewhere(settings, prepared.chosen) as chosen,
        show_progress(
            prepared.job.plan, prepared.context, prepared.job.prices, quiet=settings.quiet
        ) as listen,
    ):
        hear = _importing_reports(prepared, listen)
        results = prepared.interruption.play(evaluate(prepared.job, chosen, listen=hear, stop=stop))
    reserve.release()
    if prepared.calibration:
        results = prepared.calibration(results, prepared.job.redactor)
    from ci_evals.cli.files.earlier_runs import earlier_runs
    from ci_evals.cli.files.publish import publish

    code = publish(
        results,
        prepared.paths,
        prepared.context,
        prepared.job.baseline.results,
        earlier=partial(earlier_runs, prepared.paths.folder, results, prepared.context),
        verbose=settings.verbose,
    )
    if results.run.status == "completed" or stop.failed_fast:
        prepared.journal.mark(JournalMark(mark="ended"))
    elif not settings.replay:
        console.say(_how_to_go_on(prepared))
    _tell_github(results, prepared)
    _send(results, prepared)
    if stop.bug:
        raise stop.bug
    return code


def _how_to_go_on(prepared: _PreparedRun) -> str:
    """Return what to do after an interruption."""
    folder, earlier = prepared.paths.folder, prepared.settings.only_failed
    if earlier and files.is_same(_within(earlier, RESULTS), folder / RESULTS):
        return "To play the rest, run the same command again: what has passed is not run again."
    return f"To resume this run, run the same command with `resume={folder}`"


def _importing_reports(prepared: _PreparedRun, listen: Listener) -> Listener:
    """Have reports imported and their templates read while replies are waited for, not at the end."""

    def load() -> None:
        with suppress(Exception):  # met again, and told, when reports are written
            plan = prepared.job.plan
            small = replace(plan, suites=(with_tests(plan.suites[0], [0]),), arms=(HEAD,))
            job = replace(prepared.job, plan=small, baseline=NO_BASELINE)
            _import_reports(replace(prepared, job=job))

    once = iter([load])

    def hear(event: Event) -> None:
        listen(event)
        if isinstance(event, TurnPlayed) and (work := next(once, None)):
            with suppress(RuntimeError):  # no memory for a thread
                begin(work)

    return hear


def _import_reports(prepared: _PreparedRun) -> None:
    """Import what writes reports, before agents that are code could change it on the disk."""
    from ci_evals.cli.files.publish import load

    load(not_played(prepared.job, prepared.chosen, ""))
    if prepared.settings.check or wants_comment(prepared.settings, prepared.github):
        import ci_evals.cli.github.checking
        import ci_evals.cli.github.posting  # noqa: F401


def _tell_github(results: Results, prepared: _PreparedRun, *, create: bool = True) -> None:
    """Write the comment and the check run, as far as they are wanted."""
    settings, github, wait = prepared.settings, prepared.github, prepared.interruption.run_cancellable
    if wants_comment(settings, github):
        from ci_evals.cli.github.posting import comment_on

        comment_on(results, settings, github, wait, create=create)
    if settings.check:
        from ci_evals.cli.github.checking import check_on

        check_on(results, settings, github, wait)


def _send(results: Results, prepared: _PreparedRun) -> None:
    """Let extensions do what the options ask of them. Whatever fails there changes no exit code."""
    settings, context = prepared.settings, prepared.context
    for hook in asked_after_run(settings):
        try:
            sending = hook.send(results, settings, context.environ, context.console.redactor)
            prepared.interruption.run_cancellable(sending)
        except Exception as error:  # noqa: BLE001  # the reports are written, and the verdict stands
            name = "" if isinstance(error, CiEvalsError) else f"{type(error).__name__}: "
            actions.warn(f"the results were not exported: {name}{error}", prepared.github.context)


def _signing_secret(connections: Connections) -> str | None:
    """Return the key or token of the LLM, if it is secret enough to sign a journal with."""
    secret = connections.llm_key or connections.llm_token
    return secret if can_sign(secret) else None


def _with_resumed_folder(settings: RunSettings) -> RunSettings:
    """Return the settings with the output folder of the run that is resumed, if there is one.

    Raises:
        UsageError: another folder is named too.
    """
    if settings.resume is None:
        return settings
    if settings.output_dir not in {settings.resume, RunSettings.output_dir}:
        raise UsageError(
            f"`resume={settings.resume}` and `output_dir={settings.output_dir}` are different folders. A "
            "resumed run stays in its folder: omit `output_dir=`."
        )
    return replace(settings, output_dir=settings.resume)


def _inputs(settings: RunSettings, loaded: Sequence[LoadedSuite]) -> Inputs:
    """Return all files that the run reads, by the options that name them."""
    baseline, replay = settings.baseline, settings.replay
    if baseline and baseline.lower() in {"auto", "none", "required"}:
        baseline = None
    suites = {f"the suite {item.file}": Path(item.file) for item in loaded if not is_bundled(item.file)}
    return suites | {
        "`adapter_options=`": settings.adapter_options,
        "`prices=`": settings.prices,
        "`calibration=`": settings.calibration,
        "`baseline=`": _within(Path(baseline), RESULTS) if baseline else None,
        "`replay=`": _within(replay, RECORDING) if replay else None,
    }


def _check_recording(folder: Path | None, inputs: Inputs) -> None:
    if folder:
        check_folder("`record=`", folder)
        check_output("`record=`", folder / RECORDING, inputs)


def _within(path: Path, name: str) -> Path:
    """Return the file that a path names, itself or by its folder."""
    return path / name if files.is_folder(path) else path


def _hide_secrets(
    settings: RunSettings,
    context: RunContext,
    connections: Connections,
    loaded: Sequence[LoadedSuite],
    arms: Sequence[Arm],
) -> Redactor:
    """Have every secret of the run redacted from here on."""
    keys = (settings.llm_key, settings.agent_key, settings.github_token, *keys_of(connections, loaded))
    of_arms = {secret for arm in arms for secret in arm.secrets}
    redactor = context.hide(keys, values_of(loaded, context.environ) | of_arms)
    context.mask()
    return redactor


def _plan(settings: RunSettings, loaded: Sequence[LoadedSuite]) -> Plan:
    looks = looks_of(settings)
    loops = max(looks, default=settings.loops)
    planned = replace(plan(loaded, Selection.of(settings.test, settings.tag), loops), looks=looks)
    check_elsewhere(settings, planned)
    return planned


def _baseline(settings: RunSettings, github: GitHubJob, interruption: Interruption) -> BaselineResults:
    """Find the run to compare with, if one is to be compared."""
    if baseline_option(settings, github) == "none":
        return NO_BASELINE
    from ci_evals.cli.files.stored_runs import history_in
    from ci_evals.cli.github.baseline import baseline_of, history_length
    from ci_evals.domain import numbers

    history_length(settings)
    baseline = baseline_of(settings, github, interruption.run_cancellable)
    folder = settings.history_folder
    if baseline.results is None or folder is None or not folder.is_dir():
        return baseline
    try:
        stored = history_in(folder, baseline.results)
    except UsageError as error:
        raise UsageError(f"`history=`: {error}") from error
    if stored.left_out:
        runs = numbers.count(stored.left_out, "run")
        github.context.console.say(
            f"`history=`: {runs} in {folder} left out: not completed, played elsewhere, later than the "
            "baseline, or of a pull request or another branch"
        )
    return replace(baseline, history=stored.runs)


def _refuse_self_comparison(baseline: BaselineResults, journal: Journal, settings: RunSettings) -> None:
    """Refuse to compare a resumed run with its own earlier reports."""
    if journal.past and baseline.results and baseline.results.run.id == journal.past.header.run:
        raise UsageError(
            f"`baseline={settings.baseline}`: these are the reports of the run to resume, which cannot be "
            "compared with itself. Name the results of an earlier run."
        )


def _load(settings: RunSettings, trust: FileTrust, *, may_skip: bool, replay: bool) -> list[LoadedSuite]:
    """Load the suites, and explain a key that a pull request lacks."""
    try:
        return load_suites(settings, trust, without_key=may_skip, replay=replay)
    except SuiteError as error:
        if any(problem.path == "apiKey" for problem in error.problems):
            explain_missing(trust.github)
        raise


def _reached_floors(planned: Plan, policy: Policy) -> Iterator[str]:
    """Yield warnings about minimum scores that an agent reaches that does nothing."""
    if policy.enforced:
        yield from NullScores.of(planned).reached_floors(planned, policy.rule(MinScore).min_score)
