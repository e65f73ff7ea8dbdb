"""JSON or YAML read into plain data, with the position of every value and key."""

from pathlib import PurePath

from ci_evals.planning.documents import json_document
from ci_evals.planning.documents.document import Document


def read(text: str, file: str) -> Document:
    """Read a suite's text; the extension of `file` says in which format.

    Raises:
        SuiteError: the text is neither JSON nor YAML, with the position of the error.
    """
    document = Document(file)
    if PurePath(file).suffix.lower() in {".yaml", ".yml"}:
        from ci_evals.planning.documents import yaml_document  # noqa: PLC0415  # most suites are JSON

        yaml_document.read(text, document)
    else:
        json_document.read(text, document)
    return document
