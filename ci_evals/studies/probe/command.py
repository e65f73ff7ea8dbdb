"""`validate --probe`: which judged criteria of suites pass before conversations of other tests too."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ci_evals.cli.files.suite_loading import values_of
from ci_evals.cli.run_context import RunContext
from ci_evals.planning.parse import LoadedSuite
from ci_evals.reports import numbers, sanitize
from ci_evals.studies.asking import Asking
from ci_evals.studies.judge_command import carry_out, finish
from ci_evals.studies.judging import judging
from ci_evals.studies.probe.result import Probe
from ci_evals.studies.probe.settings import ProbeSettings
from ci_evals.studies.probe.study import LEAST, ProbeQuestion, ProbeQuestions, questions, vacuous
from ci_evals.studies.probe.study import probe as ask
from ci_evals.studies.settings import JudgeSettings

_SEED = 0
_WHAT_TO_DO = (
    "A criterion that passes whatever was said measures nothing. Mostly it tells what must not happen, which "
    "it does not either where nothing happens at all: demand in its words that the situation arises, add a "
    "strict check, or let the user press for it (an adversarial user). One about any conversation, as of its "
    "tone, may stay, though it tells no test from another."
)


def probe_suites(
    settings: ProbeSettings, results: Path, suites: Sequence[LoadedSuite], context: RunContext
) -> None:
    """Try every judged criterion, warn of those that measure nothing, and keep what was found.

    Raises:
        UsageError: before anybody is asked; nothing is written then.
    """
    options = JudgeSettings(
        provider=settings.provider, llm_key=settings.llm_key, judge_model=settings.judge_model
    )
    judge = judging(results, options, context)
    # What of a suite came from the environment stands in the run as `***`, and no judge may see it.
    redactor = judge.redactor.knowing(values=values_of(suites, context.environ))
    context.redactor = redactor
    judge = replace(judge, redactor=redactor)
    clean = [redactor.model(loaded.suite) for loaded in suites]
    found = questions(judge.run, clean, settings.probe_with, _SEED)
    console = context.console
    if found.unknown:
        criteria = numbers.count(found.unknown, "judged criterion", "judged criteria")
        console.say(f"Not probed, since {judge.run.file} does not hold them: {criteria}")

    async def work(asking: Asking) -> Probe:
        return await ask(asking, found, datetime.now(UTC))

    probe, asking = carry_out(judge, settings, "verdict", work, context)
    warnings = _warnings(suites, found, probe)
    for line in warnings:
        console.say(f"warning: {line}")
    if warnings:
        console.say(_WHAT_TO_DO)
    if few := sum(one.tried < LEAST for one in probe.criteria):
        criteria = numbers.count(few, "criterion was", "criteria were")
        console.say(f"{criteria} decided by fewer than {LEAST} conversations, which says too little")
    decided = sum(one.tried for one in probe.criteria)
    finish(judge, asking, context, probe, decided=decided, warnings=False)  # each criterion has one already


def _warnings(suites: Sequence[LoadedSuite], found: ProbeQuestions, probe: Probe) -> list[str]:
    """The criteria that measure nothing, each where it stands, as `--strict` has its warnings."""
    return [
        _warning(
            suites, question, f"passes before {one.passed} of {one.tried} conversations of other tests too"
        )
        for question, one in vacuous(found, probe)
    ]


def _warning(suites: Sequence[LoadedSuite], question: ProbeQuestion, seen: str) -> str:
    suite, test, evaluation = question.place
    path = ("tests", test, "evaluations", evaluation, "criterion")
    criterion = sanitize.one_line(question.evaluation.criterion, 80)
    said = f"{criterion!r} {seen}: it measures nothing"
    return str(suites[suite].document.problem(path, said))
