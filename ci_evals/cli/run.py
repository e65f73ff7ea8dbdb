"""`run`: settings in, reports out, the gate's exit code."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from ci_evals.adapters import prices as price_files
from ci_evals.cli import actions, progress
from ci_evals.cli.console import Console, environment_keys, error_console, remember
from ci_evals.cli.publish import Places, publish
from ci_evals.cli.reading import in_force, load_suites, read_policy
from ci_evals.cli.settings import Provider, RunSettings
from ci_evals.domain.errors import Exit, UsageError
from ci_evals.domain.plan import Plan
from ci_evals.domain.progress import Listener
from ci_evals.domain.results import Git, Results
from ci_evals.job import Job, evaluate
from ci_evals.library import keys_of, load_results
from ci_evals.planning.estimate import of_plan
from ci_evals.planning.parse import LoadedSuite
from ci_evals.planning.selection import Selection, plan
from ci_evals.redaction import MIN_LENGTH, Redactor
from ci_evals.runner import Options, Stop
from ci_evals.scoring.selectors import check_names
from ci_evals.wiring import Adapter, no_key


def run_suites(settings: RunSettings) -> None:
    """Runs the suites and exits as the gate decides.

    Raises:
        UsageError: before anything has run.
    """
    environ = os.environ
    policy = read_policy(settings)
    prices = price_files.read(settings.prices) if settings.prices else price_files.bundled()
    baseline = _read_baseline(Path(settings.baseline)) if settings.baseline else None
    loaded = load_suites(settings, environ)
    check_names("--thresholds", policy.thresholds, [item.suite for item in loaded])
    check_names("--max-drop", policy.max_drops, [item.suite for item in loaded])
    planned = plan(loaded, Selection.of(settings.test, settings.tag), settings.loops)
    adapter = _adapter(settings, environ)
    if not adapter.offline and of_plan(planned).needs_llm and not adapter.llm_key:
        raise UsageError(no_key(settings.provider))
    redactor = _redactor(settings, adapter, loaded, environ)
    actions.mask(redactor, environ)
    remember(redactor)
    console = error_console(environ)
    warnings = tuple(warning for item in loaded for warning in item.warnings) + _short_keys(adapter, loaded)
    for warning in warnings:
        console.say(f"warning: {warning}")
    places = Places(settings.output_dir, settings.junit)
    places.check()
    job = Job(
        plan=planned,
        policy=policy,
        options=Options(parallel=settings.parallel, retries=settings.retries),
        redactor=redactor,
        baseline=baseline,
        confirm=settings.confirm,
        prices=prices,
        config=in_force(settings),
        git=Git(
            commit=environ.get("GITHUB_SHA"),
            ref=environ.get("GITHUB_REF"),
            repository=environ.get("GITHUB_REPOSITORY"),
        ),
        ci="github-actions" if environ.get("GITHUB_ACTIONS") == "true" else None,
        warnings=warnings,
    )
    interruption = Interruption()
    with _listening(settings, planned, console) as listen:
        results = asyncio.run(_run(job, adapter, listen, interruption))
    code = publish(results, places, console, verbose=settings.verbose)
    if interruption.stop.bug:
        raise interruption.stop.bug
    sys.exit(code)


def _read_baseline(path: Path) -> Results:
    try:
        return load_results(path)
    except UsageError as error:
        raise UsageError(f"--baseline: {error}") from error


class Interruption:
    """SIGINT and SIGTERM, from the start of a run until its last report is written.

    The first one ends the run in order, a second one ends the program. When every trial has been played, they
    change nothing any more: the outcome stands, and its reports are written in full.
    """

    def __init__(self) -> None:
        self.came = self.over = False
        self.stop = Stop()
        self.loop: asyncio.AbstractEventLoop | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        if self.over:
            return
        if self.came:
            os._exit(Exit.INTERRUPTED)  # as process 1 no default of the system would end it
        self.came = True
        if self.loop:
            self.loop.call_soon_threadsafe(self.stop.interrupt)


async def _run(job: Job, adapter: Adapter, listen: Listener, interruption: Interruption) -> Results:
    interruption.loop = asyncio.get_running_loop()
    if interruption.came:
        interruption.stop.interrupt()
    try:
        return await evaluate(job, adapter, listen=listen, stop=interruption.stop)
    finally:
        interruption.over = True


@contextmanager
def _listening(settings: RunSettings, planned: Plan, console: Console) -> Iterator[Listener]:
    if settings.quiet:
        yield progress.silent
    elif console.stream.isatty():
        with progress.live(planned, console) as listen:
            yield listen
    else:
        yield progress.lines(planned, console)


def _adapter(settings: RunSettings, environ: Mapping[str, str]) -> Adapter:
    return Adapter(
        provider=settings.provider,
        llm_key=_llm_key(settings, environ),
        judge_model=settings.judge_model,
        user_model=settings.user_model,
        key_header=settings.agent_key_header,
        headers=_headers(settings.agent_headers),
        agent_id_in=settings.agent_id_in,
        task_origin_type=settings.task_origin_type,
        debug=settings.debug,
    )


def _llm_key(settings: RunSettings, environ: Mapping[str, str]) -> str | None:
    if settings.provider is Provider.OFFLINE:
        return None
    own = f"{settings.provider.upper()}_API_KEY"
    return settings.llm_key or environ.get("LLM_API_KEY") or environ.get(own) or None


def _headers(text: str | None) -> dict[str, str]:
    headers = {}
    for line in (text or "").splitlines():
        name, colon, value = line.partition(":")
        if line.strip() and not (colon and name.strip() and value.strip()):
            raise UsageError("--agent-headers: a line is not of the form NAME: VALUE")
        if line.strip():
            headers[name.strip()] = value.strip()
    return headers


def _redactor(
    settings: RunSettings, adapter: Adapter, loaded: Sequence[LoadedSuite], environ: Mapping[str, str]
) -> Redactor:
    keys = [
        *environment_keys(environ),
        settings.llm_key or "",
        settings.agent_key or "",
        *keys_of(adapter, loaded),
    ]
    return Redactor(keys=keys, values={value for item in loaded for value in item.secrets})


def _short_keys(adapter: Adapter, loaded: Sequence[LoadedSuite]) -> tuple[str, ...]:
    short = [key for key in keys_of(adapter, loaded) if key.strip() and len(key.strip()) < MIN_LENGTH]
    if not short:
        return ()
    return (f"a key has fewer than {MIN_LENGTH} characters and is not redacted in the reports",)
