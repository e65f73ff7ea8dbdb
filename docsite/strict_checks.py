"""The table of `docs/strict-checks.md`: the kinds of strict checks as their classes describe them."""

import inspect
from collections.abc import Iterator
from pathlib import Path

from ci_evals.domain.checks.evaluation import STRICT_CHECKS
from ci_evals.domain.checks.strict_check import StrictCheck
from ci_evals.domain.criterion import Criterion
from docsite.markdown import replace_generated, row, table

PAGE = Path(__file__).parent.parent / "docs/strict-checks.md"


def text() -> str:
    """Return the page with the table that the code has now."""
    return replace_generated(PAGE.read_text(), "kinds", _lines())


def _lines() -> Iterator[str]:
    yield from table("`strict` | fields | passes if | replies must report")
    for kind in STRICT_CHECKS:
        yield row(f"`{kind.kind()}`", ", ".join(_fields(kind)), _sentence(kind), _report(kind))


def _fields(kind: type[StrictCheck]) -> Iterator[str]:
    """Yield the keys that only this kind has, those that may be left out last and with a question mark."""
    optional = []
    for name, field in kind.model_fields.items():
        if name in Criterion.model_fields or name == "strict":
            continue
        if field.is_required():
            yield f"`{field.alias}`"
        else:
            optional.append(f"`{field.alias}`?")
    yield from optional


def _sentence(kind: type[StrictCheck]) -> str:
    words = " ".join((inspect.getdoc(kind) or "").split())
    return words.removeprefix("Passes if ").removesuffix(".")


def _report(kind: type[StrictCheck]) -> str:
    evidence = kind.evidence()
    return "" if evidence is None else evidence.report
