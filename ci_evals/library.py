"""The main job as functions: read suites, run them, get results. The command line is built on it."""

import asyncio
import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar
from uuid import uuid4

from pydantic import JsonValue

from ci_evals import __version__, templates
from ci_evals.adapters import suites as files
from ci_evals.conversation import simulated_user
from ci_evals.domain.errors import UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.progress import Listener
from ci_evals.domain.results import Digests, Git, Results, RunInfo, Tool
from ci_evals.grading import judge
from ci_evals.planning.agents import AgentChoice, choose
from ci_evals.planning.parse import LoadedSuite, Reading, load
from ci_evals.planning.selection import Selection, digest, plan
from ci_evals.redaction import Redactor
from ci_evals.reports import layout, markdown
from ci_evals.runner import Cast, Options, Stop, run
from ci_evals.scoring.gate import Ending, Policy, check_names, decide
from ci_evals.scoring.scorecard import SuiteFacts, score
from ci_evals.scoring.share import Counting
from ci_evals.wiring import DEFAULT_MODELS, OFFLINE, Adapter, casts

JUDGE_TEMPLATES = (*judge.TEMPLATES, "adapters/prompts/json_answer.md.j2")
"""All that a judge may be shown besides the conversation."""


def demo_suites_path() -> Path:
    """The folder of the bundled `demo:` suites."""
    return files.bundled_path("demo")


def quack_suites_path() -> Path:
    """The folder of the bundled `quack:` suites."""
    return files.bundled_path("quack")


def load_suite(name: str | Path, *, environ: Mapping[str, str] | None = None) -> LoadedSuite:
    """Reads one suite: a JSON or YAML file, or a bundled suite such as `demo:hr`.

    Args:
        name: Its path or bundled name.
        environ: Where `${NAME}` is looked up; the process's environment by default.

    Raises:
        UsageError: there is no such file, or it stands for several.
        SuiteError: it cannot be run; every problem is listed with its place.
    """
    found = files.sources(str(name))
    if len(found) > 1:
        raise UsageError(f"{str(name)!r} stands for {len(found)} suites: load them one by one")
    source = found[0]
    return load(source.text, source.file, Reading(environ=os.environ if environ is None else environ))


def create_aui_adapter(
    agent_key: str | None = None,
    llm_key: str | None = None,
    provider: Literal["openai", "anthropic", "offline"] = "openai",
    *,
    base_url: str | None = None,
    judge_model: str | None = None,
    user_model: str | None = None,
) -> Adapter:
    """How to reach AUI agents, and the LLM behind judge and simulated user.

    Args:
        agent_key: The agent's network API key; the suite's `apiKey` if not given.
        llm_key: The provider's key. `offline` needs none.
        provider: Whose LLM it is; `offline` for a scripted user and no judge.
        base_url: Where the agent's API is, in place of AUI's own address.
        judge_model: The judge's model, in place of the suite's or the provider's default.
        user_model: The simulated user's model, likewise.

    Raises:
        UsageError: there is no such provider.
    """
    if provider not in (*DEFAULT_MODELS, OFFLINE):
        raise UsageError(
            f"there is no provider {provider!r}; there are: {', '.join((*DEFAULT_MODELS, OFFLINE))}"
        )
    return Adapter(
        provider=provider,
        llm_key=llm_key,
        choice=AgentChoice(agent_key=agent_key, base_url=base_url),
        judge_model=judge_model,
        user_model=user_model,
    )


async def run_suite(
    adapter: Adapter | Cast,
    suite: LoadedSuite,
    *,
    loops: int = 1,
    parallel: int = 1,
    retries: int = 1,
    test: str | None = None,
    tag: str | None = None,
    policy: Policy | None = None,
    listen: Listener = lambda _: None,
) -> Results:
    """Plays every selected test of a suite and gives back the results, secrets taken out. Writes no file.

    Args:
        adapter: From `create_aui_adapter`, or a `Cast` of your own agent and models.
        suite: From `load_suite`.
        loops: Trials of each test.
        parallel: Conversations at a time.
        retries: How often a failed trial is played again.
        test: Parts of test names, comma-separated: only these.
        tag: Tags, comma-separated: only these.
        policy: What the gate asks; by default a run score of 80 and no unsound trial.
        listen: Told of every trial and exchange as it happens.

    Raises:
        UsageError: nothing is selected, a key is missing, or a number is out of its range.
    """
    if min(loops, parallel) < 1 or retries < 0:
        raise UsageError("loops and parallel must be at least 1, retries at least 0")
    policy = policy or Policy()
    check_names(policy.thresholds, [suite.suite])
    chosen = choose(suite, adapter.choice) if isinstance(adapter, Adapter) else suite
    job = Job(
        plan=plan([chosen], Selection.of(test, tag), loops),
        policy=policy,
        options=Options(parallel=parallel, retries=retries),
        redactor=Redactor(keys=keys_of(adapter, [chosen]), values=chosen.secrets),
        config={"loops": loops, "parallel": parallel, "retries": retries, "test": test, "tag": tag},
        warnings=chosen.warnings,
    )
    stop = Stop()
    results = await evaluate(job, adapter, listen=listen, stop=stop)
    if stop.bug:
        raise stop.bug
    return results


P = ParamSpec("P")
T = TypeVar("T")


def _blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    @wraps(function)
    def blocking(*args: P.args, **kwargs: P.kwargs) -> T:
        return asyncio.run(function(*args, **kwargs))

    return blocking


run_suite_sync = _blocking(run_suite)
"""`run_suite` for programs without an event loop: the same arguments, the same results."""


def format_suite_result(results: Results) -> str:
    """The results as the Markdown of `summary.md`."""
    return markdown.summary(results)


@dataclass(frozen=True)
class Job:
    """Everything a run needs besides the parts that play it."""

    plan: Plan
    policy: Policy
    options: Options
    redactor: Redactor
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    git: Git = field(default_factory=Git)
    ci: str | None = None
    warnings: tuple[str, ...] = ()


def keys_of(adapter: Adapter | Cast, suites: Sequence[LoadedSuite]) -> list[str]:
    """The keys that a run uses."""
    keys = [suite.suite.api_key.get_secret_value() for suite in suites if suite.suite.api_key]
    if isinstance(adapter, Adapter):
        keys += [
            adapter.llm_key or "",
            *(part for value in adapter.headers.values() for part in value.split()),
        ]
        keys += adapter.headers.values()
    return keys


async def evaluate(
    job: Job,
    adapter: Adapter | Cast,
    *,
    listen: Listener = lambda _: None,
    stop: Stop | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Results:
    """Plays a plan, scores it, and lets the gate decide. Secrets are taken out of what it gives back."""
    stop = stop or Stop()
    async with _cast(job, adapter) as cast:
        started, begun = now(), time.perf_counter()
        played = await run(job.plan, cast, job.options, job.redactor, listen=listen, stop=stop)
        finished, seconds = now(), time.perf_counter() - begun
    offline = isinstance(adapter, Adapter) and adapter.offline
    facts = _facts(job, adapter, started)
    card = score(job.plan, played, facts, Counting(offline=offline))
    ending = Ending(interrupted=stop.interrupted, stopped_because=stop.reason, bug=stop.bug is not None)
    results = Results(
        tool=Tool(version=__version__),
        run=RunInfo(
            id=uuid4().hex,
            started_at=started,
            finished_at=finished,
            duration_seconds=seconds,
            status="interrupted" if stop.interrupted else "stopped" if stop.reason else "completed",
            stopped_because=stop.reason,
            config=dict(job.config)
            | {"provider": adapter.provider if isinstance(adapter, Adapter) else None},
            git=job.git,
            environment={"python": platform.python_version(), "system": platform.system(), "ci": job.ci},
            digests=_digests(job, adapter, facts),
            warnings=job.warnings,
        ),
        score=card.score,
        counts=card.counts,
        gate=decide(job.plan, card, job.policy, ending, offline=offline),
        usage=card.usage,
        suites=card.suites,
    )
    return job.redactor.model(results)


@asynccontextmanager
async def _cast(job: Job, adapter: Adapter | Cast) -> AsyncIterator[Sequence[Cast]]:
    if isinstance(adapter, Cast):
        yield [adapter] * len(job.plan.suites)
        return
    async with casts(job.plan, adapter, job.redactor) as built:
        yield built


def _facts(job: Job, adapter: Adapter | Cast, started: datetime) -> list[SuiteFacts]:
    taken: set[str] = set()
    facts = []
    for planned in job.plan.suites:
        models = adapter.models(planned.suite) if isinstance(adapter, Adapter) else None
        folder = layout.folder_for(job.redactor.text(planned.suite.name), started, taken)
        taken.add(folder)
        judge_model, user_model = (models.judge, models.user) if models else (None, None)
        facts.append(SuiteFacts(folder=folder, judge_model=judge_model, user_model=user_model))
    return facts


def _digests(job: Job, adapter: Adapter | Cast, facts: Sequence[SuiteFacts]) -> Digests:
    """What the scores depend on, each thing by itself. Secrets are taken out first."""
    suites = [planned.suite for planned in job.plan.suites]
    provider = adapter.provider if isinstance(adapter, Adapter) else type(adapter.agent).__qualname__
    scripted = isinstance(adapter, Adapter) and adapter.offline
    loops = [job.plan.loops_of(test) for planned in job.plan.suites for test in planned.tests]
    return Digests(
        suites=digest([one for planned in job.plan.suites for one in planned.test_digests]),
        agents=digest(job.redactor.json([[s.adapter, s.agent_id, s.base_url, s.model] for s in suites])),
        models=digest([provider, [(fact.judge_model, fact.user_model) for fact in facts]]),
        judge_prompt=templates.digest(*JUDGE_TEMPLATES),
        user_prompt=digest("scripted") if scripted else templates.digest(*simulated_user.TEMPLATES),
        loops=digest(loops),
    )
