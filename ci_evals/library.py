"""The main job as functions: read suites, run them, get results. The command line is built on it."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from ci_evals.adapters import plugins
from ci_evals.adapters import prices as price_files
from ci_evals.adapters import suites as files
from ci_evals.domain.comparison import Comparison
from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.progress import Listener
from ci_evals.domain.results import Results
from ci_evals.job import Job, evaluate
from ci_evals.planning.agents import AgentChoice, choose
from ci_evals.planning.parse import LoadedSuite, Reading, load
from ci_evals.planning.selection import Selection, plan
from ci_evals.redaction import Redactor
from ci_evals.reports import layout, markdown
from ci_evals.runner import Cast, Options, Stop
from ci_evals.scoring.compare import Pairing
from ci_evals.scoring.gate import Policy
from ci_evals.scoring.pairing import Side
from ci_evals.scoring.selectors import check_names
from ci_evals.wiring import PROVIDERS, Adapter


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
    reading = Reading(environ=os.environ if environ is None else environ, plugins=plugins.names())
    return load(source.text, source.file, reading)


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
    if provider not in PROVIDERS:
        raise UsageError(f"there is no provider {provider!r}; there are: {', '.join(PROVIDERS)}")
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
    baseline: Results | None = None,
    confirm: int = 0,
    prices: PriceTable | None = None,
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
        baseline: An earlier run to compare with, from `load_results`.
        confirm: Where the first look is close, so many more trials of each test are played.
        prices: Of models, in place of the table that comes along.
        listen: Told of every trial and exchange as it happens.

    Raises:
        UsageError: nothing is selected, a key is missing, or a number is out of its range.
    """
    if min(loops, parallel) < 1 or min(retries, confirm) < 0:
        raise UsageError("loops and parallel must be at least 1, retries and confirm at least 0")
    policy = policy or Policy()
    check_names("thresholds", policy.thresholds, [suite.suite])
    check_names("max_drops", policy.max_drops, [suite.suite])
    chosen = choose(suite, adapter.choice) if isinstance(adapter, Adapter) else suite
    job = Job(
        plan=plan([chosen], Selection.of(test, tag), loops),
        policy=policy,
        options=Options(parallel=parallel, retries=retries),
        redactor=Redactor(keys=keys_of(adapter, [chosen]), values=chosen.secrets),
        baseline=baseline,
        confirm=confirm,
        prices=prices or price_files.bundled(),
        config={"loops": loops, "parallel": parallel, "retries": retries, "test": test, "tag": tag},
        warnings=chosen.warnings,
    )
    stop = Stop()
    results = await evaluate(job, adapter, listen=listen, stop=stop)
    if stop.bug:
        raise stop.bug
    return results


def results_file(path: str | Path) -> Path:
    """The file that is meant by its own name or by the folder that holds it."""
    return Path(path) / layout.RESULTS if Path(path).is_dir() else Path(path)


def load_results(path: str | Path) -> Results:
    """Reads the `_results.json` of a run, or the one in the folder of that name.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    file = results_file(path)
    try:
        text = file.read_bytes()
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise UsageError(f"{file}: {why}; name a {layout.RESULTS}, or the folder that holds it") from error
    return layout.load(text, str(file))


def compare_results(head: Results, base: Results) -> Comparison:
    """The comparison of a run with an earlier one, test by test, and what the change is worth."""
    return Pairing(Side.of(head), Side.of(base)).comparison()


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
