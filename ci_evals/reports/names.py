"""What the files and folders of a run are called."""

from collections.abc import Collection, Container
from datetime import UTC, datetime

from ci_evals.reports import sanitize

RESULTS = "_results.json"
SUMMARY = "summary.md"
SUITE_SUMMARY = "_summary.md"
JUNIT = "junit.xml"
PAGE = "report.html"


def folder_for(suite_name: str, started_at: datetime, taken: Collection[str]) -> str:
    """The folder of a suite relative to the output folder, `Refunds/2026-11-21T09-30-00Z`.

    It differs from every folder in `taken`, also where upper and lower case are one.
    """
    stamp = started_at.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    names = {folder.split("/")[0].casefold() for folder in taken}
    return f"{unique(sanitize.file_name(suite_name), names)}/{stamp}"


def unique(name: str, taken: Container[str]) -> str:
    """`name`, or with a number after it where it is taken, also where upper and lower case are one.

    `taken` are names as `str.casefold` makes them.
    """
    found, number = name, 2
    while found.casefold() in taken:
        found, number = f"{name}-{number}", number + 1
    return found
