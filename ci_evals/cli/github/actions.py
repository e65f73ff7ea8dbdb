"""What a command tells GitHub Actions besides results: masks, groups, what went wrong. Elsewhere nothing."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ci_evals.adapters.github import workflow
from ci_evals.cli.terminal.console import Console, error_console
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.suite import is_bundled
from ci_evals.reports import sanitize
from ci_evals.support.redaction import Redactor

OUTPUTS = (
    "passed",
    "result",
    "finished",
    "score",
    "baseline-score",
    "delta",
    "tests",
    "failed-tests",
    "errors",
    "cost-usd",
    "results-path",
    "junit-path",
    "summary-path",
    "report-path",
)
"""The outputs of the action."""

_EXPLANATION_BYTES = 20_000


def mask(redactor: Redactor, environ: Mapping[str, str]) -> None:
    """Registers every secret with the runner, before anything else is printed."""
    if inside(environ):
        for line in workflow.mask_lines(redactor.keys | redactor.values):
            print(line, flush=True)  # noqa: T201  # a workflow command must reach the stream as it is


def refused(environ: Mapping[str, str]) -> None:
    """Writes all outputs for a run that published nothing."""
    with suppress(UsageError):  # the exit code tells it too
        write(
            environ,
            dict.fromkeys(OUTPUTS, "") | {"passed": "false", "result": "invalid", "finished": "false"},
        )


def explain(heading: str, why: str, environ: Mapping[str, str]) -> None:
    """Writes to the step summary why there are no results, cut to 20 kB."""
    path = environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    told = sanitize.clean(error_console(environ).redactor.text(why)).strip()
    data = told.encode()
    if len(data) > _EXPLANATION_BYTES:
        told = data[:_EXPLANATION_BYTES].decode(errors="ignore") + "\n… (cut; the log has it whole)"
    with suppress(UsageError):  # the log tells it too
        workflow.append_summary(Path(path), f"## ⚠️ ci-evals: {heading}\n\n{sanitize.code_block(told)}\n")


def complain(error: UsageError, environ: Mapping[str, str]) -> None:
    """Says why nothing was run: in GitHub Actions as commands, problems of suites at their lines.

    A command is a line of the log there, so nothing is said twice but what the runner would cut.
    """
    console = error_console(environ)
    if not isinstance(error, SuiteError) or not inside(environ):
        accuse(str(error), environ, elsewhere=f"error: {error}")
        return
    for problem in error.problems[: workflow.MAX_ANNOTATIONS]:
        file = place_of(problem.file, environ)
        line, column = (problem.line, problem.column) if file else (None, None)
        # The log shows the message alone.
        told = sanitize.one_line(console.redactor.text(str(problem)))
        _show_error(console, told, file=file, line=line, col=column)
    for problem in error.problems[workflow.MAX_ANNOTATIONS :]:
        console.say(f"error: {sanitize.one_line(str(problem))}")


def accuse(message: str, environ: Mapping[str, str], *, elsewhere: str = "") -> None:
    """Says what ends the program: in GitHub Actions as a command, `elsewhere` in other words."""
    console = error_console(environ)
    if not inside(environ):
        console.say(elsewhere or message)
        return
    _show_error(console, console.redactor.text(message))


def _show_error(console: Console, told: str, **place: str | int | None) -> None:
    """An annotation, and what GitHub would cut off of it once more."""
    console.command(workflow.command("error", sanitize.log(told), **place, title="ci-evals"))
    if len(told) > workflow.MESSAGE_LIMIT:
        console.say(told)


def warn(message: str, environ: Mapping[str, str]) -> None:
    """Says something that changes no exit code: in GitHub Actions as an annotation, elsewhere in the log."""
    console = error_console(environ)
    if inside(environ):
        told = sanitize.log_line(console.redactor.text(message))
        console.command(workflow.command("warning", told, title="ci-evals"))
    else:
        console.say(f"warning: {message}")


@contextmanager
def group(title: str, environ: Mapping[str, str]) -> Iterator[None]:
    """Folds what is said meanwhile in GitHub's log."""
    console = error_console(environ)
    if not inside(environ):
        yield
        return
    console.command(workflow.command("group", title))
    try:
        yield
    finally:
        console.command(workflow.command("endgroup"))


def inside(environ: Mapping[str, str]) -> bool:
    """Whether this is a step of a job there."""
    return environ.get("GITHUB_ACTIONS") == "true"


def place_of(file: str | None, environ: Mapping[str, str]) -> str | None:
    """The path of a file within the workspace, as annotations need it; None for any other."""
    if file is None or is_bundled(file):
        return None
    path = relative(Path(file).absolute(), environ)
    return None if path.startswith("../") else path


def write(environ: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Writes outputs of the step.

    Raises:
        UsageError: their file cannot be written.
    """
    if path := environ.get("GITHUB_OUTPUT"):
        workflow.write_outputs(Path(path), outputs)


def relative(path: Path, environ: Mapping[str, str]) -> str:
    """The path from the workspace, as later steps outside the container know it."""
    return os.path.relpath(path, environ.get("GITHUB_WORKSPACE") or Path.cwd()).replace(os.sep, "/")
