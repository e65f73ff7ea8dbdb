"""The findings of `mutate` that lie next to the results of the run."""

from pydantic import ValidationError

from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.run import Results
from ci_evals.extensions.mutate.documents import DATA
from ci_evals.extensions.mutate.result import Mutations
from ci_evals.support import dataclass_json

FILE = DATA
"""The name of the file."""


def read(text: str, results: Results) -> Mutations | None:
    """Return the findings; None if they are of another run.

    Raises:
        UsageError: the text is none that `mutate` writes.
    """
    try:
        found = dataclass_json.from_json(Mutations, text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise UsageError(f"{FILE}: not written by `ci-evals mutate`: {path}: {first['msg']}") from error
    return found if found.run == results.run.id else None
