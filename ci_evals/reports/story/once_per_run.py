"""Facts that many parts of the reports ask for, derived once."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakValueDictionary

from ci_evals.domain.results.run import Results

T = TypeVar("T")


def once_per_run(derive: Callable[[Results], T]) -> Callable[[Results], T]:
    """Keep what a function derives from results, which never change, while they are the last ones."""
    of: WeakValueDictionary[str, Results] = WeakValueDictionary()
    facts: list[T] = []

    @wraps(derive)
    def kept(results: Results) -> T:
        if of.get("last") is not results:
            facts[:] = [derive(results)]
            of["last"] = results
        return facts[0]

    return kept
