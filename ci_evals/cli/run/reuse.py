"""`--only-failed` and `--changed-since`: the tests that a run takes from an earlier one."""

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ci_evals.adapters.git.checkout import tracked_files, tracks
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.run_command import LAST, RunSettings
from ci_evals.domain.errors import Exit, GitHubError, UsageError
from ci_evals.domain.results.gate import CheckKind, Decision
from ci_evals.domain.results.run import Git, Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.domain.suite import Suite, Test
from ci_evals.gate.rules.weakened import NotWeakened
from ci_evals.job import Job, not_played
from ci_evals.planning import paths
from ci_evals.reports.story import phrases
from ci_evals.wiring.connections import Connections

_ASK_SECONDS = 60.0


class Selected(NamedTuple):
    """The job with the tests that it takes from an earlier run."""

    job: Job
    nothing_left: str | None = None
    """Why nothing is to be played, if so."""
    standing: Results | None = None
    """The earlier run whose decision stands, if every test passed there."""


def with_last_run(settings: RunSettings) -> RunSettings:
    """Return the settings with the folder whose last run is meant, if it is not named.

    Raises:
        UsageError: that run is the one to be resumed.
    """
    if settings.only_failed is None or str(settings.only_failed) != LAST:
        return settings
    if settings.resume:
        raise UsageError(
            "`only_failed=`, `resume=`: the last run in the output folder is the one to be resumed. Omit "
            "`resume=`: what has passed there is not run again."
        )
    return replace(settings, only_failed=settings.output_dir)


def check_options(settings: RunSettings) -> None:
    """Refuse options that contradict one another.

    Raises:
        UsageError: which ones, and what to do.
    """
    options = {"`only_failed=`": settings.only_failed, "`changed_since=`": settings.changed_since}
    named = [option for option, value in options.items() if value]
    if not named:
        return
    if len(named) > 1:
        raise UsageError("`only_failed=`, `changed_since=`: both select tests. Omit one of them.")
    others = {"`against=`": settings.against, "`arms=`": settings.arms, "`replay=`": settings.replay}
    for other in (other for other, value in others.items() if value):
        raise UsageError(
            f"{named[0]} does not work with {other}: all agents of a run play the same tests, and a "
            f"replay plays none. Omit {named[0]}."
        )


def select(job: Job, settings: RunSettings, connections: Connections, github: GitHubJob) -> Selected:
    """Take from an earlier run what the options want taken, and say so.

    Raises:
        UsageError: the earlier run or the changes cannot be read, or are of no use here.
    """
    if settings.only_failed:
        chosen = _only_failed(job, settings.only_failed, connections, github.context)
        # A shard is a part of the whole, also if it plays nothing: `merge` decides.
        return chosen._replace(standing=None) if settings.shard else chosen
    if settings.changed_since:
        return _changed_since(job, settings.changed_since, connections, github)
    return Selected(job)


def _files_of_the_repository() -> frozenset[str]:
    """Return what git tracks, or what is in the current folder if it was downloaded without git's files."""
    here = Path.cwd()
    tracked = tracked_files(here)
    if tracked is not None:
        return tracked
    return frozenset(
        (Path(folder) / name).relative_to(here).as_posix()
        for folder, _, names in os.walk(here)
        for name in names
    )


def _only_failed(job: Job, path: Path, connections: Connections, context: RunContext) -> Selected:
    from ci_evals.cli.files.saved_run import SavedRun  # noqa: PLC0415  # for few runs
    from ci_evals.job.reuse import EarlierRun, reuse  # noqa: PLC0415  # as above

    try:
        saved = SavedRun.open(path, job.redactor, unfinished=True)
    except UsageError as error:
        raise UsageError(f"`only_failed=`: {error}") from error
    if tracks(saved.file):
        raise UsageError(
            f"`only_failed=`: git tracks {saved.file}, so whoever commits could have written it. Use the "
            "file that the earlier run left."
        )
    earlier = saved.results
    notes = _other_commit(job.facts.git, earlier.run.git, in_ci=context.in_ci)
    passed = EarlierRun(earlier, "passed", lambda _suite, _test, base: base.passed)
    selected = reuse(job, connections, passed)
    if not selected.comparable:
        names = ", ".join(repr(suite.name) for suite in earlier.suites) or "none"
        raise UsageError(
            f"`only_failed=`: {path} has none of these tests as they are defined here. Its suites: {names}. "
            "Name the results of a run of the same suites."
        )
    if selected.differences:
        raise UsageError(
            f"`only_failed=`: the results of {path} cannot be combined with this run: "
            f"{'; '.join(selected.differences)}. Play all tests."
        )
    chosen = Selected(_said(selected.job, (*notes, *selected.notes), context))
    if selected.job.plan.trials or not _may_stand(job, connections, earlier):
        return chosen
    return chosen._replace(standing=_standing(earlier, context.spell, enforced=job.policy.enforced))


def _may_stand(job: Job, connections: Connections, earlier: Results) -> bool:
    """Return whether the decision of the earlier run is one that this run could come to.

    The earlier run may have compared suites and gate with another baseline or not at all, and what it found
    may be approved by now.
    """
    if not job.policy.rule(NotWeakened).can_fail:
        return True
    today = not_played(job, connections, "its suites and its gate are compared alone")
    return today.skipped and not _only_weakened(earlier.gate)


def _only_weakened(gate: Decision) -> bool:
    """Return whether nothing but weakened suites kept a run from passing."""
    wrong = [check for check in gate.checks if check.passed is False or check.blocks_verdict]
    unchecked = sum(check.blocks_verdict for check in wrong)
    alone = all(check.kind is CheckKind.WEAKENED for check in wrong)
    return bool(wrong) and alone and len(gate.reasons) == unchecked


def _standing(earlier: Results, spell: Callable[[str], str], *, enforced: bool) -> Results:
    """Return the earlier run with its decision, and a warning that nothing was played since."""
    note = (
        f"nothing was played: every test passed in the run of {phrases.moment(earlier.run.started_at)}, "
        "whose decision stands (`only_failed=`)"
    )
    gate, run = earlier.gate, earlier.run
    code = gate.exit_code
    if code in {Exit.PASSED, Exit.FAILED}:  # --no-gate of today counts, not that of the earlier run
        code = Exit.PASSED if gate.passed or not enforced else Exit.FAILED
    warnings = tuple(dict.fromkeys((*run.warnings, spell(note))))
    return replace(earlier, gate=replace(gate, exit_code=int(code)), run=replace(run, warnings=warnings))


def _other_commit(here: Git, there: Git, *, in_ci: bool) -> tuple[str, ...]:
    """A warning if the earlier run was of another commit.

    Raises:
        UsageError: in CI, where a pass of another commit must not stand for this one.
    """
    now, then = here.head_commit or here.commit, there.head_commit or there.commit
    if in_ci:  # a commit that nobody names is no other's
        same = now is not None and here.exact_commit == there.exact_commit
    else:  # what changed between two runs of one commit is the developer's own work
        same = now == then or now is None
    if same:
        return ()
    was, is_now = map(_commit_in_words, (there, here))
    if in_ci:
        raise UsageError(
            f"`only_failed=`: the earlier run is of {was}, and this is {is_now}: what passed "
            "there may fail here. Play all tests."
        )
    return (f"what passed was played at {was}, and this is {is_now}",)


def _commit_in_words(git: Git) -> str:
    commit = git.head_commit or git.commit
    return f"commit {commit[:12]}{phrases.with_changes(git)}" if commit else "an unknown commit"


class _Changes(NamedTuple):
    files: frozenset[str] = frozenset()
    unknown: str | None = None
    """Why nobody knows what changed."""


def _changed_since(job: Job, ref: str, connections: Connections, github: GitHubJob) -> Selected:
    from ci_evals.job.reuse import EarlierRun, reuse  # noqa: PLC0415  # for few runs

    context, earlier = github.context, job.baseline.results
    changes = _changes(ref, earlier.run.git.commit if earlier else None, github)
    why = changes.unknown or (None if earlier else "there is no baseline to take the others from")
    unseen = _unseen(earlier.run.git) if earlier else None
    if unseen and context.in_ci:
        why = why or f"{unseen}: what changed since is unknown"
    if why or earlier is None:
        return Selected(_said(job, (_all_played(str(why)),), context))

    known = changes.files | _files_of_the_repository()

    def untouched(suite: Suite, test: Test, _: TestResult) -> bool:
        when = test.when or suite.when
        if when is None or paths.unmatched(when.paths, known):
            return False
        return not paths.touches(when.paths, changes.files)

    selected = reuse(job, connections, EarlierRun(earlier, "unchanged", untouched))
    if not selected.job.plan.trials:
        why = f"no change since {ref} touches what a test depends on (`changed_since=`)"
        return Selected(job, context.spell(why))
    notes = (*map(_all_played, selected.differences), *selected.notes)
    if unseen:
        notes = (*notes, f"{unseen}: changes between it and {ref} are not seen (`changed_since=`)")
    return Selected(_said(selected.job, notes, context))


def _unseen(baseline: Git) -> str | None:
    """Return what is unknown of the files that the baseline was played with; None if its commit has them."""
    if baseline.commit is None:
        return "the baseline's commit is unknown"
    if baseline.uncommitted_changes:
        return "the baseline was played with uncommitted changes"
    return None


def _changes(ref: str, baseline: str | None, github: GitHubJob) -> _Changes:
    """The files that differ from where HEAD left `ref`, and from the baseline's commit.

    Raises:
        UsageError: git cannot tell.
    """
    from ci_evals.adapters.git.changes import Checkout, GitError, NoGitError  # noqa: PLC0415  # for few runs

    try:
        checkout = Checkout(Path.cwd(), github.context.environ)
        files = checkout.changed_since(ref)
        if baseline and not checkout.knows(baseline):
            return _Changes(
                unknown=f"the baseline's commit {baseline[:12]} is not in this clone (fetch-depth: 0)"
            )
        return _Changes(files | checkout.changed_from(baseline) if baseline else files)
    except NoGitError as error:
        if github.missing or not github.git.commit:
            raise UsageError(f"`changed_since=`: {error}.") from error
    except GitError as error:
        raise UsageError(f"`changed_since=`: {error}.") from error
    try:
        return github.context.wait(_changes_on_github(ref, baseline, github))
    except (GitHubError, TimeoutError) as error:
        return _Changes(unknown=str(error) or "GitHub did not answer in time")


async def _changes_on_github(ref: str, baseline: str | None, github: GitHubJob) -> _Changes:
    """The same of what is committed, in a container that has no git."""
    from ci_evals.adapters.github.changes import changed_files  # noqa: PLC0415  # for few runs

    repository, head = github.event.repository or "", github.git.commit or ""
    files: frozenset[str] = frozenset()
    async with asyncio.timeout(_ASK_SECONDS), github.client() as hub:
        for base in filter(None, (ref, baseline)):
            files |= await changed_files(hub, repository, base, head)
    return _Changes(files)


def _all_played(why: str) -> str:
    return f"`changed_since=`: every test is played, since {why}"


def _said(job: Job, notes: Iterable[str], context: RunContext) -> Job:
    notes, say = tuple(map(context.spell, notes)), context.console.say
    for note in notes:
        say(f"warning: {note}")
    if job.reused:
        tests = sum(len(suite.tests) for suite in job.plan.suites)
        say(f"playing {tests - len(job.reused)} of {tests} tests; the others are taken from an earlier run")
    facts = replace(job.facts, warnings=(*job.facts.warnings, *notes))
    return replace(job, facts=facts)
