"""The files of a run, and the text of each. Opens none of them."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import PurePath
from typing import ParamSpec

from pydantic import JsonValue, ValidationError

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results import earlier_version as earlier
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.studies import Study, UnknownStudy
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.extension_registry import study_kinds
from ci_evals.reports import badge, ctrf, findings_csv, junit, results_json, sanitize
from ci_evals.reports.markdown import documents
from ci_evals.reports.names import (
    CTRF,
    FINDINGS,
    JUNIT,
    OF_RUN,
    PAGE,
    RESULTS,
    SUITE_SUMMARY,
    SUMMARY,
    Format,
    format_of,
    formats_of_extensions,
    unique,
)
from ci_evals.reports.page import page
from ci_evals.reports.story import changes, listed_tests
from ci_evals.reports.story.comparison_runs import ALONE, ComparisonRuns
from ci_evals.reports.story.story import story_of
from ci_evals.scoring import suite_results
from ci_evals.support import dataclass_json

P = ParamSpec("P")

OF_EVERY_RUN = tuple(one for one in Format if one not in {Format.BADGE, Format.CSV})
"""The formats that every run writes."""

_SCHEMA_VERSION = 3
_SHOWN_PROBLEMS = 10
_SHOWN_PATH = 200
"""Characters: what is nested a thousand deep has a long one."""
_FOLDER_NAME = re.compile(r"[^\x00-\x1f\"*/:<>?\\|]+")


def files(results: Results, comparison_runs: ComparisonRuns = ALONE) -> dict[str, Iterable[str]]:
    """Every file of a run: path relative to the output folder, with `/`, and the text to write.

    Texts come in parts, made when they are asked for, once: all of a large run would fill the memory.
    """
    return of_run(results, comparison_runs) | dict(of_suites(results))


def of_run(results: Results, comparison_runs: ComparisonRuns = ALONE) -> dict[str, Iterable[str]]:
    """The files of the run as a whole, the first that anybody looks for.

    They depend on the results alone, so that they are the same if they are drawn again elsewhere.
    """
    story = story_of(results, comparison_runs)
    return {
        RESULTS: results_json.render(results),
        SUMMARY: _once(documents.summary, story),
        JUNIT: junit.render(story),
        CTRF: ctrf.render(story),
        PAGE: page.render(story),
    }


def of_suites(results: Results) -> Iterator[tuple[str, Iterable[str]]]:
    """The files of each suite and test, one after another: of a large run they take a while.

    Of many results of other tools there are none: a file for each of them would help nobody.
    """
    if listed_tests.lists_some_tests(results):
        return
    for suite, found in zip(results.suites, changes.of_suites(results), strict=True):
        own = suite_results.of_suite(results, suite, found)
        for name, text in _suite_files(own, suite).items():
            yield f"{suite.folder}/{name}", text


def redraw(
    results: Results,
    path: PurePath,
    formats: Collection[str] = OF_EVERY_RUN,
    comparison_runs: ComparisonRuns = ALONE,
) -> dict[str, Iterable[str]]:
    """The reports to write again, relative to the folder of `path`, the file that `results` was read from.

    A run's file redraws everything, a suite's own file that suite's folder. `path`, an absolute one, is
    itself not written.
    """
    if is_of_suite(results, path):
        found = _suite_files(results, results.suites[0])
    else:
        story = story_of(results)
        found = of_run(results, comparison_runs) | badge.files(story)
        found[FINDINGS] = findings_csv.render(story)
        if not {Format.MARKDOWN, Format.JSON}.isdisjoint(formats):
            found |= dict(of_suites(results))
        del found[RESULTS]
    found = {name: text for name, text in found.items() if name != path.name and format_of(name) in formats}
    for name, extension in formats_of_extensions().items():
        if name in formats:
            found |= extension.files(results)
    return found


def is_of_suite(results: Results, path: PurePath) -> bool:
    """Return whether the results were read from a suite's own file: one that lies in the suite's folder."""
    if len(results.suites) != 1:
        return False
    own = PurePath(results.suites[0].folder).parts
    return path.parent.parts[-len(own) :] == own


def load(text: str | bytes, source: str, *, earlier_version: bool = False) -> Results:
    """The results that stand in `text`, the content of the file `source`.

    Args:
        text: The content.
        source: The file's name in messages.
        earlier_version: Whether results of the version before this one are read too.

    Raises:
        UsageError: It is not a results file that this version can read, or names a folder outside its own.
    """
    try:
        # Not pydantic's own reader: it gives up on a trace nested less deeply than its writer writes.
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source}: not a results file: not JSON: {error}") from error
    version = data.get("schemaVersion") if isinstance(data, dict) else None
    if isinstance(version, bool) or not isinstance(version, int):
        raise UsageError(f"{source}: not a results file of ci-evals: it has no 'schemaVersion'")
    if version == earlier.VERSION:
        if not earlier_version:
            raise UsageError(
                f"{source}: schemaVersion {version} is of an earlier version of ci-evals, which only report, "
                "compare, rejudge, `baseline=` and `history=` read: run the evals again"
            )
        data = earlier.upgrade(data)
    elif version != _SCHEMA_VERSION:
        if version > _SCHEMA_VERSION:
            cause = "it was written by a newer version; update ci-evals"
        elif version == 1:
            cause = "it was written by an earlier version; run the evals again"
        else:
            cause = "no version ever wrote that"
        raise UsageError(f"{source}: schemaVersion {version} cannot be read, only {_SCHEMA_VERSION}: {cause}")
    try:
        results = dataclass_json.from_value(
            Results, data | {"studies": _studies(data.get("studies"), source)}
        )
    except ValidationError as error:
        raise UsageError("\n".join(_problems(source, error))) from error
    _check_folders(source, results.suites)
    return results


def _studies(data: JsonValue, source: str) -> object:
    """The studies of a file: each of its own type, if that is known."""
    if not isinstance(data, dict) or not data:
        return () if data is None else data
    kinds = study_kinds()
    studies: list[Study] = []
    for key, value in data.items():
        if value is None:
            continue
        kind = kinds.get(key)
        try:
            if kind:
                studies.append(dataclass_json.from_value(kind, value))
            else:
                unknown = {"name": key, "value": value}
                studies.append(dataclass_json.from_value(UnknownStudy, unknown))
        except ValidationError as error:
            raise UsageError("\n".join(_problems(source, error, f"studies.{key}"))) from error
    return tuple(studies)


def _suite_files(own: Results, suite: SuiteResult) -> dict[str, Iterable[str]]:
    """The files of a suite's folder, out of the results that are its own."""
    stems, story = _stems(suite), story_of(own)
    return {
        RESULTS: results_json.render(own),
        SUITE_SUMMARY: _once(documents.suite_summary, story, suite, stems),
        **{
            f"{stem}.md": documents.test_report(story, suite, test)
            for stem, test in zip(stems, suite.tests, strict=True)
        },
    }


def _once(render: Callable[P, str], *args: P.args, **kwargs: P.kwargs) -> Iterator[str]:
    yield render(*args, **kwargs)


def _stems(suite: SuiteResult) -> list[str]:
    stems: list[str] = []
    taken = {"_results", "_summary"}
    for test in suite.tests:
        stems.append(unique(sanitize.file_name(test.name), taken))
        taken.add(stems[-1].casefold())
    return stems


def _problems(source: str, error: ValidationError, within: str = "") -> Iterator[str]:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    for fault in faults[:_SHOWN_PROBLEMS]:
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"])
        path = (within + "".join(parts)).lstrip(".")
        yield sanitize.log_line(f"{source}: {sanitize.one_line(path, _SHOWN_PATH)}: {fault['msg']}")
    if len(faults) > _SHOWN_PROBLEMS:
        yield f"{source}: and {len(faults) - _SHOWN_PROBLEMS} more"


def _check_folders(source: str, suites: Iterable[SuiteResult]) -> None:
    """A results file is data: the folders that it names must not lead out of its own."""
    own = {name.casefold() for name in OF_RUN}
    taken: set[str] = set()
    for suite in suites:
        parts = suite.folder.split("/")
        safe = all(
            _FOLDER_NAME.fullmatch(part) and not part.startswith(".") and part[-1] not in ". "
            for part in parts
        )
        if not safe or parts[0].casefold() in own or suite.folder.casefold() in taken:
            raise UsageError(
                f"{source}: the suite {suite.name!r} names the folder {suite.folder!r}; "
                "it must be a unique relative path without '..'"
            )
        taken.add(suite.folder.casefold())
