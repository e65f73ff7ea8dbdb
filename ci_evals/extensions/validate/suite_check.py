"""Every problem of suites, and what makes them weak."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ci_evals.adapters.git.checkout import root_of
from ci_evals.cli.files.suite_loading import load_suites, unmatched_paths
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.extensions.validate.sarif import SarifLog
from ci_evals.extensions.validate.settings import ValidateFormat, ValidateSettings
from ci_evals.extensions.validate.suite_findings import Rule, SuiteFinding, messages_of, problems_of
from ci_evals.planning.parse import LoadedSuite
from ci_evals.reports import sanitize
from ci_evals.scoring.null_score import in_words, null_score


def validate_suites(settings: ValidateSettings, context: RunContext) -> None:
    """Check suites, try their criteria if asked to, and print what was found.

    Raises:
        UsageError: a suite cannot be run.
    """
    found: list[SuiteFinding] = []

    def note(finding: SuiteFinding) -> None:
        found.append(finding)
        context.console.say(str(finding))

    if settings.format is ValidateFormat.TEXT:
        _validate(settings, context, note)
        return
    context.keep_stdout_for_json()
    try:
        _validate(settings, context, note)
    except UsageError as error:
        found += [SuiteFinding(Rule.INVALID, problem) for problem in problems_of(error)]
        _show_sarif(found, context, Exit.USAGE, messages_of(error))
        raise
    except SystemExit as ending:  # the judge did not answer all questions
        code = ending.code if isinstance(ending.code, int) else Exit.INVALID
        _show_sarif(found, context, code, ["Not all criteria were tried."] if code else [])
        raise
    _show_sarif(found, context)


def _validate(settings: ValidateSettings, context: RunContext, note: Callable[[SuiteFinding], None]) -> None:
    suites = _check_suites(settings, context, note)
    if settings.probe:
        from ci_evals.extensions.validate.study import probe_suites  # noqa: PLC0415  # 0.1 s, for few calls

        probe_suites(suites, settings.probe, settings, context, note)


def _check_suites(
    settings: ValidateSettings, context: RunContext, note: Callable[[SuiteFinding], None]
) -> Sequence[LoadedSuite]:
    """Load every suite, and say so; with `strict`, note what makes it weak."""
    trust = FileTrust(settings, GitHubJob.of(settings, context))
    suites = load_suites(settings, trust, without_key=True)
    for problem in unmatched_paths(suites) if settings.strict else ():
        note(SuiteFinding(Rule.WARNING, problem))
    for loaded in suites:
        for finding in _findings(loaded, strict=settings.strict):
            note(finding)
        suite = loaded.suite
        evaluations = sum(len(test.evaluations) for test in suite.tests)
        fewest = sum(suite.fewest_turns(test) for test in suite.tests)
        most = sum(len(suite.turns_of(test)) for test in suite.tests)
        name = sanitize.log_line(f"{loaded.file}: {suite.name}")
        context.show(
            f"ok  {name}: {numbers.count(len(suite.tests), 'test')}, "
            f"{numbers.count(evaluations, 'evaluation')}, {numbers.up_to(fewest, most, 'turn')}"
        )
        score = null_score(suite.tests)
        if score is not None:
            context.show(f"    {in_words(score)}")
    return suites


def _findings(loaded: LoadedSuite, *, strict: bool) -> Iterator[SuiteFinding]:
    for problem in loaded.warnings:
        yield SuiteFinding(Rule.WARNING, problem)
    for problem in weaknesses(loaded) if strict else ():
        yield SuiteFinding(Rule.WEAK, problem)


def _show_sarif(
    found: Sequence[SuiteFinding], context: RunContext, exit_code: int = 0, messages: Sequence[str] = ()
) -> None:
    folder = Path.cwd()
    log = SarifLog(
        findings=[finding.spelled(context.spell) for finding in found],
        folder=folder,
        root=root_of(folder) or folder,
        exit_code=exit_code,
        messages=[context.spell(message) for message in messages],
    ).render()
    context.show_json([json.dumps(context.redactor.json(log), indent=2, ensure_ascii=False)])
