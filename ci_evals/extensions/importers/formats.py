"""The list of importers, in the order of the help."""

from collections.abc import Mapping

from ci_evals.extensions.importers import deepeval, gaia, openai_evals, table
from ci_evals.extensions.importers.conversations.formats import CONVERSATION_FORMATS
from ci_evals.extensions.importers.importer import Importer
from ci_evals.extensions.importers.promptfoo import reader as promptfoo

_MODULES = (gaia, promptfoo, deepeval, openai_evals, table)

IMPORTERS: Mapping[str, Importer] = {module.IMPORTER.format: module.IMPORTER for module in _MODULES}
"""Importers by the name of the format."""


def rows_of_help() -> list[tuple[str, str]]:
    """Return the name of each format, and what it is."""
    rows = [(importer.format, importer.summary) for importer in IMPORTERS.values()]
    return rows + [(name, one.summary) for name, one in CONVERSATION_FORMATS.items()]
