"""`backtest`: stored runs in, the false alarms of their gate out."""

import re
import sys
from contextlib import AbstractContextManager

from ci_evals.adapters import files
from ci_evals.cli.files.stored_runs import StoredRuns, read_stored_runs
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.terminal import display
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit, GitHubError, UsageError
from ci_evals.extensions.backtest import documents
from ci_evals.extensions.backtest.download import Downloaded, Source, download
from ci_evals.extensions.backtest.figures import Backtest, LeftOutRun
from ci_evals.extensions.backtest.gates import Gate, backtest_options
from ci_evals.extensions.backtest.gates_file import read_gates
from ci_evals.extensions.backtest.pairing import compact, history_of
from ci_evals.extensions.backtest.settings import BacktestSettings
from ci_evals.extensions.backtest.study import BacktestStudy
from ci_evals.gate.policy import Policy

_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}")
_MAIN = "main"


def backtest(settings: BacktestSettings, context: RunContext) -> None:
    """Decide stored runs again, write the reports, and exit.

    Raises:
        UsageError: something cannot be read; no report is written then.
    """
    gate = _gate(settings)
    gates = read_gates(settings.settings) if settings.settings else {}
    redactor = context.hide([settings.github_token])
    context.mask()
    branch = settings.branch
    if settings.from_github:
        branch = branch or _MAIN
        _download(settings, settings.from_github, branch, context)
    stored = _stored(settings, context)
    history = history_of(stored.runs, branch)
    with _progress("Deciding", "decision", context, quiet=settings.quiet) as progress:
        study = BacktestStudy(history, gate, gates, progress)
        found = redactor.model(study.findings(_left_out(stored)))
    if not found.false_alarms.of:
        sys.exit(_nothing_compared(found, settings, context))
    files.write_all(settings.output_dir or settings.folder, documents.files_of(found))
    context.show(documents.summary(found, context.width))
    sys.exit(Exit.PASSED)


def _gate(settings: BacktestSettings) -> Gate:
    """Return the options that stand instead of the runs' own."""
    values = {option.name: getattr(settings, option.name) for option in backtest_options()}
    options = {name: value for name, value in values.items() if value is not None}
    Policy.from_options(options)  # refuses what cannot be read
    return Gate(options, settings.history)


def _stored(settings: BacktestSettings, context: RunContext) -> StoredRuns:
    with _progress("Reading", "file", context, quiet=settings.quiet) as progress:
        return read_stored_runs(settings.folder, compact=compact, begun=progress.begun, read=progress.done)


def _left_out(stored: StoredRuns) -> list[LeftOutRun]:
    found = []
    for one in stored.left_out:
        why = one.why.removeprefix(f"{one.file}: ")
        found.append(LeftOutRun(name=str(one.file), why=why))
    return found


def _nothing_compared(found: Backtest, settings: BacktestSettings, context: RunContext) -> int:
    """Say why there is no rate of false alarms."""
    runs = numbers.count(found.runs, "run")
    if found.pairs:
        why = f"no comparison of {found.branch} has a verdict ({numbers.count(found.pairs, 'pair')} of runs)"
    else:
        why = (
            f"no two runs can be compared: {runs} of the branch {found.branch}. Two runs need the same "
            "branch, suites, agent options and judge. Name another branch with `branch=`, or store more runs"
        )
    context.console.say(f"{settings.folder}: {why}.")
    for one in found.left_out:
        context.console.say(f"left out: {one.name}: {one.why}")
    return Exit.INVALID


def _download(settings: BacktestSettings, repository: str, branch: str, context: RunContext) -> None:
    """Download runs into the folder, and say what became of them.

    Raises:
        UsageError: the repository has no such name, or there is no token.
    """
    if not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"`from_github={repository[:80]}`: write OWNER/NAME, such as acme/support-agent.")
    github = GitHubJob.of(settings, context)
    if not github.token:
        raise UsageError(
            "`from_github=` needs a token that may read artifacts: set GITHUB_TOKEN, for example to the "
            "output of `gh auth token`."
        )
    source = Source(repository, branch, f"ci-evals-results-{settings.comment_key}", settings.last)
    done = 0

    with _progress("Downloading", "run", context, quiet=settings.quiet) as progress:

        def tell(number: int, of: int) -> None:
            nonlocal done
            if number == 1:
                progress.begun(of)
            done = number
            progress.done()

        async def work() -> Downloaded:
            async with github.client() as hub:
                return await download(hub, source, settings.folder, tell)

        try:
            outcome = context.wait(work())
        except GitHubError as error:
            after = f" after {numbers.count(done, 'run')}; the same command resumes" if done else ""
            context.console.say(f"`from_github=`: the download failed{after}: {error}")
            sys.exit(Exit.INVALID)
    context.console.say(_outcome(outcome, source))


def _outcome(outcome: Downloaded, source: Source) -> str:
    text = f"{source.repository}, {source.branch}: {numbers.count(outcome.new, 'run')} downloaded"
    counts = {
        "there already": outcome.there,
        "expired or deleted": outcome.gone,
        "unreadable": outcome.unreadable,
    }
    for words, count in counts.items():
        if count:
            text += f", {count:,} {words}"
    return f"{text}; stopped at the limit of bytes" if outcome.too_much else text


def _progress(
    title: str, noun: str, context: RunContext, *, quiet: bool
) -> AbstractContextManager[display.WorkProgress]:
    """Show how much of a part is done."""

    def sentence(count: int) -> str:
        return f"{title} {numbers.count(count, noun)}"

    return display.progress_of(title, sentence, context.console, quiet=quiet)
