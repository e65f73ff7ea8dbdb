"""The command `validate` with `--probe`."""

from typing import TYPE_CHECKING

from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.options import takes

if TYPE_CHECKING:
    from ci_evals.extensions.probe.settings import ProbeSettings


@takes("ci_evals.extensions.probe.settings", "ProbeSettings")
def validate(settings: "ProbeSettings", context: RunContext) -> None:
    """Check suites: every problem with file, line and column.

    Exits with 2 if there is a problem. With --strict it also warns about weak suites: no strict check, a
    criterion that asks two things, only happy paths, a test without tags, guidelines that give the answer
    away. With --probe=RESULTS a judge finds criteria that pass in conversations of other tests too.
    """
    from ci_evals.cli.commands.validate import validate as read_suites

    suites = read_suites(settings, context)
    if settings.probe:
        from ci_evals.extension_support.settings import JudgeSettings
        from ci_evals.extensions.probe.study import probe_suites

        judge = JudgeSettings(
            provider=settings.provider,
            llm_key=settings.llm_key,
            judge_model=settings.judge_model,
            parallel=settings.parallel,
            quiet=settings.quiet,
        )
        probe_suites(suites, settings.probe, settings.probe_with, judge, context)


COMMANDS = (validate,)
