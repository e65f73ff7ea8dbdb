"""`validate`: every problem of suites, and what makes them weak."""

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.suite_commands import ValidateSettings
from ci_evals.cli.suite_loading import load_suites
from ci_evals.planning.quality import weaknesses
from ci_evals.reports import numbers, sanitize


def validate(settings: ValidateSettings, context: RunContext) -> None:
    """Loads every suite, and says so; with `strict` or `probe`, tells what makes it weak."""
    console = context.console
    suites = load_suites(settings, context, without_key=True)
    for loaded in suites:
        weak = weaknesses(loaded) if settings.strict else ()
        for warning in (*loaded.warnings, *map(str, weak)):
            console.say(f"warning: {warning}")
        suite = loaded.suite
        evaluations = sum(len(test.evaluations) for test in suite.tests)
        name = sanitize.log_line(f"{loaded.file}: {suite.name}")
        context.show(
            f"ok  {name}: {numbers.count(len(suite.tests), 'test')}, "
            f"{numbers.count(evaluations, 'evaluation')}"
        )
    if settings.probe:
        from ci_evals.cli.commands.probe import probe_suites  # noqa: PLC0415  # late: most who validate ask no judge

        probe_suites(settings, settings.probe, suites, context)
