"""Importers of other tools' files: one for each format, a function from text to `ImportedSuite`."""

from collections.abc import Mapping
from typing import Protocol

from ci_evals.adapters.importers import deepeval, gaia, openai_evals, table
from ci_evals.adapters.importers.imported import ImportedSuite
from ci_evals.adapters.importers.other_files import OtherFiles
from ci_evals.adapters.importers.promptfoo import reader as promptfoo


class Reader(Protocol):
    """Makes a suite of a foreign file."""

    def __call__(self, text: str, file: str, files: OtherFiles | None = None, /) -> ImportedSuite:
        """Read the text of a file, and the other files that it names.

        Raises:
            SuiteError: the file is not of the format, with the position.
        """


READERS: Mapping[str, Reader] = {
    "gaia": gaia.read,
    "promptfoo": promptfoo.read,
    "deepeval": deepeval.read,
    "openai-evals": openai_evals.read,
    "csv": table.read,
}
"""Readers by the name of the format."""

__all__ = ["READERS", "ImportedSuite", "OtherFiles"]
