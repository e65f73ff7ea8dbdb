"""Groups, annotations and outputs that a command writes for GitHub Actions. Elsewhere nothing."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ci_evals.adapters.github import workflow
from ci_evals.cli.run_context import RunContext
from ci_evals.domain.errors import SuiteError, UsageError
from ci_evals.domain.suite import is_bundled
from ci_evals.reports import sanitize

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


def write_invalid(context: RunContext) -> None:
    """Write all outputs for a run that published nothing."""
    with suppress(UsageError):  # the exit code says it too
        write(
            context.environ,
            dict.fromkeys(OUTPUTS, "") | {"passed": "false", "result": "invalid", "finished": "false"},
        )


def explain(heading: str, why: str, context: RunContext) -> None:
    """Write to the step summary why there are no results, cut to 20 kB."""
    path = context.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    text = sanitize.clean(context.message(why)).strip()
    data = text.encode()
    if len(data) > _EXPLANATION_BYTES:
        text = data[:_EXPLANATION_BYTES].decode(errors="ignore") + "\n… (cut; the log has it whole)"
    with suppress(UsageError):  # the log has it too
        workflow.append_summary(Path(path), f"## ⚠️ Evals {heading}\n\n{sanitize.code_block(text)}\n")


def report_usage_error(error: UsageError, context: RunContext) -> None:
    """Say why nothing was run: in GitHub Actions as annotations, problems of suites at their lines.

    An annotation is a line of the log there, so nothing is said twice but what the runner would cut.
    """
    if not isinstance(error, SuiteError) or not context.in_actions:
        report_error(str(error), context, elsewhere=f"error: {error}")
        return
    for problem in error.problems[: workflow.MAX_ANNOTATIONS]:
        file = path_in_workspace(problem.file, context.environ)
        line, column = (problem.line, problem.column) if file else (None, None)
        # The log shows the message alone.
        message = sanitize.one_line(context.message(str(problem)))
        _annotate(context, message, file=file, line=line, col=column)
    for problem in error.problems[workflow.MAX_ANNOTATIONS :]:
        context.console.say(f"error: {sanitize.one_line(str(problem))}")


def report_error(message: str, context: RunContext, *, elsewhere: str = "") -> None:
    """Say what ends the program: in GitHub Actions as an annotation, `elsewhere` in other words."""
    if context.in_actions:
        _annotate(context, context.message(message))
    else:
        context.console.say(elsewhere or message)


def _annotate(context: RunContext, message: str, **location: str | int | None) -> None:
    """Print an annotation, and once more what GitHub would cut off of it."""
    console = context.console
    console.command(workflow.command("error", sanitize.log(message), **location, title="ci-evals"))
    if len(message) > workflow.MESSAGE_LIMIT:
        console.say(message)


def warn(message: str, context: RunContext) -> None:
    """Say something that changes no exit code: in GitHub Actions as an annotation, elsewhere in the log."""
    console = context.console
    if context.in_actions:
        line = sanitize.log_line(context.message(message))
        console.command(workflow.command("warning", line, title="ci-evals"))
    else:
        console.say(f"warning: {message}")


@contextmanager
def group(title: str, context: RunContext) -> Iterator[None]:
    """Fold what is printed meanwhile in GitHub's log."""
    if not context.in_actions:
        yield
        return
    console = context.console
    console.command(workflow.command("group", title))
    try:
        yield
    finally:
        console.command(workflow.command("endgroup"))


def path_in_workspace(file: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the path of a file within the workspace, as annotations need it; None for any other."""
    if file is None or is_bundled(file):
        return None
    path = relative(Path(file).absolute(), environ)
    return None if path.startswith("../") else path


def write(environ: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Write outputs of the step.

    Raises:
        UsageError: their file cannot be written.
    """
    if path := environ.get("GITHUB_OUTPUT"):
        workflow.write_outputs(Path(path), outputs)


def relative(path: Path, environ: Mapping[str, str]) -> str:
    """Return the path from the workspace, as later steps outside the container know it."""
    return os.path.relpath(path, environ.get("GITHUB_WORKSPACE") or Path.cwd()).replace(os.sep, "/")
