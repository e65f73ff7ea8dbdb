"""Runs for callers of the library: connect an agent, play a suite, compare, write reports."""

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from pydantic.alias_generators import to_camel

from ci_evals.adapters import files, input_files
from ci_evals.adapters import prices as price_files
from ci_evals.agents import plugins
from ci_evals.domain.choices import CheckMode
from ci_evals.domain.errors import UsageError
from ci_evals.domain.prices import PriceTable
from ci_evals.domain.progress import Listener
from ci_evals.domain.results.comparison import Comparison
from ci_evals.domain.results.run import Results
from ci_evals.domain.results.suite import TestResult
from ci_evals.extension_registry import providers
from ci_evals.gate.policy import Policy
from ci_evals.job import BaselineResults, Job, RunFacts, evaluate
from ci_evals.library.suites import SuiteLike, loaded
from ci_evals.planning.adapter_options import read_options
from ci_evals.planning.agent_choice import AgentChoice, choose
from ci_evals.planning.selection import Selection, plan
from ci_evals.reports import report_files
from ci_evals.reports.markdown import documents
from ci_evals.reports.names import RESULTS
from ci_evals.reports.story.comparison_runs import ComparisonRuns
from ci_evals.reports.story.story import story_of
from ci_evals.runner import Options
from ci_evals.scoring.comparison.compare import RunComparer
from ci_evals.scoring.comparison.rounds import LOOKS
from ci_evals.stop import Stop
from ci_evals.support.redaction import Redactor
from ci_evals.wiring.connections import Connections, checked, keys_of
from ci_evals.wiring.players import judged_by_method, participants_for

JudgeChecking = Literal["auto", "always", "warn", "off"]


def create_adapter(
    *,
    provider: str = "openai",
    llm_key: str | None = None,
    judge_model: str | None = None,
    user_model: str | None = None,
    embedding_model: str | None = None,
    judge_votes: int = 1,
    judge_panel: Sequence[str] = (),
    audit_user: bool = False,
    judge_cache: str | Path | None = None,
    adapter: str | None = None,
    adapter_options: Mapping[str, Any] | None = None,
    agent_id: str | None = None,
    agent_key: str | None = None,
    base_url: str | None = None,
    start: str | None = None,
    wait_for: str | int | None = None,
    agent_log: str | Path | None = None,
    otlp: bool = False,
    otlp_host: str = "127.0.0.1",
    otlp_port: int = 4318,
    agent_in_process: bool = False,
) -> Connections:
    """Create the settings of a suite's agent, and of the LLM behind judge and simulated user. Opens nothing.

    What is said of the agent stands instead of what the suite says; what is not said is left to the suite.

    Args:
        provider: Whose LLM it is; `offline` for a scripted user and no judge.
        llm_key: The provider's key. `claude-code`, `copilot` and `offline` need none.
        judge_model: The judge's model, instead of the suite's or the provider's default.
        user_model: The simulated user's model, likewise.
        embedding_model: The model that compares answers by their meaning; `local:NAME` for one of yours.
        judge_votes: Votes on each judged criterion, an odd number; no more are asked for once it is decided.
        judge_panel: Models that vote in turn, instead of the one judge's; by default each has a vote.
        audit_user: Whether a model looks if the simulated user kept to its guidelines and data: the suite's
            `auditModel`, by default the simulated user's own.
        judge_cache: A folder in which the judge's answers are kept, and given again; None for none.
        adapter: How the agent is spoken to: `aui`, `demo`, `openai`, `http`, `python:module:attribute`,
            `command: program`, or a plug-in's name.
        adapter_options: What the adapter needs to know, as a suite's `adapterOptions`.
        agent_id: The agent's id.
        agent_key: The agent's key.
        base_url: Where the agent's API is.
        start: The shell command that serves the agent; each run starts it, and ends it.
        wait_for: The URL or port that has to answer before a run begins; with `start` by default `base_url`.
        agent_log: The file for the output of agents that a run starts, without secrets; None for none.
        otlp: Whether tool calls are read from the spans that the agent exports (OpenTelemetry).
        otlp_host: The address on which spans are received.
        otlp_port: The port; 0 for any free one.
        agent_in_process: Whether an agent in Python that is named runs in this process, for a debugger; by
            default it has a process of its own.

    Raises:
        UsageError: there is no such provider, the options cannot be read, a number is out of its range, or
            models contradict one another.
    """
    if provider not in providers():
        raise UsageError(f"unknown provider {provider!r}; available: {', '.join(providers())}")
    options = None
    if adapter_options is not None:
        options = read_options(json.dumps(adapter_options), "(adapter_options)", os.environ)
    connections = Connections(
        provider=provider,
        llm_key=llm_key,
        judge_model=judge_model,
        user_model=user_model,
        embedding_model=embedding_model,
        judge_votes=judge_votes,
        judge_panel=tuple(judge_panel),
        audit_user=audit_user,
        judge_cache=Path(judge_cache) if judge_cache else None,
        otlp=otlp,
        otlp_host=otlp_host,
        otlp_port=otlp_port,
        agent_log=Path(agent_log).absolute() if agent_log else None,
        agent_in_process=agent_in_process,
        choice=AgentChoice(
            adapter=adapter,
            options=options,
            plugins=plugins.names(),
            agent_id=agent_id,
            agent_key=agent_key,
            base_url=base_url,
            start=start,
            wait_for=None if wait_for is None else str(wait_for),
        ),
    )
    return checked(connections)


def create_aui_adapter(
    agent_key: str | None = None,
    llm_key: str | None = None,
    provider: str = "openai",
    *,
    base_url: str | None = None,
    judge_model: str | None = None,
    user_model: str | None = None,
) -> Connections:
    """Create the settings of AUI agents and the LLM: `create_adapter` in short.

    The agent's key is the suite's `apiKey` if it is not given, and `base_url` AUI's own address.
    """
    return create_adapter(
        provider=provider,
        llm_key=llm_key,
        judge_model=judge_model,
        user_model=user_model,
        agent_key=agent_key,
        base_url=base_url,
    )


async def run_suite(
    adapter: object,
    suite: SuiteLike,
    *,
    loops: int = 1,
    parallel: int = 1,
    retries: int = 1,
    test: str | Sequence[str] | None = None,
    tag: str | None = None,
    policy: Policy | None = None,
    baseline: Results | None = None,
    history: Sequence[Results] = (),
    rounds: Sequence[int] = (),
    judge_check: JudgeChecking | None = None,
    prices: PriceTable | None = None,
    listen: Listener = lambda _: None,
) -> Results:
    """Play every selected test of a suite and return the results, without secrets. Writes no file.

    Args:
        adapter: From `create_adapter` or `create_aui_adapter`; or any object with the methods of the port
            `Agent`, or a function `reply(message)` (the user is scripted then, and nothing is judged); or one
            with `spawn_session`, `send_message`, `call_judge` and `generate_user_message`; or
            `Participants` with your own agent and models.
        suite: From `load_suite`; or what `load_suite` takes.
        loops: Trials of each test.
        parallel: Conversations at a time.
        retries: How often a failed trial is rerun.
        test: Parts of test names, comma-separated: only these.
        tag: Tags, comma-separated: only these.
        policy: What the gate asks; by default a run score of 80 and no errors.
        baseline: An earlier run to compare with, from `load_results`.
        history: Earlier runs of the same agent as the baseline, which show how much its runs differ.
        rounds: Trials of each test after which the run is looked at, ascending, such as 2, 3, 5 and 7; it
            ends as soon as the verdict is clear. In place of `loops`.
        judge_check: Whether the judge is asked control questions whose answers are known. If too few answers
            are right there is no verdict; with `warn` that is a warning. `auto` asks unless the baseline or
            the judge's cache holds a passed check of the same judge of the last 30 days. Default: `auto`;
            `off` if the judge is the method `call_judge` of `adapter`, which expects the suite's criteria
            alone.
        prices: Of models, instead of the table that comes along.
        listen: Told of every trial and turn as it happens.

    Raises:
        UsageError: nothing is selected, a key is missing, a number is out of its range, or `adapter` has none
            of these methods.
        SuiteError: the suite cannot be run.
    """
    if min(loops, parallel) < 1 or retries < 0:
        raise UsageError("loops and parallel must be at least 1, retries at least 0")
    if rounds and loops != 1:
        raise UsageError("rounds set how often tests are played: omit loops")
    if rounds and (list(rounds) != sorted(set(rounds)) or rounds[0] < 1):
        raise UsageError(f"rounds must be ascending numbers of trials, from 1 on, such as {LOOKS}")
    if history and baseline is None:
        raise UsageError("history needs a baseline: pass the newest of these runs as baseline")
    policy = policy or Policy()
    chosen = loaded(suite)
    policy.check_names([chosen.suite])
    if isinstance(adapter, Connections):
        chosen = choose(chosen, adapter.choice)
    redactor = Redactor(keys=keys_of(adapter, [chosen]), values=chosen.secrets)
    player = (
        adapter if isinstance(adapter, Connections) else participants_for(adapter, chosen.suite, redactor)
    )
    judge_check = judge_check or ("off" if judged_by_method(player) else "auto")
    looks = tuple(rounds)
    selection = Selection.of(test, tag)
    planned = replace(plan([chosen], selection, max(looks, default=loops)), looks=looks)
    warnings = tuple(map(str, chosen.warnings))
    if isinstance(adapter, Connections):
        warnings = (*warnings, *adapter.warnings(planned))
    job = Job(
        plan=planned,
        policy=policy,
        options=Options(
            parallel=parallel, retries=retries, debug=isinstance(adapter, Connections) and adapter.debug
        ),
        redactor=redactor,
        baseline=BaselineResults(baseline, history=_in_order(history, baseline) if baseline else ()),
        judge_check=CheckMode(judge_check),
        prices=(lambda: prices) if prices else price_files.bundled,
        facts=RunFacts(
            config={to_camel(name): limit for name, limit in policy.recorded().items()}
            | {
                "loops": loops,
                "rounds": ",".join(map(str, looks)) or "off",
                "parallel": parallel,
                "retries": retries,
                "test": "\n".join(selection.names) or None,
                "tag": tag,
                "judgeCheck": judge_check,
            },
            warnings=warnings,
        ),
    )
    stop = Stop()
    results = await evaluate(job, player, listen=listen, stop=stop)
    if stop.bug:
        raise stop.bug
    return results


def _in_order(history: Sequence[Results], newest: Results) -> tuple[Results, ...]:
    """Earlier runs, oldest first, the baseline as the last of them."""
    earlier = [run for run in history if run.run.id != newest.run.id]
    return (*sorted(earlier, key=lambda run: run.run.started_at), newest)


def results_file(path: str | Path) -> Path:
    """Return the file that a path names, itself or by its folder."""
    return Path(path) / RESULTS if files.is_folder(Path(path)) else Path(path)


def load_results(path: str | Path) -> Results:
    """Read the `_results.json` of a run that has finished, or the one in the folder of that name."""
    return finished(read_results(path, earlier_version=True), results_file(path))


def finished(results: Results, source: object) -> Results:
    """Return the results, unless they are of a run that did not finish: they say nothing of an agent."""
    if results.run.status == "unfinished":
        raise UsageError(
            f"{source}: the run that began to write these results has not finished; wait until it "
            "ends, or resume it if it was killed"
        )
    return results


def read_results(path: str | Path, *, earlier_version: bool = False) -> Results:
    """Read results like `load_results`, also those of a run that has not finished.

    Those of the version before this one are read if `earlier_version` is true.
    """
    file = results_file(path)
    try:
        text = input_files.read(file, input_files.MAX_RESULTS)
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
        raise UsageError(f"{file}: {why}; name a {RESULTS}, or the folder that holds it") from error
    return report_files.load(text, str(file), earlier_version=earlier_version)


def compare_results(head: Results, base: Results) -> Comparison:
    """Compare a run with an earlier one, test by test, and estimate the significance of the change."""
    return RunComparer(head, base).comparison()


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
    """Return the results as the Markdown of `summary.md`."""
    return documents.summary(story_of(results))


def format_test_result(results: Results, test: str | TestResult) -> str:
    """Return one test (its name, or itself) with its conversations and verdicts, as Markdown."""
    name = test if isinstance(test, str) else test.name
    for suite in results.suites:
        for result in suite.tests:
            if result is test or result.name == test:
                return "".join(documents.test_report(story_of(results), suite, result))
    raise UsageError(f"no test of the run is named {name!r}")


def write_reports(
    results: Results, output_dir: str | Path, baseline: Results | None = None
) -> tuple[Path, ...]:
    """Write every report of a run into a folder, as `ci-evals run` does, and return their paths.

    Args:
        results: Of the run.
        output_dir: The folder.
        baseline: The run that it was compared with. Its conversations then stand beside this run's in
            `report.html`, as they are in it: without the secrets that the baseline's own run knew.

    Raises:
        UsageError: the results were compared with another run, or the folder cannot be written.
    """
    compared = results.comparison.baseline if results.comparison else None
    if baseline and compared and baseline.run.id != compared.run_id:
        raise UsageError("the baseline is not the run that the results were compared with")
    folder, written = Path(output_dir), report_files.files(results, ComparisonRuns(baseline))
    files.write_all(folder, written)
    return tuple(folder / name for name in written)
