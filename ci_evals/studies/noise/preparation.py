"""The preparation of `noise`, before anybody is asked: the run, its current suites, and the models."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import fsum
from pathlib import Path
from statistics import fmean

from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.files.suite_loading import headers_of, load_suites, values_of
from ci_evals.cli.run_context import RunContext
from ci_evals.cli.settings.choices import Provider
from ci_evals.cli.settings.shared import SuiteSettings
from ci_evals.domain.errors import UsageError
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.suite import is_bundled
from ci_evals.job.results_builder import JUDGE_TEMPLATES
from ci_evals.planning.selection import Selection, plan
from ci_evals.planning.workload import of_plan
from ci_evals.rejudging.saved import is_judged
from ci_evals.reports import numbers
from ci_evals.studies.keeping import check_whole
from ci_evals.studies.noise.sample import (
    PlayableTest,
    PlayedModels,
    SamplePlan,
    match_tests,
    pick_tests,
    plan_sample,
)
from ci_evals.studies.noise.settings import NoiseSettings
from ci_evals.studies.noise.study import NoiseStudy
from ci_evals.support import templates
from ci_evals.wiring import (
    DEFAULT_MODELS,
    PROVIDERS,
    WITHOUT_KEY,
    Connections,
    checked,
    keys_of,
    llm_key_of,
    names_in,
    no_key,
)

_AGENT = ("adapter", "adapter_options", "agent_id", "base_url")
"""Options that decide where messages and keys go, and whose code runs."""


@dataclass(frozen=True)
class PreparedStudy:
    """A study that may begin."""

    study: NoiseStudy
    file: Path
    sample: tuple[PlayableTest, ...]
    left_over: int
    """Tests of the run that are not in the sample."""


def prepare(settings: NoiseSettings, context: RunContext) -> PreparedStudy:
    """Read the run and its suites, and plan the study.

    Raises:
        UsageError: something is missing, or not as it was. Nobody was asked.
    """
    environ = context.environ
    run = SavedRun.open(settings.results, None)
    saved, file = run.results, run.file
    check_whole(run)
    _check_own_conversations(run)
    _check_agent(settings, saved)
    loaded = load_suites(_suite_settings(settings, saved), context)
    connections = _connections(settings, saved, environ)
    keys = (settings.llm_key, settings.agent_key, *keys_of(connections, loaded))
    redactor = context.hide(keys, values_of(loaded, environ))
    context.mask()
    results = redactor.model(saved)
    chosen = pick_tests(results, str(file), settings.tests, settings.seed)
    sample = match_tests(results, chosen, plan(loaded, Selection(), 1), redactor)
    players = {
        index: _players(settings, results, results.suites[index], connections)
        for index in dict.fromkeys(one.suite for one in chosen)
    }
    sample_plan = plan_sample(results, connections.provider, sample, players, settings.plays)
    _check_key(connections, sample_plan)
    study = NoiseStudy(
        results=results,
        source=str(file),
        sample_plan=sample_plan,
        tests=len(sample),
        connections=connections,
        judge=_judge(settings, results, sample_plan, connections),
        redactor=redactor,
        prices=context.prices(settings.prices)(),
        most_cost=settings.max_cost,
        parallel=settings.parallel or max(1, _number(results.run.config.get("parallel"), 1)),
        retries=_number(results.run.config.get("retries"), 1),
        seed=settings.seed,
    )
    tests = sum(len(suite.tests) for suite in results.suites)
    prepared = PreparedStudy(study, file, sample, tests - len(sample))
    _check_cost(prepared, settings.max_cost)
    return prepared


def _check_own_conversations(run: SavedRun) -> None:
    """Refuse conversations of another run, whose agent and models may be others."""
    if origin := run.results.run.origin:
        how = "played from a recording" if origin.how == "replay" else "judged again"
        raise UsageError(
            f"{run.file}: its conversations were {how}; name the results of the run that held them "
            f"({origin.run}, of {origin.started_at:%Y-%m-%d %H:%M} UTC)"
        )


def _check_agent(settings: NoiseSettings, results: Results) -> None:
    """Check that options name the run's agent, since a results file never decides who is asked.

    Raises:
        UsageError: the run was told where its agent is, and this command is not.
    """
    lacking = [
        f"--{name.replace('_', '-')}={value}"
        for name in _AGENT
        if (value := results.run.config.get(to_camel(name))) and not getattr(settings, name)
    ]
    if lacking:
        raise UsageError(
            f"the run was played with {' '.join(lacking)}: say here too which agent to play with, since "
            "results do not decide where messages and keys go"
        )


def _suite_settings(settings: NoiseSettings, results: Results) -> SuiteSettings:
    """The settings by which `run` would read the suites of the sample.

    Raises:
        UsageError: one is not there any more.
    """
    files = settings.suites or [*dict.fromkeys(suite.file for suite in results.suites)]
    for file in files if not settings.suites else ():
        if not is_bundled(file) and not Path(file).is_file():
            raise UsageError(
                f"{file}: the run's suite is not there any more; go to the folder that the run was started "
                "in, or say where its suites are by --suite, once for each"
            )
    shared = {item.name for item in fields(SuiteSettings)} - {"suites"}
    return SuiteSettings(suites=files, **{name: getattr(settings, name) for name in shared})


def _connections(settings: NoiseSettings, results: Results, environ: Mapping[str, str]) -> Connections:
    """The connections to agents and to the provider, with its key if there is one."""
    config = results.run.config
    saved = results.run.provider
    provider = str(settings.provider or (saved if saved in PROVIDERS else Provider.OPENAI))
    same = provider == saved
    key, token = llm_key_of(provider, settings.llm_key, environ)
    audits = config.get("auditUser") is True and same
    return Connections(
        provider=provider,
        llm_key=key,
        llm_token=token,
        llm_timeout=settings.llm_timeout,
        embedding_model=_text(config.get("embeddingModel")) if same else None,
        audit_user=audits,
        audit_model=_text(config.get("auditModel")) if audits else None,
        key_header=settings.agent_key_header,
        headers=headers_of(settings.agent_headers),
        agent_id_in=settings.agent_id_in,
        task_origin_type=settings.task_origin_type,
    )


def _players(
    settings: NoiseSettings, results: Results, suite: SuiteResult, connections: Connections
) -> PlayedModels:
    """The models of a suite: those that options name, else the run's own, else the provider's."""
    if connections.offline:
        return PlayedModels((None,), None)
    default = DEFAULT_MODELS[connections.provider]
    same = results.run.provider == connections.provider
    asked = _asked(settings, suite)
    own = (suite.judge_panel or ((suite.judge_model,) if suite.judge_model else ())) if same else ()
    named = asked.judge_panel or ((asked.judge_model,) if asked.judge_model else ())
    return PlayedModels(
        judges=named or own or (default.judge,),
        user=settings.user_model or (suite.user_model if same else None) or default.user,
    )


def _asked(settings: NoiseSettings, suite: SuiteResult) -> Connections:
    """The judge that options name, checked; votes are the suite's by default."""
    panel = names_in(settings.judge_panel)
    votes = settings.judge_votes or (1 if panel else suite.judge_votes)
    return checked(Connections(judge_model=settings.judge_model, judge_panel=panel, judge_votes=votes))


def _judge(
    settings: NoiseSettings, results: Results, sample_plan: SamplePlan, connections: Connections
) -> JudgeUsed | None:
    """The run's judge, with the votes that it has; None where nobody judges."""
    models = {suite.judge_model for suite in sample_plan.judged.suites if suite.judge_model}
    if not models:
        return None
    return JudgeUsed(
        provider=connections.provider,
        models=tuple(sorted(models)),
        votes=max(_asked(settings, suite).judge_votes for suite in results.suites),
        prompt=templates.digest(*JUDGE_TEMPLATES),
    )


def _check_key(connections: Connections, sample_plan: SamplePlan) -> None:
    asked = of_plan(sample_plan.plan).needs_llm or sample_plan.judged.suites
    if (
        asked
        and connections.provider not in WITHOUT_KEY
        and not (connections.llm_key or connections.llm_token)
    ):
        raise UsageError(no_key(connections.provider, connections.environ))


def _check_cost(prepared: PreparedStudy, most: float | None) -> None:
    """Refuse a study that would be cut short, estimated from the costs of the run: a part of it is worthless.

    Raises:
        UsageError: it takes more than it may.
    """
    results = prepared.study.results
    trials, roles = results.counts.trials, results.usage.by_role
    if most is None or not trials or results.run.provider != prepared.study.connections.provider:
        return
    judge = _vote(results) * _judged_criteria(results)
    user = fsum(one.cost_usd or 0 for one in roles if one.role not in {"judge", "agent"}) / trials
    fresh, fixed, rejudged = amounts(prepared.study.sample_plan)
    cost = fresh * (user + judge) + fixed * judge + rejudged * judge
    if cost > most:
        raise UsageError(
            f"--max-cost={most:g}: by what the run cost this takes about {numbers.money(cost)}, and a part "
            "of it tells nothing; take fewer --tests or --plays, or allow more"
        )


def _vote(results: Results) -> float:
    """US dollars of a vote of the run's judge that was paid for: those from a cache cost nothing there."""
    judges = [one for one in results.usage.by_role if one.role == "judge"]
    paid = sum(one.calls - one.cached for one in judges)
    return fsum(one.cost_usd or 0 for one in judges) / paid if paid else 0.0


def _judged_criteria(results: Results) -> float:
    """The mean number of judged criteria, over trials that have any."""
    trials = (trial for suite in results.suites for test in suite.tests for trial in test.trials)
    counts = [count for trial in trials if (count := sum(map(is_judged, trial.findings)))]
    return fmean(counts) if counts else 0.0


def amounts(sample_plan: SamplePlan) -> tuple[int, int, int]:
    """Conversations to play anew, to play with words held, and to judge again."""
    played = [
        sum(sample_plan.plan.loops_of(sample_plan.plan.suites[s].tests[t]) for s, t in places)
        for places in (sample_plan.fresh, sample_plan.fixed)
    ]
    rejudged = sum(len(test.trials) for suite in sample_plan.judged.suites for test in suite.tests)
    return played[0], played[1], rejudged


def _number(value: JsonValue, default: int) -> int:
    """A number from a file, if an option could have the same value."""
    return value if isinstance(value, int) and 0 <= value <= 10_000 else default


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
