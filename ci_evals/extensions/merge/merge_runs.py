"""`merge`: makes one run of the results of several, and exits as the gate decides."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from ci_evals.cli.files.output_paths import OutputPaths
from ci_evals.cli.files.publish import publish
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.github.baseline import baseline_of
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.policy import read_policy, recorded_options, unknown_names
from ci_evals.domain.errors import UsageError
from ci_evals.extension_registry import after_merging
from ci_evals.extensions.merge.merge import merge
from ci_evals.extensions.merge.settings import MergeSettings
from ci_evals.extensions.merge.shards import ShardRun
from ci_evals.gate.rules.weakened import NotWeakened
from ci_evals.job.conclude import NO_BASELINE, conclude
from ci_evals.support import dataclass_json

_NO_SHARDS = ". If it should hold the shards' artifacts, no shard has uploaded one"


def merge_runs(settings: MergeSettings, context: RunContext) -> None:
    """Merge, write every report, and exit as the gate decides.

    Raises:
        UsageError: results are not there, cannot be read or do not belong together; nothing is written then.
    """
    policy = read_policy(settings, context.spell)
    paths = OutputPaths(settings.output_dir, settings.junit)
    paths.check()
    saved = SavedRun.open_each(settings.results, context.hide(), unfinished=True, if_missing=_NO_SHARDS)
    runs = [ShardRun(str(run.file), run.results) for run in saved]
    suites = [suite.folder for run in runs for suite in run.results.suites]
    paths.check({f"the shard {run.file}": Path(run.file) for run in runs}, suites)
    redactor = context.hide([settings.github_token])
    context.mask()
    try:
        merged = merge(runs, expected=settings.shards)
        dataclass_json.check(merged.info)
        dataclass_json.check(replace(merged.card, suites=()))
    except ValidationError as error:
        files = ", ".join(run.file for run in runs)
        raise UsageError(f"{files}: the times or amounts of these runs contradict each other.") from error
    ending = merged.ending
    if not ending.incomplete:
        ending = replace(
            ending, incomplete=tuple(map(context.spell, unknown_names(policy, merged.card.suites)))
        )
    github = GitHubJob.of(settings, context)
    baseline = NO_BASELINE
    if merged.info.status != "skipped" or policy.rule(NotWeakened).can_fail:
        baseline = baseline_of(settings, github)
    baseline = baseline.redacted(redactor)
    config = merged.info.config | recorded_options(settings)
    warnings = (*merged.info.warnings, *_of_attempt(github))
    info = replace(merged.info, config=config, baseline_note=baseline.note, warnings=warnings)
    info = redactor.model(info)
    console = context.console
    shown = dict.fromkeys((*policy.warnings, *info.warnings))
    for line in (*(f"warning: {warning}" for warning in shown), info.baseline_note):
        if line:
            console.say(line)
    results = conclude(merged.card, info, policy, ending, baseline)
    # Their trials are not looked at again: only what studies say goes into the merged run as it is.
    studies = [replace(run.results, studies=tuple(map(redactor.model, run.results.studies))) for run in runs]
    results = after_merging(results, studies)
    sys.exit(publish(results, paths, context, baseline.results))


def _of_attempt(github: GitHubJob) -> Iterator[str]:
    """Yield a warning in a rerun, whose shards may have replaced those of a red attempt."""
    own = github.event.own_run
    if own and own.attempt > 1:
        yield (
            f"this is attempt {own.attempt} of the workflow run: merged shards are decided by themselves, "
            "without the trials of earlier attempts"
        )
