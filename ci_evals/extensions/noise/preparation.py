"""The preparation of `noise`, before anybody is asked: the run, its current suites, and the models."""

from collections.abc import Mapping
from dataclasses import replace
from math import fsum
from pathlib import Path
from statistics import fmean

from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from ci_evals.cli.files.saved_run import SavedRun
from ci_evals.cli.files.suite_loading import headers_of, load_suites, values_of
from ci_evals.cli.github.github_job import GitHubJob
from ci_evals.cli.github.trust import FileTrust
from ci_evals.cli.run_context import RunContext
from ci_evals.domain import numbers
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import SuiteModels
from ci_evals.domain.providers import OPENAI
from ci_evals.domain.results.judge import JudgeUsed
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import SuiteResult
from ci_evals.domain.suite import is_bundled
from ci_evals.extension_registry import providers
from ci_evals.extension_support.keeping import check_whole
from ci_evals.extension_support.rejudging.saved import is_judged
from ci_evals.extensions.noise.sample import SamplePlan, match_tests, pick_tests, plan_sample
from ci_evals.extensions.noise.settings import NoiseSettings
from ci_evals.extensions.noise.study import NoiseStudy
from ci_evals.job.results_builder import JUDGE_TEMPLATES
from ci_evals.planning.selection import Selection, plan
from ci_evals.planning.workload import of_plan
from ci_evals.support import templates
from ci_evals.wiring.connections import Connections, checked, keys_of, names_in
from ci_evals.wiring.providers import llm_key_of, no_key

AGENT_LOG = "noise-agent.log"
"""The output of agents that the study starts, beside the results: the run's own log stays."""
_AGENT = ("adapter", "adapter_options", "agent_id", "base_url")
"""Options that decide where messages and keys go, and whose code runs."""


def prepare(settings: NoiseSettings, context: RunContext) -> NoiseStudy:
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
    settings = replace(settings, suites=_suites(settings, saved))
    trust = FileTrust(settings, GitHubJob.of(settings, context))
    loaded = load_suites(settings, trust)
    connections = replace(
        _connections(settings, saved, environ), agent_log=file.absolute().parent / AGENT_LOG
    )
    keys = (settings.llm_key, settings.agent_key, *keys_of(connections, loaded))
    redactor = context.hide(keys, values_of(loaded, environ))
    context.mask()
    results = redactor.model(saved)
    chosen = pick_tests(results, str(file), settings.tests, settings.seed)
    sample = match_tests(results, chosen, plan(loaded, Selection(), 1), redactor)
    models = {
        index: _models(settings, results, results.suites[index], connections)
        for index in dict.fromkeys(sampled.suite for sampled in chosen)
    }
    sample_plan = plan_sample(results, connections.provider, sample, models, settings.plays)
    asks = of_plan(sample_plan.plan).needs_llm or sample_plan.judged.suites
    has_key = connections.llm_key or connections.llm_token or not providers()[connections.provider].needs_key
    if asks and not has_key:
        raise UsageError(no_key(connections.provider, environ))
    study = NoiseStudy(
        results=results,
        file=file,
        sample=sample,
        sample_plan=sample_plan,
        connections=connections,
        judge=_judge(settings, results, sample_plan, connections),
        redactor=redactor,
        prices=context.prices(settings.prices, settings.provider)(),
        most_cost=settings.max_cost,
        parallel=settings.parallel or max(1, _number(results.run.config.get("parallel"), 1)),
        retries=_number(results.run.config.get("retries"), 1),
        seed=settings.seed,
    )
    _check_cost(study)
    return study


def _check_own_conversations(run: SavedRun) -> None:
    """Refuse conversations of another run, whose agent and models may be others."""
    if origin := run.results.run.origin:
        how = "played from a recording" if origin.how == "replay" else "judged again"
        raise UsageError(
            f"{run.file}: its conversations were {how}; name the results of the run that held them "
            f"({origin.run}, of {origin.started_at:%Y-%m-%d %H:%M} UTC)"
        )


def _check_agent(settings: NoiseSettings, results: Results) -> None:
    """Check that options name the run's agent, since a results file never decides who is asked."""
    lacking = [
        f"--{name.replace('_', '-')}={value}"
        for name in _AGENT
        if (value := results.run.config.get(to_camel(name))) and not getattr(settings, name)
    ]
    if lacking:
        raise UsageError(
            f"the run was played with {' '.join(lacking)}: name the agent here too, since results do "
            "not decide where messages and keys go"
        )
    if results.run.config.get("otlp") is True and not settings.otlp:
        raise UsageError("the run was played with `otlp=`: give `otlp=` here too, or tool calls are unknown")


def _suites(settings: NoiseSettings, results: Results) -> list[str]:
    if settings.suites:
        return settings.suites
    files = list(dict.fromkeys(suite.file for suite in results.suites))
    for file in files:
        if not is_bundled(file) and not Path(file).is_file():
            raise UsageError(
                f"{file}: the run's suite is gone; go to the folder that the run was started in, or "
                "name its suites by `suite=`, once for each"
            )
    return files


def _connections(settings: NoiseSettings, results: Results, environ: Mapping[str, str]) -> Connections:
    config = results.run.config
    saved = results.run.provider
    provider = str(settings.provider or (saved if saved in providers() else OPENAI.name))
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
        headers=headers_of(settings.agent_headers),
        otlp=settings.otlp,
        otlp_host=settings.otlp_host,
        otlp_port=settings.otlp_port,
    )


def _models(
    settings: NoiseSettings, results: Results, suite: SuiteResult, connections: Connections
) -> SuiteModels:
    """The models of a suite: those that options name, else the run's own, else the provider's."""
    if connections.offline:
        return SuiteModels()
    default = providers()[connections.provider]
    own = suite.models if results.run.provider == connections.provider else SuiteModels()
    named = _named_judge(settings, suite)
    return SuiteModels(
        judges=named.judge_panel
        or ((named.judge_model,) if named.judge_model else own.judges or (default.judge,)),
        user=settings.user_model or own.user or default.user,
    )


def _named_judge(settings: NoiseSettings, suite: SuiteResult) -> Connections:
    """The judge that options name, checked; votes are the suite's by default."""
    panel = names_in(settings.judge_panel)
    votes = settings.judge_votes or (1 if panel else suite.judge_votes)
    return checked(Connections(judge_model=settings.judge_model, judge_panel=panel, judge_votes=votes))


def _judge(
    settings: NoiseSettings, results: Results, sample_plan: SamplePlan, connections: Connections
) -> JudgeUsed | None:
    """The run's judge, with the votes that it has; None if nobody judges."""
    models = {suite.judge_model for suite in sample_plan.judged.suites if suite.judge_model}
    if not models:
        return None
    return JudgeUsed(
        provider=connections.provider,
        models=tuple(sorted(models)),
        votes=max(_named_judge(settings, suite).judge_votes for suite in results.suites),
        prompt=templates.digest(*JUDGE_TEMPLATES),
    )


def _check_cost(study: NoiseStudy) -> None:
    """Refuse a study that would be cut short, by the costs of the run: a part of it is worthless."""
    results, most = study.results, study.most_cost
    trials, roles = results.counts.trials, results.usage.by_role
    if most is None or not trials or results.run.provider != study.connections.provider:
        return
    judge = _vote(results) * _judged_criteria(results)
    user = fsum(used.cost_usd or 0 for used in roles if used.role not in {"judge", "agent"}) / trials
    fresh, fixed, rejudged = study.sample_plan.conversations
    cost = fresh * (user + judge) + (fixed + rejudged) * judge
    if cost > most:
        raise UsageError(
            f"`max_cost={most:g}`: estimated cost: {numbers.money(cost)}, and a part of it says "
            "nothing; use fewer `tests=` or `plays=`, or a higher `max_cost=`"
        )


def _vote(results: Results) -> float:
    """US dollars of a vote of the run's judge that was paid for: those from a cache cost nothing there."""
    judges = [used for used in results.usage.by_role if used.role == "judge"]
    paid = sum(used.calls - used.cached for used in judges)
    return fsum(used.cost_usd or 0 for used in judges) / paid if paid else 0.0


def _judged_criteria(results: Results) -> float:
    """The mean number of judged criteria, over trials that have any."""
    trials = (trial for suite in results.suites for test in suite.tests for trial in test.trials)
    counts = [count for trial in trials if (count := sum(map(is_judged, trial.findings)))]
    return fmean(counts) if counts else 0.0


def _number(value: JsonValue, default: int) -> int:
    """A number from a file, if an option could have the same value."""
    return value if isinstance(value, int) and 0 <= value <= 10_000 else default


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None
