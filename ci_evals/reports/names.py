"""Names of the files and folders of a run."""

from collections.abc import Collection, Container, Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from ci_evals.extension_registry import report_formats
from ci_evals.reports import sanitize

RESULTS = "_results.json"
SUMMARY = "summary.md"
SUITE_SUMMARY = "_summary.md"
JUNIT = "junit.xml"
CTRF = "ctrf.json"
PAGE = "report.html"
BADGE = "badge.svg"
BADGE_DATA = "badge.json"
FINDINGS = "findings.csv"
AGENT_LOG = "agent.log"
"""The output of agents that a run starts."""
OF_RUN = (RESULTS, SUMMARY, JUNIT, CTRF, PAGE, BADGE, BADGE_DATA, FINDINGS)
"""The files that may lie beside the suites' folders."""


class Format(StrEnum):
    """A kind of report, as users ask for it."""

    HTML = "html"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    CTRF = "ctrf"
    JSON = "json"
    BADGE = "badge"
    CSV = "csv"


_FORMATS = {
    PAGE: Format.HTML,
    JUNIT: Format.JUNIT,
    CTRF: Format.CTRF,
    RESULTS: Format.JSON,
    BADGE: Format.BADGE,
    BADGE_DATA: Format.BADGE,
    FINDINGS: Format.CSV,
}


_SUMMARIES = {
    Format.HTML: PAGE,
    Format.MARKDOWN: f"{SUMMARY} and the files of suites and tests",
    Format.JUNIT: JUNIT,
    Format.CTRF: CTRF,
    Format.JSON: f"each suite's own {RESULTS}",
    Format.BADGE: f"{BADGE} and {BADGE_DATA}",
    Format.CSV: f"{FINDINGS}, a row for each finding",
}


def rows_of_help() -> list[tuple[str, str]]:
    """Return the name of each format, and what it writes."""
    extensions = [(name, extension.SUMMARY) for name, extension in formats_of_extensions().items()]
    return [*_SUMMARIES.items(), *extensions]


def formats_of_extensions() -> dict[str, Any]:
    """Return the module of each format that only extensions write; the first of a name counts."""
    found: dict[str, Any] = {}
    for extension in report_formats():
        if extension.FORMAT not in set(Format):
            found.setdefault(extension.FORMAT, extension)
    return found


def format_of(path: str) -> Format:
    """The kind of a file of a run: what has no name of its own is Markdown."""
    return _FORMATS.get(path.rpartition("/")[2], Format.MARKDOWN)


def folder_for(suite_name: str, started_at: datetime, taken: Collection[str]) -> str:
    """The folder of a suite relative to the output folder, `Refunds/2026-11-21T09-30-00Z`.

    It differs from every folder in `taken`, also where upper and lower case are one.
    """
    stamp = started_at.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    names = {folder.split("/")[0].casefold() for folder in taken}
    return f"{unique(sanitize.file_name(suite_name), names)}/{stamp}"


def folders_for(suite_names: Iterable[str], started_at: datetime) -> list[str]:
    """Return the folder of each suite of a run, likewise."""
    folders: list[str] = []
    for name in suite_names:
        folders.append(folder_for(name, started_at, folders))
    return folders


def unique(name: str, taken: Container[str]) -> str:
    """`name`, or with a number after it where it is taken, also where upper and lower case are one.

    `taken` are names as `str.casefold` makes them.
    """
    found, number = name, 2
    while found.casefold() in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def numbered(names: Sequence[str]) -> list[str]:
    """The names, of which the second of one has a number behind it: `Refunds (2)`."""
    own = set(names)
    taken: set[str] = set()
    unlike_names = []
    for name in names:
        unlike, number = name, 2
        while unlike in taken or (number > 2 and unlike in own):
            unlike, number = f"{name} ({number})", number + 1
        taken.add(unlike)
        unlike_names.append(unlike)
    return unlike_names
