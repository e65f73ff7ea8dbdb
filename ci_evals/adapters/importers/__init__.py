"""Other tools' files made suites: one module a format, each a function from text to `Imported`."""

from collections.abc import Callable, Mapping

from ci_evals.adapters.importers import deepeval, gaia, promptfoo, table
from ci_evals.adapters.importers.imported import Imported

READERS: Mapping[str, Callable[[str, str], Imported]] = {
    "gaia": gaia.read,
    "promptfoo": promptfoo.read,
    "deepeval": deepeval.read,
    "csv": table.read,
}
"""By the name of the format. A reader takes the text and the name of its file, which shows in messages.

They raise `SuiteError` where the file is not what it should be, with the place in it.
"""

__all__ = ["READERS", "Imported"]
