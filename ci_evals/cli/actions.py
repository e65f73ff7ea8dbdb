"""What a run tells GitHub Actions: outputs, step summary, masks. Elsewhere it does nothing."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ci_evals.adapters.github import workflow
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.results import Results
from ci_evals.redaction import Redactor
from ci_evals.reports import layout, markdown, numbers


def mask(redactor: Redactor, environ: Mapping[str, str]) -> None:
    """Registers every secret with the runner, before anything else is printed."""
    if environ.get("GITHUB_ACTIONS") == "true":
        for line in workflow.mask_lines(redactor.keys | redactor.values):
            print(line, flush=True)  # noqa: T201  # a workflow command must reach the stream as it is


def publish(results: Results, code: int, output_dir: Path, junit: Path, environ: Mapping[str, str]) -> None:
    """Writes all outputs of the action, and the step summary. `code` is the exit code that will be."""
    held = results.gate.passed and code == Exit.HOLDS
    result = "passed" if held else "failed"
    _write_outputs(
        environ,
        {
            "passed": str(held).lower(),
            "result": "invalid" if code not in (Exit.HOLDS, Exit.FAILED) else result,
            "score": "" if results.score is None else numbers.score(results.score),
            "tests": str(results.counts.tests),
            "failed-tests": str(results.counts.failed),
            "errors": str(results.counts.errors),
            "results-path": _relative(output_dir / layout.RESULTS, environ),
            "junit-path": _relative(junit, environ),
            "summary-path": _relative(output_dir / layout.SUMMARY, environ),
        },
    )
    if path := environ.get("GITHUB_STEP_SUMMARY"):
        workflow.append_summary(Path(path), markdown.summary_sections(results))


def refused(environ: Mapping[str, str]) -> None:
    """Writes all outputs for a run that published nothing."""
    names = ("score", "tests", "failed-tests", "errors", "results-path", "junit-path", "summary-path")
    with suppress(UsageError):  # the exit code tells it too
        _write_outputs(environ, {"passed": "false", "result": "invalid", **dict.fromkeys(names, "")})


def _write_outputs(environ: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    if path := environ.get("GITHUB_OUTPUT"):
        workflow.write_outputs(Path(path), outputs)


def _relative(path: Path, environ: Mapping[str, str]) -> str:
    """The path from the workspace, as later steps outside the container know it."""
    return os.path.relpath(path, environ.get("GITHUB_WORKSPACE") or Path.cwd()).replace(os.sep, "/")
