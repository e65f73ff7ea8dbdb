"""`gate`: makes one run of other tools' results, and exits as the gate decides."""

import errno
import glob
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ci_evals.adapters import input_files
from ci_evals.adapters.suites import read_text
from ci_evals.cli.files.output_paths import OutputPaths
from ci_evals.cli.files.publish import publish
from ci_evals.cli.github.baseline import baseline_of
from ci_evals.cli.github.checking import check_on
from ci_evals.cli.github.github_job import GitHubJob, baseline_option, wants_comment
from ci_evals.cli.github.posting import comment_on, withdraw
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.policy import read_policy, recorded_options, unknown_names
from ci_evals.cli.settings.shared import BASELINE_WORDS
from ci_evals.domain import numbers
from ci_evals.domain.definition import SuiteDefinition
from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.results.run import Digests, RunInfo
from ci_evals.domain.run_ending import RunEnding
from ci_evals.extension_support.result_files.result_rows import Undecided
from ci_evals.extension_support.result_files.source import SourceFile
from ci_evals.extensions.result_files.own import is_own
from ci_evals.extensions.result_files.reading import AUTO, OWN, ROWS, read_file
from ci_evals.extensions.result_files.row_contradictions import contradictions
from ci_evals.extensions.result_files.row_directions import with_directions
from ci_evals.extensions.result_files.row_results import FileResults, arms_in, of_arm, scorecard, with_arms
from ci_evals.extensions.result_files.rows import read_map
from ci_evals.extensions.result_files.settings import GateFilesSettings
from ci_evals.gate.policy import Policy
from ci_evals.job.conclude import NO_BASELINE, BaselineResults, conclude
from ci_evals.job.results_builder import environment
from ci_evals.planning.documents.reader import read as read_document
from ci_evals.reports.names import folders_for
from ci_evals.scoring.scorecard import Scorecard
from ci_evals.support.digest import digest, of_loops, of_models, of_tests
from ci_evals.support.redaction import Redactor

MAX_BYTES = 300_000_000
"""Maximum size of a result file."""
MOST_FILES = 10_000


def gate_files(settings: GateFilesSettings, context: RunContext) -> None:
    """Read the files, write every report, and exit as the gate decides.

    Raises:
        UsageError: a file or an option cannot be read; nothing is written then.
    """
    github = GitHubJob.of(settings, context)
    try:
        code = _gate(settings, github)
    except UsageError as error:
        if not github.missing and wants_comment(settings, github):
            withdraw(error, settings.comment_key, github)
        raise
    sys.exit(code)


def _gate(settings: GateFilesSettings, github: GitHubJob) -> int:
    context = github.context
    policy = read_policy(settings, context.spell, baseline_named=settings.baseline_arm is not None)
    paths = OutputPaths(settings.output_dir, settings.junit)
    names = _named(settings.files)
    inputs: dict[str, Path | None] = {f"the results {name}": name for name in names}
    inputs |= {"`map=`": settings.map, "`answers=`": settings.answers, "`prices=`": settings.prices}
    paths.check(inputs)
    job = _GateJob(settings, github, context.hide([settings.github_token]), context.prices(settings.prices))
    context.mask()
    files = _read(names, settings)
    own = of_arm(files, settings.arm)
    card = job.card(own)
    wrong = contradictions(own)
    ending = RunEnding(incomplete=(*wrong, *map(context.spell, unknown_names(policy, card.suites))))
    paths.check(inputs, [suite.folder for suite in card.suites])
    sources = _Sources.of(own)
    lines = [f"{file.file}: {file.format}, {numbers.count(file.rows, 'row')}" for file in own]
    # The rows go when they are trials, but for those of another arm: thousands fill the memory.
    own, files = [], files if settings.baseline_arm is not None else []
    baseline = job.baseline(files)
    files = []
    info = job.info(sources, card, baseline)
    console = context.console
    warnings = (*policy.warnings, *info.warnings)
    for line in (*lines, *(f"warning: {warning}" for warning in warnings), info.baseline_note):
        if line:
            console.say(line)
    results = conclude(card, info, policy, ending, baseline)
    code = publish(results, paths, context, baseline.results, verbose=settings.verbose)
    if wants_comment(settings, github):
        comment_on(results, settings, github, context.wait)
    check_on(results, settings, github, context.wait)
    return code


def _named(patterns: Iterable[str]) -> list[Path]:
    """Return the files that paths and globs name, each once.

    Raises:
        UsageError: one names none.
    """
    found: dict[Path, Path] = {}
    for pattern in patterns:
        path = Path(pattern)
        paths = [path]
        if not path.exists() and glob.has_magic(pattern):
            paths = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207  # it may be absolute
            paths = [name for name in paths if not name.is_dir()]
            if not paths:
                raise UsageError(f"{pattern}: no file matches.")
        for one in paths:
            if one.is_dir():
                raise UsageError(f"{one}: is a folder. Name the result files, such as {one}/*.json.")
            found.setdefault(one.resolve(), one)
    if len(found) > MOST_FILES:
        raise UsageError(f"{len(found):,} files are named, more than {MOST_FILES:,}.")
    return [*found.values()]


def _read(names: Sequence[Path], settings: GateFilesSettings) -> list[FileResults]:
    options: dict[str, object] = {}
    form = settings.format
    if settings.map:
        if form not in {AUTO, ROWS}:
            raise UsageError(f"`map=` has no effect with `format={form}`; it is for rows.")
        document = read_document(read_text(settings.map, str(settings.map)), str(settings.map))
        if document.problems:
            raise UsageError("\n".join(map(str, document.problems)))
        options["map"], form = read_map(document.value, str(settings.map)), ROWS
    if settings.answers:
        options["answers"] = SourceFile(settings.answers.as_posix(), _bytes(settings.answers))
    return with_directions(with_arms([_read_one(name, form, options) for name in names]))


def _read_one(path: Path, form: str, options: dict[str, object]) -> FileResults:
    data = _bytes(path)
    reader, sets = read_file(SourceFile(path.as_posix(), data, options), form)
    content = sha256(data.translate(None, b" \t\r\n")).hexdigest()
    return FileResults(
        path.as_posix(), reader.format, sets, reader.official, sha256(data).hexdigest(), content
    )


def _bytes(path: Path) -> bytes:
    try:
        return input_files.read(path, MAX_BYTES)
    except OSError as error:
        hint = " Split the file." if error.errno == errno.EFBIG else ""
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}.{hint}") from error


class _Sources(NamedTuple):
    """The facts about result files that a run records besides their rows."""

    digests: tuple[str, ...]
    warnings: tuple[str, ...]
    definitions: tuple[SuiteDefinition, ...] | None
    """The requirements of the suites of ci-evals; None if there are none."""

    @classmethod
    def of(cls, files: Sequence[FileResults]) -> "_Sources":
        definitions = [one for file in files for results in file.sets for one in results.definitions]
        return cls(
            tuple(file.digest for file in files),
            tuple(dict.fromkeys(_warnings(files))),
            tuple(dict.fromkeys(definitions)) or None,
        )


def _warnings(files: Sequence[FileResults]) -> Iterator[str]:
    for file in files:
        for results in file.sets:
            yield from (f"{file.file}: {warning}" for warning in results.warnings)
    rows = (row for file in files for results in file.sets for row in results.rows)
    if skipped := sum(row.undecided is Undecided.SKIPPED for row in rows):
        yield f"{numbers.count(skipped, 'row')} skipped, and not counted"


@dataclass(frozen=True)
class _GateJob:
    """What results are made with."""

    settings: GateFilesSettings
    github: GitHubJob
    redactor: Redactor
    prices: Callable[[], PriceTable]
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def card(self, files: Sequence[FileResults]) -> Scorecard:
        """Return the numbers of the results of one arm."""
        return scorecard(files, partial(folders_for, started_at=self.now), self.prices(), self.redactor)

    def info(self, sources: _Sources, card: Scorecard, baseline: BaselineResults) -> RunInfo:
        """Describe the run that the results make."""
        tests = [test for suite in card.suites for test in suite.tests]
        info = RunInfo(
            # Of the files, since p is drawn by it: the same files give the same p.
            id=digest([sources.digests, [suite.agent_id for suite in card.suites]])[:32],
            started_at=self.now,
            finished_at=self.now,
            duration_seconds=0,
            status="completed",
            config=dict(recorded_options(self.settings)),
            git=self.github.git,
            environment=environment("github-actions" if self.github.context.in_actions else None),
            digests=Digests(
                suites=of_tests(test.digest for test in tests),
                agents=digest([[suite.adapter, suite.agent_id] for suite in card.suites]),
                models=of_models(None, (suite.models.identity for suite in card.suites)),
                judge_prompt=digest(None),
                user_prompt=digest(None),
                loops=of_loops(len(test.trials) for test in tests),
            ),
            baseline_note=baseline.note,
            definitions=sources.definitions,
            warnings=tuple(map(self.github.context.spell, sources.warnings)),
        )
        return self.redactor.model(info)

    def baseline(self, files: Sequence[FileResults]) -> BaselineResults:
        """Return the run to compare with: another arm, a run of ours, or another file of the tool."""
        settings = self.settings
        if settings.baseline_arm is not None:
            if settings.baseline:
                raise UsageError("`baseline_arm=` and `baseline=` name two baselines. Name one.")
            of_other = of_arm(files, settings.baseline_arm, "baseline_arm")
            return self._as_baseline(of_other, f"Baseline: the arm {settings.baseline_arm}")
        option = baseline_option(settings, self.github)
        if option in BASELINE_WORDS or not Path(option).is_file():
            return baseline_of(settings, self.github).redacted(self.redactor)
        try:
            if is_own(source := SourceFile(option, _bytes(Path(option)))):  # --format is about FILE
                read_file(source, OWN)
                return baseline_of(settings, self.github).redacted(self.redactor)
            other = _read([Path(option)], settings)
            arm = settings.arm if settings.arm in arms_in(other) else None
            return self._as_baseline(of_arm(other, arm), f"Baseline: {option}")
        except UsageError as error:
            text = str(error)
            raise UsageError(text if text.startswith("`baseline=`") else f"`baseline=`: {text}") from error

    def _as_baseline(self, files: Sequence[FileResults], note: str) -> BaselineResults:
        if wrong := contradictions(files):
            return BaselineResults(missing=self.redactor.text(f"the baseline contradicts itself: {wrong[0]}"))
        card = self.card(files)
        info = self.info(_Sources.of(files), card, NO_BASELINE)
        return BaselineResults(conclude(card, info, Policy(), RunEnding()), self.redactor.text(note))
