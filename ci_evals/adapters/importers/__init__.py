"""Importers of other tools' files: one for each format, a function from text to `ImportedSuite`."""

from collections.abc import Callable, Mapping

from ci_evals.adapters.importers import deepeval, gaia, openai_evals, table
from ci_evals.adapters.importers.imported import ImportedSuite
from ci_evals.adapters.importers.promptfoo import reader as promptfoo

READERS: Mapping[str, Callable[[str, str], ImportedSuite]] = {
    "gaia": gaia.read,
    "promptfoo": promptfoo.read,
    "deepeval": deepeval.read,
    "openai-evals": openai_evals.read,
    "csv": table.read,
}
"""Readers by the name of the format. Each takes the text and the name of its file, for messages.

They raise `SuiteError`, with the position, if the file is not of the format.
"""

__all__ = ["READERS", "ImportedSuite"]
