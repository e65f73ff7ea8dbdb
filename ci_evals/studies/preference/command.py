"""`prefer`: two runs in, which of them a judge prefers out."""

from collections.abc import Iterator
from datetime import UTC, datetime

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.run_context import RunContext
from ci_evals.reports import numbers
from ci_evals.studies.asking import Asking
from ci_evals.studies.judge_command import carry_out, finish
from ci_evals.studies.judging import judging
from ci_evals.studies.preference.result import Preference
from ci_evals.studies.preference.settings import PreferSettings
from ci_evals.studies.preference.study import PairedRuns, pair_runs
from ci_evals.studies.preference.study import prefer as ask


def prefer(settings: PreferSettings, context: RunContext) -> None:
    """Compare two runs, show the outcome, and keep it with the results of A.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    judge = judging(settings.head, settings, context)
    base = SavedRun.open(settings.base, judge.redactor)
    paired_runs = pair_runs(judge.run, base, settings.pairs, settings.seed)
    console = context.console
    for line in _left_out(paired_runs):
        console.say(line)

    async def work(asking: Asking) -> Preference:
        return await ask(asking, paired_runs, datetime.now(UTC))

    preference, asking = carry_out(judge, settings, "pair", work, context)
    finish(judge, asking, context, preference, decided=preference.pairs - preference.undecided)


def _left_out(paired_runs: PairedRuns) -> Iterator[str]:
    """Tests and conversations that are not compared, and why."""
    for names, why in (
        (paired_runs.only_in_head, "in A only"),
        (paired_runs.only_in_base, "in B only"),
        (paired_runs.changed, "defined otherwise in the two runs"),
    ):
        if names:
            some = ", ".join(name.name for name in names[:3]) + (", …" if len(names) > 3 else "")
            yield f"Not compared, since {why}: {numbers.count(len(names), 'test')} ({some})"
    available, compared = paired_runs.available, len(paired_runs.pairs)
    if available > compared:
        yield f"Of {available:,} pairs of conversations {compared:,} are compared (--pairs)"
