"""The studies of saved runs: each is a folder of `ci_evals/studies`, registered here in one line.

A study is a plug-in: nothing but its folder and its line here names it, and it is imported when it is needed.
Its modules `commands` and `later_runs` keep the protocols below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from ci_evals.domain.errors import UsageError

if TYPE_CHECKING:  # `--help` imports this module, and must not wait for pydantic
    from ci_evals.domain.results.run import Results
    from ci_evals.support.redaction import Redactor


@dataclass(frozen=True)
class Registration:
    """A study: its folder, and what there is of it besides commands."""

    folder: str
    later_runs: bool = False
    """Whether its results say something of later runs too."""


STUDIES = (
    Registration("calibration", later_runs=True),
    Registration("noise"),
    Registration("preference"),
    Registration("attack"),
    Registration("probe"),
)

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


def register_commands(app: Any) -> None:
    """Add the commands of all studies."""
    for study in STUDIES:
        cast("Commands", _module(study, "commands")).register(app)


def read_calibration(path: Path) -> Addition:
    """Return what the file of `--calibration` says of a run.

    Raises:
        UsageError: it cannot be read, or is something else.
    """
    for study in _for_later_runs():
        return study.read(path)
    raise UsageError(f"--calibration={path}: no study of this installation can read it")


def rejudged(results: "Results", judged: "Results") -> "Results":
    """Return `results` with what was known of `judged`, whose conversations were judged again."""
    for study in _for_later_runs():
        results = study.rejudged(results, judged)
    return results


def merged(results: "Results", shards: Sequence["Results"]) -> "Results":
    """Return `results` with what was known of all shards alike."""
    for study in _for_later_runs():
        results = study.merged(results, shards)
    return results


def _for_later_runs() -> Sequence[LaterRuns]:
    return [cast("LaterRuns", _module(study, "later_runs")) for study in STUDIES if study.later_runs]


def _module(study: Registration, name: str) -> Any:
    return import_module(f"ci_evals.studies.{study.folder}.{name}")
