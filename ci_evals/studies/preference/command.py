"""`prefer`: two runs in, which of them a judge prefers out."""

from collections.abc import Iterator
from datetime import UTC, datetime

from ci_evals.cli.run_context import RunContext
from ci_evals.library.runs import load_results, results_file
from ci_evals.reports import numbers
from ci_evals.studies.asking import Asking
from ci_evals.studies.conversations import Saved
from ci_evals.studies.judge_command import carry_out, finish
from ci_evals.studies.judging import Asked, judging
from ci_evals.studies.preference.result import Preference
from ci_evals.studies.preference.settings import PreferSettings
from ci_evals.studies.preference.study import Matched, matched
from ci_evals.studies.preference.study import prefer as ask


def prefer(settings: PreferSettings, context: RunContext) -> None:
    """Compares, shows and keeps in the results of A.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    judge = judging(settings.head, Asked.of(settings), context)
    file = results_file(settings.base)
    base = Saved(judge.redactor.model(load_results(file)), str(file))
    found = matched(Saved(judge.results, str(judge.file)), base, settings.pairs, settings.seed)
    console = context.console
    for line in _left_out(found):
        console.say(line)

    async def work(asking: Asking) -> Preference:
        return await ask(asking, found, datetime.now(UTC))

    preference, asking = carry_out(judge, settings, "pair", work, context)
    finish(judge, asking, context, preference, decided=preference.pairs - preference.undecided)


def _left_out(found: Matched) -> Iterator[str]:
    """What is not compared, and why."""
    for names, why in (
        (found.only_here, "in A only"),
        (found.only_there, "in B only"),
        (found.changed, "defined otherwise in the two runs"),
    ):
        if names:
            some = ", ".join(name.name for name in names[:3]) + (", …" if len(names) > 3 else "")
            yield f"Not compared, since {why}: {numbers.count(len(names), 'test')} ({some})"
    if found.whole > len(found.pairs):
        yield f"Of {found.whole:,} pairs of conversations {len(found.pairs):,} are compared (--pairs)"
