"""Every problem of suites, and what makes them weak."""

from collections.abc import Sequence

from ci_evals.cli.files.suite_loading import load_suites, unmatched_paths
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.extensions.validate.quality import weaknesses
from ci_evals.extensions.validate.settings import ValidateSettings
from ci_evals.planning.parse import LoadedSuite
from ci_evals.reports import sanitize
from ci_evals.scoring.null_score import in_words, null_score


def check_suites(settings: ValidateSettings, context: RunContext) -> Sequence[LoadedSuite]:
    """Load every suite, and say so; with `strict`, warn of what makes it weak."""
    console = context.console
    trust = FileTrust(settings, GitHubJob.of(settings, context))
    suites = load_suites(settings, trust, without_key=True)
    unmatched = unmatched_paths(suites) if settings.strict else ()
    for warning in unmatched:
        console.say(f"warning: {warning}")
    for loaded in suites:
        weak = weaknesses(loaded) if settings.strict else ()
        for warning in (*loaded.warnings, *map(str, weak)):
            console.say(f"warning: {warning}")
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
