"""Outputs, step summary and annotations of results in GitHub Actions. Elsewhere nothing."""

from pathlib import Path

from ci_evals.adapters.github import workflow
from ci_evals.cli.github import actions
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit
from ci_evals.domain.results.run import Results
from ci_evals.reports.annotations import Severity, annotations
from ci_evals.reports.markdown import documents
from ci_evals.reports.markdown.sections import SummaryContext
from ci_evals.reports.names import PAGE, RESULTS, SUMMARY
from ci_evals.reports.story.story import story_of

_FINISHED = frozenset({"completed", "skipped"})
"""Statuses of a run with nothing left to play."""


def write(results: Results, code: int, output_dir: Path, junit: Path, context: RunContext) -> None:
    """Write all outputs of the action. `code` is the exit code of the run."""
    passed = results.gate.passed and code == Exit.PASSED
    comparison, cost = results.comparison, results.usage.cost_usd
    values = {
        "passed": str(passed).lower(),
        "result": _result(results, code),
        "finished": str(results.run.status in _FINISHED).lower(),
        "score": numbers.score(results.score),
        "baseline-score": numbers.score(comparison.base) if comparison else "",
        "delta": numbers.changed_for_programs(comparison.base, comparison.head)
        if comparison and comparison.delta is not None
        else "",
        "tests": str(results.counts.tests),
        "failed-tests": str(results.counts.failed),
        "errors": str(results.counts.errors),
        "cost-usd": "" if cost is None else f"{cost:.4f}",
    }
    paths = {
        "results-path": output_dir / RESULTS,
        "junit-path": junit,
        "summary-path": output_dir / SUMMARY,
        "report-path": output_dir / PAGE,
    }
    values |= {
        name: actions.relative(path, context.environ) if path.is_file() else ""
        for name, path in paths.items()
    }
    actions.write(
        context.environ, {name: "" if value == numbers.NONE else value for name, value in values.items()}
    )


def summary_context(github: GitHubJob) -> SummaryContext:
    """Return the facts about the job that comment and summary link to."""
    event = github.event
    foreign = event.foreign and event.event == "workflow_run"
    own = event.head if event.of_pull_request else None
    commit = own.sha if own else None
    return SummaryContext(
        run_url=event.run_url, source_url=event.source_url(commit), commit=commit, foreign=foreign
    )


def write_summary(results: Results, context: RunContext) -> None:
    """Append the step summary."""
    if path := context.environ.get("GITHUB_STEP_SUMMARY"):
        summary, links = Path(path), summary_context(GitHubJob.of(None, context))
        text = documents.step_summary(story_of(results), workflow.summary_room(summary), links)
        workflow.append_summary(summary, text)


def annotate(results: Results, context: RunContext) -> None:
    """Print annotations of failures at their lines in suites, the worst first, as many as GitHub shows."""
    if not context.in_actions:
        return
    all_annotations = annotations(story_of(results))
    for severity in Severity:
        of_level = [annotation for annotation in all_annotations if annotation.severity is severity]
        for annotation in of_level[: workflow.MAX_ANNOTATIONS]:
            file = actions.path_in_workspace(annotation.file, context.environ)
            context.show(
                workflow.command(
                    severity,
                    annotation.message,
                    file=file,
                    line=annotation.line if file else None,
                    title=annotation.title,
                )
            )
        if (more := len(of_level) - workflow.MAX_ANNOTATIONS) > 0:
            context.show(f"and {numbers.count(more, f'more {severity}')}, which GitHub does not show here")


def _result(results: Results, code: int) -> str:
    if code not in (Exit.PASSED, Exit.FAILED):
        return "invalid"
    if results.skipped:
        return "skipped"
    return "passed" if results.gate.passed else "failed"
