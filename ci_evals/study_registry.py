"""The studies of saved runs: each is a folder of `ci_evals/studies`, registered here in one line.

A study is a plug-in: nothing but its folder and its line here names it, and it is imported when it is needed.
It has the modules that it needs of these:

- `commands`: `COMMANDS`, functions for the command line. One of a known name takes that one's place;
- `result`: `KINDS`, the types of what it keeps in the results of a run;
- `report`: `report(results)`, the `StudyReport` of what results hold of the study, or None;
- `later_runs`: `read(path)`, `rejudged(results, judged)` and `merged(results, shards)`, which give later runs
  what is known of an earlier one, as `read_calibration`, `after_rejudging` and `after_merging` below.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

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


def register_commands(app: Any) -> None:
    """Add the commands of all studies to the Typer app."""
    for module in _modules("commands"):
        for command in module.COMMANDS:
            app.command()(command)


def study_kinds() -> dict[str, type["Study"]]:
    """The types of what studies keep in results, by their keys."""
    return {kind.KEY: kind for module in _modules("result") for kind in module.KINDS}


def study_reports(results: "Results") -> Iterator[Any]:
    """Yield a `StudyReport` for each study in these results."""
    yield from filter(None, (module.report(results) for module in _modules("report")))


def read_calibration(path: Path) -> Addition:
    """Return what the file of `--calibration` says of a run.

    Raises:
        UsageError: it cannot be read, or is something else.
    """
    for module in _modules("later_runs"):
        addition: Addition = module.read(path)
        return addition
    raise UsageError(f"--calibration={path}: no study of this installation can read it")


def after_rejudging(results: "Results", judged: "Results") -> "Results":
    """Return `results` with what was known of `judged`, whose conversations were judged again."""
    for module in _modules("later_runs"):
        results = module.rejudged(results, judged)
    return results


def after_merging(results: "Results", shards: Sequence["Results"]) -> "Results":
    """Return `results` with what was known of all shards alike."""
    for module in _modules("later_runs"):
        results = module.merged(results, shards)
    return results


def _modules(name: str) -> Iterator[Any]:
    """The module of this name of each study that has one."""
    for study in STUDIES:
        path = f"ci_evals.studies.{study}.{name}"
        if find_spec(path):
            yield import_module(path)
