"""Names of adapters and their options, as suites and users give them, checked."""

import difflib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue, ValidationError

from ci_evals.agent_registry import AGENT_KINDS
from ci_evals.domain.agents import COMMAND, PYTHON, is_program, secrets_of
from ci_evals.domain.errors import Problem, SuiteError
from ci_evals.planning.documents.document import Document, Path
from ci_evals.planning.documents.interpolate import Reading, interpolate
from ci_evals.planning.documents.reader import read
from ci_evals.planning.validation import problems_in
from ci_evals.support.redaction import Redactor


def complaint(adapter: str, plugins: Collection[str]) -> str | None:
    """Return what is wrong with an adapter's name, to follow it in a message; None if it exists."""
    if is_program(adapter) or adapter in AGENT_KINDS or adapter in plugins:
        return None
    known = [*AGENT_KINDS, *sorted(plugins)]
    close = difflib.get_close_matches(adapter.lower(), [*known, PYTHON, COMMAND], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"available: {', '.join(known)}"
    return (
        f"is not an adapter; {hint} (also python:module:attribute, command: PROGRAM, and plug-ins "
        "once installed)"
    )


def option_problems(
    adapter: str, options: Any, document: Document, redactor: Redactor, under: Path = ()
) -> Iterator[Problem]:
    """Yield problems with the options of an adapter, which `document` has under this path."""
    if adapter not in AGENT_KINDS:
        return
    form = AGENT_KINDS[adapter].options_form
    if form is None:
        yield document.problem(under, f"the adapter {adapter!r} takes no options", at_key=bool(under))
        return
    try:
        form.model_validate_json(json.dumps(options), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        yield from problems_in(document, options, error, redactor=redactor, root=form, under=under)


@dataclass(frozen=True)
class OptionsFile:
    """Options of an adapter in a file of their own, not yet checked against an adapter."""

    value: dict[str, JsonValue]
    document: Document = field(repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """Values that came from the environment."""

    def checked(self, adapter: str) -> dict[str, JsonValue]:
        """Return the options if they fit the adapter.

        Raises:
            SuiteError: they do not, with every problem.
        """
        redactor = Redactor(secrets_of(self.value), self.secrets)
        if problems := tuple(option_problems(adapter, self.value, self.document, redactor)):
            raise SuiteError(_redacted(problems, redactor))
        return self.value


def read_options(text: str, file: str, environ: Mapping[str, str], *, masked: bool = False) -> OptionsFile:
    """Read an adapter's options from YAML or JSON; `${NAME}` is read from the environment as in a suite.

    `masked` puts `***` instead of secrets and unset variables.

    Raises:
        SuiteError: it cannot be read, with every problem.
    """
    document = read(text, file)
    filled = interpolate(document, Reading(environ=environ, masked=masked))
    problems = [*document.problems, *filled.problems]
    if not problems and not isinstance(filled.value, dict):
        problems.append(document.problem((), "must be an object with the adapter's options"))
    if problems:
        raise SuiteError(_redacted(problems, Redactor(values=filled.secrets)))
    return OptionsFile(filled.value, document, frozenset(filled.secrets))


def _redacted(problems: Iterable[Problem], redactor: Redactor) -> list[Problem]:
    return [replace(problem, message=redactor.text(problem.message)) for problem in problems]
