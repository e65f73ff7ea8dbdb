"""Saved results, read for a command."""

import os
from pathlib import Path

from ci_evals.cli.console import environment_keys, remember
from ci_evals.domain.results import Results
from ci_evals.library import load_results
from ci_evals.redaction import Redactor


def read_clean(path: Path) -> Results:
    """Recorded results, without the keys that this environment holds: whoever wrote them may not have known.

    Raises:
        UsageError: there are none, or they cannot be read.
    """
    redactor = Redactor(environment_keys(os.environ))
    remember(redactor)
    return redactor.model(load_results(path))
