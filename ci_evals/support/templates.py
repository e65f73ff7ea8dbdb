"""Renders the templates of the package."""

import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import regex

from ci_evals.support.documentation import address
from ci_evals.support.json_text import written
from ci_evals.support.text import visible

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_HIDDEN = regex.compile(r"[<>\p{Cf}\p{Co}\p{Zl}\p{Zp}\x7f-\x9f\ufe00-\ufe0f]")
_SELECTORS = re.compile("[\ufe00-\ufe0f]")


class Data(str):
    """Text made by `as_data`: a value in several prompts is written once."""

    __slots__ = ()


def render(name: str, **values: object) -> str:
    """Render the template `name` (`grading/prompts/judge.md.j2`) filled with `values`.

    A name that a template uses and `values` lacks is an error; `page("traces")` is the address of a page.
    What is put into a `.html.j2` is escaped, and rid of what no place can show; for Markdown the callers
    sanitize.
    """
    return _template(name).render(**values)


def digest(*names: str) -> str:
    """Return the SHA-256 of the templates' sources: changes when a prompt changes."""
    sources = [files("ci_evals").joinpath(name).read_text(encoding="utf-8") for name in names]
    return hashlib.sha256("\0".join(sources).encode()).hexdigest()


def as_data(value: object) -> Data:
    """JSON that cannot close the `<block>` it stands in, nor hide anything from a reader of the reports.

    The filter `data` of every template. Foreign text enters a prompt in no other way. `<` and `>` are written
    as escapes, and so is what is not to be seen: controls, zero-width, bidirectional and tag characters.
    """
    if isinstance(value, Data):
        return value
    text = written(value, indent=1)
    return Data(text if _is_plain(text) else _HIDDEN.sub(_escape, text))


def _is_plain(text: str) -> bool:
    """Return whether there is nothing to escape, much faster than by the pattern."""
    printable = "<" not in text and ">" not in text and text.replace("\n", " ").isprintable()
    return printable and (text.isascii() or not _SELECTORS.search(text))


def _escape(match: regex.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] not in "<>" else f"\\u{ord(match[0]):04x}"


def _shown(value: object) -> object:
    """Clean a value for HTML, except our own markup."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@cache
def _template(name: str) -> "Template":
    return _environment(html=name.endswith(".html.j2")).get_template(name)


@cache
def _environment(*, html: bool) -> "Environment":
    # Late: they take 0.1 s, at the first prompt.
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415

    environment = Environment(
        loader=PackageLoader("ci_evals", package_path=""),
        autoescape=html,  # noqa: S701  # Markdown has its own
        undefined=StrictUndefined,
        finalize=_shown if html else None,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    environment.filters["data"] = as_data
    environment.globals["page"] = address
    return environment
