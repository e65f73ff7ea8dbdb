"""Suites for callers of the library: files, bundled ones, or plain data."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ci_evals.adapters import suites as files
from ci_evals.agents import plugins
from ci_evals.domain.errors import Problem, SuiteError, UsageError
from ci_evals.planning.documents.interpolate import Reading
from ci_evals.planning.parse import LoadedSuite, load
from ci_evals.planning.suite_keys import schema_with_added_keys

SuiteLike = LoadedSuite | Mapping[str, Any] | str | Path
"""A suite that was loaded, its data, or where it is: a path or the name of a bundled one."""


def demo_suites_path() -> Path:
    """Return the folder of the bundled `demo:` suites, such as `hr.json`."""
    return files.bundled_path("demo")


def quack_suites_path() -> Path:
    """Return the folder of the bundled `quack:` suites, such as `artlist/refunds.json`."""
    return files.bundled_path("quack")


def package_root() -> Path:
    """Return the folder of the installed package."""
    return Path(files.__file__).parent.parent


def bundled_suites() -> tuple[str, ...]:
    """Return the names of all bundled suites, such as `demo:hr`."""
    return files.bundled_names()


def load_suite(
    suite: str | Path | Mapping[str, Any], *, environ: Mapping[str, str] | None = None
) -> LoadedSuite:
    """Read one suite: a JSON or YAML file, a bundled suite such as `demo:hr`, or its data.

    Args:
        suite: Its path, its bundled name, or an object as `json.loads` gives it.
        environ: Where `${NAME}` is looked up; the process's environment by default.

    Raises:
        UsageError: there is no such file, or it stands for several.
        SuiteError: it cannot be run; every problem is listed with its place.
    """
    today = datetime.now(UTC).date()
    reading = Reading(os.environ if environ is None else environ, plugins=plugins.names(), today=today)
    if isinstance(suite, Mapping):
        try:
            text = json.dumps(suite, indent=2, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"the suite is not JSON: {error}") from error
        return load(text, "(suite)", replace(reading, read_beside=partial(files.read_beside, Path.cwd())))
    sources = files.sources(str(suite))
    if len(sources) > 1:
        raise UsageError(f"{str(suite)!r} stands for {len(sources)} suites: load them one at a time")
    (source,) = sources
    folder = source.path.parent
    reading = replace(reading, read_beside=partial(files.read_beside, folder), folder=str(folder))
    return load(source.text, source.file, reading)


def loaded(suite: SuiteLike) -> LoadedSuite:
    """Return the suite, loaded if it is not yet."""
    return suite if isinstance(suite, LoadedSuite) else load_suite(suite)


def validate_suite(
    suite: str | Path | Mapping[str, Any], *, environ: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    """Return every problem of a suite, with file, line, column, path and message; none if it can be run."""
    try:
        load_suite(suite, environ=environ)
    except SuiteError as error:
        return error.problems
    return ()


def suite_schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of a suite, as `ci-evals schema` prints it."""
    return schema_with_added_keys()
