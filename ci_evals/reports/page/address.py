"""The addresses within the page, as `addressOf` and `read` of its script have them."""

from urllib.parse import quote

from ci_evals.reports.page.embedded_data import TestView
from ci_evals.support.text import whole

_KEPT = "!*'()"
"""Characters that `encodeURIComponent` keeps and `quote` does not."""


def of(shown: TestView, trial: int | None = None, turn: int | None = None, base: int | None = None) -> str:
    """The address of a test, of one of its trials, or of a turn in it: `#suite/test/2/3`.

    `base` is the trial of the baseline that stands beside it: `#suite/test/2/3/vs1`.
    """
    names = [quote(whole(part), safe=_KEPT) for part in (shown.suite, shown.name)]
    numbers = [str(number) for number in (trial, turn) if number is not None]
    beside = [] if base is None else [f"vs{base}"]
    return "#" + "/".join([*names, *numbers, *beside])
