"""The studies of saved runs: each is a folder of `ci_evals/studies`, registered here in one line.

A study is a plug-in: nothing but its folder and its line here names it, and it is imported when it is needed.
It has the modules that it needs of these:

- `commands` adds its commands to the command line (`Commands`);
- `result` names the types of what it keeps in the results of a run (`Result`);
- `report` says what reports show of these (`Report`);
- `later_runs` gives what is known to later runs (`LaterRuns`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ci_evals.domain.errors import UsageError

if TYPE_CHECKING:  # `--help` imports this module, and must not wait for pydantic
    from ci_evals.domain.results.run import Results
    from ci_evals.domain.results.studies import Study
    from ci_evals.support.redaction import Redactor


STUDIES = (
    "calibration",
    "noise",
    "preference",
    "attack",
    "probe",
)
"""Folders, in the order of reports."""

Addition: TypeAlias = Callable[["Results", "Redactor"], "Results"]
"""Adds what is known from an earlier study to a run, without secrets."""


class Commands(Protocol):
    """The module `commands` of a study."""

    def register(self, app: Any) -> None:
        """Add the study's commands to the Typer app. One of a known name takes that one's place."""


class LaterRuns(Protocol):
    """The module `later_runs` of a study."""

    def read(self, path: Path) -> Addition:
        """Return what the study's file says of a run.

        Raises:
            UsageError: it cannot be read, or is something else.
        """

    def rejudged(self, results: "Results", judged: "Results") -> "Results":
        """Return `results` with what was known of `judged`, whose conversations were judged again."""

    def merged(self, results: "Results", shards: Sequence["Results"]) -> "Results":
        """Return `results` with what was known of all shards alike."""


class Result(Protocol):
    """The module `result` of a study."""

    KINDS: Sequence[type["Study"]]


class Report(Protocol):
    """The module `report` of a study."""

    def report(self, results: "Results") -> Any:
        """Return the `StudyReport` of what these results hold of the study; None if they hold nothing."""


def register_commands(app: Any) -> None:
    """Add the commands of all studies."""
    commands: Commands
    for commands in _modules("commands"):
        commands.register(app)


def study_kinds() -> dict[str, type["Study"]]:
    """The types of what studies keep in results, by their keys."""
    results: Iterable[Result] = _modules("result")
    return {kind.KEY: kind for result in results for kind in result.KINDS}


def study_reports(results: "Results") -> Iterator[Any]:
    """Yield a `StudyReport` for each study in these results."""
    module: Report
    for module in _modules("report"):
        if report := module.report(results):
            yield report


def read_calibration(path: Path) -> Addition:
    """Return what the file of `--calibration` says of a run.

    Raises:
        UsageError: it cannot be read, or is something else.
    """
    study: LaterRuns
    for study in _modules("later_runs"):
        return study.read(path)
    raise UsageError(f"--calibration={path}: no study of this installation can read it")


def after_rejudging(results: "Results", judged: "Results") -> "Results":
    """Return `results` with what was known of `judged`, whose conversations were judged again."""
    study: LaterRuns
    for study in _modules("later_runs"):
        results = study.rejudged(results, judged)
    return results


def after_merging(results: "Results", shards: Sequence["Results"]) -> "Results":
    """Return `results` with what was known of all shards alike."""
    study: LaterRuns
    for study in _modules("later_runs"):
        results = study.merged(results, shards)
    return results


def _modules(name: str) -> Iterator[Any]:
    """The module of this name of each study that has one."""
    for study in STUDIES:
        path = f"ci_evals.studies.{study}.{name}"
        if find_spec(path):
            yield import_module(path)
