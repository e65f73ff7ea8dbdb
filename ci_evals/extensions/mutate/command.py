"""`mutate`: a saved run and its suites in, what its gate notices out."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

from pydantic import JsonValue

from ci_evals.adapters import files
from ci_evals.adapters.github import workflow
from ci_evals.adapters.suites import read_text
from ci_evals.cli import environment_secrets
from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.files.suite_loading import load_suites, values_of
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run.judge_cache import folder_of
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.policy import limits_in, recorded_limits
from ci_evals.cli.settings.shared import SuiteSettings
from ci_evals.cli.terminal import display
from ci_evals.domain import numbers
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.prices import check_priced
from ci_evals.domain.results.run import Results
from ci_evals.domain.suite import is_bundled
from ci_evals.extension_registry import providers
from ci_evals.extension_support.asking import Asking, QuestionBudget
from ci_evals.extension_support.judging import Judging, judging
from ci_evals.extensions.mutate import documents
from ci_evals.extensions.mutate.faults import FAULTS, KINDS, Fault
from ci_evals.extensions.mutate.judged import Asked, ask_again
from ci_evals.extensions.mutate.result import JudgeQuestions, Mutations, Suggestion
from ci_evals.extensions.mutate.settings import MutateSettings
from ci_evals.extensions.mutate.study import MutationStudy, Planted, conclude, plant_in
from ci_evals.extensions.mutate.suite_edit import with_evaluations, written_tests
from ci_evals.gate.policy import Policy
from ci_evals.planning.parse import LoadedSuite
from ci_evals.scoring.usage import usage_of_roles


def mutate_run(settings: MutateSettings, context: RunContext) -> None:
    """Plant faults, write the reports next to the results, and exit.

    Raises:
        UsageError: something cannot be read; nothing is written then.
    """
    faults, shares = _faults(settings.faults), _shares(settings.shares)
    if settings.max_cost is not None and not settings.judge:
        raise UsageError("`max_cost=` limits what the judge may cost. Add `judge=`.")
    run = SavedRun.open(settings.results, None)
    _check_played(run)
    loaded = _suites(settings, run, context)
    redactor = context.hide(
        (), values_of(loaded, context.environ) | {*environment_secrets.values_in(context.environ)}
    )
    context.mask()
    results = redactor.model(run.results)
    target = _target(settings.apply, results) if settings.apply else None
    limits = recorded_limits(results.run.config) | limits_in(settings)
    study = MutationStudy(
        results=results,
        suites=tuple(redactor.model(one.suite) for one in loaded),
        policy=Policy.from_options(limits),
        options=_as_json(limits),
        faults=faults,
        shares=shares,
    )
    judge = _judge(settings, context) if settings.judge else None
    with _progress(faults, context, quiet=settings.quiet) as progress:
        planted = context.wait(plant_in(study, progress))
    questions = None
    if judge:
        planted, questions = _asked(planted, judge, settings.max_cost)
    found = redactor.model(context.wait(conclude(study, planted, questions)))
    if not found.planted:
        raise SystemExit(_nothing_planted(run, context))
    applied = target if target and _apply(target, found.suggestions, context) else None
    name = str(settings.results)
    texts = documents.files_of(found, name)
    files.write_all(run.file.parent, texts)
    _add_to_summary(texts[documents.PAGE], found, context)
    context.show(documents.summary(found, name, context.width, applied=applied))
    sys.exit(_exit_code(found, settings.min_noticed, context))


def _judge(settings: MutateSettings, context: RunContext) -> Judging:
    """Settle who judges, before anything is planted.

    Raises:
        UsageError: there is no key, or the cost is limited and a judge has no price.
    """
    judge = judging(settings.results, settings, context, cache=_cache(settings, context))
    if settings.max_cost is not None and not providers()[judge.connections.provider].reports_cost:
        check_priced(judge.panel, judge.prices)
    return judge


def _cache(settings: MutateSettings, context: RunContext) -> Path | None:
    """Return the folder of the judge's answers; None without one, or if anybody may have put some there."""
    folder = folder_of(settings.judge_cache, context)
    distrusted = FileTrust(settings, GitHubJob.of(settings, context)).workspace_distrusted()
    if folder and distrusted:
        context.console.say(f"warning: `judge_cache=`: not used {distrusted}")
        return None
    return folder


def _asked(planted: Planted, judge: Judging, most: float | None) -> tuple[Planted, JudgeQuestions]:
    """Ask the judge about the faults that nothing noticed; exit if it cannot be asked."""
    budget = None if most is None else QuestionBudget(most, judge.prices)

    async def ask(asking: Asking) -> Asked:
        asking.budget = budget
        return await ask_again(planted.plantings, asking)

    asked, asking = judge.carry_out(ask, "question")
    judge.context.console.say(judge.spent(asking))
    judge.check_ended(asking)
    cost = usage_of_roles(asking.usage, judge.prices).cost_usd if asking.usage else 0.0
    questions = JudgeQuestions(asked=asked.asked, not_asked=asked.left, cost_usd=cost)
    return replace(planted, plantings=asked.plantings), questions


def _faults(names: str | None) -> tuple[Fault, ...]:
    if names is None:
        return FAULTS
    kinds = [name.strip() for name in names.split(",") if name.strip()]
    wrong = [kind for kind in kinds if kind not in KINDS]
    if wrong or not kinds:
        raise UsageError(f"`faults=`: unknown kind {(wrong or [names])[0]!r}. Kinds: {', '.join(KINDS)}.")
    return tuple(fault for fault in FAULTS if fault.kind in kinds)


def _shares(text: str) -> tuple[float, ...]:
    """Return shares from 0 to 1, of percentages."""
    try:
        percentages = sorted({float(part) for part in text.split(",")})
    except ValueError:
        percentages = []
    if not percentages or not all(0 < share <= 100 for share in percentages):
        raise UsageError(f"`shares={text}`: write percentages above 0, up to 100, such as 5,10,25,50.")
    return tuple(share / 100 for share in percentages)


def _check_played(run: SavedRun) -> None:
    """Refuse a run without conversations of ours."""
    for suite in run.results.suites:
        if suite.of_other_tool:
            raise UsageError(
                f"{run.file}: another tool played this run, so it holds no conversations in which a fault "
                "could be planted. Name a run of ci-evals."
            )
    if not any(test.trials for test in run.results.tests):
        raise UsageError(f"{run.file}: contains no trial. Name a run that played its tests.")


def _suites(settings: MutateSettings, run: SavedRun, context: RunContext) -> list[LoadedSuite]:
    """Return the suite of each suite of the run, in its order."""
    names = settings.suites or list(dict.fromkeys(suite.file for suite in run.results.suites))
    for name in names:
        if not is_bundled(name) and not files.is_there(Path(name)):
            raise UsageError(
                f"{name}: the run's suite is not there. Go to the folder that the run was started in, or "
                "name its suites with `suite=`, once for each."
            )
    suite_settings = SuiteSettings(suites=names, trust_suites=settings.trust_suites)
    trust = FileTrust(suite_settings, GitHubJob.of(suite_settings, context))
    loaded = load_suites(suite_settings, trust, replay=True)
    by_name = {one.suite.name: one for one in loaded}
    by_file = {one.file: one for one in loaded}
    found = []
    for suite in run.results.suites:
        one = by_file.get(suite.file) or by_name.get(suite.name)
        if one is None:
            raise UsageError(
                f"{run.file}: its suite {suite.name!r} is none of {', '.join(names)}. Name it with `suite=`."
            )
        found.append(one)
    return found


def _target(path: Path, results: Results) -> str:
    """Return the file of the run's suite that is to be changed, as the results name it."""
    for suite in results.suites:
        if not is_bundled(suite.file) and files.is_same(Path(suite.file), path):
            return suite.file
    own = [suite.file for suite in results.suites if not is_bundled(suite.file)]
    if not own:
        raise UsageError(f"`apply={path}`: the run's suites come with ci-evals, and cannot be changed.")
    raise UsageError(f"`apply={path}`: not a suite of this run. Its suites: {', '.join(own)}.")


def _as_json(limits: Mapping[str, object]) -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {}
    for name, value in limits.items():
        options[name.replace("_", "-")] = value if isinstance(value, int | float) else str(value)
    return options


def _progress(
    faults: Sequence[Fault], context: RunContext, *, quiet: bool
) -> AbstractContextManager[display.WorkProgress]:
    """Show how many conversations have had their faults."""
    title = f"Planting {numbers.count(len(faults), 'kind')} of faults"

    def sentence(count: int) -> str:
        return f"{title} in {numbers.count(count, 'conversation')}"

    return display.progress_of(title, sentence, context.console, quiet=quiet)


def _nothing_planted(run: SavedRun, context: RunContext) -> int:
    context.console.say(
        f"{run.file}: no fault could be planted. A fault needs a conversation that passed and has something "
        "to act on, such as a call or a reply."
    )
    return Exit.INVALID


def _apply(file: str, found: Sequence[Suggestion], context: RunContext) -> bool:
    """Show what becomes of a suite file with the checks suggested for it, and write it if there are any."""
    old = read_text(Path(file), file)
    written = written_tests(old, file)
    of_file = [one for one in found if one.suite == file]
    suggestions = [one for one in of_file if one.test in written]
    for name in dict.fromkeys(one.test for one in of_file if one.test not in written):
        context.show(
            f"{file}: {name!r} is not written there, so its checks are not added. If a persona, "
            "a language or a pack made it, add them from suggestions.yaml to the test that it comes from."
        )
    if not suggestions:
        context.show(f"{file}: there is nothing to add")
        return False
    new = with_evaluations(old, file, suggestions)
    difference = unified_diff(old.splitlines(), new.splitlines(), file, file, lineterm="")
    context.show("\n".join(difference), exact=True)
    files.write(Path(file), new)
    context.show(f"{numbers.count(len(suggestions), 'check')} added to {file}")
    return True


def _add_to_summary(page: str, found: Mutations, context: RunContext) -> None:
    """Append the page to the step summary of a GitHub job; only its first sentences if it is too long."""
    path = context.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    room = workflow.summary_room(Path(path))
    for text in (page, documents.short_page(found)):
        if len(text.encode()) <= room:
            workflow.append_summary(Path(path), text)
            return


def _exit_code(found: Mutations, least: float | None, context: RunContext) -> int:
    if least is None or 100 * found.noticed >= least * found.planted:
        return Exit.PASSED
    share = numbers.score(100 * found.noticed / found.planted)
    context.console.say(f"{share} % of the faults were noticed, at least {least:g} % required")
    return Exit.FAILED
